from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from skillstack.errors import SkillstackError
from skillstack.policies.encoder import APART, Gate, InstructionEncoder, LstmState, RecurrentTrunk, VisualEncoder
from skillstack.policies.flat import FlatPolicy

torch.set_num_threads(1)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def random_frames(n: int, height: int = 84, width: int = 84) -> Tensor:
    generator = torch.Generator().manual_seed(n)
    return torch.randint(0, 256, (n, height, width, 3), dtype=torch.uint8, generator=generator)


def test_the_visual_encoder_has_the_papers_parameters() -> None:
    first = 32 * (3 * 8 * 8) + 32  # 6,176
    second = 64 * (32 * 4 * 4) + 64  # 32,832
    third = 64 * (64 * 3 * 3) + 64  # 36,928
    fully_connected = 256 * 3136 + 256  # 803,072
    assert count(VisualEncoder((84, 84, 3))) == first + second + third + fully_connected == 879_008


def test_the_visual_encoder_is_three_convolutions_and_a_layer_over_centred_pixels() -> None:
    encoder = VisualEncoder((84, 84, 3))
    frames = random_frames(3)
    first, second, third = (layer for layer in encoder.convolutions if isinstance(layer, nn.Conv2d))

    x = ((frames.to(torch.float32) - 115) * 3 / 255).permute(0, 3, 1, 2).contiguous()
    x = functional.conv2d(x, first.weight, first.bias, stride=4).relu()
    x = functional.conv2d(x, second.weight, second.bias, stride=2).relu()
    x = functional.conv2d(x, third.weight, third.bias, stride=1).relu()
    assert x.shape == (3, 64, 7, 7)
    x = functional.linear(x.reshape(3, 3136), encoder.fully_connected.weight, encoder.fully_connected.bias).relu()

    torch.testing.assert_close(encoder(frames), x)


def test_an_untrained_encoder_tells_frames_apart_about_as_loudly_as_words() -> None:
    torch.manual_seed(0)
    features = VisualEncoder((84, 84, 3))(random_frames(64))
    words = InstructionEncoder(4, 6)(torch.tensor([[skill, item] for skill in range(4) for item in range(6)]))
    assert 0.25 < features.std(dim=0).mean() / words.std(dim=0).mean() < 4


def test_an_untrained_policy_is_near_uniform() -> None:
    torch.manual_seed(0)
    policy = FlatPolicy(num_skills=1, num_items=6, num_actions=8)
    output, _ = policy.step(torch.rand(16, 256), torch.zeros(16, 2, dtype=torch.long), LstmState.zeros(16))
    assert (output.action.softmax(-1) - 1 / 8).abs().max() < 0.01


def test_a_gated_encoder_gives_the_convolutions_maps_and_the_gate_the_features() -> None:
    torch.manual_seed(0)
    encoder, gate = VisualEncoder((84, 84, 3), gated=True), Gate((84, 84, 3))
    maps = encoder(random_frames(2))
    assert maps.shape == (2, 3136)
    nn.init.zeros_(gate.maps.weight)  # all words let all maps through as they are
    expected = functional.linear(maps, gate.fully_connected.weight, gate.fully_connected.bias).relu()
    torch.testing.assert_close(gate(maps, torch.randn(2, 128)), expected)


def test_words_that_close_a_map_hide_what_is_on_it() -> None:
    torch.manual_seed(0)
    gate = Gate((84, 84, 3))
    words, maps = torch.randn(1, 128), torch.rand(1, 3136)
    with torch.no_grad():
        gate.maps.weight.zero_()
        gate.maps.bias[5] = -200.0
    changed = maps.clone()
    changed[:, 5 * 49 : 6 * 49] += 1.0
    torch.testing.assert_close(gate(maps, words), gate(changed, words))
    changed[:, :49] += 1.0
    assert not torch.allclose(gate(maps, words), gate(changed, words))


@pytest.mark.parametrize("gated", [False, True])
def test_with_a_gate_too_steps_and_unrolls_are_the_same(gated: bool) -> None:
    torch.manual_seed(0)
    trunk = RecurrentTrunk(2, 3, Gate((36, 36, 3)) if gated else None)
    seen, tasks = torch.rand(5, 2, 64 if gated else 256), torch.tensor([[0, 1], [1, 2]])
    unrolled, state = trunk.unroll(seen, tasks), LstmState.zeros(2)
    for t in range(5):
        hidden, state = trunk.step(seen[t], tasks, state)
        torch.testing.assert_close(hidden, unrolled[t])


def test_encoding_leaves_the_frames_as_they_were() -> None:
    frames = random_frames(2)
    before = frames.clone()
    VisualEncoder((84, 84, 3))(frames)
    assert torch.equal(frames, before)
    floats = before.to(torch.float32)
    VisualEncoder((84, 84, 3))(floats)
    assert torch.equal(floats, before.to(torch.float32))


@pytest.mark.parametrize(("height", "width"), [(36, 36), (36, 100), (84, 60), (128, 128)])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_any_number_of_frames_of_any_size_that_the_convolutions_admit_gives_256_features_each(
    n: int, height: int, width: int
) -> None:
    assert VisualEncoder((height, width, 3))(random_frames(n, height, width)).shape == (n, 256)


def test_frames_may_have_other_channels_than_three() -> None:
    assert VisualEncoder((40, 40, 1))(torch.zeros(2, 40, 40, 1, dtype=torch.uint8)).shape == (2, 256)


@pytest.mark.parametrize("image_shape", [(35, 84, 3), (84, 35, 3), (7, 7, 3)])
def test_too_small_a_frame_is_refused_with_the_smallest_that_works(image_shape: tuple[int, int, int]) -> None:
    with pytest.raises(SkillstackError, match=r"the smallest are 36 x 36\.$"):
        VisualEncoder(image_shape)


def test_an_instruction_is_the_sum_of_its_two_words() -> None:
    encoder = InstructionEncoder(4, 6)
    assert count(encoder) == 128 * (4 + 6)
    bag = encoder(torch.tensor([[3, 0], [0, 5]]))
    assert bag.shape == (2, 128)
    assert torch.equal(bag[0], encoder.skills.weight[3] + encoder.items.weight[0])
    assert torch.equal(bag[1], encoder.skills.weight[0] + encoder.items.weight[5])


def test_the_trunk_has_an_lstm_of_384_inputs_and_256_units() -> None:
    words = 128 * (1 + 6)
    lstm = 4 * 256 * (384 + 256) + 2 * 4 * 256  # PyTorch's LSTM has a bias for the inputs and one for the hidden units
    assert lstm == 657_408
    assert count(RecurrentTrunk(1, 6)) == words + lstm


def test_the_trunk_computes_the_lstm_equations() -> None:
    trunk = RecurrentTrunk(1, 2)
    features, tasks = torch.rand(3, 256), torch.tensor([[0, 0], [0, 1], [0, 0]])
    state = LstmState(torch.randn(3, 256), torch.randn(3, 256))

    fused = torch.cat([features, trunk.instruction(tasks)], dim=1)
    from_inputs, from_hidden, input_bias, hidden_bias = trunk.lstm.all_weights[0]
    gates = fused @ from_inputs.T + input_bias + state.hidden @ from_hidden.T + hidden_bias
    enter, forget, new, leave = gates.chunk(4, dim=1)
    cell = forget.sigmoid() * state.cell + enter.sigmoid() * new.tanh()

    hidden, after = trunk.step(features, tasks, state)
    torch.testing.assert_close(after.cell, cell)
    torch.testing.assert_close(hidden, leave.sigmoid() * cell.tanh())
    assert torch.equal(hidden, after.hidden)


def test_a_step_leaves_the_state_it_was_given_as_it_was() -> None:
    state = LstmState.zeros(2)
    RecurrentTrunk(1, 1).step(torch.rand(2, 256), torch.zeros(2, 2, dtype=torch.int64), state)
    assert not state.hidden.any()
    assert not state.cell.any()


def test_padding_after_the_end_of_a_run_changes_nothing_before_it() -> None:
    trunk = RecurrentTrunk(2, 2)
    features, tasks = torch.rand(5, 2, 256), torch.tensor([[0, 1], [1, 0]])
    padded = features.clone()
    padded[3:, 0] = 0
    torch.testing.assert_close(trunk.unroll(padded, tasks)[:3], trunk.unroll(features, tasks)[:3])


@pytest.mark.parametrize("gated", [False, True])
def test_runs_of_different_lengths_unroll_as_they_would_with_padding(gated: bool) -> None:
    trunk = RecurrentTrunk(2, 2, Gate((36, 36, 3)) if gated else None)
    features, tasks = torch.rand(5, 3, 64 if gated else 256), torch.tensor([[0, 1], [1, 0], [1, 1]])
    there = torch.arange(5).unsqueeze(1) < torch.tensor([5, 3, 1])
    packed = trunk.unroll(features[there], tasks, there)
    torch.testing.assert_close(packed[there], trunk.unroll(features, tasks)[there])
    assert not packed[~there].any()


def test_a_trunk_inherits_what_another_has_learned_and_new_items_start_near() -> None:
    below, trunk = (RecurrentTrunk(2, items, Gate((36, 36, 3))) for items in (3, 4))
    trunk.inherit(below)
    known = below.instruction.items.weight
    assert torch.equal(trunk.instruction.items.weight[:3], known)
    assert (trunk.instruction.items.weight[3] - known.mean(0)).norm() < 1.0
    trunk.instruction.skills.load_state_dict(below.instruction.skills.state_dict())
    maps, tasks = torch.rand(4, 2, 64), torch.tensor([[0, 1], [1, 2]])
    torch.testing.assert_close(trunk.unroll(maps, tasks), below.unroll(maps, tasks))


def test_skills_start_anew_and_far_apart_in_a_trunk_that_inherits() -> None:
    below, trunk = RecurrentTrunk(2, 3), RecurrentTrunk(3, 3)
    own = trunk.instruction.skills.weight.clone()
    trunk.inherit(below)
    assert torch.equal(trunk.instruction.skills.weight, APART * own)
