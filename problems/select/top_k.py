"""The largest few values of each row and where they stand, in float32, in descending order."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 64, "columns": 1000, "k": 8},
    "medium": {"rows": 1024, "columns": 8192},
    "ragged": {"rows": 61, "columns": 1003, "k": 7},
}

rows = 8192
columns = 8192
k = 16


class Model(nn.Module):
    """topk along the rows."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (rows, columns); returns values and int64 positions, (rows, k) each."""
        values, indices = torch.topk(x, self.k, dim=1)
        return values, indices


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return [k]
