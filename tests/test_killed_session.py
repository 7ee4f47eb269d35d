"""What a run leaves whose session is ended from outside, whatever its candidates had started."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.config import TimingConfig
from harness.processes import interruption
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


def begun(folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
    """A session with a candidate that takes minutes, and where its temporary folders are."""
    patient = TimingConfig(min_pairs=5000, max_pairs=5000, budget_s=120.0)
    config = msgspec.structs.replace(corpus_config("keeps_on_forking", seed=7), timing=patient)
    config = dump_config(config, folder / "config.yaml")
    temporary = folder / "temporary"
    temporary.mkdir()
    # Whoever runs the tests in the background, or by nohup, has signals ignored, and children inherit that.
    command = ["env", "--default-signal", sys.executable, str(ROOT / "run_eval.py")]
    command += ["run", str(config), "--out", str(folder / "out")]
    # SIGABRT has it print where each of its threads is.
    environment = os.environ | {"TMPDIR": str(temporary), "PYTHONFAULTHANDLER": "1"}
    with (folder / "said").open("w") as said:
        session = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=said, env=environment, start_new_session=True
        )
    return session, temporary


@pytest.mark.skipif("seccomp" not in probe.probe().layers, reason="nothing holds a family together")
@pytest.mark.parametrize("whole_group", [False, True])
def test_nothing_outlives_a_session_that_is_killed(tmp_path, whole_group):
    """`whole_group`: as `timeout -s KILL` and a closing terminal do, everything in the session's group is killed."""
    session, temporary = begun(tmp_path)
    try:
        # A candidate with the two that it starts; the baseline is alone.
        assert awaited(lambda: max(groups_in(temporary).values(), default=0) >= 3)
        groups = set(groups_in(temporary))
    finally:
        (os.killpg if whole_group else os.kill)(session.pid, signal.SIGKILL)
        session.wait()
    assert awaited(lambda: not alive(groups), 10.0), alive(groups)
    assert groups_in(temporary) == {}


@pytest.mark.parametrize(
    ("signals", "code"), [([signal.SIGTERM], 143), ([signal.SIGHUP], 129), ([signal.SIGINT] * 4, 130)]
)
def test_a_session_that_is_asked_to_end_puts_everything_away(tmp_path, signals, code):
    session, temporary = begun(tmp_path)
    try:
        assert awaited(lambda: max(groups_in(temporary).values(), default=0) >= 3)
        for number in signals:
            session.send_signal(number)
            time.sleep(0.1)
        session.wait(60.0)
    except subprocess.TimeoutExpired:
        session.send_signal(signal.SIGABRT)
        session.wait(10.0)
        pytest.fail(f"no end within 60 s:\n{(tmp_path / 'said').read_text()}")
    finally:
        session.kill()
        session.wait()
    assert (session.returncode, list(temporary.iterdir())) == (code, [])
    said = (tmp_path / "said").read_text()
    assert said == "Interrupted. Finished results are saved; run the same command to resume.\n"


def test_a_signal_that_somebody_has_had_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruption.heard():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_in_a_clean_up_waits_for_its_end():
    before = {number: signal.getsignal(number) for number in interruption.SIGNALS}
    done = []

    def put_away():
        with interruption.held():
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            done.append("put away")

    try:
        with interruption.heard(), pytest.raises(KeyboardInterrupt) as raised:
            put_away()
        assert (done, interruption.exit_code(raised.value)) == (["put away"], 143)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
