"""How soon a reward comes back: `Evaluator.map` beside a run, and single submissions to an idle service, over HTTP too.

    python benchmarks/reward_latency.py                     48 candidates, on whatever device there is
    python benchmarks/reward_latency.py --candidates 4      few enough for a CPU

The candidates are those of throughput.py. Everything is built by a first run, which is not counted. Then a run, and
`Evaluator.map` in a process that has just started, carry out all of them; and an evaluator and a service that have
nothing else to do each get some, one after the other: the first opens the problem, the others find it open. Needs the
extra `serve`.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec

from benchmarks import throughput
from benchmarks._service import Service
from harness import environment
from harness.api import Config, Evaluator
from harness.config import CompileConfig

SINGLE = 6
IDLE_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=48, metavar="N")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    arguments = parser.parse_args()
    kind = environment.choose_devices(arguments.device)[0].kind
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        throughput.generate(folder, arguments.candidates, kind)
        settings = CompileConfig(cache_gb=1.0, cache_dir=str(folder / "cache"))
        config = throughput.configured(folder, arguments.device, settings)
        throughput.evaluate(folder, config, "builds")
        run = throughput.evaluate(folder, config, "run")
        sources = [path.read_text() for path in sorted((folder / "solutions/made/scale").iterdir())]
        mapped = _map(config, folder, sources)
        _row("evaluator", _one_by_one(config, folder, sources[:SINGLE]))
        _row("service", _over_http(config, folder, sources[:SINGLE]))
    print(f"candidates={arguments.candidates} device={kind} candidates_per_minute: run={run:.1f} map={mapped:.1f}")


def _map(config: Config, folder: Path, sources: list[str]) -> float:
    """Candidates a minute of Evaluator.map, its start and end included."""
    started = time.monotonic()
    with Evaluator(config) as evaluator:
        records = list(evaluator.map(_problem(folder), sources))
    rate = 60 * len(records) / (time.monotonic() - started)
    print(f"{'map':<14} {rate:7.1f} candidates/min  passed {sum(record.status == 'passed' for record in records)}")
    return rate


def _one_by_one(config: Config, folder: Path, sources: list[str]) -> list[float]:
    """Seconds of each submission to an evaluator."""
    times_s = []
    with Evaluator(config) as evaluator:
        for source in sources:
            time.sleep(IDLE_S)
            started = time.monotonic()
            record = evaluator.submit(_problem(folder), source).result()
            times_s.append(time.monotonic() - started)
            assert record.status == "passed", record.message
    return times_s


def _over_http(config: Config, folder: Path, sources: list[str]) -> list[float]:
    """Seconds of each request to a service."""
    times_s = []
    home = folder / "service"
    home.mkdir()
    service = Service(home, queue=64, config=msgspec.to_builtins(config))
    service.start()
    try:
        with service.client() as client:
            for source in sources:
                time.sleep(IDLE_S)
                started = time.monotonic()
                answer = client.post("/evaluate?wait=60", json={"problem": "made/scale", "candidate": source})
                times_s.append(time.monotonic() - started)
                assert answer.json()["record"]["status"] == "passed", answer.text
    finally:
        service.end(signal.SIGTERM)
    return times_s


def _row(name: str, times_s: list[float]) -> None:
    first_s, rest_s = times_s[0], times_s[1:]
    print(f"{name:<14} first {first_s:.2f} s  then median {statistics.median(rest_s):.2f} s  most {max(rest_s):.2f} s")


def _problem(folder: Path) -> Path:
    return folder / "problems/made/scale.py"


if __name__ == "__main__":
    main()
