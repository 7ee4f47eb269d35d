"""The session's handle on its zygote: start children, watch them, keep their output, end them. No torch."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from harness import places
from harness.drafts import fresh
from harness.environment import Device
from harness.errors import AssayError
from harness.processes import memory_floor, zygote
from harness.processes.zygote import MAX_REQUEST_BYTES, Exited, Kill, Spawn, Spawned
from harness.sandbox import enforcement, visible
from harness.sandbox.enforcement import Confinement
from harness.wire.channel import Channel, NotSendable, encoded, pair

MAX_LOG_BYTES = 1 << 20
# What our processes inherit of the user's environment. What else is there, keys and tokens among it, would lie in the
# memory of every process that the forking parent forks.
KEPT_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "CONDA_PREFIX"),
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("CUDAHOSTCXX", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"),
    *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "TORCH_CUDA_ARCH_LIST"),
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "MKL_NUM_THREADS", "MAX_JOBS"),
    memory_floor.VARIABLE,
)
# What our own ones also know, beside where the measured rates of this machine are kept.
TRUSTED_VARIABLES = ("HOME", "XDG_CACHE_HOME", "TMPDIR")
START_TIMEOUT_S = 120.0
LOSS_S = 10.0
UNTRUSTED = ("builder", "checker", "inspector", "runner")
# The user of a sandboxed process has no name of its own, and some libraries ask.
UNTRUSTED_ENVIRONMENT = {"USER": "candidate", "LOGNAME": "candidate"}


class NotStarted(AssayError):
    """A process of ours that is not there; `reason` is the word for it in records."""

    reason = ""


class ZygoteLost(NotStarted):
    """The forking parent died; whatever it had forked died with it."""

    reason = "zygote_lost"


class NoProcess(NotStarted):
    """The machine has no room for another process."""

    reason = "no_process"


class Child:
    """One forked process: its channel, its log, the folder that it may write to, and how it ended."""

    def __init__(self, nursery: Nursery, identity: int, channel: Channel, log: Path, folder: Path | None) -> None:
        self.channel = channel
        self.log = log
        self.folder = folder
        self.pid = 0
        self._nursery = nursery
        self._identity = identity
        self._exit_code: int | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        self._drained = threading.Event()
        # Why the zygote killed it, if it did, as in `wire.causes`.
        self.cause = ""

    @property
    def orphaned(self) -> bool:
        """Whether it went with the zygote, and not by itself."""
        return self._nursery._lost

    def take_channel(self) -> socket.socket:
        """Our end of the channel, for handing on to another process."""
        return self.channel.detach()

    def wait(self, timeout_s: float) -> int | None:
        """The exit code (negative for a signal), or None where it still runs."""
        if self._ended.wait(timeout_s):
            self._drained.wait(1.0)
        return self._exit_code

    def stop(self) -> None:
        """Have it ended, with everything it started, without waiting for that: for threads that it is not with."""
        self._nursery.kill(self._identity)

    def kill(self) -> int | None:
        """End it and everything it started; returns how it had ended, or None if a process could not be ended."""
        self.stop()
        exit_code = self.wait(10.0)
        # Not before: a child that hears us hang up may end by itself first.
        self.channel.close()
        return exit_code

    def log_tail(self, limit_bytes: int = 4000) -> str:
        """The end of what it printed."""
        try:
            # Where it could not be made, something else may have its name.
            with open(os.open(self.log, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                data = file.read()
        except OSError:
            return ""
        return data[-limit_bytes:].decode(errors="replace")


class Nursery:
    """Owns the zygote process and its keeper. Usable from several threads.

    Builders and runners are held to the sandbox's `layers`; `private` folders, and the checkout, are closed to them.
    Each may have so much memory, and so many `processes`; 0 for no such bound. Logs keep `shown` of what is printed.
    """

    def __init__(
        self,
        layers: Sequence[str] = (),
        private: Iterable[Path] = (),
        memory_bytes: int = 0,
        processes: int = 0,
        shown: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self._shown = shown
        self._processes = processes
        self._layers = tuple(layers)
        self._private = set(private)
        self._readable = tuple(visible.common(self._private)) if layers else ()
        self._essential = tuple(visible.essential()) if layers else ()
        self._memory_bytes = memory_bytes
        self._trusted_environment = _kept(TRUSTED_VARIABLES) | {"ASSAY_CACHE": str(places.cache())}
        enforcement.have_more_descriptors()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Idle OpenMP threads otherwise spin for milliseconds, on the cores that the other side is timed on.
        environment = {"OMP_WAIT_POLICY": "PASSIVE"} | _kept(KEPT_VARIABLES) | {"PYTHONPATH": places.python_path()}
        self._process = zygote.start(theirs, environment)
        theirs.close()
        self._control = ours
        self._lock = threading.Lock()
        self._children: dict[int, Child] = {}
        self._serial = 0
        self._lost = False
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def start(
        self,
        role: str,
        inbound: Any,
        log: Path,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
        *,
        readable: Iterable[str] = (),
        card: Device | None = None,
        calls_in_child: bool = False,
        spared: bool = False,
    ) -> Child:
        """Fork a child in `role`; raises ZygoteLost, NoProcess, or NotSendable where the request cannot be told.

        An untrusted one may write to `folder` only, read the `readable` files and folders beside the system, and use
        its `card`, if it is to have one; `calls_in_child` as Confinement has it, `spared` as Spawn.
        """
        untrusted = role in UNTRUSTED
        confinement = self._confinement(folder, readable, card, calls_in_child) if untrusted and self._layers else None
        with self._lock:
            self._serial += 1
            identity = self._serial
        request = Spawn(
            id=identity,
            role=role,
            environment=(UNTRUSTED_ENVIRONMENT if untrusted else self._trusted_environment) | (environment or {}),
            folder=str(folder or ""),
            confinement=confinement,
            memory_bytes=self._memory_bytes if untrusted else 0,
            spared=spared,
        )
        packet = encoded(request, MAX_REQUEST_BYTES)
        mine, its = pair()
        read_end, write_end = os.pipe()
        child = Child(self, identity, Channel(mine, inbound), log, folder)
        with self._lock:
            self._children[identity] = child
        try:
            threading.Thread(target=_pump, args=(read_end, log, child._drained, self._shown), daemon=True).start()
        except RuntimeError as error:
            self._forget(child)
            its.close()
            os.close(read_end)
            os.close(write_end)
            raise NoProcess(str(error)) from error
        try:
            socket.send_fds(self._control, [packet], [its.fileno(), write_end])
        except OSError as error:
            self._forget(child)
            if error.errno == errno.EMSGSIZE:
                raise NotSendable(f"Spawn is {len(packet)} bytes long, more than a socket takes at once") from error
            raise ZygoteLost(str(error)) from error
        finally:
            its.close()
            os.close(write_end)
        if not child._started.wait(START_TIMEOUT_S) or self._lost:
            child.channel.close()
            raise ZygoteLost("the forking parent did not answer")
        if child.cause == zygote.NO_PROCESS:
            child.channel.close()
            raise NoProcess("no more processes can be started: raise pids.max of the control group, or ulimit -u")
        return child

    def hide(self, private: Iterable[Path]) -> None:
        """Close more folders to builders and runners that are started from now on."""
        self._private |= set(private)
        self._readable = tuple(visible.common(self._private)) if self._layers else ()

    def _confinement(
        self, folder: Path | None, readable: Iterable[str], card: Device | None, calls_in_child: bool
    ) -> Confinement:
        return Confinement(
            layers=self._layers,
            folder=str(folder.resolve() if folder else ""),
            readable=self._readable,
            essential=(*self._essential, *readable),
            nodes=tuple(visible.nodes(self._layers, card.minor)) if card else (),
            processes=self._processes,
            calls_in_child=calls_in_child,
        )

    def _forget(self, child: Child) -> None:
        """Remove a child that was never started."""
        with self._lock:
            self._children.pop(child._identity, None)
        child.channel.close()

    def kill(self, identity: int) -> None:
        # Where the zygote is gone, the listening thread finds out.
        with contextlib.suppress(OSError):
            self._control.send(msgspec.json.encode(Kill(id=identity)))

    def close(self) -> None:
        """Ends every child."""
        # Closing alone tells nobody anything while the listening thread still waits on the socket.
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _listen(self) -> None:
        decoder = msgspec.json.Decoder(Spawned | Exited)
        while True:
            try:
                data = self._control.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._lose()
                return
            message = decoder.decode(data)
            with self._lock:
                child = self._children.get(message.id)
            if child is None:
                # Given up already, with all others, when the zygote stopped answering.
                continue
            if isinstance(message, Spawned):
                child.pid = message.pid
                child._started.set()
            else:
                child._exit_code, child.cause = message.code, message.cause
                # Also where it never did.
                child._started.set()
                child._ended.set()
                with self._lock:
                    self._children.pop(message.id, None)

    def _lose(self) -> None:
        """The zygote is gone: so are its children, once its keeper is."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LOSS_S)
        self._lost = True
        with self._lock:
            orphans = list(self._children.values())
            self._children.clear()
        for child in orphans:
            child._exit_code = -signal.SIGKILL
            child._started.set()
            child._ended.set()


def _kept(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _pump(source: int, log: Path, drained: threading.Event, shown: Callable[[bytes], bytes]) -> None:
    """Keep the first MAX_LOG_BYTES of a child's output; read and drop the rest, so that it never blocks.

    What is cut in two, because it was not printed at once, is kept as it was printed. What is dropped costs no more
    than reading it: a candidate that is stopped leaves a full pipe, to be emptied in the baseline's turn.
    """
    room = MAX_LOG_BYTES
    with open(source, "rb", buffering=0) as reader, _opened(log) as writer:
        while raw := reader.read(65536):
            if room <= 0:
                continue
            chunk = shown(raw)
            # A full disk costs the log, and not the process that writes into it.
            with contextlib.suppress(OSError):
                writer.write(chunk[:room])
                if len(chunk) > room:
                    writer.write(b"\n[more output was dropped]\n")
            room -= len(chunk)
    drained.set()


def _opened(log: Path) -> io.FileIO:
    try:
        return fresh(log)
    except OSError:
        return open(os.devnull, "wb", buffering=0)
