"""Many matrix products of one size, in half precision."""

import torch
import torch.nn as nn

PRECISION = "float16"

VARIANTS = {
    "small": {"batch_size": 4, "rows": 64, "inner": 96, "columns": 128},
    "medium": {"batch_size": 16, "rows": 256, "inner": 256, "columns": 256},
    "ragged": {"batch_size": 3, "rows": 61, "inner": 70, "columns": 37},
}

batch_size = 256
rows = 512
inner = 512
columns = 512


class Model(nn.Module):
    """A[i] B[i] for every i."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (batch, rows, inner); b: (batch, inner, columns); returns (batch, rows, columns)."""
        return torch.bmm(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch_size, rows, inner), torch.randn(batch_size, inner, columns)]


def get_init_inputs() -> list[object]:
    return []
