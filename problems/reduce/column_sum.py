"""Sums down the columns of a tall matrix, in float32, as for the gradient of a bias."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 1024, "columns": 128},
    "medium": {"rows": 8192, "columns": 1024},
    "ragged": {"rows": 1001, "columns": 131},
}

rows = 65536
columns = 2048


class Model(nn.Module):
    """The sum of each column."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns (columns,)."""
        return x.sum(dim=0)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
