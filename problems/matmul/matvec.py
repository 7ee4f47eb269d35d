"""A matrix times a vector, in half precision, as in a language model that writes one token at a time."""

import torch
import torch.nn as nn

PRECISION = "float16"

VARIANTS = {
    "small": {"rows": 512, "inner": 256},
    "medium": {"rows": 4096, "inner": 4096},
    "ragged": {"rows": 509, "inner": 251},
}

rows = 16384
inner = 8192


class Model(nn.Module):
    """W x."""

    def forward(self, w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        """w: (rows, inner); x: (inner,); returns (rows,)."""
        return torch.mv(w, x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, inner), torch.randn(inner)]


def get_init_inputs() -> list[object]:
    return []
