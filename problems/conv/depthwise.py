"""A depthwise 3x3 convolution, in float32: each channel by a filter of its own, bound by memory."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"batch_size": 2, "channels": 16, "side": 28},
    "medium": {"batch_size": 8, "channels": 64, "side": 56},
    "ragged": {"batch_size": 3, "channels": 7, "side": 29},
}

batch_size = 32
channels = 256
side = 56


class Model(nn.Module):
    """Conv2d with as many groups as channels, stride 1, one pixel of zeros around the image."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width); returns the same shape."""
        return self.conv(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, channels, side, side)]


def get_init_inputs() -> list[object]:
    return [channels]
