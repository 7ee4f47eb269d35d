"""Grouped-query attention at head dimension 64, in bfloat16: several query heads share one head of keys and values."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "bfloat16"

VARIANTS = {
    "small": {"batch_size": 2, "num_heads": 4, "num_kv_heads": 2, "sequence_length": 96},
    "medium": {"batch_size": 2, "num_heads": 8, "num_kv_heads": 2, "sequence_length": 512},
    "ragged": {"batch_size": 1, "num_heads": 6, "num_kv_heads": 2, "sequence_length": 77},
}

batch_size = 8
num_heads = 32
num_kv_heads = 8
sequence_length = 1024
head_dim = 64


class Model(nn.Module):
    """Attention where query head h reads keys and values of head h * num_kv_heads // num_heads."""

    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """Q: (batch, heads, sequence, head_dim); K, V: (batch, kv_heads, sequence, head_dim); returns Q's shape."""
        return F.scaled_dot_product_attention(Q, K, V, enable_gqa=True)


def get_inputs() -> list[torch.Tensor]:
    kv_shape = (batch_size, num_kv_heads, sequence_length, head_dim)
    return [
        torch.randn(batch_size, num_heads, sequence_length, head_dim),
        torch.randn(kv_shape),
        torch.randn(kv_shape),
    ]


def get_init_inputs() -> list[object]:
    return []
