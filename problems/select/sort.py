"""Rows sorted in ascending order, in float32."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 64, "columns": 256},
    "medium": {"rows": 1024, "columns": 2048},
    "ragged": {"rows": 61, "columns": 251},
}

rows = 16384
columns = 2048


class Model(nn.Module):
    """Each row's values in ascending order."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns the same shape."""
        return torch.sort(x, dim=1).values


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
