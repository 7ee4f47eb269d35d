"""Token embeddings plus position embeddings, in half precision: rows gathered from a large table."""

import torch
import torch.nn as nn

PRECISION = "float16"

VARIANTS = {
    "small": {"batch_size": 4, "sequence_length": 32, "vocabulary": 500, "hidden": 128},
    "medium": {"batch_size": 16, "sequence_length": 512, "vocabulary": 8000, "hidden": 512},
    "ragged": {"batch_size": 3, "sequence_length": 29, "vocabulary": 499, "hidden": 67},
}

batch_size = 32
sequence_length = 2048
vocabulary = 50304
hidden = 1024


class Model(nn.Module):
    """tokens[ids] + positions, position by position."""

    def __init__(self, vocabulary: int, sequence_length: int, hidden: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, hidden)
        self.positions = nn.Parameter(torch.randn(sequence_length, hidden))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """ids: (batch, sequence), int64; returns (batch, sequence, hidden)."""
        return self.tokens(ids) + self.positions


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(vocabulary, (batch_size, sequence_length))]


def get_init_inputs() -> list[object]:
    return [vocabulary, sequence_length, hidden]
