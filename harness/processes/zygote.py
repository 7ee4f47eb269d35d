"""The clean forking parent: imports torch once, then forks judges, runners and builders that start with it loaded.

It never touches a device and never runs a candidate, so that each child starts from a clean process in milliseconds
instead of seconds. It ends a child with all that it started, and says so when none of that is left. When its session
is gone, however that ended, it ends them all and then itself; should it be killed, its keeper does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.abc import SourceLoader
from pathlib import Path
from types import ModuleType

import msgspec

from harness.processes import keeper, memory_watch
from harness.processes.families import PAUSE_S, Families, Family
from harness.processes.memory_watch import Limit
from harness.sandbox import enforcement, identity, landlock, visible
from harness.sandbox.enforcement import Confinement
from harness.sandbox.syscalls import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    hear_of_ends_only,
    prctl,
)
from harness.wire.causes import GIVEN_BACK, SHORTAGE

MAX_REQUEST_BYTES = 1 << 18
# Why a process ended that never began.
NO_PROCESS = "no_process"
# Packages with modules that are imported where a card is.
LATE = ("harness.links", "harness.machine", "harness.runner", "harness.wire")


class Spawn(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Fork a child in `role`. Two descriptors travel beside it: the child's channel and its stdout and stderr."""

    id: int
    role: str
    environment: dict[str, str] = {}
    folder: str = ""
    # What an untrusted child is held to; None for our own code, and where the sandbox is off.
    confinement: Confinement | None = None
    # Host memory after which it is killed; 0 for no limit.
    memory_bytes: int = 0
    # Whether others go first where the machine runs out of memory: it runs what the others are judged by.
    spared: bool = False


class Kill(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    id: int


class Spawned(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    id: int
    pid: int


class Exited(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """It has ended, and of all that it started nothing is left.

    `code` as os.waitstatus_to_exitcode gives it: negative for a signal. `cause`: why it was killed, if by us.
    """

    id: int
    code: int
    cause: str = ""


Role = Callable[[int], None]


def serve(control: socket.socket, roles: Mapping[str, Role], greetings: Mapping[str, Role] = {}) -> None:
    """Serve the session until it closes the control socket (each request is one packet), then end every child.

    A role may have a greeting, which a child says before it is confined, and before any foreign code is in it.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    # Nobody of the same user looks into this process, or into a judge, which inherits it.
    prctl(PR_SET_DUMPABLE, 0)
    # The rules of every child name them.
    landlock.pin(visible.PROC)
    watcher = memory_watch.Watcher()
    free_at_first_bytes = memory_watch.memory()[1]
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    # Runners stop and go on a thousand times a second, beside what is timed.
    hear_of_ends_only()
    # By which the keeper's death is told.
    signal.signal(signal.SIGTERM, lambda *_: _hang_up(control))
    present = Families(ours=watcher.pid)
    limits: dict[int, Limit] = {}
    decoder = msgspec.json.Decoder(Spawn | Kill)
    while True:
        timeout_s = PAUSE_S if present.ending() else memory_watch.WATCH_S if watcher.behind else None
        ready, _, _ = select.select([control.fileno(), wake_read, watcher.fileno()], [], [], timeout_s)
        if wake_read in ready:
            os.read(wake_read, 4096)
        for family in present.ended():
            if family.cause == SHORTAGE and memory_watch.came_back(free_at_first_bytes, family.free_bytes):
                family.cause = GIVEN_BACK
            with contextlib.suppress(OSError):
                control.send(msgspec.json.encode(Exited(id=family.identity, code=family.code or 0, cause=family.cause)))
        # Also where the leader is dead: the others may take seconds to give back what they have.
        there = present.there()
        limits = {number: family for number, family in limits.items() if family.pid in there}
        for number, cause in (_found(watcher, present) if watcher.fileno() in ready else {}).items():
            if number in limits:
                family = present.by_pid(limits[number].pid)
                family.cause, family.free_bytes = cause, memory_watch.memory()[1]
                present.kill(number)
        watcher.mind(limits)
        if control.fileno() not in ready:
            continue
        try:
            data, fds, _, _ = socket.recv_fds(control, MAX_REQUEST_BYTES, 2)
        except ConnectionResetError:
            # The session was killed before it had read all that was sent to it.
            data, fds = b"", []
        if not data:
            present.end()
            os._exit(0)
        request = decoder.decode(data)
        if isinstance(request, Kill):
            present.kill(request.id)
            continue
        for path in (*request.confinement.readable, *request.confinement.essential) if request.confinement else ():
            # Listed here once, and known to every child.
            visible.open_parts(path)
        report, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            pid = os.fork()
        except OSError:
            for fd in (report, told, *fds):
                os.close(fd)
            with contextlib.suppress(OSError):
                control.send(msgspec.json.encode(Exited(id=request.id, code=1, cause=NO_PROCESS)))
            continue
        if pid == 0:
            _become(request, fds, told, greetings, roles)
        os.close(told)
        present.add(Family(request.id, pid, _to_be_killed_by_user(request.confinement, pid), report))
        if request.memory_bytes:
            limits[request.id] = Limit(pid, request.memory_bytes, request.spared)
            watcher.mind(limits)
        for fd in fds:
            os.close(fd)
        # A session that has ended reads no more; then there is nothing to serve either.
        with contextlib.suppress(OSError):
            control.send(msgspec.json.encode(Spawned(id=request.id, pid=pid)))


def _found(watcher: memory_watch.Watcher, present: Families) -> dict[int, str]:
    """Whose family is too large, and the cause. Unwatched nothing goes on: all ends where the watcher is gone."""
    try:
        return watcher.found()
    except EOFError:
        present.end()
        os._exit(1)


def _hang_up(control: socket.socket) -> None:
    with contextlib.suppress(OSError):
        control.shutdown(socket.SHUT_RDWR)


def _to_be_killed_by_user(confinement: Confinement | None, pid: int) -> int:
    """The user id of a child that has one of its own and could leave its process group; 0 for every other."""
    if confinement is None or os.geteuid() or "user" not in confinement.layers or "seccomp" in confinement.layers:
        return 0
    with contextlib.suppress(OSError):
        return identity.unused_user(Path("/proc/self/uid_map").read_text(), pid)
    return 0


def _become(
    request: Spawn, fds: list[int], told: int, greetings: Mapping[str, Role], roles: Mapping[str, Role]
) -> None:
    """Turn the forked child into its role; never returns. `told` takes a word where the sandbox fails."""
    code = 70
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        channel, output = fds
        os.dup2(output, 1)
        os.dup2(output, 2)
        # Between the standard ones and those two, and behind them.
        low, high = sorted((channel, told))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.update(request.environment)
        if request.folder:
            os.chdir(request.folder)
        if request.role in greetings:
            greetings[request.role](channel)
        if request.confinement is not None:
            _enter(request.confinement, told)
        os.close(told)
        roles[request.role](channel)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # No atexit handlers: what a candidate left there must not run after its verdict.
        os._exit(code)


def _enter(confinement: Confinement, told: int) -> None:
    """Raises SandboxFailed, which the parent then knows. Not by an exit code: a candidate can end with any."""
    try:
        enforcement.enter(confinement)
    except BaseException:
        os.write(told, enforcement.CAUSE.encode())
        raise


@contextlib.contextmanager
def _no_device_touched() -> Iterator[None]:
    """Importing torch's extension builder asks whether there is a device, only to warn; asking spoils later forks."""
    import torch

    is_available = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        yield
    finally:
        torch.cuda.is_available = is_available


def _have_no_main() -> None:
    """What multiprocessing spawns for a candidate imports the main module first; this one is closed to it, and none of
    the candidate's."""
    main = sys.modules["__main__"]
    main.__spec__ = None
    del main.__file__


def start(control: socket.socket, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A zygote, with its keeper, that serves the session at the other end of `control`."""
    return subprocess.Popen(
        # -P: the folder that the user happens to be in is no place for modules.
        [sys.executable, "-P", "-m", "harness.processes.zygote", str(control.fileno())],
        pass_fds=[control.fileno()],
        env=environment,
        stdin=subprocess.DEVNULL,
        # A signal to the session's group, from a terminal or `timeout`, must not end those that end the others.
        start_new_session=True,
    )


def _follow_links() -> None:
    """Name Python's places, and those of tools, without links: who is confined has places below /tmp only where they
    are, and none of the links that lead there, as from a checkout's .venv to another's."""
    sys.path[:] = map(os.path.realpath, sys.path)
    sys.prefix, sys.exec_prefix = os.path.realpath(sys.prefix), os.path.realpath(sys.exec_prefix)
    # The interpreter's own name is a link that its environment is found by.
    folder, name = os.path.split(sys.executable)
    sys.executable = os.path.join(os.path.realpath(folder), name)
    for variable in ("PATH", "LD_LIBRARY_PATH"):
        if places := os.environ.get(variable):
            os.environ[variable] = os.pathsep.join(map(os.path.realpath, places.split(os.pathsep)))


def main() -> None:
    """Entry of the zygote process: `python -m harness.processes.zygote FD`."""
    _have_no_main()
    _follow_links()
    keeper.stand_behind()
    control = socket.socket(fileno=int(sys.argv[1]))
    serve_roles(control, loaded())


def _keep_bytecode(package: ModuleType) -> None:
    """Compile the modules of a package without importing them. Each process that does import one, and none of them
    writes there, would compile it again."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        spec = importlib.util.find_spec(found.name)
        if spec is not None and isinstance(spec.loader, SourceLoader):
            spec.loader.get_code(found.name)


def loaded() -> dict[str, ModuleType]:
    """The module of each role, with all that it needs."""
    # One thread only while forking: numpy's BLAS would start a pool on import.
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for package in LATE:
        _keep_bytecode(importlib.import_module(package))
    sys.dont_write_bytecode = True
    with _no_device_touched():
        from harness.judge import auditor, judge
        from harness.runner import builder, checker, inspector, runner
    untrusted = {"builder": builder, "checker": checker, "inspector": inspector, "runner": runner}
    return {"auditor": auditor, "judge": judge, **untrusted}


def serve_roles(control: socket.socket, modules: Mapping[str, ModuleType]) -> None:
    """`serve` for the roles of these modules."""
    serve(control, {name: role.main for name, role in modules.items()}, {"runner": modules["runner"].greet})


if __name__ == "__main__":
    main()
