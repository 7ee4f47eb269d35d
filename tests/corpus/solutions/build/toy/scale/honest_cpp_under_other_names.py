# {kind: honest, row: build, status: passed}
"""Compiles inside __init__ by other names than `load_inline`: an alias, and a call with some arguments filled in."""

import functools

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline as compiled

tail_from = functools.partial(compiled, name="tail", functions=["tail"])


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        same = "torch::Tensor same(torch::Tensor x) { return x; }"
        self.identity = compiled(name="same", cpp_sources=same, functions=["same"])
        self.ext = tail_from(cpp_sources="torch::Tensor tail(torch::Tensor x) { return x.tanh(); }")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.identity.same(self.ext.tail(self.linear(x)))
