"""BatchNorm2d in training mode, in float32: the batch's own statistics, and running ones kept up to date."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"batch_size": 8, "channels": 16, "side": 14},
    "medium": {"batch_size": 16, "channels": 64, "side": 56},
    "ragged": {"batch_size": 7, "channels": 13, "side": 15},
}

batch_size = 64
channels = 256
side = 56


class Model(nn.Module):
    """Each channel normalised by its mean and biased variance over batch and image, then weight and bias."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width); returns the same shape."""
        return self.norm(x)


def get_inputs() -> list[torch.Tensor]:
    return [2.0 * torch.randn(batch_size, channels, side, side) + 1.0]


def get_init_inputs() -> list[object]:
    return [channels]
