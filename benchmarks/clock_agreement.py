"""Does the harness's device time agree with plain event timing, and where it does not: is it the card's clocks?

    python benchmarks/clock_agreement.py [--only WORD] [--sustained 2] [--within 40]

Needs a CUDA device. Each kernel is timed in three regimes:

harness    a candidate's median time in a run of the harness: gated bursts of some 5 ms by the judge's clock, each call
           on inputs of its own, pauses between bursts while outputs are checked.
events     the method of triton.testing.do_bench: a plain process, one pair of events around each call, the same inputs,
           256 MiB written before each call to empty the L2, everything enqueued without pause; here the median, of half
           a second's calls. A launch's own latency is part of such a time; the lines below the table say how large.
sustained  the same process afterwards: calls back to back for two seconds, over several sets of inputs that together
           exceed the L2 four times; the median of chunks in the second half, so that clocks have settled.

Clock of the multiprocessors (MHz) and power (W) are means of NVML's readings every 20 ms meanwhile, in the second half
of the regime. Where a time is bound by arithmetic it goes with one over the clock: an equal difference in clocks
explains a difference in times. The difference is that of harness over events.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import _made_up as made_up
from _made_up import Problem

from harness import environment
from harness.catalog import modules
from harness.config import TimingConfig
from harness.errors import UsageError
from harness.records import Record

FLUSH_BYTES = 256 << 20
WARM_UP_S, EVENTS_S = 0.05, 0.5
CALLS = (20, 2000)
CHUNK_S = 0.02
READ_EVERY_S = 0.02
# Seconds that a kernel's plain measurement takes beside the sustained part: a process's CUDA, inputs, the events.
PLAIN_S = 2.0
# What the harness may take of the time, the rest being for the plain measurements.
HARNESS_SHARE = 0.5
TEN_PAIRS = TimingConfig(min_pairs=10, max_pairs=10, budget_s=3.0)

MATMUL = "return a @ b"
SDPA = """\
scores = torch.matmul(a, b.transpose(-2, -1)) * a.shape[-1] ** -0.5
return torch.matmul(torch.softmax(scores, dim=-1), c)
"""
# By name: the method's body, shapes of its inputs, and precision. The harness takes them in the order of their names.
KERNELS: dict[str, tuple[str, list[str], str]] = {
    "matmul_fp16_8192": (MATMUL, ["8192, 8192"] * 2, "float16"),
    "matmul_fp32_1024": (MATMUL, ["1024, 1024"] * 2, "float32"),
    "matmul_fp32_2304": (MATMUL, ["2304, 2304"] * 2, "float32"),
    "relu_25m": ("return torch.relu(a)", ["24576, 1024"], "float32"),
    "relu_134m": ("return torch.relu(a)", ["131072, 1024"], "float32"),
    "sdpa_three_ops": (SDPA, ["8, 16, 1024, 128"] * 3, "float16"),
}


@dataclass(frozen=True)
class State:
    """Means over a regime; NaN where nothing could be read."""

    clock_mhz: float = math.nan
    power_w: float = math.nan


@dataclass(frozen=True)
class Plain:
    """One kernel in its own process. `nothing_us` and `tiny_us` are event times of no call and of one number's relu."""

    event_us: float
    event_state: State
    sustained_us: float
    sustained_state: State
    nothing_us: float
    tiny_us: float


def main() -> int:
    arguments = parse()
    started = time.monotonic()
    missing = environment.why_no_cuda()
    if missing:
        print(f"This benchmark compares clocks of a CUDA device, and there is none to use here: {missing}.")
        return 2
    problems = [problem(name) for name in KERNELS if arguments.only in name]
    try:
        device = environment.choose_devices(arguments.device)[0]
        if not problems:
            raise UsageError(f"--only {arguments.only}: no kernel has that in its name")
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(device.name, flush=True)
    with tempfile.TemporaryDirectory(prefix="assay-clocks-") as folder, workers() as submit:
        root = Path(folder)
        made_up.write(problems, root)
        deadline = started + arguments.within
        records, states = in_the_harness(root, device.spec, started + HARNESS_SHARE * arguments.within)
        plain = {}
        for item in (item for item in problems if item.name in records):
            if time.monotonic() + PLAIN_S + arguments.sustained > deadline:
                break
            try:
                path = made_up.problem_path(root, item)
                plain[item.name] = submit(plainly, path, device.spec, arguments.sustained)
            except Exception as error:
                print(f"{item.name}: plain timing failed: {type(error).__name__}: {error}", file=sys.stderr)
    return report(problems, records, states, plain)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="last line: worst_difference_pct=X, the largest difference of a kernel in %, without its sign",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", default="cuda:0", help="cuda:N (cuda:0)")
    parser.add_argument(
        "--only", default="", metavar="WORD", help=f"kernels with WORD in their names: {', '.join(KERNELS)}"
    )
    parser.add_argument("--sustained", type=float, default=2.0, help="seconds of load without pause (2)")
    parser.add_argument(
        "--within", type=float, default=40.0, help="leave out what does not fit into so many seconds (40)"
    )
    return parser.parse_args()


def problem(name: str) -> Problem:
    forward, inputs, precision = KERNELS[name]
    copy = made_up.source(forward, inputs, entry="ModelNew", precision=precision)
    return Problem(
        name=name, source=made_up.source(forward, inputs, precision=precision), candidates={"the_same": copy}
    )


# --- The harness ------------------------------------------------------------------------------------------------


def in_the_harness(root: Path, device: str, deadline: float) -> tuple[dict[str, Record], dict[str, State]]:
    """Records, and the card's state while each was timed, by the problem's name."""
    reader = Reader(nvml_handle(device))
    watch = PhaseWatch(reader)
    with reader:
        records = made_up.run(root, root / "run", device, TEN_PAIRS, deadline=deadline, on_phase=watch.phase)
    by_name = {record.problem.rpartition("/")[2]: record for record in records}
    return by_name, {name: reader.state(name) for name in by_name}


class PhaseWatch:
    """Files a reader's readings under the problem that is being timed, if one is."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def phase(self, problem_id: str, phase: str) -> None:
        self._reader.label = problem_id.rpartition("/")[2] if phase == "timing" else ""


# --- The card's state -------------------------------------------------------------------------------------------


class Reader:
    """A thread that reads clock and power all the time, and files them under what `label` says then."""

    def __init__(self, handle: Any) -> None:
        self.label = ""
        self._handle = handle
        self._readings: dict[str, list[tuple[float, float]]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="nvml", daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def state(self, label: str) -> State:
        """The means of the later half of a label's readings."""
        readings = self._readings.get(label, [])
        later = readings[len(readings) // 2 :]
        if not later:
            return State()
        return State(statistics.mean(clock for clock, _ in later), statistics.mean(power for _, power in later))

    def _read(self) -> None:
        import pynvml

        while not self._stop.wait(READ_EVERY_S):
            label = self.label
            if not label:
                continue
            try:
                clock = float(pynvml.nvmlDeviceGetClockInfo(self._handle, pynvml.NVML_CLOCK_SM))
                self._readings.setdefault(label, []).append((clock, power_w(self._handle)))
            except pynvml.NVMLError:
                # What this card does not tell is missing in the table; the times are still worth having.
                continue


def nvml_handle(device: str) -> Any:
    """The card that torch calls `device`."""
    import pynvml

    pynvml.nvmlInit()
    index = int(device.partition(":")[2] or 0)
    visible = [int(word) for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip().isdigit()]
    return pynvml.nvmlDeviceGetHandleByIndex(visible[index] if visible else index)


def power_w(handle: Any) -> float:
    """Power now, or where the card does not tell, the driver's average of up to a second."""
    import pynvml

    field = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])[0]
    if field.nvmlReturn == pynvml.NVML_SUCCESS and field.value.uiVal:
        return field.value.uiVal / 1e3
    return pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3


# --- Plain timing, in a process of its own ----------------------------------------------------------------------


@contextmanager
def workers() -> Iterator[Callable[..., Any]]:
    """Yields a function that calls another in a fresh process, forked from one that has torch and no CUDA yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    # Now, so that it imports while the harness's own processes do, and not later, beside a measurement.
    forkserver.ensure_running()

    def submit(function: Callable[..., Any], *arguments: Any) -> Any:
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            return pool.submit(function, *arguments).result()

    yield submit


def plainly(path: Path, spec: str, sustained_s: float) -> Plain:
    """Time a problem's reference by events and under sustained load. In a process of its own."""
    import torch

    device = torch.device(spec)
    torch.cuda.set_device(device)
    kernel = Kernel(path, device)
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=device)
    one = torch.ones(1, device=device)
    with torch.no_grad(), Reader(nvml_handle(spec)) as reader:
        nothing_us = event_us(lambda: None, flush, 0.02)
        tiny_us = event_us(lambda: torch.relu(one), flush, 0.02)
        event_us(kernel.same_inputs, flush, WARM_UP_S)
        reader.label = "events"
        by_events = event_us(kernel.same_inputs, flush, EVENTS_S)
        reader.label = "sustained"
        back_to_back = sustained_us(kernel.next_inputs, sustained_s)
        reader.label = ""
    return Plain(by_events, reader.state("events"), back_to_back, reader.state("sustained"), nothing_us, tiny_us)


class Kernel:
    """A problem's reference on the device, with enough sets of inputs to exceed the L2 four times."""

    def __init__(self, path: Path, device: Any) -> None:
        import torch

        module = modules.execute(path)
        dtype = getattr(torch, module.PRECISION)
        self._model = module.Model().to(device=device, dtype=dtype)

        def draw() -> list[Any]:
            with torch.device(device):
                return [tensor.to(dtype) for tensor in module.get_inputs()]

        self._sets = [draw()]
        set_bytes = sum(tensor.numel() * tensor.element_size() for tensor in self._sets[0])
        enough = 4 * torch.cuda.get_device_properties(device).L2_cache_size
        self._sets += [draw() for _ in range(math.ceil(enough / set_bytes) - 1)]
        self._calls = 0

    def same_inputs(self) -> None:
        self._model(*self._sets[0])

    def next_inputs(self) -> None:
        self._calls += 1
        self._model(*self._sets[self._calls % len(self._sets)])


def event_us(call: Callable[[], None], flush: Any, seconds: float) -> float:
    """The median time of a call as triton.testing.do_bench takes it: an event before, an event behind, L2 emptied."""
    import torch

    def timed(count: int) -> list[float]:
        pairs = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(count)]
        for start, end in pairs:
            flush.zero_()
            start.record()
            call()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in pairs]

    call()
    torch.cuda.synchronize()
    began = time.perf_counter()
    timed(5)
    each_s = (time.perf_counter() - began) / 5
    fewest, most = CALLS
    return statistics.median(timed(max(fewest, min(most, math.ceil(seconds / each_s)))))


def sustained_us(call: Callable[[], None], seconds: float) -> float:
    """The median time of a call in the second half of so many seconds without a pause."""
    import torch

    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    calls = chunk_length(call)
    marks = [mark()]
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        for _ in range(calls):
            call()
        marks.append(mark())
        # Two chunks stay enqueued: the device never waits, and the host is never far ahead.
        if len(marks) > 2:
            marks[-3].synchronize()
    torch.cuda.synchronize()
    chunks_us = [one.elapsed_time(next_one) * 1e3 / calls for one, next_one in itertools.pairwise(marks)]
    return statistics.median(chunks_us[len(chunks_us) // 2 :])


def chunk_length(call: Callable[[], None]) -> int:
    """How many calls take some 20 ms."""
    import torch

    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(10):
        call()
    torch.cuda.synchronize()
    return max(1, round(CHUNK_S * 10 / (time.perf_counter() - began)))


# --- The report -------------------------------------------------------------------------------------------------


def report(
    problems: Sequence[Problem], records: dict[str, Record], states: dict[str, State], plain: dict[str, Plain]
) -> int:
    """Print the table, notes, and the last line; returns the exit status."""
    titles = ["kernel", "harness us", "MHz", "W", "events us", "MHz", "W", "difference", "sustained us", "MHz", "W"]
    made_up.print_table(
        titles, [row(item.name, records.get(item.name), states, plain.get(item.name)) for item in problems]
    )
    for name, record in records.items():
        if record.timing is not None and record.timing.clock != "device":
            print(f"{name}: the harness's clock was {record.timing.clock}")
    made_up.print_failures(list(records.values()))
    if plain:
        nothing, tiny = (
            statistics.median(getattr(p, name) for p in plain.values()) for name in ("nothing_us", "tiny_us")
        )
        print(f"events around nothing read {nothing:.2f} us, around the relu of one number {tiny:.2f} us")
    skipped = [item.name for item in problems if item.name not in records or item.name not in plain]
    if skipped:
        print(f"not all of it done in time (--within): {', '.join(skipped)}")
    differences = [difference_pct(records.get(item.name), plain.get(item.name)) for item in problems]
    known = [abs(value) for value in differences if not math.isnan(value)]
    print(f"worst_difference_pct={max(known, default=math.nan):.2f}")
    return 0 if known else 1


def row(name: str, record: Record | None, states: dict[str, State], plain: Plain | None) -> list[str]:
    harness = [figure(harness_us(record), 2), *shown(states.get(name, State()))]
    if plain is None:
        return [name, *harness, *["-"] * 7]
    events = [figure(plain.event_us, 2), *shown(plain.event_state)]
    difference = difference_pct(record, plain)
    sustained = [figure(plain.sustained_us, 2), *shown(plain.sustained_state)]
    return [name, *harness, *events, "-" if math.isnan(difference) else f"{difference:+.2f} %", *sustained]


def difference_pct(record: Record | None, plain: Plain | None) -> float:
    return 100 * (harness_us(record) / plain.event_us - 1) if plain else math.nan


def harness_us(record: Record | None) -> float:
    return record.candidate_ms * 1e3 if record and record.candidate_ms else math.nan


def shown(state: State) -> list[str]:
    return [figure(state.clock_mhz, 0), figure(state.power_w, 0)]


def figure(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())
