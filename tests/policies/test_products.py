"""Products that learning takes are PyTorch's own, values and gradients, and acting takes PyTorch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from skillstack.policies import products
from skillstack.policies.products import SMALL, Linear, product


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (36, 384, 1024), (SMALL + 1, 256, 64), (5, 0, 3), (0, 4, 3)])
@pytest.mark.parametrize("turned", [False, True])
def test_products_are_pytorchs(
    fast: bool, m: int, k: int, n: int, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order that matrices have in memory, and where there is nothing to multiply, too."""
    if fast and not products.FAST:
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(products, "FAST", fast)
    torch.manual_seed(0)
    rows, columns = torch.randn(m, k), torch.randn(n, k)
    if turned:
        rows, columns = torch.randn(k, m).T, torch.randn(k, n).T
    expected = (rows.double() @ columns.double().T).float()
    torch.testing.assert_close(product(rows, columns), expected, rtol=1e-4, atol=1e-4)
    bias = torch.randn(n)
    torch.testing.assert_close(product(rows, columns, bias), expected + bias, rtol=1e-4, atol=1e-4)


def test_gradients_of_a_layer_are_those_of_finite_differences() -> None:
    torch.manual_seed(0)
    layer = Linear(3, 2).double()
    inputs = torch.randn(4, 5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda inputs, *_: layer(inputs), (inputs, *layer.parameters()))


def test_a_layer_works_out_the_gradients_that_are_asked_for_alone() -> None:
    layer = Linear(3, 2)
    layer.weight.requires_grad_(False)
    layer(torch.ones(4, 3)).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    without = Linear(3, 2, bias=False)
    without(torch.ones(4, 3)).sum().backward()
    assert without.weight.grad is not None


def test_a_layer_learns_as_pytorchs_does_and_acts_with_its_very_numbers() -> None:
    torch.manual_seed(0)
    mine, its = Linear(64, 32), nn.Linear(64, 32)
    its.load_state_dict(mine.state_dict())
    inputs, weight = torch.randn(36, 64), torch.randn(36, 32)
    for layer in (mine, its):
        (layer(inputs) * weight).sum().backward()
    for parameter, other in zip(mine.parameters(), its.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad, rtol=1e-4, atol=1e-4)
    with torch.inference_mode():
        assert mine(inputs).equal(its(inputs))
