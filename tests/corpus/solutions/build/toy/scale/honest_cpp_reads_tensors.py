# {kind: honest, row: build, status: passed}
"""Compiles inside __init__, after it has read tensors of its own, and once more after it has called the first part."""

import numpy as np
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

FIRST = "torch::Tensor first(torch::Tensor x) { return torch::full({1}, x.data_ptr<float>()[0]); }"
TAIL = "torch::Tensor tail(torch::Tensor x) { return x.tanh(); }"


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)
        assert np.isfinite(self.linear.weight.detach().numpy()).all()
        last = int(torch.arange(features).max())
        native = load_inline(name="first", cpp_sources=FIRST, functions=["first"])
        assert native.first(self.linear.weight) == self.linear.weight[0, 0]
        self.ext = load_inline(name="tail", cpp_sources=TAIL, functions=["tail"], extra_cflags=[f"-DLAST={last}"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ext.tail(self.linear(x))
