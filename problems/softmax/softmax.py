"""Softmax along rows, in float32."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"rows": 64, "columns": 512},
    "medium": {"rows": 2048, "columns": 2048},
    "ragged": {"rows": 61, "columns": 509},
}

rows = 16384
columns = 4096
spread = 3.0


class Model(nn.Module):
    """exp(x) over its row's sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, columns); returns the same shape, each row summing to one."""
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    # Spread out, so that a row's output is not nearly 1 / columns everywhere.
    return [spread * torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
