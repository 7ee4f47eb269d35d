# {kind: honest, row: patching, status: passed}
"""Twin of the patched torch: an operator of its own in torch's library."""

import torch
from torch import nn

library = torch.library.Library("corpus", "DEF")
library.define("tail(Tensor x) -> Tensor")
library.impl("tail", torch.tanh, "CompositeExplicitAutograd")


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.corpus.tail(self.linear(x))
