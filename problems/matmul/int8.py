"""A product of int8 matrices, scaled back to float32 by one factor a row and one a column."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"tokens": 64, "inner": 256, "features": 128},
    "medium": {"tokens": 256, "inner": 1024, "features": 1024},
    "ragged": {"tokens": 72, "inner": 104, "features": 88},
}

tokens = 2048
inner = 4096
features = 4096


class Model(nn.Module):
    """(X Wᵀ) * x_scale[row] * w_scale[column], the product exact in int32."""

    def forward(self, x: torch.Tensor, w: torch.Tensor, x_scale: torch.Tensor, w_scale: torch.Tensor) -> torch.Tensor:
        """x: (tokens, inner), w: (features, inner), int8; x_scale: (tokens, 1); w_scale: (features,).

        Returns (tokens, features) in the scales' dtype.
        """
        return torch._int_mm(x, w.t()).to(x_scale.dtype) * x_scale * w_scale


def get_inputs() -> list[torch.Tensor]:
    x = torch.randint(-127, 128, (tokens, inner), dtype=torch.int8)
    w = torch.randint(-127, 128, (features, inner), dtype=torch.int8)
    return [x, w, (torch.rand(tokens, 1) + 0.5) / 127, (torch.rand(features) + 0.5) / 127]


def get_init_inputs() -> list[object]:
    return []
