"""Candidates per minute through the whole evaluation, with the builds as they are now and with stock builds.

    python benchmarks/throughput.py                     64 candidates, on whatever device there is
    python benchmarks/throughput.py --candidates 4      few enough for a CPU
    python benchmarks/throughput.py --lanes 3           so many under way at a time on a GPU
    python benchmarks/throughput.py --parts stock       one of lean, cached, stock, where a lease is short

Generates distinct trivial candidates for one small problem into a temporary folder: CUDA on a card, C++ elsewhere. The
cache is empty at first; precompiled headers are made in the first run, as on a new machine, and counted with it.
`cached` is the same once more, and needs `lean` before it. The device waited for compilers while no candidate was under
evaluation and some build was under way.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console

from harness import environment, session
from harness.catalog.jobs import Job
from harness.config import CompileConfig, Config, TimingConfig
from harness.environment import Device
from harness.execution.local import LocalExecutor
from harness.records import Record

PROBLEM = '''"""A scaled copy."""
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * {factor}


def get_inputs():
    return [torch.randn(1 << 16)]


def get_init_inputs():
    return []
'''
HEAD = '''"""Candidate {number}."""
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

'''
CPP = '''SOURCE = """
torch::Tensor scale_{number}(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = {factor}f * in[i];
    return y;
}}
"""
ext = load_inline(name="scale_{number}", cpp_sources=SOURCE, functions=["scale_{number}"])
'''
CUDA = '''SOURCE = """
__global__ void kernel_{number}(const float* x, float* y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = {factor}f * x[i];
}}
torch::Tensor scale_{number}(torch::Tensor x) {{
    auto y = torch::empty_like(x);
    int n = x.numel();
    kernel_{number}<<<(n + {threads} - 1) / {threads}, {threads}>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}}
"""
ext = load_inline(
    name="scale_{number}",
    cpp_sources="torch::Tensor scale_{number}(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["scale_{number}"],
)
'''
TAIL = """

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scale_{number}(x)
"""
FACTOR = 3.0
PARTS: dict[str, dict[str, Any]] = {
    "lean": {"headers": "lean", "cache_gb": 1.0},
    "cached": {"headers": "lean", "cache_gb": 1.0},
    "stock": {"headers": "stock", "cache_gb": 0.0},
}


class Observed:
    """A local executor that keeps when devices evaluated and when builders built."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._devices: set[str] = set()
        self._builders: set[str] = set()
        self.waited_s = 0.0

    def __call__(self, devices: list[Device], config: Config, logs: Path, seed: int) -> Observed:
        self._executor = LocalExecutor(devices, config, logs, seed)
        return self

    def run(self, jobs: list[Job], report_phase):  # type: ignore[no-untyped-def]
        def observed(slot: str, title: str, phase: str) -> None:
            with self._lock:
                now = time.monotonic()
                if self._builders and not self._devices:
                    self.waited_s += now - self._since
                self._since = now
                active = self._builders if slot.startswith("builder") else self._devices
                (active.add if phase else active.discard)(slot)
            report_phase(slot, title, phase)

        return self._executor.run(jobs, observed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=64, metavar="N")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    parser.add_argument("--lanes", type=int, default=1, help="candidates under way at a time on each GPU (1)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    if "cached" in arguments.parts and "lean" not in arguments.parts:
        parser.error("cached needs lean before it")
    kind = environment.choose_devices(arguments.device)[0].kind
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        generate(folder, arguments.candidates, kind)
        rates = {}
        for part in (part for part in PARTS if part in arguments.parts):
            settings = CompileConfig(**PARTS[part], cache_dir=str(folder / "cache"))
            config = configured(folder, arguments.device, settings, arguments.lanes)
            rates[part] = evaluate(folder, config, part)
    told = " ".join(f"{part}={rate:.1f}" for part, rate in rates.items())
    print(f"candidates={arguments.candidates} device={kind} candidates_per_minute: {told}")


def generate(folder: Path, count: int, kind: str) -> None:
    """One problem and its candidates, which differ in name and source."""
    problem, solutions = folder / "problems/made/scale.py", folder / "solutions/made/scale"
    problem.parent.mkdir(parents=True)
    solutions.mkdir(parents=True)
    problem.write_text(PROBLEM.format(factor=FACTOR))
    text = HEAD + (CUDA if kind == "cuda" else CPP) + TAIL
    for number in range(count):
        threads = 64 * (1 + number % 8)
        (solutions / f"c{number:03}.py").write_text(text.format(number=number, factor=FACTOR, threads=threads))


def configured(folder: Path, device: str, settings: CompileConfig, lanes: int = 1) -> Config:
    """What evaluates the generated candidates: few pairs, so that all but the timing is most of the work."""
    return Config(
        problems=[str(folder / "problems")],
        solutions=[str(folder / "solutions")],
        device=device,
        lanes=lanes,
        compile=settings,
        timing=TimingConfig(budget_s=1.0, min_pairs=4, max_pairs=8, burst_ms=1.0),
    )


def evaluate(folder: Path, config: Config, name: str) -> float:
    """Candidates per minute of one run; prints a row."""
    observed = Observed()
    started = time.monotonic()
    records: list[Record] = session.run(
        config, folder / name, Console(quiet=True), command=["throughput"], make_executor=observed
    )
    wall_s = time.monotonic() - started
    passed = sum(record.status == "passed" for record in records)
    rate = 60 * len(records) / wall_s
    waited = observed.waited_s / wall_s
    print(
        f"{name:<14} {rate:7.1f} candidates/min  device waited for compilers {waited:5.1%}  passed {passed}", flush=True
    )
    return rate


if __name__ == "__main__":
    main()
