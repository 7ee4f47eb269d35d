"""Rotary position embedding of attention heads, in half precision, halves rotated against each other."""

import torch
import torch.nn as nn

PRECISION = "float16"

VARIANTS = {
    "small": {"batch_size": 2, "num_heads": 4, "sequence_length": 64, "head_dim": 64},
    "medium": {"batch_size": 2, "num_heads": 16, "sequence_length": 1024, "head_dim": 128},
    "ragged": {"batch_size": 3, "num_heads": 5, "sequence_length": 37, "head_dim": 50},
}

batch_size = 8
num_heads = 32
sequence_length = 4096
head_dim = 128
base = 10000.0


class Model(nn.Module):
    """Element d of the first half and element d of the second are a point, turned by its position's angle."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x: (batch, heads, sequence, head_dim); cos, sin: (sequence, head_dim / 2); returns the shape of x."""
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def get_inputs() -> list[torch.Tensor]:
    frequency = base ** (-torch.arange(0, head_dim, 2) / head_dim)
    angle = torch.outer(torch.arange(sequence_length), frequency)
    return [torch.randn(batch_size, num_heads, sequence_length, head_dim), angle.cos(), angle.sin()]


def get_init_inputs() -> list[object]:
    return []
