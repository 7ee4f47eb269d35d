"""Small reference modules that several tests use."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from harness.oracle.formats import TF32, round_to


class Of(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


class GemmTail(nn.Module):
    """Linear, BatchNorm in training mode, scale, softmax: the second founding problem."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear, self.bn = nn.Linear(features, features), nn.BatchNorm1d(features)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.tail(self.linear(x))

    def tail(self, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.scale * self.bn(y), 1)


def attention() -> Of:
    return Of(F.scaled_dot_product_attention)


def composed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


def heads(draw: Callable[..., torch.Tensor], *shape: int, dtype: torch.dtype = torch.float16) -> list[torch.Tensor]:
    return [draw(*shape).to(dtype) for _ in range(3)]


def tf32(x: torch.Tensor) -> torch.Tensor:
    return round_to(x, TF32)
