"""What this very card can do at most: bytes and matrix FLOPs a second, measured, and kept from one session to the next.

The rates are upper bounds for `light.faster_than_light`, which allows 15 % beyond. So each is the best of several short
runs: a burst of milliseconds is over before power and heat bring the clocks down, and a disturbance can only make
a run slower. Matrices hold random normal numbers; of zeros a card multiplies somewhat more, since they draw less power.
Kernels are cuBLAS's (or the CPU library's), so FLOPs are those of the plain algorithm at its dtype, dense.

Measuring takes up to 2.5 s on a CPU; on an H200 it took 1 to 1.5 s before float8 was among the classes.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import torch

from harness import environment, places
from harness.drafts import draft
from harness.machine.card import Watch
from harness.roofline.light import Ceilings

# Raise it when the way of measuring changes: ceilings measured otherwise are measured again.
METHOD = 2
MAX_CACHE_BYTES = 1 << 20
MAX_ENTRIES = 200
# How long a disturbed measurement serves: on a machine that is never quiet each judge would begin with one of its own.
DISTURBED_FOR_S = 600.0

# Seconds of runs for each dtype class and for memory, and how many runs of one kind.
CLASS_BUDGET_S = {"cuda": 0.1, "cpu": 0.12}
MEMORY_BUDGET_S = {"cuda": 0.1, "cpu": 0.4}
FEWEST_RUNS = 3
MOST_RUNS = {"cuda": 12, "cpu": 200}
# An idle card's clocks take some tens of milliseconds to come up; a card under load needs a pause to boost again.
BURN_IN_S = 0.06
PAUSE_S = 0.005
# Share of free memory that a measurement may take, and bytes of one buffer.
MEMORY_SHARE = 0.25
BUFFER_BYTES = {"cuda": (1 << 28, 1 << 30), "cpu": (1 << 26, 1 << 28)}
# Square matrices to try, small to large while the budget lasts.
SIZES = {"cuda": (2048, 4096, 8192), "cpu": (256, 512, 1024, 2048)}

CLASSES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "tf32": torch.float32,
    "float32": torch.float32,
    "float64": torch.float64,
    "int8": torch.int8,
    "float8": torch.float8_e4m3fn,
}

Shape = tuple[int, int, int]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One card's ceilings as the cache file keeps them."""

    bytes_per_s: float
    flops_per_s: dict[str, float]
    # By the wall clock, when it was measured beside something else; 0 where nothing disturbed it.
    disturbed_at_s: float = 0.0

    def __post_init__(self) -> None:
        rates = (self.bytes_per_s, *self.flops_per_s.values())
        if not all(math.isfinite(rate) and rate > 0 for rate in rates):
            raise ValueError("a ceiling must be positive and finite")

    @property
    def due(self) -> bool:
        """Whether to measure again."""
        return self.disturbed_at_s > 0 and abs(time.time() - self.disturbed_at_s) >= DISTURBED_FOR_S


def load_or_measure(device: torch.device, *, path: Path | None = None, watch: Watch | None = None) -> Ceilings:
    """The ceilings of `device` from the cache, or measured and cached.

    What a `watch` finds throttled or disturbed may be too low, and would then call honest times impossible: it is
    measured again after DISTURBED_FOR_S, and the higher rates count. A cache that cannot be read or written costs a
    measurement each time. Raises RuntimeError where not even a copy can be run.
    """
    path = path or places.cache() / "ceilings.json"
    if (cached := load(device, path)) is not None:
        return cached
    name = key(device)
    measured = _measured(device, _load(path).get(name), watch)
    _store(path, name, measured)
    return Ceilings(measured.bytes_per_s, measured.flops_per_s)


def load(device: torch.device, path: Path | None = None) -> Ceilings | None:
    """The ceilings of `device` from the cache; None where they are to be measured."""
    known = _load(path or places.cache() / "ceilings.json").get(key(device))
    return None if known is None or known.due else Ceilings(known.bytes_per_s, known.flops_per_s)


def _measured(device: torch.device, before: Entry | None, watch: Watch | None) -> Entry:
    """Measured now, or `before`, whichever is higher: a disturbance only makes a run slower."""
    if watch is not None:
        watch.look()
    ceilings = measure(device)
    disturbed = watch is not None and watch.look()
    flops_per_s = dict(before.flops_per_s if before else {})
    for kind, rate in ceilings.flops_per_s.items():
        flops_per_s[kind] = max(rate, flops_per_s.get(kind, rate))
    return Entry(
        bytes_per_s=max(ceilings.bytes_per_s, before.bytes_per_s if before else 0.0),
        flops_per_s=flops_per_s,
        disturbed_at_s=time.time() if disturbed else 0.0,
    )


def measure(device: torch.device) -> Ceilings:
    """Measure now. A dtype class that the device lacks is left out. Raises RuntimeError where no copy can be run."""
    with torch.no_grad():
        if device.type == "cuda":
            _burn_in(device)
        flops_per_s: dict[str, float] = {}
        for kind in CLASSES:
            # A library without the product, a card without the memory: no ceiling, so no bound.
            with contextlib.suppress(RuntimeError, NotImplementedError, AttributeError):
                rate = _class_rate(kind, device)
                if rate > 0:
                    flops_per_s[kind] = rate
        with _threads(device, environment.cores()):
            bytes_per_s = _memory_rate(device)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return Ceilings(bytes_per_s, flops_per_s)


def key(device: torch.device) -> str:
    """What a measurement holds for: device (a CPU's name has its cores in it), driver, torch and method."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else environment.cpu_name()
    driver = environment.gpus()[1] if device.type == "cuda" else ""
    return f"{name} | driver {driver} | torch {torch.__version__} | method {METHOD}"


def cache_bytes(device: torch.device) -> int:
    """Bytes that the caches hold, for `work.uncached`: a GPU's L2, all of a CPU's. Of a CPU that does not tell 1 GiB is
    believed: no bound is better than a false one."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    sizes: dict[tuple[str, ...], int] = {}
    for core in os.sched_getaffinity(0):
        for folder in Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*"):
            with contextlib.suppress(OSError, ValueError):
                which = tuple((folder / name).read_text() for name in ("level", "type", "shared_cpu_list"))
                sizes[which] = int((folder / "size").read_text().strip().removesuffix("K")) << 10
    return sum(sizes.values()) or 1 << 30


def _class_rate(kind: str, device: torch.device) -> float:
    """The best FLOP a second of a dtype class, 0 where the device has none of its own."""
    if kind in ("tf32", "bfloat16") and device.type == "cuda" and torch.cuda.get_device_capability(device)[0] < 8:
        return 0.0
    if device.type == "cuda":
        return _matmul_rate(kind, device, CLASS_BUDGET_S["cuda"])
    if kind == "tf32":
        return 0.0
    # One busy neighbour halves what all cores reach together, or worse, since they wait for each other; one core alone
    # finds a free one. All cores at the clock of one are somewhat more than they can do, which suits an upper bound.
    with _threads(device, 1):
        alone = _matmul_rate(kind, device, CLASS_BUDGET_S["cpu"] / 2)
    with _threads(device, environment.cores()):
        return max(alone * _physical_cores(), _matmul_rate(kind, device, CLASS_BUDGET_S["cpu"] / 2))


def _matmul_rate(kind: str, device: torch.device, left_s: float) -> float:
    """The best over shapes; small ones first, and no larger one than the rest of the budget allows."""
    dtype = CLASSES[kind]
    best = 0.0
    with _precision("tf32" if kind == "tf32" else "ieee"):
        for m, n, k in _shapes(device):
            flops = 2.0 * m * n * k
            longest = (m * k + k * n + 2 * m * n) * max(4, dtype.itemsize)
            if longest > _free_bytes(device) * MEMORY_SHARE or (best and flops / best * FEWEST_RUNS > left_s):
                continue
            for product in _products(kind, _random(m, k, dtype, device), _random(n, k, dtype, device)):
                fastest_s, spent_s = _fastest_s(product, device, left_s / 2)
                best, left_s = max(best, flops / fastest_s), left_s - spent_s
    return best


def _products(kind: str, a: torch.Tensor, b: torch.Tensor) -> Iterator[Callable[[], object]]:
    """Ways of the library to multiply (m, k) by the transpose of (n, k); of int8 it has more kernels than one."""
    if kind == "float8":
        one = torch.ones((), device=a.device)
        yield lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=True)
    elif kind == "int8":
        yield lambda: torch._int_mm(a, b.t())
        rows = b.t().contiguous()
        yield lambda: torch._int_mm(a, rows)
    else:
        yield lambda: a @ b.t()


def _memory_rate(device: torch.device) -> float:
    """The best of copying (each byte read and written), reading and filling buffers beyond the caches."""
    best = 0.0
    for nbytes in BUFFER_BYTES[device.type]:
        nbytes = min(nbytes, int(_free_bytes(device) * MEMORY_SHARE) // 2) & ~4095
        if nbytes <= 0:
            continue
        source = torch.ones(nbytes // 4, device=device)
        target = torch.empty_like(source)
        budget_s = MEMORY_BUDGET_S[device.type] / len(BUFFER_BYTES[device.type]) / 3
        for moved, run in (
            (2 * nbytes, lambda source=source, target=target: target.copy_(source)),
            (nbytes, lambda source=source: source.sum()),
            (nbytes, lambda target=target: target.fill_(1.0)),
        ):
            best = max(best, moved / _fastest_s(run, device, budget_s)[0])
    if best == 0.0:
        raise RuntimeError(f"{device} has no free memory to measure with")
    return best


def _fastest_s(run: Callable[[], object], device: torch.device, budget_s: float) -> tuple[float, float]:
    """The shortest of several runs, and what all took but the first, for which libraries load."""
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        time.sleep(PAUSE_S)
    times: list[float] = []
    while len(times) < FEWEST_RUNS or (sum(times) < budget_s and len(times) < MOST_RUNS[device.type]):
        times.append(_seconds(run, device))
    return min(times), sum(times)


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        return max(start.elapsed_time(end), 1e-4) / 1e3
    began = time.perf_counter()
    run()
    return max(time.perf_counter() - began, 1e-7)


def _shapes(device: torch.device) -> list[Shape]:
    shapes = [(size, size, size) for size in SIZES[device.type]]
    if device.type == "cuda":
        # 128 x 256 tiles, the usual of a large product, in eight full waves over all multiprocessors.
        tiles = torch.cuda.get_device_properties(device).multi_processor_count
        shapes.append((128 * tiles, 2048, 4096))
    return shapes


def _random(rows: int, columns: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    if dtype == torch.int8:
        return torch.randint(-128, 128, (rows, columns), dtype=dtype, device=device)
    if dtype == torch.float8_e4m3fn:
        return torch.randn(rows, columns, device=device).to(dtype)
    return torch.randn(rows, columns, dtype=dtype, device=device)


def _burn_in(device: torch.device) -> None:
    """Bring the clocks up by light work, which leaves power and heat for the measurement."""
    numbers = torch.ones(1 << 22, device=device)
    began = time.perf_counter()
    while time.perf_counter() - began < BURN_IN_S:
        numbers.mul_(1.0)
        torch.cuda.synchronize(device)


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return environment.available_memory_bytes()


@contextlib.contextmanager
def _precision(name: str) -> Iterator[None]:
    """How float32 products may round. By the newer switch alone: torch refuses to read the older one after it."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = name
    try:
        yield
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


@contextlib.contextmanager
def _threads(device: torch.device, count: int) -> Iterator[None]:
    """A candidate may use every core, whatever torch was set to here."""
    before = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if device.type == "cpu":
            torch.set_num_threads(before)


def _physical_cores() -> int:
    """Cores of this process, hyperthreads of one core counted once."""
    siblings = set()
    for core in os.sched_getaffinity(0):
        try:
            siblings.add(Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text())
        except OSError:
            siblings.add(str(core))
    return len(siblings)


def _load(path: Path) -> dict[str, Entry]:
    """The entries that make sense; none where the file is missing, torn or something else."""
    try:
        if path.stat().st_size > MAX_CACHE_BYTES:
            return {}
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    entries: dict[str, Entry] = {}
    for name, text in raw.items():
        with contextlib.suppress(msgspec.DecodeError):
            entries[name] = msgspec.json.decode(text, type=Entry)
    return entries


def _store(path: Path, name: str, entry: Entry) -> None:
    """Whole or not at all. Of two sessions that store at once one may lose its entry, and measures again."""
    entries = _load(path)
    entries.pop(name, None)
    entries = dict(list(entries.items())[-(MAX_ENTRIES - 1) :]) | {name: entry}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft(path) as file:
            file.write_bytes(msgspec.json.format(msgspec.json.encode(entries)))
