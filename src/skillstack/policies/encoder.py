"""What every level is made of (appendix B of the paper): visual encoder, instruction encoder, fusion and LSTM.

The paper names sizes, and no initialisation. With PyTorch's own, what an untrained encoder says of a frame is a
hundredth of what the words say, and learning to see takes twice as long (docs/decisions.md). So layers start
orthogonal, such that frames arrive at the fusion about as loud as words, and policies start near uniform.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from skillstack.errors import SkillstackError
from skillstack.policies.lstm import unroll_packed
from skillstack.policies.products import Linear

CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, kernel size and stride of each convolution."""

PIXEL_MEAN, PIXEL_SCALE = 115.0, 3.0 / 255.0
"""Frames are centred and spread out before the first convolution."""

VISUAL_SIZE = 256
WORD_SIZE = 128
FUSED_SIZE = VISUAL_SIZE + WORD_SIZE
HIDDEN_SIZE = 256

APART = 3.0
"""How much farther apart than usual the words of skills start in a level that inherits the trunk below."""


class VisualEncoder(nn.Module):
    """Appendix B, "Visual Encoder": frames, as a world gives them, to 256 features each.

    Where words gate what is seen (see `Gate`), it ends with the convolutions' maps, as the layer after them comes
    behind the gate.
    """

    def __init__(self, image_shape: tuple[int, int, int], *, gated: bool = False) -> None:
        super().__init__()
        height, width, channels = image_shape
        convolutions: list[nn.Module] = []
        for filters, kernel, stride in CONVOLUTIONS:
            convolutions += [_start(nn.Conv2d(channels, filters, kernel, stride), 2**0.5), nn.ReLU(inplace=True)]
            channels = filters
        self.convolutions = nn.Sequential(*convolutions)
        self.fully_connected = None if gated else _from_maps(channels * _convolved(height) * _convolved(width))

    def forward(self, frames: Tensor) -> Tensor:
        # A frame has its channels last, and stays so: the permutation copies nothing, and the convolutions are about a
        # tenth faster on such memory than on channels that lie apart (64 or 128 frames, one thread).
        channels_first = frames.permute(0, 3, 1, 2)  # (n, height, width, 3) -> (n, 3, height, width)
        pixels = channels_first.to(torch.float32, copy=True).sub_(PIXEL_MEAN).mul_(PIXEL_SCALE)
        maps: Tensor = self.convolutions(pixels)  # (n, 64, 7, 7) for 84 x 84
        if self.fully_connected is None:
            return maps.flatten(1)  # (n, 3136)
        features: Tensor = self.fully_connected(maps.flatten(1)).relu_()
        return features  # (n, 256)


class InstructionEncoder(nn.Module):
    """Appendix B, "Instruction Encoder": the bag of an instruction's two words, 128 numbers.

    Skills and items have a table each. That is as many parameters as one table for all words, and a word's number
    stays the same when words of the other kind are added.
    """

    def __init__(self, num_skills: int, num_items: int) -> None:
        super().__init__()
        self.skills = nn.Embedding(num_skills, WORD_SIZE)
        self.items = nn.Embedding(num_items, WORD_SIZE)
        for table in (self.skills, self.items):
            nn.init.normal_(table.weight, std=0.5)

    def forward(self, tasks: Tensor) -> Tensor:
        skills, items = tasks.unbind(-1)  # (n, 2) -> (n,) each
        bag: Tensor = self.skills(skills) + self.items(items)
        return bag  # (n, 128)


class Gate(nn.Module):
    """Gated attention (Chaplot et al. 2018): the words say how much each of the convolutions' maps counts.

    In place of the paper's plain concatenation, with which the words are not listened to (docs/decisions.md).
    """

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.channels = CONVOLUTIONS[-1][0]
        self.maps = _start(nn.Linear(WORD_SIZE, self.channels), 1.0)
        self.fully_connected = _from_maps(self.channels * _convolved(image_shape[0]) * _convolved(image_shape[1]))

    def forward(self, maps: Tensor, words: Tensor) -> Tensor:
        share = 2 * self.maps(words).sigmoid().unsqueeze(-1)  # (..., 64, 1), about 1 at first
        heard = maps.reshape(*maps.shape[:-1], self.channels, -1) * share  # (..., 64, 49)
        features: Tensor = self.fully_connected(heard.flatten(-2)).relu()
        return features  # (..., 256)


class LstmState(NamedTuple):
    """What a level remembers of its run; a run starts from zeros."""

    hidden: Tensor  # (n, 256)
    cell: Tensor  # (n, 256)

    @staticmethod
    def zeros(n: int, size: int = HIDDEN_SIZE) -> LstmState:
        return LstmState(torch.zeros(n, size), torch.zeros(n, size))


class RecurrentTrunk(nn.Module):
    """Appendix B, "Fusion" and "LSTM": features and an instruction to the hidden layer that all heads read.

    It takes features and not frames, so that levels which share a visual encoder also share its work.
    """

    def __init__(self, num_skills: int, num_items: int, gate: Gate | None = None, hidden: int = HIDDEN_SIZE) -> None:
        super().__init__()
        self.instruction = InstructionEncoder(num_skills, num_items)
        self.gate = gate
        self.lstm = nn.LSTM(FUSED_SIZE, hidden)
        for name, parameter in self.lstm.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(parameter)
                continue
            for part in parameter.data.chunk(4):  # one for each of the LSTM's own gates
                nn.init.orthogonal_(part)

    def step(self, features: Tensor, tasks: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        """One decision of n runs, for acting."""
        fused = self._fuse(features, self.instruction(tasks))  # (n, 256), (n, 2) -> (n, 384)
        # The weights of `self.lstm`, whose own call has some overhead that a single step need not pay.
        hidden, cell = torch.lstm_cell(fused, state, *self.lstm.all_weights[0])
        return hidden, LstmState(hidden, cell)  # (n, 256)

    def unroll(self, features: Tensor, tasks: Tensor, there: Tensor | None = None) -> Tensor:
        """All decisions of n runs from their start, for learning: features (t, n, 256), hidden layers (t, n, 256).

        Runs of different lengths stand in order, the longest first. Then `there` (t, n) says which decisions there are,
        and features are of these alone, (m, 256), moment by moment: nothing is worked out for the others.
        """
        words = self.instruction(tasks)  # (n, 128)
        if there is None:
            fused = self._fuse(features, words.expand(len(features), -1, -1))  # (t, n, 384)
            return cast(Tensor, self.lstm(fused)[0])  # (t, n, 256)
        places = there.view(-1).nonzero()[:, 0]  # (m,)
        fused = self._fuse(features, words[places % len(words)])  # (m, 384)
        packed = unroll_packed(self.lstm, fused, there.sum(1).tolist())  # (m, 256)
        unrolled = packed.new_zeros(there.numel(), packed.shape[-1]).index_copy(0, places, packed)
        return unrolled.view(*there.shape, -1)  # (t, n, 256)

    @torch.no_grad()
    def inherit(self, below: RecurrentTrunk) -> None:
        """Start with what another one has learned to see and to remember.

        Words of items that are new start near the known ones. Words of skills start anew and far apart: for the trunk
        below, some mean nearly the same, as "get" begins with "find", and a level that does not tell them apart will
        not learn to pass "get" on.
        """
        known = len(below.instruction.items.weight)
        items = self.instruction.items.weight
        items[known:] = below.instruction.items.weight.mean(0) + 0.1 * items[known:]
        items[:known] = below.instruction.items.weight
        self.instruction.skills.weight *= APART
        self.lstm.load_state_dict(below.lstm.state_dict())
        if self.gate is not None and below.gate is not None:
            self.gate.load_state_dict(below.gate.state_dict())

    @torch.no_grad()
    def silence(self, known: int) -> None:
        """Let the words of all skills but the first `known` say nothing: all they bring to the bag is zeros.

        A word that was never trained is else as loud as any other, and drowns the item beside it.
        """
        self.instruction.skills.weight[known:] = 0.0

    def _fuse(self, features: Tensor, words: Tensor) -> Tensor:
        seen = features if self.gate is None else self.gate(features, words)
        return torch.cat([seen, words], dim=-1)


def _from_maps(size: int) -> nn.Linear:
    """The layer from the convolutions' maps to the features."""
    return _start(Linear(size, VISUAL_SIZE), 2**0.5)


def policy_head(choices: int, hidden: int = HIDDEN_SIZE) -> nn.Linear:
    """Logits of some choices, near uniform at first, so that nothing is preferred before it is learned."""
    return _start(nn.Linear(hidden, choices), 0.01)


def value_head(values: int = 1, hidden: int = HIDDEN_SIZE) -> nn.Linear:
    """Values, small at first."""
    return _start(nn.Linear(hidden, values), 0.1)


Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def _start(layer: Layer, gain: float) -> Layer:
    """A layer with orthogonal weights and no bias."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None, "all our layers have a bias"
    nn.init.zeros_(layer.bias)
    return layer


def smallest_side() -> int:
    """The least height or width of a frame from which the convolutions leave anything.

    >>> smallest_side()
    36
    """
    side = 1
    for _, kernel, stride in reversed(CONVOLUTIONS):
        side = (side - 1) * stride + kernel
    return side


def _convolved(side: int) -> int:
    """What the convolutions leave of a frame's height or width: 7 of 84."""
    least = smallest_side()
    if side < least:
        raise SkillstackError(
            f"Frames {side} pixels high or wide are too small for the convolutions; the smallest are {least} x {least}."
        )
    for _, kernel, stride in CONVOLUTIONS:
        side = (side - kernel) // stride + 1
    return side
