"""What the sandbox costs a process: from asking for a runner to its exit, with and without, in turn.

    python benchmarks/sandbox.py [--rounds 20]

Needs no GPU. A runner whose channel is closed at once exits at once, so that all of the time is fork, layers and end.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.processes.nursery import Nursery
from harness.sandbox import probe
from harness.wire.messages import FromRunner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    layers = probe.probe().layers
    # Each layer by itself, too; the user needs private mounts where a folder on the way is closed to others.
    sets = {"none": (), "all": layers}
    sets |= {layer: ("user", "namespaces") if layer == "user" else (layer,) for layer in layers if layer != "signals"}
    with tempfile.TemporaryDirectory() as place:
        nurseries = {name: Nursery(chosen) for name, chosen in sets.items()}
        times: dict[str, list[float]] = {name: [] for name in sets}
        try:
            for round_number in range(rounds + 1):
                for name, nursery in nurseries.items():
                    elapsed = one(nursery, Path(place))
                    # The first of each waits for the forking parent's imports.
                    if round_number:
                        times[name].append(elapsed)
        finally:
            for nursery in nurseries.values():
                nursery.close()
    plain = statistics.median(times["none"])
    print(f"layers on this machine: {', '.join(layers) or 'none'}; missing: {probe.probe().missing or 'none'}")
    print(f"{'layers':<16} {'median ms':>10} {'added ms':>10}   of {rounds} processes each")
    added = {name: statistics.median(values) - plain for name, values in times.items()}
    for name, chosen in sets.items():
        label = "+".join(chosen) if name == "user" else name
        print(f"{label:<16} {added[name] + plain:>10.1f} {added[name]:>10.1f}")
    print(f"all layers add {added['all']:.1f} ms to a process of {plain:.1f} ms")


def one(nursery: Nursery, place: Path) -> float:
    """Milliseconds from asking for a runner to its exit."""
    folder = Path(tempfile.mkdtemp(dir=place))
    started = time.perf_counter()
    child = nursery.start("runner", FromRunner, folder / "log", folder=folder)
    child.channel.close()
    child._ended.wait(30.0)
    elapsed = (time.perf_counter() - started) * 1e3
    assert child.wait(1.0) == 0, child.log_tail()
    return elapsed


if __name__ == "__main__":
    main()
