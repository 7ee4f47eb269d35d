"""What an untrusted process may do: layers, put in force between the fork and its first line of work.

`enter` is called in the forked child, which has one thread. It only takes away, for the process and its descendants;
nothing here can be undone from inside. docs/threat-model.md says what each layer promises.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.errors import AssayError
from harness.sandbox import identity, landlock, namespaces, seccomp, visible
from harness.sandbox.syscalls import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, prctl

LAYERS = {
    "user": "own user without capabilities: no other process can be traced or read",
    "signals": "no other process can be signalled",
    "namespaces": "no network, private shared memory",
    "landlock": "reads only the system and its own files, writes only its own folder",
    "card": "opens only its own GPU",
    "seccomp": "no tracing, no sockets but local ones, no mounts, one process group, no rare kernel interfaces",
    "limits": "bounded processes, descriptors and file sizes, no core dumps, first to be killed if memory runs out",
}
# Why a process ended in which a layer failed (zygote.Exited).
CAUSE = "sandbox"
FILE_BYTES = 8 << 30
OPEN_FILES = 4096
# What the whole machine may have open. One family's share is a quarter at the most, as long as each may have some.
MACHINES_FILES = Path("/proc/sys/fs/file-max")
FEWEST_FILES, SHARE_OF_FILES = 256, 4
# Of these errors a layer is not missing: the machine is short of something for the moment.
PASSING = (errno.ENFILE, errno.EMFILE, errno.ENOMEM, errno.EAGAIN)
# Where the system hands core dumps to a program, a limit of 0 bytes does not stop it, and it would work outside the
# sandbox, as root, for every process that crashes. The kernel starts none where the limit is 1.
NO_CORE = 1


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """One process's share. `layers` are put in force; paths are absolute, and only `folder` can be written to.

    `readable` is what may be read where it is there, `essential` what the process cannot do without. A path with a link
    in it opens nothing. `nodes` are device files. `processes`: how many it may have, threads among them; 0 for as many
    as any. `calls_in_child`: a program that it starts is what uses the card.
    """

    layers: tuple[str, ...]
    folder: str = ""
    readable: tuple[str, ...] = ()
    essential: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    processes: int = 0
    calls_in_child: bool = False


class SandboxFailed(AssayError, RuntimeError):
    """A layer that this machine has could not be enabled; the process must end."""


def enter(confinement: Confinement) -> None:
    """Enable the layers. Raises SandboxFailed, after which the process must end."""
    failures = attempt(confinement)
    if failures:
        layer, why = next(iter(failures.items()))
        raise SandboxFailed(f"the sandbox layer '{layer}' failed: {why}")


def attempt(confinement: Confinement) -> dict[str, str]:
    """Put in force what can be, and return why the others can't: layer -> reason.

    Raises SandboxFailed where that cannot be told, because the machine is short of something (PASSING)."""
    failures: dict[str, str] = {}

    @contextlib.contextmanager
    def layer(name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in PASSING:
                raise SandboxFailed(f"the sandbox layer '{name}' could not be tried: {error}") from error
            failures.setdefault(name, str(error.strerror or error))

    def on(name: str) -> bool:
        return name in confinement.layers and name not in failures

    # The parent is closed to its own user; /proc/self/uid_map and CUDA need this process to be open to it.
    prctl(PR_SET_DUMPABLE, 1)
    root = os.geteuid() == 0
    ruleset, own_tmp = -1, False
    if on("limits"):
        with layer("limits"):
            # While there are capabilities: what root sets with them, nobody without them takes back.
            Path("/proc/self/oom_score_adj").write_text("1000")
    if on("user") and not root:
        with layer("user"):
            identity.enter_user_namespace()
    if on("namespaces"):
        with layer("namespaces"):
            namespaces.leave()
            if confinement.folder:
                own_tmp = namespaces.have_own_tmp(confinement.folder, _parts_readable(confinement))
            if not root:
                # Whose files it may be.
                namespaces.make_read_only(confinement.folder, own_tmp=own_tmp)
    if on("user") and root:
        with layer("user"):
            _make_reachable(confinement, private_mounts=on("namespaces"))
    if on("landlock"):
        with layer("landlock"):
            # Before the change of user, who may not be able to open them.
            ruleset = landlock.prepare(_rules(confinement, private_shm=on("namespaces"), own_tmp=own_tmp))
            landlock.pin([f"/proc/{os.getpid()}"])
    if on("user"):
        with layer("user"):
            if root:
                identity.become_unused_user(confinement.folder, confinement.nodes)
            else:
                identity.drop_capabilities()
    # A change of user clears it.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if on("limits"):
        with layer("limits"):
            _limit(confinement.processes if on("user") else None)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if on("landlock"):
        with layer("landlock"):
            landlock.restrict(ruleset)
    if on("card"):
        with layer("card"):
            if not on("landlock"):
                raise OSError("only landlock keeps device files closed")
    if on("seccomp"):
        with layer("seccomp"):
            seccomp.restrict(shares_user=not (root and on("user")))
    if on("signals"):
        with layer("signals"):
            _check_signals(other_user=root and on("user"), scoped=on("landlock"))
    return failures


def _check_signals(*, other_user: bool, scoped: bool) -> None:
    """Raise OSError unless another layer keeps signals in: a user namespace does not, its user being the same."""
    if not other_user and not (scoped and landlock.abi() >= landlock.ABI_OF_SCOPES):
        raise OSError("processes of the same user can be signalled")


def _make_reachable(confinement: Confinement, *, private_mounts: bool) -> None:
    """Make sure that another user can read what the process needs."""
    needed = {*confinement.essential, confinement.folder} - {""}
    if private_mounts:
        namespaces.open_locked(needed | set(confinement.readable))
    known: dict[str, bool] = {}
    for path in sorted(needed):
        if locked := namespaces.locked_folder(path, known):
            raise OSError(f"{locked} is closed to other users, and {path} is inside; run chmod o+x on it")
    if closed := namespaces.unreadable(sorted(needed - {confinement.folder})):
        raise OSError(f"{closed} is not readable for other users; run chmod -R o+rX on it")


def _parts_readable(confinement: Confinement) -> set[str]:
    """What of `readable` and `essential` is open, without the rooms that are closed there."""
    paths = {*confinement.readable, *confinement.essential}
    return {part for path in paths for part in visible.open_parts(path) or (path,)}


def _rules(confinement: Confinement, *, private_shm: bool, own_tmp: bool) -> Iterator[tuple[str, int]]:
    """Paths and what may be done with them, as Landlock takes them."""
    for path in dict.fromkeys((*confinement.readable, *confinement.essential)):
        parts = visible.open_parts(path)
        # Imports list the folders that they look into.
        yield path, landlock.READ_DIR if parts else landlock.READ
        yield from ((part, landlock.READ) for part in parts)
    # The process's own entry; its children cannot read theirs, which compilers do not mind. CUDA names its threads
    # there; who may write can also take back that it is the first to die of low memory, unless root had set that.
    own = f"/proc/{os.getpid()}"
    # CUDA does not start without its process's entry, and nobody knows yet which number a child will have. Whose else
    # can be read or written there is for the layer `user` to say.
    yield "/proc" if confinement.calls_in_child else own, landlock.READ_WRITE if confinement.nodes else landlock.READ
    for node in (*visible.DEVICES, *confinement.nodes):
        yield node, landlock.DEVICE
    if private_shm:
        yield os.path.realpath("/dev/shm"), landlock.EVERYTHING
    if own_tmp:
        # What is bound there is read-only by its mount.
        yield namespaces.TMP, landlock.EVERYTHING
    if confinement.folder:
        yield confinement.folder, landlock.EVERYTHING


def _limit(processes: int | None) -> None:
    """`processes`: as Confinement has it; None for a user who is not the process's own."""
    limits = {resource.RLIMIT_CORE: NO_CORE, resource.RLIMIT_FSIZE: FILE_BYTES, resource.RLIMIT_NOFILE: open_files()}
    if processes is not None:
        # Counted by user, so that it would be shared with the whole machine otherwise. Threads count.
        limits[resource.RLIMIT_NPROC] = min(most_processes(), processes or most_processes())
    for name, value in limits.items():
        hard = resource.getrlimit(name)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (bound, bound))


def open_files() -> int:
    """Descriptors that an untrusted process may have."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    share = int(MACHINES_FILES.read_text()) // (SHARE_OF_FILES * most_processes())
    most = min(OPEN_FILES, max(FEWEST_FILES, share))
    return most if hard == resource.RLIM_INFINITY else min(most, hard // 2)


def have_more_descriptors() -> None:
    """Have twice as many as an untrusted process may.

    Nobody passes one on while more are under way, in sockets of the same user's, than the sender itself may have; an
    untrusted process can have as many under way as it may have itself.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (resource.RLIM_INFINITY, hard):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * open_files()), hard))


def most_processes() -> int:
    """Processes and threads that an untrusted process may have: pools of threads, and compilers beside them."""
    return max(1024, 16 * (os.cpu_count() or 1))
