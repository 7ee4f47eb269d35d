"""The position of each row's largest value, in float32; of equal ones the first."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 64, "columns": 1000},
    "medium": {"rows": 1024, "columns": 8192},
    "ragged": {"rows": 61, "columns": 1003},
}

rows = 4096
columns = 32768


class Model(nn.Module):
    """argmax along the rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns (rows,), int64."""
        return x.argmax(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
