"""A service of the tests' own, and candidates for it."""

import signal

import pytest

from benchmarks._service import Service

HEAD = """import os
import subprocess
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        {line}
"""


def candidate(line: str) -> str:
    return HEAD.format(line=line)


RIGHT = candidate("return torch.tanh(self.linear(x))")
HANGS = candidate("exec('while True: pass')")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Service(tmp_path_factory.mktemp("service"), queue=12, more=["--max-body", "1"])
    one.start()
    yield one
    if one.process is not None and one.process.poll() is None:
        one.end(signal.SIGTERM)
