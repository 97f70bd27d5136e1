from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.policies.encoder import LstmState
from skillstack.policies.grammar import ACT, CALL
from skillstack.policies.hierarchical import HierarchicalOutput, HierarchicalPolicy

torch.set_num_threads(1)


def small_policy() -> HierarchicalPolicy:
    return HierarchicalPolicy(num_skills=3, num_items=4, num_base_skills=2, num_base_items=3, num_actions=5)


def test_the_switch_is_numbered_as_in_the_paper() -> None:
    assert (CALL, ACT) == (0, 1)


@pytest.mark.parametrize(("level", "total"), [(1, 663_572), (2, 663_957), (3, 664_342)])
def test_a_level_of_six_colours_has_the_papers_parameters(level: int, total: int) -> None:
    words = 128 * (level + 1 + 6)
    lstm = 657_408
    switch = 256 * 2 + 2
    skill, item = 256 * level + level, 256 * 6 + 6  # the level below knows as many skills as this level's number
    augmented = 256 * 8 + 8
    value, switch_value = 256 + 1, 256 * 2 + 2
    policy = HierarchicalPolicy(
        num_skills=level + 1, num_items=6, num_base_skills=level, num_base_items=6, num_actions=8
    )
    counted = sum(parameter.numel() for parameter in policy.parameters())
    assert counted == words + lstm + switch + skill + item + augmented + value + switch_value == total


def assert_shapes(output: HierarchicalOutput, leading: tuple[int, ...], skills: int, items: int, actions: int) -> None:
    assert output.switch.shape == (*leading, 2)
    assert output.skill.shape == (*leading, skills)
    assert output.item.shape == (*leading, items)
    assert output.action.shape == (*leading, actions)
    assert output.value.shape == leading
    assert output.switch_value.shape == (*leading, 2)


@settings(max_examples=15, deadline=None)
@given(
    base_skills=st.integers(1, 4),
    base_items=st.integers(1, 7),
    more_skills=st.integers(0, 2),
    more_items=st.integers(0, 2),
    actions=st.integers(1, 20),
    n=st.integers(1, 4),
)
def test_any_vocabulary_and_any_number_of_actions_will_do(
    base_skills: int, base_items: int, more_skills: int, more_items: int, actions: int, n: int
) -> None:
    skills, items = base_skills + more_skills, base_items + more_items
    policy = HierarchicalPolicy(
        num_skills=skills,
        num_items=items,
        num_base_skills=base_skills,
        num_base_items=base_items,
        num_actions=actions,
    )
    last_words = torch.tensor([[skills - 1, items - 1]]).expand(n, 2)
    output, state = policy.step(torch.rand(n, 256), last_words, LstmState.zeros(n))
    assert_shapes(output, (n,), base_skills, base_items, actions)
    assert state.hidden.shape == state.cell.shape == (n, 256)
    assert_shapes(policy.unroll(torch.rand(3, n, 256), last_words), (3, n), base_skills, base_items, actions)


def test_unrolling_a_run_gives_what_stepping_through_it_gave() -> None:
    policy = small_policy()
    features, tasks = torch.rand(6, 3, 256), torch.tensor([[0, 0], [2, 3], [1, 1]])
    unrolled = policy.unroll(features, tasks)
    state = LstmState.zeros(3)
    for t in range(6):
        output, state = policy.step(features[t], tasks, state)
        for stepped, whole in zip(output, unrolled, strict=True):
            torch.testing.assert_close(stepped, whole[t])


@pytest.mark.parametrize("name", HierarchicalOutput._fields)
def test_each_head_is_one_linear_layer_of_its_own_over_the_common_trunk(name: str) -> None:
    policy = small_policy()
    output = policy.unroll(torch.rand(2, 2, 256), torch.tensor([[0, 0], [2, 3]]))
    getattr(output, name).sum().backward()
    touched = {key for key, parameter in policy.named_parameters() if parameter.grad is not None}
    trunk = {key for key, _ in policy.named_parameters() if key.startswith("trunk.")}
    assert touched == trunk | {f"{name}_head.weight", f"{name}_head.bias"}


def test_the_two_values_of_the_switch_are_learned_apart() -> None:
    policy = small_policy()
    output = policy.unroll(torch.rand(1, 2, 256), torch.tensor([[0, 0], [2, 3]]))
    torch.autograd.backward(output.switch_value[..., CALL].sum())
    gradient = policy.switch_value_head.weight.grad
    assert gradient is not None
    assert gradient[CALL].any()
    assert not gradient[ACT].any()
