"""GELU, exact (through the error function), in bfloat16."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "bfloat16"

VARIANTS = {
    "small": {"tokens": 64, "features": 512},
    "medium": {"tokens": 1024, "features": 4096},
    "ragged": {"tokens": 61, "features": 513},
}

tokens = 8192
features = 16384


class Model(nn.Module):
    """x Φ(x), with Φ the normal distribution function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: any shape; returns the same."""
        return F.gelu(x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, features)]


def get_init_inputs() -> list[object]:
    return []
