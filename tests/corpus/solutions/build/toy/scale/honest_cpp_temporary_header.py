# {kind: honest, row: build, status: passed}
"""Twin of `compiles_what_it_saw`: writes a header into a temporary folder that it gives to the compiler."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

FOLDER = Path(tempfile.mkdtemp())
(FOLDER / "tail.h").write_text("inline torch::Tensor with_tanh(torch::Tensor x) { return x.tanh(); }\n")

ext = load_inline(
    name="tail",
    cpp_sources='#include "tail.h"\ntorch::Tensor tail(torch::Tensor x) { return with_tanh(x); }',
    functions=["tail"],
    extra_include_paths=[str(FOLDER)],
    build_directory=tempfile.mkdtemp(),
)


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ext.tail(self.linear(x))
