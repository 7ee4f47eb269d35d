"""Causal attention at head dimension 128, in half precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "float16"

VARIANTS = {
    "small": {"batch_size": 2, "num_heads": 2, "sequence_length": 96},
    "medium": {"batch_size": 2, "num_heads": 8, "sequence_length": 512},
    "ragged": {"batch_size": 1, "num_heads": 3, "sequence_length": 77},
}

batch_size = 8
num_heads = 16
sequence_length = 2048
head_dim = 128


class Model(nn.Module):
    """softmax(Q Kᵀ / sqrt(D)) V, where a query sees the keys up to its own position."""

    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """Q, K, V: (batch, heads, sequence, head_dim); returns the same shape."""
        return F.scaled_dot_product_attention(Q, K, V, is_causal=True)


def get_inputs() -> list[torch.Tensor]:
    shape = (batch_size, num_heads, sequence_length, head_dim)
    return [torch.randn(shape), torch.randn(shape), torch.randn(shape)]


def get_init_inputs() -> list[object]:
    return []
