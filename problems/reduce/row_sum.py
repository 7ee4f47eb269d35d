"""Sums of few, very long rows, in float32: fewer rows than an H200 has multiprocessors."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 32, "columns": 8192},
    "medium": {"rows": 64, "columns": 131072},
    "ragged": {"rows": 33, "columns": 5003},
}

rows = 64
columns = 2097152


class Model(nn.Module):
    """The sum of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns (rows,)."""
        return x.sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
