"""The LSTM that learns from runs of different lengths is PyTorch's own, values and gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from skillstack.policies.lstm import FEW, unroll_packed


@pytest.mark.parametrize(
    "sizes",
    [[1], [3], [1, 1, 1], [4, 4, 2, 1, 1], [5, 3, 3], [FEW + 1], [FEW + 3, FEW + 1], [FEW + 3, FEW + 2, FEW, 3, 1]],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("loud", [1.0, 1e-3, 100.0])
def test_same_as_pytorchs(sizes: list[int], dtype: torch.dtype, loud: float) -> None:
    """For inputs near zero, too, and such that gates are shut or wide open."""
    torch.manual_seed(0)
    lstm = nn.LSTM(6, 5).to(dtype)
    inputs = (loud * torch.randn(sum(sizes), 6, dtype=dtype)).requires_grad_()
    weight = torch.randn(sum(sizes), 5, dtype=dtype)

    def gradients(hidden: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad((hidden * weight).sum(), [inputs, *lstm.parameters()]))

    mine = unroll_packed(lstm, inputs, sizes)
    its = lstm(PackedSequence(inputs, torch.tensor(sizes)))[0].data
    torch.testing.assert_close(mine, its)
    for my_gradient, its_gradient in zip(gradients(mine), gradients(its), strict=True):
        torch.testing.assert_close(my_gradient, its_gradient)


def test_gradients_are_those_of_finite_differences() -> None:
    torch.manual_seed(1)
    lstm = nn.LSTM(3, 2).double()
    inputs = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda inputs, *_: unroll_packed(lstm, inputs, [3, 2, 1]), (inputs, *lstm.parameters())
    )
