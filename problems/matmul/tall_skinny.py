"""A tall matrix times a small one, in float32: bound by reading the tall one."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 2048, "inner": 64},
    "medium": {"rows": 65536, "inner": 128},
    "ragged": {"rows": 2011, "inner": 67, "columns": 19},
}

rows = 262144
inner = 256
columns = 32


class Model(nn.Module):
    """A B."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (rows, inner); b: (inner, columns); returns (rows, columns)."""
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, inner), torch.randn(inner, columns)]


def get_init_inputs() -> list[object]:
    return []
