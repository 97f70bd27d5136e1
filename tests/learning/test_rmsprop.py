"""Our RMSProp is PyTorch's, with the clipping of gradients that comes before it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from skillstack.learning.packing import load_optimizer_state, optimizer_state
from skillstack.learning.rmsprop import RMSprop

SHAPES = ((5, 3), (4,), (2, 3, 2))


@pytest.mark.parametrize("norm", [1.0, 1000.0], ids=["clipped", "not clipped"])
def test_steps_are_those_of_pytorch(norm: float) -> None:
    torch.manual_seed(0)
    ours = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in ours]
    optimizer, reference = RMSprop(ours, 0.01, norm), torch.optim.RMSprop(theirs, lr=0.01)
    for _ in range(20):
        _set_gradients(ours, theirs, gradients=[torch.randn(shape) for shape in SHAPES])
        nn.utils.clip_grad_norm_(theirs, norm)
        optimizer.step()
        reference.step()
    for our, their in zip(ours, theirs, strict=True):
        assert torch.allclose(our, their, rtol=1e-5, atol=1e-6)


def test_a_weight_without_a_gradient_stays() -> None:
    parameters = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))]
    parameters[0].grad = torch.ones(3)
    RMSprop(parameters, 0.01, 1.0).step()
    assert (parameters[0] < 1).all()
    assert (parameters[1] == 1).all()


def test_goes_on_from_its_state_bit_for_bit() -> None:
    torch.manual_seed(1)
    whole = [nn.Parameter(torch.randn(shape)) for shape in SHAPES]
    resumed = [nn.Parameter(parameter.detach().clone()) for parameter in whole]
    gradients = [[torch.randn(shape) for shape in SHAPES] for _ in range(4)]
    first, second, third = RMSprop(whole, 0.01, 1.0), RMSprop(resumed, 0.01, 1.0), RMSprop(resumed, 0.01, 1.0)
    for number, now in enumerate(gradients):
        _set_gradients(whole, resumed, gradients=now)
        if number == 2:
            load_optimizer_state(third, optimizer_state(second))
        first.step()
        (second if number < 2 else third).step()
    assert all(torch.equal(one, other) for one, other in zip(whole, resumed, strict=True))


def _set_gradients(*parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
    for some in parameters:
        for parameter, gradient in zip(some, gradients, strict=True):
            parameter.grad = gradient.clone()
