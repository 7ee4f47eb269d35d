"""Three outputs of one layer, of which one overflows where the others have hard inputs."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, log_deviation, scale = self.linear(x).chunk(3, -1)
        return mean, torch.exp(log_deviation), F.softplus(scale)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 96)]


def get_init_inputs() -> list[int]:
    return [96]
