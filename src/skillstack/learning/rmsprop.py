"""RMSProp in one pass over the weights.

With mini-batches of 36 decisions, PyTorch's own takes as long as the passes through the network do: it reads and writes
all weights seven times, once for each operation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from skillstack.jit import jit

Floats = npt.NDArray[np.float32]


class RMSprop(torch.optim.Optimizer):
    """As PyTorch's, for float32 weights on the CPU. Gradients are clipped to a norm on the way."""

    def __init__(self, parameters: list[nn.Parameter], learning_rate: float, gradient_norm: float) -> None:
        super().__init__(parameters, {"lr": learning_rate, "alpha": 0.99, "eps": 1e-8})
        self._gradient_norm = gradient_norm

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        assert closure is None, "losses are not worked out anew here"
        (group,) = self.param_groups
        moving = [parameter for parameter in group["params"] if parameter.grad is not None]
        norm = nn.utils.get_total_norm([parameter.grad for parameter in moving]).item()
        if not math.isfinite(norm):
            raise FloatingPointError(f"the norm of the gradient is {norm}")
        scale = min(self._gradient_norm / (norm + 1e-6), 1.0)  # as PyTorch's clip_grad_norm_ has it
        numbers = [np.float32(number) for number in (scale, group["lr"], group["alpha"], group["eps"])]
        for parameter in moving:
            state = self.state[parameter]
            if not state:
                state["square_avg"] = torch.zeros_like(parameter)
            _step(_flat(parameter), _flat(parameter.grad), _flat(state["square_avg"]), *numbers)


def _flat(tensor: torch.Tensor) -> Floats:
    """The numbers themselves, not a copy."""
    values: Floats = tensor.detach().view(-1).numpy()
    return values


@jit
def _step(
    weights: Floats,
    gradient: Floats,
    square: Floats,
    scale: np.float32,
    rate: np.float32,
    keep: np.float32,
    least: np.float32,
) -> None:
    for i in range(len(weights)):
        slope = gradient[i] * scale
        square[i] = keep * square[i] + (np.float32(1.0) - keep) * slope * slope
        weights[i] -= rate * slope / (np.sqrt(square[i]) + least)
