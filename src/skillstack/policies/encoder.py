"""What every level is made of (appendix B of the paper): visual encoder, instruction encoder, fusion and LSTM.

All weights start as PyTorch starts them: the paper names sizes, and no initialisation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from skillstack.errors import SkillstackError

CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Filters, kernel size and stride of each convolution."""

VISUAL_SIZE = 256
WORD_SIZE = 128
FUSED_SIZE = VISUAL_SIZE + WORD_SIZE
HIDDEN_SIZE = 256


class VisualEncoder(nn.Module):
    """Appendix B, "Visual Encoder": frames, as a world gives them, to 256 features each."""

    def __init__(self, image_shape: tuple[int, int, int]) -> None:
        super().__init__()
        height, width, channels = image_shape
        convolutions: list[nn.Module] = []
        for filters, kernel, stride in CONVOLUTIONS:
            convolutions += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU(inplace=True)]
            channels = filters
        self.convolutions = nn.Sequential(*convolutions)
        self.fully_connected = nn.Linear(channels * _convolved(height) * _convolved(width), VISUAL_SIZE)

    def forward(self, frames: Tensor) -> Tensor:
        # A frame has its channels last, and stays so: the permutation copies nothing, and the convolutions are about a
        # tenth faster on such memory than on channels that lie apart (64 or 128 frames, one thread).
        channels_first = frames.permute(0, 3, 1, 2)  # (n, height, width, 3) -> (n, 3, height, width)
        pixels = channels_first.to(torch.float32, copy=True).div_(255)
        maps: Tensor = self.convolutions(pixels)  # (n, 64, 7, 7) for 84 x 84
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

    def forward(self, tasks: Tensor) -> Tensor:
        skills, items = tasks.unbind(-1)  # (n, 2) -> (n,) each
        bag: Tensor = self.skills(skills) + self.items(items)
        return bag  # (n, 128)


class LstmState(NamedTuple):
    """What a level remembers of its run; a run starts from zeros."""

    hidden: Tensor  # (n, 256)
    cell: Tensor  # (n, 256)

    @staticmethod
    def zeros(n: int) -> LstmState:
        return LstmState(torch.zeros(n, HIDDEN_SIZE), torch.zeros(n, HIDDEN_SIZE))


class RecurrentTrunk(nn.Module):
    """Appendix B, "Fusion" and "LSTM": features and an instruction to the hidden layer that all heads read.

    It takes features and not frames, so that levels which share a visual encoder also share its work.
    """

    def __init__(self, num_skills: int, num_items: int) -> None:
        super().__init__()
        self.instruction = InstructionEncoder(num_skills, num_items)
        self.lstm = nn.LSTM(FUSED_SIZE, HIDDEN_SIZE)

    def step(self, features: Tensor, tasks: Tensor, state: LstmState) -> tuple[Tensor, LstmState]:
        """One decision of n runs, for acting."""
        fused = torch.cat([features, self.instruction(tasks)], dim=-1)  # (n, 256), (n, 2) -> (n, 384)
        # The weights of `self.lstm`, whose own call has some overhead that a single step need not pay.
        hidden, cell = torch.lstm_cell(fused, state, *self.lstm.all_weights[0])
        return hidden, LstmState(hidden, cell)  # (n, 256)

    def unroll(self, features: Tensor, tasks: Tensor) -> Tensor:
        """All decisions of n runs from their start, for learning; shorter runs are padded at the end."""
        words = self.instruction(tasks).expand(len(features), -1, -1)  # (n, 128) -> (t, n, 128)
        fused = torch.cat([features, words], dim=-1)  # (t, n, 384)
        hidden: Tensor = self.lstm(fused)[0]
        return hidden  # (t, n, 256)


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
