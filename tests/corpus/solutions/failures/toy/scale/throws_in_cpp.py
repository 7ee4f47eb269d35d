# {kind: fault, row: crash, status: crashed, reason: "signal:SIGABRT", twin: honest}
"""Thrown in a thread of its own, where nobody can catch it."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <stdexcept>
#include <thread>
torch::Tensor tail(torch::Tensor x) {
    std::thread([] { throw std::runtime_error("not today"); }).join();
    return x;
}
"""

ext = load_inline(name="tail", cpp_sources=SOURCE, functions=["tail"])


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
