"""A linear layer followed by GELU (tanh form), in half precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "float16"

VARIANTS = {
    "small": {"tokens": 64, "in_features": 128, "out_features": 192},
    "medium": {"tokens": 512, "in_features": 512, "out_features": 1024},
    "ragged": {"tokens": 61, "in_features": 75, "out_features": 90},
}

tokens = 2048
in_features = 2048
out_features = 8192


class Model(nn.Module):
    """gelu(x Wᵀ + b)."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, in_features); returns (tokens, out_features)."""
        return F.gelu(self.linear(x), approximate="tanh")


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, in_features)]


def get_init_inputs() -> list[object]:
    return [in_features, out_features]
