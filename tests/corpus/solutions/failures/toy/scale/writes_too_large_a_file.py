# {kind: fault, row: resources, status: resource_limit, reason: file_size, twin: honest}
"""A file over the size that it allows itself."""

import os
import resource
import signal
from pathlib import Path

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        (Path(os.environ["TMPDIR"]) / "file").write_bytes(bytes(1 << 21))
        return x
