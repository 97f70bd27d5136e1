"""Products of matrices for learning from small batches, by oneDNN where PyTorch has it.

PyTorch's own are MKL's, which takes a slower way on processors that are not Intel's: on an AMD EPYC, with mini-batches
of 36 decisions, oneDNN takes half the time (on Intel's it was not measured). Acting stays with PyTorch's own: what is
rounded otherwise may end in another choice, and the same seeds should go on giving the same games.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

SMALL = 128
"""Larger batches stay with PyTorch's own: oneDNN keeps a program of some hundred kilobytes for each size it has met."""


def product(rows: Tensor, columns: Tensor, bias: Tensor | None = None) -> Tensor:
    """Each row times each column, and a bias: (m, k) and (n, k) to (m, n).

    >>> product(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [5.0, 6.0]]), torch.tensor([0.5, 0.0])).tolist()
    [[11.5, 17.0]]
    """
    if FAST and rows.dtype == torch.float32 and 0 < min(rows.shape) <= SMALL:
        return _by_onednn(rows, columns, bias)
    return nn.functional.linear(rows, columns, bias)


def _by_onednn(rows: Tensor, columns: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(rows, columns, bias, "none", [], "")
    return found


def _has_onednn() -> bool:
    """Whether this PyTorch has it; the operation is one that compiled models use, and may change its name one day."""
    try:
        return _by_onednn(torch.ones(1, 1), torch.ones(1, 1), None).item() == 1.0
    except (AttributeError, RuntimeError, TypeError):
        return False


FAST = _has_onednn()


class Linear(nn.Linear):
    """As PyTorch's, but faster to learn with."""

    def forward(self, inputs: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return super().forward(inputs)
        rows: Tensor = _Linear.apply(inputs.reshape(-1, self.in_features), self.weight, self.bias)  # type: ignore[no-untyped-call]
        return rows.view(*inputs.shape[:-1], self.out_features)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return product(inputs, weight, bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        for_inputs, for_weight, for_bias = ctx.needs_input_grad
        return (
            product(grad, weight.T) if for_inputs else None,
            product(grad.T, inputs.T) if for_weight else None,
            grad.sum(0) if for_bias else None,
        )
