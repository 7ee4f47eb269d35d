"""A square matrix product, in float32 without TF32."""

import torch
import torch.nn as nn

VARIANTS = {"small": {"size": 128}, "medium": {"size": 768}, "ragged": {"size": 131}}

size = 2048


class Model(nn.Module):
    """A B."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a, b: (size, size); returns the same shape."""
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs() -> list[object]:
    return []
