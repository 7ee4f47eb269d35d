"""Which layers of the sandbox this machine has, found out once by a process that tries them all on itself. No torch."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from harness import environment, places
from harness.errors import UsageError
from harness.sandbox import cuda_probe, enforcement, visible
from harness.sandbox.enforcement import LAYERS, Confinement
from harness.sandbox.identity import CLONE_NEWUSER
from harness.sandbox.syscalls import unshare

MENDS = {
    "user": "run as root, or allow unprivileged user namespaces (user.max_user_namespaces > 0, no AppArmor ban)",
    "signals": "run as root, or boot Linux 6.12 or newer with landlock among its lsm= modules",
    "namespaces": "run as root with CAP_SYS_ADMIN (docker: --cap-add SYS_ADMIN), or allow unprivileged user namespaces",
    "landlock": "boot Linux 5.13 or newer with landlock among its lsm= modules",
    "card": "boot a kernel with landlock, and use a driver that reports which device file belongs to which GPU",
    "seccomp": "allow the seccomp system call; x86_64 and aarch64 are supported",
    "limits": "allow setrlimit and writing to /proc/self",
}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The layers in force on this machine, and why each of the others is not."""

    layers: tuple[str, ...]
    missing: dict[str, str] = {}


@cache
def probe() -> Found:
    """Try every layer in a process that ends with it. Raises UsageError where that fails.

    No file of the run has a part in this: one that a layer does not suit must not cost all others the layer.
    """
    with tempfile.TemporaryDirectory(prefix="assay-probe-") as place:
        os.chmod(place, 0o755)
        (Path(place) / "own").mkdir()
        (Path(place) / "other").write_text("not for the probe")
        (Path(place) / "other").chmod(0o644)
        result = _in_a_process("harness.sandbox.probe", place)
    if result.returncode:
        # Whoever keeps it from being found out, by taking what the machine has of something, must not be let out.
        said = result.stderr.strip().rpartition("\n")[2][:300]
        raise UsageError(
            "which layers of the sandbox this machine has could not be found out: the test process ended with code "
            f"{result.returncode}: {said}; run the same command again, or set sandbox: off to run without any"
        )
    missing = msgspec.json.decode(result.stdout, type=dict[str, str])
    return Found(layers=tuple(name for name in LAYERS if name not in missing), missing=missing)


@cache
def harmful_on_a_card(layers: tuple[str, ...]) -> dict[str, str]:
    """Which of `layers` CUDA does not work under on this machine, and what goes wrong: layer -> why."""
    card = next(iter(environment.gpus()[0]), None)
    kept_to: dict[str, Any] = {"environment": card.environment, "minor": card.minor} if card else {}

    def rehearse(some: tuple[str, ...]) -> str:
        with tempfile.TemporaryDirectory(prefix="assay-probe-") as place:
            rehearsal = cuda_probe.Rehearsal(layers=some, **kept_to)
            result = _in_a_process("harness.sandbox.cuda_probe", place, msgspec.json.encode(rehearsal))
        last = result.stderr.strip().rpartition("\n")[2]
        return result.stdout or (
            f"the CUDA test process ended with code {result.returncode}: {last}" if result.returncode else ""
        )

    return cuda_probe.kept_working(layers, rehearse)


def chosen(mode: str, gpu: bool = False) -> Found:
    """The layers of a run, on a card if `gpu`, under `sandbox: auto`, `require` or `off`.

    Raises UsageError where all are required and one is missing, or where it is not known which there are.
    """
    if mode == "off":
        return Found(layers=(), missing=dict.fromkeys(LAYERS, "switched off by the config"))
    found = probe()
    if gpu:
        found = _with_known_cards(found)
        harmful = {layer: f"CUDA: {why}" for layer, why in harmful_on_a_card(found.layers).items()}
        left = tuple(layer for layer in found.layers if layer not in harmful)
        found = Found(layers=left, missing=found.missing | harmful)
    if mode == "require" and found.missing:
        layer, why = next(iter(found.missing.items()))
        raise UsageError(f"sandbox: require: the layer '{layer}' is missing ({why}); {MENDS[layer]}")
    return found


def _with_known_cards(found: Found) -> Found:
    """Without the layer that keeps a process to its own card, where it is not known which device file that is."""
    devices = environment.gpus()[0]
    if "card" not in found.layers or all(visible.nodes_of_card(device.minor) for device in devices):
        return found
    left = tuple(layer for layer in found.layers if layer != "card")
    return Found(
        layers=left,
        missing=found.missing | {"card": "the driver does not report which device file belongs to which GPU"},
    )


def main(place: Path) -> None:
    """Entry of the probe: `python -m harness.sandbox.probe FOLDER`; prints layer -> why it is missing."""
    folder = place / "own"
    readable = tuple(visible.common([]))
    confinement = Confinement(
        layers=tuple(LAYERS), folder=str(folder), readable=readable, essential=tuple(visible.essential())
    )
    # What there is to be opened, listed before.
    attempts = escapes(place / "other")
    failures = enforcement.attempt(confinement)
    for layer, succeeds in attempts.items():
        if layer not in failures and succeeds():
            failures[layer] = "the kernel accepts the rules but does not enforce them"
    sys.stdout.buffer.write(msgspec.json.encode(failures))


def _in_a_process(module: str, place: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    """`python -m MODULE FOLDER` with `given` on its standard input."""
    return subprocess.run(
        [sys.executable, "-P", "-m", module, place],
        env=os.environ | {"PYTHONPATH": places.python_path()},
        capture_output=True,
        text=True,
        input=given.decode(),
        timeout=90.0,
        check=False,
        # As processes of a run have it (folders.open_to_others).
        umask=0o022,
    )


def escapes(other: Path) -> dict[str, Callable[[], bool]]:
    """For each layer, whether something is still possible that it rules out."""
    grown = other.parent / "own" / "grown"
    cards = [Path(node) for node in visible.gpu_nodes()]
    return {
        "user": lambda: os.geteuid() == 0,
        "signals": lambda: _succeeds(lambda: os.kill(os.getppid(), 0)),
        "namespaces": lambda: len(Path("/proc/self/net/dev").read_text().splitlines()) > 3,
        "landlock": lambda: _succeeds(other.read_text),
        "card": lambda: any(_succeeds(card.open) for card in cards),
        "seccomp": lambda: (
            _succeeds(lambda: unshare(CLONE_NEWUSER, "user"))
            or _leaves_its_group()
            or _succeeds(lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE))
        ),
        "limits": lambda: _succeeds(lambda: _grow(grown)),
    }


def _leaves_its_group() -> bool:
    before = os.getpgid(0), os.getsid(0)
    for leave in (os.setsid, lambda: os.setpgid(0, 0)):
        with contextlib.suppress(OSError):
            leave()
    return (os.getpgid(0), os.getsid(0)) != before


def _grow(file: Path) -> None:
    file.touch()
    os.truncate(file, enforcement.FILE_BYTES + 1)


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        if error.errno in enforcement.PASSING:
            raise
        return False
    return True


if __name__ == "__main__":
    signal.alarm(30)
    main(Path(sys.argv[1]))
