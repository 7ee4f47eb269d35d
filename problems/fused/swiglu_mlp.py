"""The gated MLP of a language model, in half precision: three products and a gate between them."""

import torch
import torch.nn as nn
import torch.nn.functional as F

PRECISION = "float16"

VARIANTS = {
    "small": {"tokens": 32, "hidden": 64, "intermediate": 176},
    "medium": {"tokens": 256, "hidden": 512, "intermediate": 1408},
    "ragged": {"tokens": 29, "hidden": 62, "intermediate": 171},
}

tokens = 1024
hidden = 2048
intermediate = 5632


class Model(nn.Module):
    """down(silu(gate(x)) * up(x))."""

    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, hidden); returns the same shape."""
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(tokens, hidden)]


def get_init_inputs() -> list[object]:
    return [hidden, intermediate]
