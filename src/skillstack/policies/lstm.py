"""An LSTM over runs of different lengths, for learning.

PyTorch's own, over packed sequences, works out the gradient of its weights at each moment and adds up as many copies
of them. Here the gradients of all moments come from one product at the end. And what comes between the products of two
moments on the way back is compiled: a mini-batch has few runs, and calls would take more time than the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from skillstack.jit import jit

Array = npt.NDArray[Any]


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
        first, moments, before = ctx.sizes[0], _moments(ctx.sizes), _earlier(ctx.sizes)
        d_hidden, d_cell, d_gates = grad.clone(), torch.zeros_like(grad), torch.empty_like(gates)
        seen = (gates.numpy(), cell.numpy(), squashed.numpy(), before)
        gradients = (d_hidden.numpy(), d_cell.numpy(), d_gates.numpy())
        later = slice(0, 0)
        for now in reversed(moments):
            d_hidden[now.start : now.start + later.stop - later.start].addmm_(d_gates[later], w_hidden)
            _back(*seen, *gradients, now.start, now.stop)
            later = now
        d_bias = d_gates.sum(0)
        d_inputs = d_gates @ w_input if ctx.needs_input_grad[0] else None
        d_recurrent = d_gates[first:].T @ hidden[torch.from_numpy(before[first:])]
        return d_inputs, None, d_gates.T @ inputs, d_recurrent, d_bias, d_bias


@jit
def _back(
    gates: Array, cell: Array, squashed: Array, before: Array, d_hidden: Array, d_cell: Array, d_gates: Array,
    start: int, end: int,
) -> None:  # fmt: skip
    """From a moment's hidden layers to its gates, before they were squashed, and to the cells of the moment before."""
    size = cell.shape[1]
    for i in range(start, end):
        for j in range(size):
            enter, new, leave = gates[i, j], gates[i, 2 * size + j], gates[i, 3 * size + j]
            out = squashed[i, j]
            d_here = d_cell[i, j] + d_hidden[i, j] * (leave - leave * out * out)
            d_gates[i, j] = d_here * new * (enter - enter * enter)
            d_gates[i, 2 * size + j] = d_here * (enter - enter * new * new)
            d_gates[i, 3 * size + j] = d_hidden[i, j] * out * (leave - leave * leave)
            d_cell[i, j] = d_here
        if start == 0:  # there was nothing to keep
            d_gates[i, size : 2 * size] = 0
            continue
        for j in range(size):
            keep = gates[i, size + j]
            d_gates[i, size + j] = d_cell[i, j] * cell[before[i], j] * (keep - keep * keep)
            d_cell[before[i], j] = d_cell[i, j] * keep


def _moments(sizes: Sequence[int]) -> list[slice]:
    """Where each moment's rows are.

    >>> _moments([2, 1])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def _earlier(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """For each row the row of the same run a moment before; -1 at the first moment.

    >>> _earlier([3, 2, 1]).tolist()
    [-1, -1, -1, 0, 1, 3]
    """
    number = np.repeat(np.arange(len(sizes)), sizes)  # of each row's moment
    steps = np.array([0, *sizes[:-1]])  # back to the moment before
    return np.where(number > 0, np.arange(len(number)) - steps[number], -1)
