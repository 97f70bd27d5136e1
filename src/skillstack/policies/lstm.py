"""An LSTM over runs of different lengths, for learning.

PyTorch's own, over packed sequences, works out the gradient of its weights at each moment and adds up as many copies
of them. Here the gradients of all moments come from one product at the end. And a mini-batch has few runs, so that
calls would take more time than the numbers: moments with few of them are worked out in one compiled pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from skillstack.jit import jit_sums
from skillstack.policies.products import product

Array = npt.NDArray[Any]

FEW = 8
"""Up to so many runs the compiled products are faster than those of a library."""


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
        gates = product(inputs, w_input, b_input + b_hidden)  # (m, 4 * hidden)
        hidden, cell, squashed = (gates.new_empty(len(gates), w_hidden.shape[1]) for _ in range(3))  # (m, hidden)
        starts, many = _starts(sizes), _many(sizes)
        arrays = (gates.numpy(), hidden.numpy(), cell.numpy(), squashed.numpy(), w_hidden.detach().numpy())
        for moment in range(many):
            if moment > 0:
                gates[_rows(starts, moment)] += product(hidden[_rows_before(starts, moment)], w_hidden)
            _forth(*arrays, starts, moment, moment + 1, False)
        _forth(*arrays, starts, many, len(sizes), True)
        ctx.save_for_backward(inputs, w_input, w_hidden, gates, hidden, cell, squashed)
        ctx.sizes = sizes
        return hidden

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, w_input, w_hidden, gates, hidden, cell, squashed = ctx.saved_tensors
        starts, many, end = _starts(ctx.sizes), _many(ctx.sizes), len(ctx.sizes)
        d_hidden, d_cell, d_gates = grad.clone(), torch.zeros_like(grad), torch.empty_like(gates)
        seen = (gates.numpy(), cell.numpy(), squashed.numpy(), w_hidden.detach().numpy())
        gradients = (d_hidden.numpy(), d_cell.numpy(), d_gates.numpy())
        _back(*seen, *gradients, starts, many, end, True)
        for moment in reversed(range(many)):
            if moment + 1 < end:
                d_later = d_gates[_rows(starts, moment + 1)]
                d_hidden[_rows_before(starts, moment + 1)] += product(d_later, w_hidden.T)
            _back(*seen, *gradients, starts, moment, moment + 1, False)
        first, before = ctx.sizes[0], torch.from_numpy(_earlier(ctx.sizes))
        d_bias = d_gates.sum(0)
        d_inputs = product(d_gates, w_input.T) if ctx.needs_input_grad[0] else None
        d_recurrent = product(d_gates[first:].T, hidden[before[first:]].T)
        return d_inputs, None, product(d_gates.T, inputs.T), d_recurrent, d_bias, d_bias


@jit_sums
def _forth(
    gates: Array, hidden: Array, cell: Array, squashed: Array, w_hidden: Array, starts: Array,
    moment: int, end: int, multiply: bool,
) -> None:  # fmt: skip
    """From the gates of some moments, before they are squashed, to their hidden layers.

    `multiply`: what the hidden layers of the moment before bring to the gates is still to be added.
    """
    size = cell.shape[1]
    for now in range(moment, end):
        start, stop = starts[now], starts[now + 1]
        last = starts[now - 1] if now > 0 else 0
        if multiply and now > 0:
            _add_products(gates[start:stop], hidden[last : last + stop - start], w_hidden)
        for i in range(start, stop):
            for j in range(size):
                enter, keep = _sigmoid(gates[i, j]), _sigmoid(gates[i, size + j])
                new, leave = _tanh(gates[i, 2 * size + j]), _sigmoid(gates[i, 3 * size + j])
                inside = enter * new
                if now > 0:
                    inside += keep * cell[last + i - start, j]
                out = _tanh(inside)
                gates[i, j], gates[i, size + j] = enter, keep
                gates[i, 2 * size + j], gates[i, 3 * size + j] = new, leave
                cell[i, j], squashed[i, j], hidden[i, j] = inside, out, leave * out


@jit_sums
def _back(
    gates: Array, cell: Array, squashed: Array, w_hidden: Array, d_hidden: Array, d_cell: Array, d_gates: Array,
    starts: Array, moment: int, end: int, multiply: bool,
) -> None:  # fmt: skip
    """From the hidden layers of some moments to their gates, before they were squashed, the last moment first.

    `multiply`: what the gates of the moment after bring to the hidden layers is still to be added.
    """
    size = cell.shape[1]
    for now in range(end - 1, moment - 1, -1):
        start, stop = starts[now], starts[now + 1]
        last = starts[now - 1] if now > 0 else 0
        if multiply and now + 2 < len(starts):
            later = d_gates[stop : starts[now + 2]]
            _add_products_back(d_hidden[start : start + len(later)], later, w_hidden)
        for i in range(start, stop):
            for j in range(size):
                enter, keep = gates[i, j], gates[i, size + j]
                new, leave = gates[i, 2 * size + j], gates[i, 3 * size + j]
                out = squashed[i, j]
                d_here = d_cell[i, j] + d_hidden[i, j] * (leave - leave * out * out)
                d_gates[i, j] = d_here * new * (enter - enter * enter)
                d_gates[i, 2 * size + j] = d_here * (enter - enter * new * new)
                d_gates[i, 3 * size + j] = d_hidden[i, j] * out * (leave - leave * leave)
                d_gates[i, size + j] = 0
                if now > 0:  # else there was nothing to keep
                    d_gates[i, size + j] = d_here * cell[last + i - start, j] * (keep - keep * keep)
                    d_cell[last + i - start, j] = d_here * keep


@jit_sums
def _add_products(gates: Array, hidden: Array, w: Array) -> None:
    """Add to gates (n, 4 * hidden) the product of hidden (n, hidden) and w.T, two rows and two columns at a time."""
    n, size = hidden.shape
    for j in range(0, len(w), 2):
        for i in range(0, n - 1, 2):
            a = b = c = d = w.dtype.type(0)
            for k in range(size):
                a += hidden[i, k] * w[j, k]
                b += hidden[i, k] * w[j + 1, k]
                c += hidden[i + 1, k] * w[j, k]
                d += hidden[i + 1, k] * w[j + 1, k]
            gates[i, j] += a
            gates[i, j + 1] += b
            gates[i + 1, j] += c
            gates[i + 1, j + 1] += d
        for i in range(n - n % 2, n):
            a = b = w.dtype.type(0)
            for k in range(size):
                a += hidden[i, k] * w[j, k]
                b += hidden[i, k] * w[j + 1, k]
            gates[i, j] += a
            gates[i, j + 1] += b


@jit_sums
def _add_products_back(d_hidden: Array, d_gates: Array, w: Array) -> None:
    """Add to d_hidden (n, hidden) the product of d_gates (n, 4 * hidden) and w, two rows and four gates at a time."""
    n, size = d_hidden.shape
    for j in range(0, len(w), 4):
        for i in range(0, n - 1, 2):
            one, two = d_gates[i], d_gates[i + 1]
            for k in range(size):
                a, b, c, d = w[j, k], w[j + 1, k], w[j + 2, k], w[j + 3, k]
                d_hidden[i, k] += one[j] * a + one[j + 1] * b + one[j + 2] * c + one[j + 3] * d
                d_hidden[i + 1, k] += two[j] * a + two[j + 1] * b + two[j + 2] * c + two[j + 3] * d
        for i in range(n - n % 2, n):
            one = d_gates[i]
            for k in range(size):
                d_hidden[i, k] += (
                    one[j] * w[j, k] + one[j + 1] * w[j + 1, k] + one[j + 2] * w[j + 2, k] + one[j + 3] * w[j + 3, k]
                )


@jit_sums
def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + math.exp(-x))


@jit_sums
def _tanh(x: Any) -> Any:
    """By an exponential, which is faster than the library's own; in double precision, as it is a difference."""
    return 1.0 - 2.0 / (math.exp(2.0 * x) + 1.0)


def _many(sizes: Sequence[int]) -> int:
    """How many moments have more than a few runs; they come first.

    >>> _many([12, 9, 8, 3])
    2
    """
    return sum(size > FEW for size in sizes)


def _starts(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """Where each moment's rows begin, and where the last one's end.

    >>> _starts([2, 1]).tolist()
    [0, 2, 3]
    """
    return np.array(list(accumulate(sizes, initial=0)))


def _rows(starts: npt.NDArray[np.int64], moment: int) -> slice:
    return slice(starts[moment], starts[moment + 1])


def _rows_before(starts: npt.NDArray[np.int64], moment: int) -> slice:
    """The rows of the moment before whose runs go on."""
    return slice(starts[moment - 1], starts[moment - 1] + starts[moment + 1] - starts[moment])


def _earlier(sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """For each row the row of the same run a moment before; -1 at the first moment.

    >>> _earlier([3, 2, 1]).tolist()
    [-1, -1, -1, 0, 1, 3]
    """
    number = np.repeat(np.arange(len(sizes)), sizes)  # of each row's moment
    steps = np.array([0, *sizes[:-1]])  # back to the moment before
    return np.where(number > 0, np.arange(len(number)) - steps[number], -1)
