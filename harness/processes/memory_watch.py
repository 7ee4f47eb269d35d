"""Host memory of untrusted processes, watched from outside: RLIMIT_AS breaks CUDA, and cgroups are rarely ours."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.environment import available_memory_bytes
from harness.errors import UsageError
from harness.links.freezer import Freezer
from harness.machine import procfs
from harness.processes import memory_floor
from harness.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from harness.wire.causes import MOST_OF_IT, OVER_LIMIT, SHORTAGE

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What a descriptor's link begins with where the file is memory.
MEMORY_FILES = ("/memfd:", "/dev/shm/")
# And what one is, at the most, where the kernel holds what was written there and nobody has read; unless it says more.
BUFFERS = {"socket:": 212_992, "pipe:": 65_536}
BUFFER_LIMITS = {"socket:": Path("/proc/sys/net/core/wmem_max")}
WATCH_S = 0.25
# The longest look at a family whose processes share what they have, and how much longer than a look the rest after it.
LOOK_S, REST = 1.0, 9
# Of whoever watches. The baseline's turn is no shorter for it: a candidate that stands still may have a thousand
# processes to be counted.
LONGEST_PAUSE_S = 1.0
MAX_BYTES = 1 << 16
# Gigabytes take their time to be given back: for so long at most while a process ends, and after its end.
ENDING_S, SETTLING_S = 10.0, 1.0
COMING_BACK_S = 0.02


class Limit(NamedTuple):
    """The family that `pid` leads, and how much memory it may have. `spared`: others go first where memory runs out."""

    pid: int
    nbytes: int
    spared: bool = False


class Watch:
    """Looks at families again and again; for what takes long in a look it has a tenth of the time."""

    def __init__(self) -> None:
        self._rests_until_s: dict[int, float] = {}
        # Leaders that end: when that was first seen, and last.
        self._ending_s: dict[int, tuple[float, float]] = {}
        # From the end of a look to the next one.
        self.pause_s = WATCH_S
        self._free_at_first_bytes = memory()[1]

    def too_large(self, watched: Mapping[int, int], spared: Set[int] = frozenset()) -> dict[int, str]:
        """The leaders (`watched`: pid -> limit in bytes) whose family is over its limit, or else the largest one if the
        machine runs out of memory, one of those that are not `spared` if there are any; each with the cause
        (`wire.causes`)."""
        if not watched:
            return {}
        began_s = time.process_time()
        sizes = {pid: family_bytes(pid) for pid in watched}
        self.pause_s = min(LONGEST_PAUSE_S, max(WATCH_S, REST * (time.process_time() - began_s)))
        # The first figure is quickly had, and counts what forked processes share once for each of them.
        over = [pid for pid, limit in watched.items() if sizes[pid] > limit and self._is_over(pid, limit)]
        found = dict.fromkeys(over, OVER_LIMIT)
        # What has none any more is about to end.
        giving_back = self._giving_back({*found, *(pid for pid, size in sizes.items() if not size)}, watched)
        if not giving_back and nearly_out():
            until_s = time.monotonic() + LOOK_S
            most = buffer_bytes()
            whole = {pid: own_bytes(pid, until_s) + shared_bytes(pid, until_s, most) for pid in sizes}
            # Whatever was counted, by whom a candidate is judged does not go for it.
            standing = {pid for pid, size in sizes.items() if size}
            largest = max(standing - spared or standing or whole, key=lambda pid: whole[pid])
            # What somebody else took, or nobody, is not its doing.
            found = {largest: MOST_OF_IT if whole[largest] * 2 > self._free_at_first_bytes else SHORTAGE}
            self._giving_back({largest}, watched)
        self._rests_until_s = {pid: until_s for pid, until_s in self._rests_until_s.items() if pid in watched}
        return found

    def _giving_back(self, ending: Set[int], watched: Mapping[int, int]) -> bool:
        """Whether a family that ends, one of `ending` or one before, may still have memory to give back: until then
        nobody else is the one that has too much."""
        now_s = time.monotonic()
        for pid in ending | (self._ending_s.keys() & watched.keys()):
            self._ending_s[pid] = (self._ending_s.get(pid, (now_s, now_s))[0], now_s)
        self._ending_s = {
            pid: (first_s, last_s)
            for pid, (first_s, last_s) in self._ending_s.items()
            if pid in watched or now_s < last_s + SETTLING_S
        }
        moments = self._ending_s.values()
        return any(now_s < min(first_s + ENDING_S, last_s + SETTLING_S) for first_s, last_s in moments)

    def _is_over(self, pid: int, limit: int) -> bool:
        began_s = time.monotonic()
        if began_s < self._rests_until_s.get(pid, 0.0):
            return False
        over = is_over(pid, limit)
        ended_s = time.monotonic()
        self._rests_until_s[pid] = ended_s + REST * (ended_s - began_s)
        return over


def is_over(pid: int, limit: int) -> bool:
    """Whether a family has more than so many bytes, as far as that can be said in LOOK_S: the largest come first."""
    total, began_s = 0, time.monotonic()
    for member in sorted(Freezer(pid).members(), key=private_bytes, reverse=True):
        total += own_share_bytes(member)
        if total > limit or time.monotonic() - began_s > LOOK_S:
            break
    return total > limit


def private_bytes(pid: int) -> int:
    """Resident memory that is the process's own, and its page tables; what it maps of the judge's is not counted. 0
    where it is gone."""
    return _sizes(pid, "RssAnon", "VmPTE")


def own_share_bytes(pid: int) -> int:
    """Its own resident memory, and its part of what it shares with other processes, as after a fork; its page tables.

    The kernel walks the whole address space for it. `private_bytes` where it may not be read.
    """
    own = _of_mappings(pid, "Pss_Anon")
    return private_bytes(pid) if own is None else own + _sizes(pid, "VmPTE")


def own_bytes(pid: int, until_s: float) -> int:
    """The private bytes of a family, what forked processes share counted once; of those that are not looked at until a
    time of the monotonic clock, for each of them."""
    members = sorted(Freezer(pid).members(), key=private_bytes, reverse=True)
    return sum(own_share_bytes(one) if time.monotonic() < until_s else private_bytes(one) for one in members)


def mapped_share_bytes(pid: int) -> int:
    """Its part of the shared memory that it maps. All of that where it may not be read."""
    part = _of_mappings(pid, "Pss_Shmem")
    return _sizes(pid, "RssShmem") if part is None else part


def _of_mappings(pid: int, name: str) -> int | None:
    """A figure of all its mappings together, in bytes; None where it may not be read."""
    for thread in _threads(pid):
        found = re.search(rf"^{name}:\s+(\d+) kB", procfs.read(Path(f"/proc/{thread}/smaps_rollup")), re.MULTILINE)
        if found:
            return int(found.group(1)) * 1024
    return None


def buffer_bytes() -> dict[str, int]:
    """What a socket or a pipe may hold, by how its descriptor's link begins."""
    told = {kind: procfs.read(place).strip() for kind, place in BUFFER_LIMITS.items()}
    return {kind: max(least, int(told.get(kind) or 0)) for kind, least in BUFFERS.items()}


def shared_bytes(pid: int, until_s: float, buffers: Mapping[str, int]) -> int:
    """The memory that a family shares by mapping it, or else by files of its own that are memory: the larger of both;
    and what its sockets and pipes may hold, by `buffers`, since how much they do is not told from outside.

    Looked for until a time of the monotonic clock, which a family with many files or processes may outlast. Of what is
    mapped a part may be the judge's.
    """
    members = sorted(Freezer(pid).members(), key=lambda member: _sizes(member, "RssShmem"), reverse=True)
    mapped, files, held = 0, dict[tuple[int, int], int](), dict[str, int]()
    for member in members:
        if time.monotonic() > until_s:
            break
        mapped += mapped_share_bytes(member)
    for member in members:
        for place in _descriptors(member):
            if time.monotonic() > until_s:
                break
            with contextlib.suppress(OSError):
                link = os.readlink(place)
                if link.startswith(MEMORY_FILES):
                    status = os.stat(place)
                    files[status.st_dev, status.st_ino] = status.st_blocks * 512
                elif (most := buffers.get(link.partition("[")[0])) is not None:
                    held[link] = most
    return max(mapped, sum(files.values())) + sum(held.values())


def _descriptors(pid: int) -> list[str]:
    for thread in _threads(pid):
        with contextlib.suppress(OSError):
            return [f"/proc/{thread}/fd/{number}" for number in os.listdir(f"/proc/{thread}/fd")]
    return []


def _sizes(pid: int, *names: str) -> int:
    """The sum of these figures of a process's status, in bytes."""
    for thread in _threads(pid):
        found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", procfs.read(Path(f"/proc/{thread}/status")), re.MULTILINE))
        # A thread that has ended while others go on, the first one even, has none.
        if found:
            return sum(int(found.get(name, 0)) for name in names) * 1024
    return 0


def family_bytes(pid: int) -> int:
    """The private bytes of a process and of all that it started, as far as they are its group's."""
    return sum(map(private_bytes, Freezer(pid).members()))


def _threads(pid: int) -> Iterator[int]:
    """The first, whose number is the process's, and the others, which are listed only where somebody asks for them."""
    yield pid
    with contextlib.suppress(OSError):
        yield from (int(thread) for thread in os.listdir(f"/proc/{pid}/task") if thread != str(pid))


class Watcher:
    """A watch in a process of its own, because a look may take as long as the watched make it. Raises OSError.

    Families are told by any number, and by their leader's pid.
    """

    def __init__(self) -> None:
        self._socket, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._told: dict[int, Limit] = {}
        self.behind = False
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _stand_watch(its)
            finally:
                os._exit(1)
        its.close()
        self._socket.setblocking(False)

    def fileno(self) -> int:
        return self._socket.fileno()

    def mind(self, families: dict[int, Limit]) -> None:
        """From now on watch these, by their numbers. Where it is `behind`, to be said again."""
        if families == self._told:
            return
        try:
            self._socket.send(msgspec.json.encode(families))
            self._told, self.behind = dict(families), False
        except BlockingIOError:
            self.behind = True
        except OSError:
            # It is gone, as `found` tells.
            self.behind = False

    def found(self) -> dict[int, str]:
        """Numbers of families that are too large, with the cause, once there is something to read. Raises EOFError."""
        try:
            data = self._socket.recv(MAX_BYTES)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError("the process that watches memory has ended")
        return msgspec.json.decode(data, type=dict[int, str])


def _stand_watch(channel: socket.socket) -> None:
    """Until the other side is gone."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.chdir("/")
    os.closerange(3, channel.fileno())
    os.closerange(channel.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    watch, due_s = Watch(), 0.0
    families: dict[int, Limit] = {}
    while True:
        rest_s = max(0.0, due_s - time.monotonic()) if families else None
        if select.select([channel], [], [], rest_s)[0]:
            data = channel.recv(MAX_BYTES)
            if not data:
                os._exit(0)
            families = msgspec.json.decode(data, type=dict[int, Limit])
            continue
        spared = {family.pid for family in families.values() if family.spared}
        found = watch.too_large({family.pid: family.nbytes for family in families.values()}, spared)
        if found:
            causes = {number: found[family.pid] for number, family in families.items() if family.pid in found}
            channel.send(msgspec.json.encode(causes))
        due_s = time.monotonic() + watch.pause_s


def memory() -> tuple[int, int]:
    """Bytes of memory that this machine has, and that it could still give out."""
    return os.sysconf("SC_PHYS_PAGES") * PAGE_BYTES, available_memory_bytes()


def came_back(at_first_bytes: int, then_bytes: int) -> bool:
    """Whether more than half of what was missing `then`, when a family was to be ended for it, is there again at most
    SETTLING_S after that has ended."""
    until_s = time.monotonic() + SETTLING_S
    missing_bytes = max(0, at_first_bytes - then_bytes)
    while (memory()[1] - then_bytes) * 2 <= missing_bytes:
        if time.monotonic() > until_s:
            return False
        time.sleep(COMING_BACK_S)
    return True


def share() -> int:
    """The bytes that one untrusted process may have where nobody says otherwise: four fifths of what is free."""
    return memory()[1] * 4 // 5


def nearly_out() -> bool:
    """Whether the machine is about to run out of memory."""
    total, available = memory()
    return available < floor_share() * total


def floor_share() -> float:
    """The share of the machine's memory that is to stay free; of a wrong one a command has said so as it began."""
    with contextlib.suppress(UsageError):
        return memory_floor.share()
    return memory_floor.USUAL
