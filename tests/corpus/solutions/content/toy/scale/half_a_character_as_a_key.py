# {kind: fault, row: form, status: runtime_error, reason: "exception:NotSendable"}
"""Returns its answer under a key that is half a surrogate pair, which no message can hold."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"\ud800": torch.tanh(self.linear(x))}
