"""This machine: devices, driver, versions, compilers, commit. Never imports torch; never names user or host."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from harness import places
from harness.errors import UsageError
from harness.version import VERSION

INSTALL_TORCH = "`make setup` installs it into .venv of a checkout, `pip install torch` anywhere"

CGROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """One slot's hardware. `spec` is torch's name for it (`cpu`, `cuda:0`), `capability` e.g. "9.0"."""

    kind: str
    spec: str
    name: str
    capability: str = ""
    memory_bytes: int = 0

    @property
    def alone(self) -> str:
        """torch's name for it in a process that sees no other GPU (`environment`)."""
        return "cpu" if self.kind == "cpu" else "cuda:0"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that make this GPU the only one that a process sees. So no process uses another evaluation's GPU,
        and both sides of shared memory have the same number for it (CUDA IPC memory opened under another number is
        reported to be on the first GPU)."""
        if self.kind == "cpu":
            return {}
        if self._card is not None:
            # Not by number: CUDA counts only the GPUs that it can open, which are fewer for a confined process.
            return {"CUDA_VISIBLE_DEVICES": self._card.uuid}
        named = _named()
        return {"CUDA_VISIBLE_DEVICES": str(self._index) if named is None else named[self._index]}

    @property
    def uuid(self) -> str:
        """The driver's name for the GPU, whatever its number is; empty if the driver does not report it."""
        return "" if self._card is None else self._card.uuid

    @property
    def minor(self) -> int:
        """The number in the name of its device file; -1 if the driver does not report it."""
        return -1 if self._card is None else self._card.minor

    @property
    def _index(self) -> int:
        return int(self.spec.partition(":")[2])

    @property
    def _card(self) -> Card | None:
        return _cards()[self._index] if self.kind == "cuda" and self._index < len(_cards()) else None


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """The driver's names for a GPU: its place in NVML's order, its UUID, its device file's number."""

    index: int
    uuid: str
    minor: int = -1


class Torch(msgspec.Struct, frozen=True, kw_only=True):
    """The installed torch, read from its files; `cuda` is the CUDA it was built for, empty on a CPU build."""

    version: str
    cuda: str


@cache
def torch_build() -> Torch:
    """Raises UsageError if torch is not installed."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(f"torch is not installed here; {INSTALL_TORCH}") from None
    spec = importlib.util.find_spec("torch")
    text = ""
    if spec and spec.submodule_search_locations:
        text = (Path(spec.submodule_search_locations[0]) / "version.py").read_text()
    found = re.search(r"^cuda[^=\n]*= *'([^']*)'", text, re.MULTILINE)
    return Torch(version=version, cuda=found.group(1) if found else "")


@cache
def gpus() -> tuple[tuple[Device, ...], str, str]:
    """The CUDA devices that the driver shows, the driver's version, and why there are none if so."""
    try:
        import pynvml
    except ImportError:
        return (), "", "the package nvidia-ml-py is missing"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return (), "", "no NVIDIA driver was found"
    driver = str(pynvml.nvmlSystemGetDriverVersion())
    devices: list[Device] = []
    for card in _cards():
        handle = pynvml.nvmlDeviceGetHandleByIndex(card.index)
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
        devices.append(
            Device(
                kind="cuda",
                spec=f"cuda:{len(devices)}",
                name=str(pynvml.nvmlDeviceGetName(handle)),
                capability=f"{major}.{minor}",
                memory_bytes=int(pynvml.nvmlDeviceGetMemoryInfo(handle).total),
            )
        )
    return tuple(devices), driver, "" if devices else "the NVIDIA driver shows no device"


@cache
def driver_cuda() -> str:
    """The newest CUDA that the driver runs, e.g. "13.0"; empty without a driver."""
    if not gpus()[1]:
        return ""
    import pynvml

    number = int(pynvml.nvmlSystemGetCudaDriverVersion())
    return f"{number // 1000}.{number % 1000 // 10}"


def make_device_nodes() -> None:
    """Make the device node that CUDA opens, in case no program has used CUDA since the machine started.

    CUDA itself makes it through a setuid program, which a sandboxed process cannot use.
    """
    tool = shutil.which("nvidia-modprobe")
    if tool and not Path("/dev/nvidia-uvm").exists():
        subprocess.run([tool, "-c", "0", "-u"], capture_output=True, timeout=60, check=False)


def why_no_cuda() -> str:
    """Why CUDA candidates cannot run here, as a clause; empty if they can."""
    devices, _, reason = gpus()
    if not devices:
        return reason
    if not torch_build().cuda:
        return f"torch {torch_build().version} is built without CUDA"
    return ""


def choose_devices(wanted: str) -> list[Device]:
    """The devices of a run: `auto` takes every CUDA device, or the CPU if there is none.

    Raises UsageError for a device that this machine does not have.
    """
    missing = why_no_cuda()
    if wanted == "cpu" or (wanted == "auto" and missing):
        return [Device(kind="cpu", spec="cpu", name=cpu_name())]
    if wanted not in ("auto", "cuda") and not re.fullmatch(r"cuda:[0-9]+", wanted):
        raise UsageError(f"unknown device '{wanted}'; valid: auto, cpu, cuda, cuda:N")
    if missing:
        raise UsageError(f"--device {wanted}: {missing}; --device cpu runs the same protocol with C++ candidates")
    devices = [device for device in gpus()[0] if wanted in ("auto", "cuda", device.spec)]
    if not devices:
        raise UsageError(f"--device {wanted}: this machine has {', '.join(device.spec for device in gpus()[0])}")
    return devices


def cpu_name() -> str:
    """The processor's model and the number of its cores that this process may use."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    model = re.sub(r"\s+", " ", found.group(1)).strip() if found else platform.machine()
    return f"{model} ({cores()} cores)"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def available_memory_bytes() -> int:
    """Host memory available without swapping: the kernel's estimate, which includes memory that caches would free."""
    try:
        found = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return int(found.group(1)) << 10 if found else os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def room_for_processes() -> int | None:
    """How many more processes and threads this process's control groups allow; None if none of them has a limit."""
    rooms = []
    for line in _read(OWN_GROUPS).splitlines():
        number, controllers, place = line.split(":", 2)
        if number != "0" and "pids" not in controllers.split(","):
            continue
        # In a container the path may be the host's; then its own group is mounted at the root.
        folder = CGROUPS / ("" if number == "0" else "pids") / place.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(CGROUPS):
                limit, present = (_read(group / f"pids.{name}").strip() for name in ("max", "current"))
                rooms += [int(limit) - int(present)] if limit.isdigit() and present.isdigit() else []
    return max(0, min(rooms)) if rooms else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def surroundings(devices: list[Device]) -> dict[str, str]:
    """What a record's numbers depend on beside the files and the compilers; part of every key."""
    torch = torch_build()
    return {"device": devices[0].name, "torch": torch.version, "cuda": torch.cuda, "driver": gpus()[1]}


def describe(devices: list[Device]) -> dict[str, object]:
    """The environment as `run.json` keeps it."""
    torch = torch_build()
    return {
        "assay": VERSION,
        "device": devices[0].name,
        "device_kind": devices[0].kind,
        "devices": [msgspec.to_builtins(device) for device in devices],
        "driver": gpus()[1],
        "torch": torch.version,
        "cuda": torch.cuda,
        "nvcc": _first_match(["nvcc", "--version"], r"release ([\d.]+)"),
        "compiler": _first_line(["c++", "--version"]),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpu": cpu_name(),
        "commit": commit(),
    }


@cache
def _cards() -> tuple[Card, ...]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, in the order in which torch numbers them; none without a driver."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    cards = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        try:
            minor = int(pynvml.nvmlDeviceGetMinorNumber(handle))
        except pynvml.NVMLError:
            minor = -1
        cards.append(Card(index=index, uuid=str(pynvml.nvmlDeviceGetUUID(handle)), minor=minor))
    return tuple(visible(cards, _named()))


def visible(cards: Sequence[Card], named: Sequence[str] | None) -> list[Card]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves: by number, by UUID, or by the beginning of a UUID."""
    if named is None:
        return list(cards)
    found = []
    for name in named:
        by_name = name.startswith("GPU-")
        of_it = [card for card in cards if (card.uuid.startswith(name) if by_name else str(card.index) == name)]
        found += of_it[:1]
    return found


def _named() -> list[str] | None:
    """The GPUs in CUDA_VISIBLE_DEVICES, by number or UUID; None if it is not set."""
    text = os.environ.get("CUDA_VISIBLE_DEVICES")
    return None if text is None else [name.strip() for name in text.split(",")]


def commit() -> str:
    """The commit of this package's own checkout; empty outside one, even if another repository contains the package."""
    if places.CHECKOUT is None:
        return ""
    git = ["git", "-C", str(places.CHECKOUT)]
    if _first_line([*git, "rev-parse", "--show-toplevel"]) != str(places.CHECKOUT):
        return ""
    head = _first_line([*git, "rev-parse", "--short=12", "HEAD"])
    dirty = _first_line([*git, "status", "--porcelain", "--untracked-files=no"])
    return f"{head}+changes" if head and dirty else head


def _first_line(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    # In a git hook these variables name the hook's repository, whatever folder `-C` names.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=environment)
    return result.stdout.partition("\n")[0].strip() if result.returncode == 0 else ""


def _first_match(command: list[str], pattern: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    found = re.search(pattern, result.stdout)
    return found.group(1) if found else ""
