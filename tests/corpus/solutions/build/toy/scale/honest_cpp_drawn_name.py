# {kind: honest, row: build, status: passed}
"""Twin of `compiles_what_it_saw`: a uuid in the name of an extension and of a function, against stale builds."""

import uuid

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

DRAWN = uuid.uuid4().hex
SOURCE = """
torch::Tensor tail_DRAWN(torch::Tensor x) { return x.tanh(); }
torch::Tensor tail(torch::Tensor x) { return tail_DRAWN(x); }
"""

ext = load_inline(
    name=f"tail_{DRAWN[:12]}", cpp_sources=SOURCE.replace("DRAWN", DRAWN), functions=["tail"], extra_cflags=["-O2"]
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
