"""The lower triangle of a matrix times a matrix, in float32: half of the multiplications are with zero."""

import torch
import torch.nn as nn

VARIANTS = {
    "small": {"size": 128, "columns": 96},
    "medium": {"size": 768, "columns": 512},
    "ragged": {"size": 133, "columns": 91},
}

size = 2048
columns = 2048


class Model(nn.Module):
    """tril(A) B; what stands above A's diagonal does not count."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (size, size); b: (size, columns); returns (size, columns)."""
        return torch.tril(a) @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(size, size), torch.randn(size, columns)]


def get_init_inputs() -> list[object]:
    return []
