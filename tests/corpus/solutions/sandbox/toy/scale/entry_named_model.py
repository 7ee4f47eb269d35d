# {kind: honest, row: redefining, status: passed}
"""Twin of the missing entry: its class is called Model, and other names of the problem's are defined beside it."""

import torch
from torch import nn

rows = 8
columns = 8


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


if __name__ == "__main__":
    print(Model(columns)(*get_inputs()))
