"""What the judge's clock does on this card: the shared words, the fixed cost, the inputs' way to the start, the look.

    python benchmarks/card_clock.py [--out DIR] [--without-corpus]

First, in two processes without a sandbox, a judge's link and a runner: does a stream wait for words in memory that was
handed over as a descriptor, does nothing but the secret end a burst, what do empty bursts take, how long are inputs on
their way. Then the tests that need a card, and the specimens that lie to this clock with their twins. Takes about six
minutes; the last lines are a table: name, whether it is as it should be, what was seen.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.config import Limits  # noqa: E402
from harness.links.cuda_link import CudaLink  # noqa: E402
from harness.links.cuda_snapshot import Snapshot  # noqa: E402
from harness.links.freezer import Freezer  # noqa: E402
from harness.links.link import Draw  # noqa: E402
from harness.links.start_watch import StartWatch  # noqa: E402
from harness.machine.card_turns import CardTurns  # noqa: E402
from harness.wire import cuda_memory  # noqa: E402
from harness.wire.channel import Channel, pair  # noqa: E402
from harness.wire.cuda_driver import driver_call, on_device, reset_persisting_l2  # noqa: E402
from harness.wire.cuda_gate import Gate, fresh_secret  # noqa: E402
from harness.wire.layout import place  # noqa: E402
from harness.wire.messages import CandidateSource, Construction, FromRunner  # noqa: E402
from harness.wire.nodes import NOWHERE  # noqa: E402

DEVICE = torch.device("cuda:0")
CALLS = 32
SIZE = 1 << 20
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return torch.relu(x)
"""
SPECIMENS = (
    "cuda_honest",
    "cuda_one_kernel",
    "cuda_waits_for_itself",
    "cuda_spread_outputs",
    "cuda_hidden_stream*",
    "cuda_static_workspace",
    "cuda_says_done_ahead",
    "cuda_enqueues_the_next_burst",
    "cuda_spreads_late_outputs",
    "cuda_waits_then_works_late",
    "cuda_watches_its_inputs",
    "cuda_spoils_its_neighbours",
    "cuda_persisting_cache",
    "cuda_forges_a_handle",
    "honest_chain",
)
TESTS = ("tests/links/test_cuda_clock.py", "tests/sandbox/test_sandbox_cuda.py")


class Connected:
    """A link and a runner in a process of its own, as a judge has them, with nothing around."""

    def __init__(self, folder: Path) -> None:
        source = folder / "candidate.py"
        source.write_text(CANDIDATE)
        ours, its = pair()
        words = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from harness.runner import runner; "
        words += "fd = %d; runner.greet(fd); runner.main(fd)"
        self.process = subprocess.Popen(
            [sys.executable, "-c", words % its.fileno()], cwd=folder, pass_fds=(its.fileno(),), start_new_session=True
        )
        its.close()
        self.watch = StartWatch()
        channel = Channel(ours, FromRunner)
        freezer = Freezer(self.process.pid)
        limits = Limits(call_s=20.0, load_s=60.0)
        self.link = CudaLink(channel, freezer, DEVICE, limits, False, self.watch, warm=False, turns=CardTurns())
        candidate = CandidateSource(path=str(source), entries=("ModelNew",))
        self.link.prepare(candidate, "float32", [], Construction(seed=1), {}, {})
        like = place([torch.zeros(SIZE, device=DEVICE)], NOWHERE)[0]
        self.link.reserve(CALLS, like, {"output": like[0]})

    def close(self) -> None:
        self.link.close()
        self.process.kill()
        self.process.wait()


def draws(count: int) -> list[Draw]:
    return [Draw(inputs=(torch.randn(SIZE, device=DEVICE),), seed=number) for number in range(count)]


def right(link: CudaLink, given: list[Draw]) -> bool:
    return all(torch.equal(link.output(call), draw.inputs[0].relu()) for call, draw in enumerate(given))


def described(times_us: list[float]) -> str:
    ordered = sorted(times_us)
    low, high = ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]
    return f"{statistics.median(ordered):.1f} us, p5-p95 {low:.1f}-{high:.1f}, n={len(ordered)}"


def words_in_shared_memory() -> tuple[bool, str]:
    """Within one process: a stream waits for `done` to be the secret, in memory made by cuMemCreate."""
    memory, fd = cuda_memory.SharedMemory.create(Gate.BYTES)
    other = cuda_memory.SharedMemory.open(fd, Gate.BYTES)
    judge, runner = Gate(memory.tensor), Gate(other.tensor)
    one, two = torch.cuda.Stream(), torch.cuda.Stream()
    runner.rehearse(two.cuda_stream)
    judge.reset(one.cuda_stream)
    one.synchronize()
    runner.wait_open(1, two.cuda_stream)
    runner.mark_done(two.cuda_stream)
    secret = fresh_secret()
    judge.wait_done(secret, one.cuda_stream)
    time.sleep(0.05)
    stood = not one.query() and not two.query()
    third = torch.cuda.Stream()
    judge._write(judge._done, 2**31 - 1, third.cuda_stream)
    third.synchronize()
    time.sleep(0.05)
    unmoved = not one.query()
    judge.open(1, secret, third.cuda_stream)
    one.synchronize()
    two.synchronize()
    os.close(fd)
    return stood and unmoved, f"stands={stood}, not moved by a large value={unmoved}, moved by the secret=True"


def bursts(connected: Connected) -> tuple[bool, str]:
    link, seen = connected.link, []
    for gated in (False, True):
        for count in (1, CALLS, CALLS, 3):
            given = draws(count)
            reading = link.burst(given, gated=gated)
            seen.append(right(link, given) and reading.gated is gated)
    return all(seen), f"{sum(seen)} of {len(seen)} right, gated as asked"


def nulls(connected: Connected, gated: bool) -> tuple[bool, str]:
    times_us = [connected.link.null_us(gated=gated) for _ in range(101)][1:]
    # 284 us in the design notes, with a plain write for `done`.
    return not gated or statistics.median(times_us) < 400.0, described(times_us)


def one_kernel(connected: Connected) -> tuple[bool, str]:
    link = connected.link
    one = statistics.median(link.burst(draws(1)).judge_us for _ in range(30))
    many = statistics.median(link.burst(draws(CALLS)).judge_us for _ in range(30))
    call_us = (many - one) / (CALLS - 1)
    return 0 < call_us < 50, f"{one:.1f} us a burst of one, {call_us:.2f} us each further call of relu on 4 MiB"


def way(connected: Connected) -> tuple[bool, str]:
    link = connected.link
    link.learn_start(draws(1)[0])
    learnt = {calls: statistics.median(ways) for calls, ways in connected.watch._seen_us.items()}
    ways_us, slow = [], 0
    for number in range(200):
        reading = link.burst(draws(1 + number % CALLS))
        slow += reading.slow_start
        ways_us.append(link._way_us)
    known = ", ".join(f"{us:.1f} us for {calls}" for calls, us in learnt.items())
    return slow <= 4, f"learnt {known}; honest bursts {described(ways_us)}; slow_start {slow} of 200"


def host_work(connected: Connected) -> tuple[bool, str]:
    """What the judge's host spends on a burst, outside of the clock but for the ungated one."""
    outputs = [torch.empty(SIZE, device=DEVICE) for _ in range(256)]
    Snapshot(outputs).take()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    snapshot = Snapshot(outputs)
    made_us = (time.perf_counter() - begun) * 1e6
    snapshot.take()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    snapshot.take()
    torch.cuda.synchronize()
    taken_us = (time.perf_counter() - begun) * 1e6
    begun = time.perf_counter()
    reset_persisting_l2(0)
    reset_us = (time.perf_counter() - begun) * 1e6
    said = (
        f"256 outputs: {made_us:.0f} us to prepare, {taken_us:.0f} to look; persisting lines reset in {reset_us:.0f} us"
    )
    return True, said


def spread_memory(connected: Connected) -> tuple[bool, str]:
    """A span of 8 GiB with 2**20 elements is copied in 4 MiB."""
    wide = torch.zeros(1 << 31, device=DEVICE).as_strided((1 << 20,), (2047,))
    torch.cuda.synchronize()
    snapshot = Snapshot([wide])
    snapshot.take()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    copy = snapshot.output(0)
    peak = torch.cuda.max_memory_allocated() - before
    return peak < 64 << 20 and not copy.any(), f"{peak / 2**20:.1f} MiB at most for the copy"


def no_handle(connected: Connected) -> tuple[bool, str]:
    try:
        cuda_memory.export(connected.link._blocks[0])
    except cuda_memory.NotExportable as error:
        return True, str(error)[-80:]
    return False, "the gate can be exported by IPC"


def card() -> tuple[bool, str]:
    properties = torch.cuda.get_device_properties(DEVICE)
    with on_device(0):
        version = driver_call("cuDriverGetVersion")
    return True, f"{properties.name}, torch {torch.__version__}, CUDA driver {version}, L2 {properties.L2_cache_size}"


def tried(name: str, part: Callable[[], tuple[bool, str]]) -> str:
    """A line of the table."""
    try:
        good, said = part()
    except Exception as error:  # What a card cannot do is what this is to find out.
        good, said = False, f"{type(error).__name__}: {error}"
    line = f"{name:<22} {'ok ' if good else 'BAD'} {said}"
    print(line, flush=True)
    return line


def command(name: str, words: list[str], limit_s: float, log: Path) -> Callable[[], tuple[bool, str]]:
    """Runs `words`; its last line, and its whole output in `log`."""

    def part() -> tuple[bool, str]:
        with log.open("w") as file:
            code = subprocess.run(
                [sys.executable, *words], cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, timeout=limit_s, check=False
            ).returncode
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        print(f"--- {name}", *lines[-40:], sep="\n", flush=True)
        return code == 0, lines[-1][:160] if lines else ""

    return part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "results/card_clock")
    parser.add_argument("--without-corpus", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.cuda.set_device(DEVICE)
    lines = [tried("card", card), tried("words", words_in_shared_memory)]
    with tempfile.TemporaryDirectory() as folder:
        lines += with_a_runner(Path(folder))
    if not arguments.without_corpus:
        tests = ["-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *TESTS]
        lines.append(tried("gpu tests", command("gpu tests", tests, 180, arguments.out / "tests.log")))
        only = [word for name in SPECIMENS for word in ("--only", name)]
        words = ["benchmarks/detection.py", "--device", "cuda", "--out", str(arguments.out / "detection"), *only]
        lines.append(tried("specimens", command("specimens", words, 300, arguments.out / "detection.log")))
    print("\n" + "\n".join(lines))


def with_a_runner(folder: Path) -> list[str]:
    parts: list[tuple[str, Callable[[Any], tuple[bool, str]]]] = [
        ("bursts", bursts),
        ("no handle of the gate", no_handle),
        ("null, gated", lambda connected: nulls(connected, gated=True)),
        ("null, ungated", lambda connected: nulls(connected, gated=False)),
        ("one kernel", one_kernel),
        ("way to the start", way),
        ("host work", host_work),
        ("spread outputs", spread_memory),
    ]
    held: list[Connected] = []

    def connect() -> tuple[bool, str]:
        begun = time.monotonic()
        held.append(Connected(folder))
        return True, f"{time.monotonic() - begun:.1f} s to the runner's being ready"

    lines = [tried("connected", connect)]
    if held:
        lines += [tried(name, lambda part=part: part(held[0])) for name, part in parts]  # type: ignore[misc]
        lines.append(tried("closed", lambda: (held[0].close() is None, "")))
    return lines


if __name__ == "__main__":
    main()
