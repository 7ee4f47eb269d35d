"""A service in a process of its own, as an operator starts it, and clients of it."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a token for the tests of the service"
PROBLEM = "toy/scale"
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


class Server:
    """`run_eval.py serve` over a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = {
            "problems": [str(ROOT / "tests/corpus/problems/toy/scale.py")],
            "device": "cpu",
            "timing": {"budget_s": 0.3, "min_pairs": 4, "max_pairs": 4, "burst_ms": 1.0},
            "check": {"stress": False},
            "provenance": {"profile": False},
            "limits": {"load_s": 60.0, "first_call_s": 6.0, "call_s": 6.0, "total_s": 60.0},
        }
        self.config = folder / "service.yaml"
        self.config.write_text(yaml.safe_dump(config))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "run_eval.py", "serve", str(self.config), "--dir", str(self.folder / "tasks")]
        command += ["--port", str(self.port), "--queue", "12", "--max-body", "1"]
        environment = os.environ | {"ASSAY_TOKEN": TOKEN}
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/health").raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise AssertionError((self.folder / "output").read_text())

    def end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(60)

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=90.0)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("service"))
    one.start()
    yield one
    if one.process is not None and one.process.poll() is None:
        one.end(signal.SIGTERM)
