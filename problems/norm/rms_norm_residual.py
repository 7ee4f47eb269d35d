"""Residual addition and RMSNorm, as between the layers of a language model, in bfloat16; two outputs."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "bfloat16"

VARIANTS = {
    "small": {"tokens": 64, "hidden": 512},
    "medium": {"tokens": 2048, "hidden": 2048},
    "ragged": {"tokens": 61, "hidden": 507},
}

tokens = 16384
hidden = 4096
eps = 1e-5


class Model(nn.Module):
    """sum = x + residual; normalised = sum / sqrt(mean(sum²) + eps) * weight."""

    def __init__(self, hidden: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(hidden) + 0.5)
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x, residual: (tokens, hidden); returns normalised and sum, of the same shape."""
        total = x + residual
        return F.rms_norm(total, self.weight.shape, self.weight, self.eps), total


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden), torch.randn(tokens, hidden)]


def get_init_inputs() -> list[object]:
    return [hidden, eps]
