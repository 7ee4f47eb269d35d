"""Max pooling by 3x3 with stride 2 and padding, in float32, as at the head of a ResNet."""

import torch
import torch.nn as nn
import torch.nn.functional as F

VARIANTS = {
    "small": {"batch_size": 2, "channels": 8, "side": 28},
    "medium": {"batch_size": 8, "channels": 64, "side": 112},
    "ragged": {"batch_size": 3, "channels": 5, "side": 29},
}

batch_size = 64
channels = 64
side = 112


class Model(nn.Module):
    """The largest value of each window; what lies outside the image does not count."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width); returns (batch, channels, (height + 1) // 2, (width + 1) // 2)."""
        return F.max_pool2d(x, kernel_size=3, stride=2, padding=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, channels, side, side)]


def get_init_inputs() -> list[object]:
    return []
