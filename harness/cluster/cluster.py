"""The machines of a Ray cluster as one workplace. Only this room knows of Ray."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness import places
from harness.catalog.jobs import Job
from harness.cluster.node import Node
from harness.cluster.parcels import Files, not_sent, packed
from harness.cluster.slots import ClusterSlots, NodeLost
from harness.config import Config
from harness.errors import UsageError
from harness.execution.executor import ReportPhase
from harness.execution.pool import Tell
from harness.execution.workplace import Site, Slots
from harness.processes import interruption
from harness.records import Record, decode

# For a machine to give its processors and cards, and to import this package.
START_S = 180.0
# For processes to end, and folders to be removed.
CLOSE_S = 90.0
# Where Ray is ours: our own watch over memory ends whose it is, Ray's would end all that runs on a machine.
ALONE: dict[str, Any] = {"include_dashboard": False, "_system_config": {"memory_monitor_refresh_ms": 0}}
# More than a node has slots, so that builds go on beside evaluations; each is a thread that waits.
MOST_AT_A_TIME = 256
# Of problems, whose files stay in the cluster's memory.
MOST_PROBLEMS = 32


class Cluster:
    """All machines of a Ray cluster that have what a config asks for; a context manager.

    Each is taken whole, all of its cards and processors, since what else runs there would disturb the times. `address`
    is Ray's: `auto` is the cluster that this machine belongs to, `local` one that is begun on this machine alone.
    Raises UsageError where there is none.
    """

    def __init__(self, address: str) -> None:
        try:
            with interruption.kept():
                ray.init(
                    address=address,
                    log_to_driver=False,
                    logging_level="error",
                    # Ray's own workers would find another package of this name, or none.
                    runtime_env={"env_vars": {"PYTHONPATH": places.python_path()}},
                    **(ALONE if address == "local" else {}),
                )
        except (ConnectionError, ValueError, RuntimeError) as error:
            how = "start one with `ray start --head`, or use --address local"
            raise UsageError(f"no Ray cluster at '{address}': {str(error)[:300]}; {how}") from error
        self._nodes: list[RemoteNode] = []

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End what runs on the machines, and leave the cluster."""
        self._end_nodes()
        ray.shutdown()

    def site(self, config: Config, names: Sequence[str] = ()) -> Site:
        """What the machines are; all alike. Raises UsageError where they are not, or none has the device."""
        if names:
            raise UsageError("the devices of a cluster are those of the config: one machine's names mean nothing there")
        self._end_nodes()
        members = _members(config)
        self._nodes = [RemoteNode(f"node {number}", member, config) for number, member in enumerate(members, 1)]
        sites = [node.site() for node in self._nodes]
        for node, found in zip(self._nodes, sites, strict=True):
            _check_alike(node.name, found, sites[0])
        devices = [device for found in sites for device in found.devices]
        more = {"devices": [msgspec.to_builtins(device) for device in devices], "nodes": len(sites)}
        return msgspec.structs.replace(sites[0], devices=devices, description=sites[0].description | more)

    def slots(
        self,
        devices: list[Any],
        config: Config,
        logs: Path,
        seed: int | None,
        tell: Tell,
        report_phase: ReportPhase,
        private: Iterable[Path] = (),
    ) -> Slots:
        """The slots of all machines that `site` has found."""
        # Side by side: each starts a process that imports torch.
        with ThreadPoolExecutor(len(self._nodes)) as threads:
            list(threads.map(lambda node: node.open(config, seed), self._nodes))
        return ClusterSlots(self._nodes, devices[0], config, logs, tell, report_phase)

    def _end_nodes(self) -> None:
        if self._nodes:
            with ThreadPoolExecutor(len(self._nodes)) as threads:
                list(threads.map(RemoteNode.close, self._nodes))
        self._nodes = []


class RemoteNode:
    """A Node on one machine of the cluster. Usable from several threads."""

    def __init__(self, name: str, member: dict[str, Any], config: Config) -> None:
        self.name = name
        self.measures = self.prepares = 0
        self._problems: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        resources = member["Resources"]
        self._actor = (
            ray.remote(Node)
            .options(
                num_cpus=resources.get("CPU", 0),
                num_gpus=resources.get("GPU", 0) if config.device != "cpu" else 0,
                max_concurrency=MOST_AT_A_TIME,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(member["NodeID"], soft=False),
            )
            .remote(config, os.environ.get("OMP_NUM_THREADS"))
        )

    def site(self) -> Site:
        """What is known of the machine. Raises UsageError where it is of no use."""
        found: Site = self._asked(self._actor.site.remote())
        return found

    def open(self, config: Config, seed: int | None) -> None:
        """Start its processes. Raises UsageError."""
        self.measures, prepares = self._asked(self._actor.open.remote(config, seed))
        self.prepares = min(prepares, MOST_AT_A_TIME - 2 - self.measures)

    def evaluate(self, job: Job, priority: int) -> tuple[Record, Files, bool]:
        """A job's record, its logs, and whether a device is left there. Raises NodeLost."""
        problem, candidate = (), {}
        if not job.problem.fault and not job.candidate.fault:
            try:
                problem, candidate = self._problem(job), packed(job.candidate.path)
            except OSError as error:
                job = not_sent(job, error)
        try:
            told, logs, alive = ray.get(self._actor.evaluate.remote(job, problem, candidate, priority))
        except RayTaskError as error:
            raise error.cause from error
        except RayError as error:
            raise NodeLost(f"{self.name} was lost: {type(error).__name__}") from error
        return decode(told), logs, alive

    def end(self) -> None:
        """Have it do nothing any more, if it is still there: others do its jobs."""
        ray.kill(self._actor)

    def close(self) -> None:
        """End its processes, in good order where it is still there."""
        try:
            ray.get(self._actor.close.remote(), timeout=CLOSE_S)
        except RayError:
            pass
        self.end()

    def _problem(self, job: Job) -> Any:
        """A problem's files, which are sent to each machine once; the last ones are kept."""
        # Two of one text may have different names.
        key = job.problem.digest, job.problem.path.name
        with self._lock:
            if key not in self._problems:
                self._problems = dict([*self._problems.items()][-MOST_PROBLEMS:])
                self._problems[key] = ray.put(packed(job.problem.path))
            return self._problems[key]

    def _asked(self, answer: Any) -> Any:
        try:
            return ray.get(answer, timeout=START_S)
        except GetTimeoutError as error:
            why = f"{self.name} did not start within {START_S:g} s; are its processors and cards free?"
            raise UsageError(f"{why} `ray status` shows who has them") from error
        except RayTaskError as error:
            raise UsageError(f"{self.name}: {error.cause}") from error
        except RayError as error:
            raise UsageError(f"{self.name} cannot evaluate: {error}") from error


def _members(config: Config) -> list[dict[str, Any]]:
    """The machines that have what the config asks for. Raises UsageError."""
    alive = [node for node in ray.nodes() if node["Alive"]]
    with_cards = [node for node in alive if node["Resources"].get("GPU")]
    if config.device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device {config.device}: on a cluster auto, cpu or cuda; each machine is taken whole")
    if config.device == "cuda" and not with_cards:
        raise UsageError("--device cuda: no machine of the cluster has a GPU")
    found = with_cards if with_cards and config.device != "cpu" else alive
    # A head without processors only keeps the books.
    found = [node for node in found if node["Resources"].get("CPU")]
    if not found:
        raise UsageError("no machine of the cluster has a processor to give")
    return sorted(found, key=lambda node: str(node["NodeID"]))


def _check_alike(name: str, found: Site, first: Site) -> None:
    """Raises UsageError where results of two machines could not be compared."""
    here, there = _compared(found), _compared(first)
    for what, value in here.items():
        if value != there[what]:
            raise UsageError(f"{name} is unlike node 1: {what} is {value}, there {there[what]}; use machines alike")


def _compared(site: Site) -> dict[str, Any]:
    described = {key: site.description[key] for key in ("assay", "commit", "python")}
    return site.surroundings | described | {"sandbox": list(site.sandbox.layers)}
