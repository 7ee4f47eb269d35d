# {kind: honest, row: build, status: passed}
"""Twin of `compiles_what_it_saw`: writes its source to a temporary file for `load`."""

import tempfile

import torch
from torch import nn
from torch.utils.cpp_extension import load

SOURCE = """
#include <torch/extension.h>
torch::Tensor tail(torch::Tensor x) { return x.tanh(); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("tail", &tail); }
"""

with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
    file.write(SOURCE)
    file.flush()
    ext = load(name="tail", sources=[file.name], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
