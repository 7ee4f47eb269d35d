"""The gate of a SwiGLU layer: silu(first half) times second half, in half precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "float16"

VARIANTS = {
    "small": {"tokens": 64, "hidden": 256},
    "medium": {"tokens": 1024, "hidden": 4096},
    "ragged": {"tokens": 61, "hidden": 251},
}

tokens = 8192
hidden = 11008


class Model(nn.Module):
    """silu(gate) * up, for gate and up side by side in one tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, 2 * hidden); returns (tokens, hidden)."""
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, 2 * hidden)]


def get_init_inputs() -> list[object]:
    return []
