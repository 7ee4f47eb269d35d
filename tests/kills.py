"""SIGKILL to the processes of a run at random moments, and what its records should then be.

Used by test_kill_and_resume.py and benchmarks/kills.py.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from harness.store import journal
from tests.conftest import corpus_config, dump_config

ROOT = Path(__file__).resolve().parents[1]
# Of every kind of end, and one that has a build, though nothing to compile.
NAMES = (
    *("answer_in_the_input", "exits_zero", "forges_its_build", "honest", "honest_after", "missing_entry", "raises"),
    *("returns_a_transposed_view", "segfault", "sums_in_another_order", "wrong_shape", "zeros"),
)
ROLES = ("session", "keeper", "zygote", "judge", "runner", "builder")
# A run of these takes some ten seconds, a third of them for importing torch.
LONGEST_PAUSE_S = 3.0

Status = tuple[str, str]


class Killer:
    """Runs the same jobs again and again, killing something each time; what is wrong then is in `faults`."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder = folder
        self._rng = rng
        self._config = dump_config(corpus_config(*NAMES, seed=7), folder / "config.yaml")
        self._right = self._undisturbed()
        self.killed: Counter[str] = Counter()
        self.runs = 0
        self.faults: list[str] = []

    def run(self, kills: int, on_run: Callable[[], None] = lambda: None) -> None:
        """Kill at least so many processes, over as many runs as that takes."""
        while self.killed.total() < kills:
            self.runs += 1
            out = self._folder / f"run{self.runs}"
            self._to_the_end(out, kills)
            found = statuses(out)
            if found != self._right:
                wrong = {name: found.get(name) for name in NAMES if found.get(name) != self._right[name]}
                self.faults.append(f"run {self.runs}: {wrong}")
            on_run()

    def _undisturbed(self) -> dict[str, Status]:
        out = self._folder / "undisturbed"
        subprocess.run(self._command(out), capture_output=True, cwd=ROOT, check=True)
        return statuses(out)

    def _to_the_end(self, out: Path, kills: int) -> None:
        """Start the run as often as it takes until it ends by itself."""
        while True:
            process = subprocess.Popen(
                self._command(out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
            self._strike(process, out, kills)
            _, words = process.communicate()
            if process.returncode == 0:
                return
            if process.returncode != -signal.SIGKILL:
                self.faults.append(f"run {self.runs} ended with {process.returncode}: {words[-500:]}")
                return

    def _strike(self, process: subprocess.Popen[str], out: Path, kills: int) -> None:
        """Kill now and then, but never twice within one evaluation: what is lost twice is the candidate's doing."""
        while process.poll() is None and self.killed.total() < kills:
            time.sleep(self._rng.uniform(0.0, LONGEST_PAUSE_S))
            role = self._rng.choice(ROLES)
            before = written(out)
            victims = processes(process.pid, role)
            if not victims or process.poll() is not None:
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._rng.choice(victims), signal.SIGKILL)
                self.killed[role] += 1
            if role == "session":
                return
            # The evaluation that was hit, and one that was perhaps just being written down.
            while process.poll() is None and written(out) < before + 2:
                time.sleep(0.05)

    def _command(self, out: Path) -> list[str]:
        return [sys.executable, str(ROOT / "run_eval.py"), "run", str(self._config), "--out", str(out)]


def statuses(out: Path) -> dict[str, Status]:
    """Status and reason of each candidate of a run; one with several records has as status how many."""
    records, _ = journal.parse((out / "records.jsonl").read_bytes())
    counts = Counter(record.candidate for record in records)
    return {
        record.candidate: (str(record.status), record.reason)
        if counts[record.candidate] == 1
        else (f"{counts[record.candidate]} records", "")
        for record in records
    }


def written(out: Path) -> int:
    """How many records there are so far."""
    try:
        return (out / "records.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def processes(session: int, role: str) -> list[int]:
    """The processes of a run that play a role now, told apart by where they work."""
    if role == "session":
        return [session]
    keepers = [pid for pid in children(session) if b"harness.processes.zygote" in read(f"/proc/{pid}/cmdline")]
    if role == "keeper":
        return keepers
    # And what a killed one leaves, for a moment.
    zygotes = [pid for keeper in keepers for pid in children(keeper)]
    if role == "zygote":
        return zygotes
    places = {"judge": ROOT.name, "runner": "assay-run.", "builder": "assay-build."}
    forked = [pid for zygote in zygotes for pid in children(zygote)]
    return [pid for pid in forked if places[role] in place(pid)]


def children(pid: int) -> list[int]:
    return [int(one) for path in Path(f"/proc/{pid}/task").glob("*") for one in read(f"{path}/children").split()]


def place(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
