# {kind: honest, row: patching, status: passed}
"""Twin of the patched torch: its forward as an autograd function."""

import torch
from torch import nn


class Tail(torch.autograd.Function):
    """A tanh with a backward of its own."""

    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return grad * (1 - y * y)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Tail.apply(self.linear(x))
