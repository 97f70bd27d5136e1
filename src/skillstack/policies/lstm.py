"""An LSTM over runs of different lengths, for learning.

PyTorch's own, over packed sequences, works out the gradient of its weights at each moment and adds up as many copies
of them. Here the gradients of all moments come from one product at the end, which takes about half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn


def unroll_packed(lstm: nn.LSTM, inputs: Tensor, sizes: Sequence[int]) -> Tensor:
    """Hidden layers (m, hidden) of runs that start from zeros; inputs (m, size) lie moment by moment.

    `sizes` says how many runs there are at each moment. The longest runs come first, so a moment's runs are the first
    of those of the moment before.
    """
    hidden: Tensor = _PackedLstm.apply(inputs, sizes, *lstm.all_weights[0])  # type: ignore[no-untyped-call]
    return hidden


class _PackedLstm(torch.autograd.Function):
    """Gates stand in PyTorch's order: what enters the cell, what it keeps, what would be new in it, what leaves it."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        sizes: Sequence[int],
        w_input: Tensor,
        w_hidden: Tensor,
        b_input: Tensor,
        b_hidden: Tensor,
    ) -> Tensor:
        size = w_hidden.shape[1]
        gates = torch.addmm(b_input + b_hidden, inputs, w_input.T)  # (m, 4 * hidden)
        hidden, cell, squashed = (gates.new_empty(len(gates), size) for _ in range(3))  # (m, hidden)
        recurrent = w_hidden.T
        before: slice | None = None
        for now in _moments(sizes):
            gate = gates[now]  # (n, 4 * hidden)
            if before is not None:
                before = slice(before.start, before.start + len(gate))
                gate.addmm_(hidden[before], recurrent)
            gate[:, : 2 * size].sigmoid_()
            gate[:, 2 * size : 3 * size].tanh_()
            gate[:, 3 * size :].sigmoid_()
            enter, keep, new, leave = gate.chunk(4, 1)
            torch.mul(enter, new, out=cell[now])
            if before is not None:
                cell[now].addcmul_(keep, cell[before])
            torch.tanh(cell[now], out=squashed[now])
            torch.mul(leave, squashed[now], out=hidden[now])
            before = now
        ctx.save_for_backward(inputs, w_input, w_hidden, gates, hidden, cell, squashed)
        ctx.sizes = sizes
        return hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, w_input, w_hidden, gates, hidden, cell, squashed = ctx.saved_tensors
        sizes, size = ctx.sizes, w_hidden.shape[1]
        enter, keep, new, leave = gates.chunk(4, 1)  # (m, hidden) each
        first, earlier = sizes[0], _earlier(sizes)
        by_cell = leave * (1 - squashed * squashed)  # (m, hidden): how the hidden layer changes with the cell
        # How the cell changes with the first three gates before they are squashed, and the hidden layer with the last.
        # Moment by moment, last to first, it is turned into the gradient of these.
        slopes = torch.empty_like(gates)  # (m, 4 * hidden)
        by_enter, by_keep, by_new, by_leave = slopes.chunk(4, 1)
        torch.mul(new * enter, 1 - enter, out=by_enter)
        by_keep[:first] = 0.0
        torch.mul((keep * (1 - keep))[first:], cell[earlier], out=by_keep[first:])
        torch.mul(enter, 1 - new * new, out=by_new)
        torch.mul(squashed * leave, 1 - leave, out=by_leave)
        d_hidden = grad.clone()  # (m, hidden)
        d_later = grad.new_zeros(0, size)  # of the cells, through those of the moment after
        later = slice(0, 0)
        for now in reversed(_moments(sizes)):
            d_hidden[now][: len(d_later)].addmm_(slopes[later], w_hidden)
            d_cell = d_hidden[now] * by_cell[now]  # (n, hidden)
            d_cell[: len(d_later)] += d_later
            slope = slopes[now].view(-1, 4, size)
            slope[:, :3].mul_(d_cell.unsqueeze(1))
            slope[:, 3].mul_(d_hidden[now])
            d_later, later = d_cell.mul_(keep[now]), now
        d_bias = slopes.sum(0)
        d_inputs = slopes @ w_input if ctx.needs_input_grad[0] else None
        return d_inputs, None, slopes.T @ inputs, slopes[first:].T @ hidden[earlier], d_bias, d_bias


def _moments(sizes: Sequence[int]) -> list[slice]:
    """Where each moment's rows are.

    >>> _moments([2, 1])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def _earlier(sizes: Sequence[int]) -> Tensor:
    """For each row after the first moment, the row of the same run a moment before.

    >>> _earlier([3, 2, 1]).tolist()
    [0, 1, 3]
    """
    starts = torch.tensor([moment.start for moment in _moments(sizes)])
    number = torch.tensor(sizes[1:], dtype=torch.int64)
    first_of_moment = (number.cumsum(0) - number).repeat_interleave(number)
    return starts[:-1].repeat_interleave(number) + torch.arange(len(first_of_moment)) - first_of_moment
