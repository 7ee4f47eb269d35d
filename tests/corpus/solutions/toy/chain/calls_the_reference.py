"""Row: the reference itself in disguise. Imports the problem's file, if it can be found, and calls its `Model`."""

import importlib.util
from pathlib import Path

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(6))
        path = Path(__file__).resolve().parents[3] / "problems/toy/chain.py"
        spec = importlib.util.spec_from_file_location("problem", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.inner = module.Model(features)
        self.inner.layers = self.layers

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)
