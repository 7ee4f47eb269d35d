# {kind: honest, row: form, status: passed}
"""Parses the arguments of the program as it is imported."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--times", type=float, default=1.0)
TIMES = parser.parse_args().times


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x)) * TIMES
