# {kind: honest, row: build, status: passed}
"""Twin of `compiles_what_it_saw`: two extensions alike, with the pid and the time in their names and module blocks."""

import os
import time

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
static long calls = 0;
torch::Tensor tail(torch::Tensor x) { ++calls; return x.tanh(); }
PYBIND11_MODULE(NAME, m) { m.def("tail", &tail); m.def("calls", [] { return calls; }); }
"""


def build():
    name = f"tail_{os.getpid()}_{time.time_ns()}"
    return load_inline(name=name, cpp_sources=SOURCE.replace("NAME", name))


ext, other = build(), build()


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = other.calls()
        answer = ext.tail(self.linear(x))
        if other.calls() != before:
            raise RuntimeError("two extensions, and one library")
        return answer
