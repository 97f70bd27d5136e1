from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skillstack.policies.encoder import LstmState
from skillstack.policies.flat import FlatPolicy

torch.set_num_threads(1)


def test_the_terminal_policy_of_six_colours_has_the_papers_parameters() -> None:
    words = 128 * (1 + 6)  # find; six colours
    lstm = 657_408
    action, value = 256 * 8 + 8, 256 + 1
    policy = FlatPolicy(num_skills=1, num_items=6, num_actions=8)
    assert sum(parameter.numel() for parameter in policy.parameters()) == words + lstm + action + value == 660_617


@settings(max_examples=15, deadline=None)
@given(skills=st.integers(1, 5), items=st.integers(1, 9), actions=st.integers(1, 20), n=st.integers(1, 5))
def test_any_vocabulary_and_any_number_of_actions_will_do(skills: int, items: int, actions: int, n: int) -> None:
    policy = FlatPolicy(num_skills=skills, num_items=items, num_actions=actions)
    last_words = torch.tensor([[skills - 1, items - 1]]).expand(n, 2)
    output, state = policy.step(torch.rand(n, 256), last_words, LstmState.zeros(n))
    assert output.action.shape == (n, actions)
    assert output.value.shape == (n,)
    assert state.hidden.shape == state.cell.shape == (n, 256)


def test_unrolling_a_run_gives_what_stepping_through_it_gave() -> None:
    policy = FlatPolicy(num_skills=2, num_items=3, num_actions=8)
    features, tasks = torch.rand(7, 4, 256), torch.tensor([[0, 0], [1, 2], [0, 1], [1, 0]])
    unrolled = policy.unroll(features, tasks)
    assert unrolled.action.shape == (7, 4, 8)
    assert unrolled.value.shape == (7, 4)
    state = LstmState.zeros(4)
    for t in range(7):
        output, state = policy.step(features[t], tasks, state)
        torch.testing.assert_close(output.action, unrolled.action[t])
        torch.testing.assert_close(output.value, unrolled.value[t])


def test_each_of_several_runs_is_decided_as_if_it_were_alone() -> None:
    policy = FlatPolicy(num_skills=1, num_items=3, num_actions=8)
    features, tasks = torch.rand(3, 256), torch.tensor([[0, 0], [0, 1], [0, 2]])
    together, _ = policy.step(features, tasks, LstmState.zeros(3))
    for run in range(3):
        alone, _ = policy.step(features[run : run + 1], tasks[run : run + 1], LstmState.zeros(1))
        torch.testing.assert_close(alone.action[0], together.action[run])


def test_the_instruction_and_the_past_both_matter() -> None:
    policy = FlatPolicy(num_skills=1, num_items=2, num_actions=8)
    features = torch.rand(1, 256)
    red, state = policy.step(features, torch.tensor([[0, 0]]), LstmState.zeros(1))
    blue, _ = policy.step(features, torch.tensor([[0, 1]]), LstmState.zeros(1))
    later, _ = policy.step(features, torch.tensor([[0, 0]]), state)
    assert not torch.allclose(red.action, blue.action)
    assert not torch.allclose(red.action, later.action)
