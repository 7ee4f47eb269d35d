"""What an untrusted process may read: the system, Python, torch, CUDA, its own files; no home, no results."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Container, Iterable, Iterator
from functools import cache
from pathlib import Path

from harness.places import CHECKOUT, INSIDE, PACKAGE

# Rooms of the harness in which nothing is an untrusted process's to import; tests hold its imports to that.
CLOSED = ("judge", "links", "oracle", "supervise", "store", "reports", "execution")
CLOSED_PLACES = frozenset((INSIDE, *(PACKAGE / room for room in CLOSED)))

SYSTEM = (
    *("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ssl/openssl.cnf", "/etc/OpenCL", "/etc/nvidia"),
    *("/sys/devices", "/sys/class", "/sys/bus", "/sys/dev", "/sys/module", "/sys/kernel/mm", "/sys/fs/cgroup"),
)
# Of /proc, the machine but no other process: their command lines may hold a seed.
MACHINE = ("cpuinfo", "meminfo", "stat", "version", "devices", "driver", "filesystems", "loadavg", "uptime", "modules")
PROC = (*(f"/proc/{name}" for name in MACHINE), "/proc/sys", "/proc/bus", "/proc/vmstat", "/proc/zoneinfo")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
DEV = "/dev"
# Beside a card's own: the driver, unified memory, and what a part of a card is opened by.
OF_ALL_CARDS = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
TOOLS = ("c++", "g++", "cc", "gcc", "ld", "nvcc", "ninja")


def common(private: Iterable[Path]) -> list[str]:
    """Files and folders for every untrusted process, without what lies in or below a `private` one."""
    home = Path(os.path.expanduser("~"))
    hidden = {path.resolve() for path in (*private, *([CHECKOUT] if CHECKOUT else []), home)} - {Path("/")}
    # What is installed is closed by itself (`open_parts`), its neighbours are not.
    hidden = {path for path in hidden if not path.is_relative_to(INSIDE)}
    found = {place for path in map(Path, SYSTEM) for place in without(path.resolve(), hidden)}
    for path in {path.resolve() for path in from_surroundings()}:
        # A checkout on PYTHONPATH, say: what is imported from there was imported before.
        if path.exists() and not any(place.is_relative_to(path) for place in hidden):
            found.add(path)
    found.update(map(Path, essential()))
    return sorted(str(path) for path in found if not any(above in found for above in path.parents)) + list(PROC)


def essential() -> list[str]:
    """What no untrusted process can do without: Python, torch, and rooms of the harness, which it imports late."""
    torch = importlib.util.find_spec("torch")
    places = torch.submodule_search_locations if torch else None
    rooms = without(PACKAGE, set(CLOSED_PLACES))
    paths = [Path(sys.prefix), Path(sys.base_prefix), *rooms, *map(Path, places or ())]
    return [str(path.resolve()) for path in paths]


@cache
def open_parts(path: str) -> tuple[str, ...]:
    """Where closed rooms lie below `path`, as they do in a folder of installed packages, everything else there."""
    place = Path(path)
    return tuple(map(str, without(place, set(CLOSED_PLACES)))) if PACKAGE.is_relative_to(place) else ()


def from_surroundings() -> Iterator[Path]:
    """Packages, tools and libraries to which Python's path and the environment point."""
    paths = list(sys.path)
    for name in ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        paths += os.environ.get(name, "").split(os.pathsep)
    yield from (Path(path) for path in paths if os.path.isabs(path))
    for tool in TOOLS:
        place = shutil.which(tool)
        if place:
            # bin/nvcc, beside which lie its headers and libraries.
            yield Path(place).resolve().parents[1]


def without(path: Path, hidden: set[Path]) -> Iterator[Path]:
    """`path`, or where something hidden lies below it, everything else there."""
    if path in hidden or not path.exists():
        return
    if not any(place.is_relative_to(path) for place in hidden):
        yield path
        return
    try:
        children = list(path.iterdir())
    except OSError:
        return
    for child in children:
        if not child.is_symlink():
            yield from without(child, hidden)


def gpu_nodes() -> list[str]:
    """The device files that CUDA opens, for all cards."""
    return [f"{DEV}/{name}" for name in os.listdir(DEV) if name.startswith(("nvidia", "dxg"))]


def nodes(layers: Container[str], minor: int) -> list[str]:
    """The device files for a process on the card with this number, under these layers."""
    return nodes_of_card(minor) if "card" in layers else gpu_nodes()


def nodes_of_card(minor: int) -> list[str]:
    """The device files that CUDA opens for one card, whose own one has this number; none where that is not there."""
    if not os.path.exists(f"{DEV}/nvidia{minor}"):
        return []
    names = (*OF_ALL_CARDS, f"nvidia{minor}")
    return [f"{DEV}/{name}" for name in names if os.path.exists(f"{DEV}/{name}")]
