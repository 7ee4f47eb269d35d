"""Aᵀ B over many rows, in bfloat16, as for the gradient of a linear layer's weight."""

import torch
import torch.nn as nn

PRECISION = "bfloat16"

VARIANTS = {
    "small": {"tokens": 256, "rows": 64, "columns": 128},
    "medium": {"tokens": 2048, "rows": 256, "columns": 512},
    "ragged": {"tokens": 251, "rows": 62, "columns": 75},
}

tokens = 8192
rows = 2048
columns = 2048


class Model(nn.Module):
    """The sum of outer products of the rows of A and B."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (tokens, rows); b: (tokens, columns); returns (rows, columns)."""
        return a.t() @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, rows), torch.randn(tokens, columns)]


def get_init_inputs() -> list[object]:
    return []
