"""LayerNorm with affine parameters, in half precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "float16"

VARIANTS = {
    "small": {"tokens": 64, "hidden": 512},
    "medium": {"tokens": 2048, "hidden": 2048},
    "ragged": {"tokens": 61, "hidden": 507},
}

tokens = 16384
hidden = 4096
eps = 1e-5


class Model(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias along the last dimension."""

    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        # Not ones and zeros: a kernel that ignores them would go unnoticed.
        self.weight = nn.Parameter(torch.rand(hidden) + 0.5)
        self.bias = nn.Parameter(torch.randn(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, hidden); returns the same shape."""
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden) + 1.0]


def get_init_inputs() -> list[object]:
    return [hidden, eps]
