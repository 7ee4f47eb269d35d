# {kind: honest, row: build, status: passed, variant: wide}
"""Compiles inside __init__ for the number of features that it is given."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor tail(torch::Tensor x) {
  TORCH_CHECK(x.size(1) == WIDTH);
  return x.tanh();
}
"""


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        flags = [f"-DWIDTH={features}"]
        self.ext = load_inline(name="tail", cpp_sources=SOURCE, functions=["tail"], extra_cflags=flags)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ext.tail(self.linear(x))
