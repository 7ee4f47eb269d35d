"""A 3x3 convolution with padding and bias, in half precision."""

import torch
import torch.nn as nn

PRECISION = "float16"

VARIANTS = {
    "small": {"batch_size": 2, "in_channels": 16, "out_channels": 32, "side": 14},
    "medium": {"batch_size": 4, "in_channels": 64, "out_channels": 64, "side": 28},
    "ragged": {"batch_size": 3, "in_channels": 5, "out_channels": 19, "side": 13},
}

batch_size = 64
in_channels = 64
out_channels = 64
side = 56


class Model(nn.Module):
    """Conv2d, stride 1, one pixel of zeros around the image."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width); returns (batch, out_channels, height, width)."""
        return self.conv(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, in_channels, side, side)]


def get_init_inputs() -> list[object]:
    return [in_channels, out_channels]
