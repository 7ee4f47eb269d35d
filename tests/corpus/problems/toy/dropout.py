"""Dropout in train mode: its output depends on the generator, which is reset before each call."""

import torch
from torch import nn

rows = 64
columns = 100

# Outputs that have memory of their own each.
VARIANTS = {"large": {"rows": 4096, "columns": 1024}}


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(torch.relu(x), p=0.25, training=True)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[int]:
    return []
