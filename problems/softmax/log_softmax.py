"""Log-softmax over a language model's vocabulary, in bfloat16."""

import torch
import torch.nn as nn

PRECISION = "bfloat16"

VARIANTS = {
    "small": {"tokens": 32, "vocabulary": 2048},
    "medium": {"tokens": 256, "vocabulary": 32000},
    "ragged": {"tokens": 31, "vocabulary": 2039},
}

tokens = 1024
vocabulary = 128256
spread = 4.0


class Model(nn.Module):
    """x minus the logarithm of its row's sum of exponentials."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, vocabulary); returns the same shape."""
        return torch.log_softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [spread * torch.randn(tokens, vocabulary)]


def get_init_inputs() -> list[object]:
    return []
