"""A run, and a service's evaluator, over a Ray cluster of several nodes on this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'kernel-assay[cluster]'")

from ray.cluster_utils import Cluster as Made  # noqa: E402

from harness import cli, session  # noqa: E402
from harness.api import Evaluator, UsageError  # noqa: E402
from harness.cluster import cluster  # noqa: E402
from harness.cluster.cluster import Cluster  # noqa: E402
from harness.config import CheckConfig, ProvenanceConfig  # noqa: E402
from harness.execution.workplace import ThisMachine  # noqa: E402
from harness.processes import interruption  # noqa: E402
from harness.records import Status  # noqa: E402
from tests.conftest import CORPUS, corpus_config  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# Ray takes 127.0.0.1 for the address that other machines see.
HERE = {"node_ip_address": "127.0.0.2"}
# Ray's own clients leave some open.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

SLOW = """import time
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        time.sleep({seconds})

    def forward(self, x):
        raise RuntimeError("this is number {number}")
"""


def config(*candidates, **changes):
    quick = {"check": CheckConfig(stress=False), "provenance": ProvenanceConfig(profile=False)}
    return msgspec.structs.replace(corpus_config(*candidates, **changes), **quick)


@contextlib.contextmanager
def made(nodes):
    """A cluster of so many nodes beside a head that only keeps the books, and its nodes."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Each node that is started here takes SIGTERM for itself.
    with interruption.kept():
        one = Made(initialize_head=True, head_node_args=HERE | {"num_cpus": 0, "include_dashboard": False})
        try:
            yield one, [one.add_node(num_cpus=1, **HERE) for _ in range(nodes)]
        finally:
            one.shutdown()


def numbered(folder, count, seconds):
    place = folder / "toy/scale"
    place.mkdir(parents=True)
    for number in range(count):
        (place / f"number{number}.py").write_text(SLOW.format(number=number, seconds=seconds))
    return msgspec.structs.replace(config(), solutions=[str(folder)], include=[])


def test_a_run_goes_on_when_a_node_is_killed_in_the_middle(tmp_path):
    wanted = numbered(tmp_path / "solutions", 8, seconds=1.0)
    with made(2) as (one, nodes), Cluster(one.address) as place:
        killed = threading.Event()

        def kill_one():
            # Once both are at work.
            journal = tmp_path / "run/records.jsonl"
            while not killed.wait(0.1):
                if journal.is_file() and journal.read_text().count("\n") >= 1:
                    one.remove_node(nodes[1], allow_graceful=False)
                    killed.set()

        watcher = threading.Thread(target=kill_one)
        watcher.start()
        with open(tmp_path / "console", "w") as file:
            console = Console(file=file)
            records = session.run(wanted, tmp_path / "run", console, command=["x"], workplace=place)
        assert killed.is_set()
        watcher.join()
    assert Counter(record.candidate for record in records) == Counter(f"number{number}" for number in range(8))
    for record in records:
        assert record.status is Status.RUNTIME_ERROR, record.message
        assert record.message.endswith(f"this is number {record.candidate.removeprefix('number')}")
        assert (tmp_path / "run" / record.log).is_file()


def test_an_evaluator_has_a_cluster_in_place_of_this_machine():
    with made(1) as (one, _), Cluster(one.address) as place, Evaluator(config(), workplace=place) as evaluator:
        problem = CORPUS / "problems/toy/scale.py"
        texts = [(CORPUS / "solutions/clock/toy/scale/honest.py").read_text()]
        texts += [SLOW.format(number=number, seconds=0) for number in range(2)]
        found = list(evaluator.map(problem, texts))
        assert [record.status for record in found] == [Status.PASSED, *[Status.RUNTIME_ERROR] * 2]
        assert [record.message[-16:] for record in found[1:]] == ["this is number 0", "this is number 1"]
        assert evaluator.alive


def test_a_candidate_reaches_nothing_of_the_cluster(tmp_path):
    """Who reaches Ray's ports or sockets runs any code on all machines."""
    place = tmp_path / "solutions/toy/scale"
    place.mkdir(parents=True)
    with made(1) as (one, _), Cluster(one.address) as workplace:
        host, port = one.address.split(":")
        sockets = str(Path(ray._private.worker._global_node.raylet_socket_name).resolve())
        (place / "reaches.py").write_text(REACHES.format(host=host, port=port, socket=sockets))
        wanted = msgspec.structs.replace(config(), solutions=[str(tmp_path / "solutions")], include=[])
        with open(tmp_path / "console", "w") as file:
            (record,) = session.run(wanted, tmp_path / "run", Console(file=file), command=["x"], workplace=workplace)
    assert record.message.endswith("reached []"), record.message


REACHES = """import os
import socket

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        reached = [name for name in os.environ if name.startswith("RAY")]
        for kind, address in ((socket.AF_INET, ("{host}", {port})), (socket.AF_UNIX, "{socket}")):
            try:
                socket.socket(kind).connect(address)
                reached.append(address)
            except OSError:
                pass
        try:
            reached += os.listdir("/tmp/ray")
        except OSError:
            pass
        raise RuntimeError(f"reached {{reached}}")

    def __init__(self, features):
        super().__init__()
"""


def test_what_cannot_be_had_is_told(tmp_path, capsys):
    assert cli.main(["run", "configs/quickstart.yaml", "--address", "auto", "--out", str(tmp_path)]) == 2
    assert "--address goes with --executor ray" in capsys.readouterr().err
    with made(1) as (one, _), Cluster(one.address) as place:
        for device, why in (("cuda", "no machine of the cluster has a GPU"), ("cuda:1", "each machine is taken whole")):
            with pytest.raises(UsageError, match=why):
                place.site(config(device=device))
        with pytest.raises(UsageError, match="one machine's names mean nothing"):
            place.site(config(), ["cpu"])


def test_nodes_that_are_unlike_are_refused():
    here = ThisMachine().site(config())
    other = msgspec.structs.replace(here, surroundings=here.surroundings | {"torch": "1.0"})
    cluster._check_alike("node 2", here, here)
    with pytest.raises(UsageError, match="node 2 is unlike node 1: torch is"):
        cluster._check_alike("node 2", other, here)


def test_a_signal_ends_a_run_on_a_cluster_tidily(tmp_path):
    numbered(tmp_path / "solutions", 4, seconds=20.0)
    with made(1) as (one, _):
        command = [sys.executable, "run_eval.py", "run", "configs/quickstart.yaml", "--device", "cpu"]
        command += ["--problems", str(CORPUS / "problems/toy/scale.py"), "--solutions", str(tmp_path / "solutions")]
        command += ["--variant", "default", "--executor", "ray", "--address", one.address]
        command += ["--out", str(tmp_path / "run")]
        with open(tmp_path / "output", "w") as output:
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        deadline = time.monotonic() + 120
        while "starting" not in (tmp_path / "output").read_text() and process.poll() is None:
            if (tmp_path / "run/logs").is_dir() or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        time.sleep(5.0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 128 + signal.SIGTERM, (tmp_path / "output").read_text()
    assert "Traceback" not in (tmp_path / "output").read_text()
