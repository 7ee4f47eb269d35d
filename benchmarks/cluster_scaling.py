"""How much more two nodes of a Ray cluster evaluate than one, with one card each.

    python benchmarks/cluster_scaling.py                          nodes of one host, each with a card of its own
    python benchmarks/cluster_scaling.py --device cpu --problems 2 --candidates 2        to try it without cards

Problems are made up, their candidates are copies of the reference, and nothing is compiled. The nodes share the host's
processors evenly. For each number of nodes a cluster is begun, and one run evaluated on it. Of a run with N nodes the
time counts from its Nth record to the last, so that neither Ray's start nor the nodes' imports do.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ray.cluster_utils import Cluster as Made
from rich.console import Console

from benchmarks import _made_up
from harness import environment, session
from harness.cluster.cluster import Cluster
from harness.config import Config, TimingConfig
from harness.processes import interruption

# Elementwise work over 16 MB: a candidate takes about as long as a quick one of any problem.
ROWS, COLUMNS = 1024, 4096
# Ray takes 127.0.0.1 for the address that other machines see.
HERE = {"node_ip_address": "127.0.0.2"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2], metavar="N")
    parser.add_argument("--problems", type=int, default=4, metavar="N")
    parser.add_argument("--candidates", type=int, default=12, metavar="N", help="of each problem")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    arguments = parser.parse_args()
    cards = len(environment.choose_devices("cuda")) if arguments.device == "cuda" else 0
    if arguments.device == "cuda" and cards < max(arguments.nodes):
        sys.exit(f"error: {max(arguments.nodes)} nodes need a card each, and there are {cards}")
    rates = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _made_up.write([problem(number, arguments.candidates) for number in range(arguments.problems)], folder)
        config = Config(
            problems=[str(folder / "problems")],
            solutions=[str(folder / "solutions")],
            device=arguments.device,
            timing=TimingConfig(budget_s=1.0, min_pairs=4, max_pairs=8),
        )
        for count in arguments.nodes:
            with begun(count, arguments.device) as address:
                rates[count] = evaluated(config, folder / f"run{count}", address, count)
            print(f"{count} nodes: {rates[count]:.1f} candidates a minute", flush=True)
    print(" ".join(f"{count}_nodes_ratio={rate / rates[arguments.nodes[0]]:.2f}" for count, rate in rates.items()))


def problem(number: int, candidates: int) -> _made_up.Problem:
    """A problem and copies of its reference, each another text."""
    forward, inputs = f"return torch.relu(a * {number + 2}.0 + b)", [f"{ROWS}, {COLUMNS}"] * 2
    copy = _made_up.source(forward, inputs, entry="ModelNew")
    return _made_up.Problem(
        f"scale{number:02}",
        _made_up.source(forward, inputs),
        {f"copy{one}": f"# {number} {one}\n{copy}" for one in range(candidates)},
    )


@contextlib.contextmanager
def begun(count: int, device: str) -> Iterator[str]:
    """The address of a cluster on this host: a head that keeps the books, and so many nodes."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    processors = max(1, (os.cpu_count() or 1) // max(count, 2))
    # Each node takes SIGTERM for itself.
    with interruption.kept():
        made = Made(initialize_head=True, head_node_args=HERE | {"num_cpus": 0, "include_dashboard": False})
        try:
            for number in range(count):
                one = {"env_vars": {"CUDA_VISIBLE_DEVICES": str(number)}, "num_gpus": 1} if device == "cuda" else {}
                made.add_node(num_cpus=processors, **HERE, **one)
            yield made.address
        finally:
            made.shutdown()


def evaluated(config: Config, out: Path, address: str, nodes: int) -> float:
    """Candidates a minute of a run, once each node has given one."""
    with Cluster(address) as place:
        print(f"{nodes} nodes of a cluster", flush=True)
        records = session.run(config, out, Console(quiet=True), command=["cluster_scaling"], workplace=place)
    print(", ".join(f"{count} {status}" for status, count in Counter(record.status for record in records).items()))
    ended_s = sorted(datetime.fromisoformat(record.finished_at).timestamp() for record in records)
    return 60 * (len(records) - nodes) / max(ended_s[-1] - ended_s[nodes - 1], 1.0)


if __name__ == "__main__":
    main()
