# {kind: honest, row: build, status: passed}
"""The tail in C++; two extensions of one name, one of them built inside __init__."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

ext = load_inline(
    name="tail",
    cpp_sources="torch::Tensor tail(torch::Tensor x) { return x.tanh(); }",
    functions=["tail"],
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.identity = load_inline(
            name="tail",
            cpp_sources="torch::Tensor same(torch::Tensor x) { return x; }",
            functions=["same"],
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.identity.same(ext.tail(self.linear(x)))
