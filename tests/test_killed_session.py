"""A run whose session is killed leaves no process behind, whatever its candidates had started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.sandbox import probe
from tests.conftest import corpus_config, dump_config

ROOT = Path(__file__).resolve().parents[1]


def awaited(condition: Callable[[], object], timeout_s: float = 60.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def groups_in(folder: Path) -> dict[int, int]:
    """How many processes of each process group work below a folder, or did before it was removed."""
    found: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                group = os.getpgid(int(process.name))
                found[group] = found.get(group, 0) + 1
        except OSError:
            continue
    return found


def alive(groups: set[int]) -> list[str]:
    """The processes of these groups."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getpgid(int(process.name)) in groups:
                found.append((process / "stat").read_text()[:100])
        except OSError:
            continue
    return found


@pytest.mark.skipif("seccomp" not in probe.probe().layers, reason="nothing holds a family together")
@pytest.mark.parametrize("whole_group", [False, True])
def test_nothing_outlives_a_session_that_is_killed(tmp_path, whole_group):
    """`whole_group`: as `timeout -s KILL` and a closing terminal do, everything in the session's group is killed."""
    config = dump_config(corpus_config("keeps_on_forking", seed=7), tmp_path / "config.yaml")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [sys.executable, str(ROOT / "run_eval.py"), "run", str(config), "--out", str(tmp_path / "out")]
    session = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, env=os.environ | {"TMPDIR": str(temporary)}, start_new_session=True
    )
    try:
        # A candidate with the two that it starts; the baseline is alone.
        assert awaited(lambda: max(groups_in(temporary).values(), default=0) >= 3)
        groups = set(groups_in(temporary))
    finally:
        (os.killpg if whole_group else os.kill)(session.pid, signal.SIGKILL)
        session.wait()
    assert awaited(lambda: not alive(groups), 10.0), alive(groups)
    assert groups_in(temporary) == {}
