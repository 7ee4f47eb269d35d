"""Host memory that two processes look at: sealed memfds of the judge's, and a runner's own, read from outside."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import torch

from harness.errors import AssayError
from harness.wire.channel import PeerGone

# mallopt's names for its parameters.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4

# A line of maps: from, to, where that begins in its file, and which file, by device and inode.
MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) (\S+ \d+)")
NO_FILE = b"00:00 0"
# An entry of pagemap is so long. Its last byte tells if the page is there, is swapped out, is a file's: the last bytes
# of those that are no file's. One that is neither there nor swapped out, although it has just been read, is a file's.
ENTRY_BYTES = 8
OWN = bytes(kind for kind in range(256) if kind & 0xC0 and not kind & 0x20)


def create(nbytes: int) -> tuple[int, torch.Tensor]:
    """A new block: its descriptor (the caller closes it) and its bytes as a uint8 tensor.

    Sealed against shrinking, because a runner that cut the file short would kill the judge's next read with SIGBUS.
    """
    fd = os.memfd_create("assay", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, max(nbytes, 1))
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return fd, attach(fd)


def attach(fd: int) -> torch.Tensor:
    """The bytes of the block behind `fd`; the mapping lives as long as the tensor."""
    return torch.frombuffer(mmap.mmap(fd, os.fstat(fd).st_size), dtype=torch.uint8)


def opened() -> list[int]:
    """Descriptors of this process's own memory, for a ForeignMemory: mem, maps, and pagemap where the kernel has it."""
    names = [name for name in ("mem", "maps", "pagemap") if os.path.exists(f"/proc/self/{name}")]
    return [os.open(f"/proc/self/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]


class Part(NamedTuple):
    """Bytes of a file that lie next to each other in memory, too. Of memory that is in no file, addresses."""

    file: bytes
    first: int
    last: int


class ForeignMemory:
    """Another process's memory, by its `opened()` descriptors, which are this object's from now on."""

    def __init__(self, mem: int, maps: int, pagemap: int | None = None) -> None:
        self._fd = mem
        self._maps = maps
        self._pagemap = pagemap
        # From, to, and the part; of files only, by address. None where nobody has looked since the process stopped.
        self._files: list[tuple[int, int, Part]] | None = None

    def read(self, address: int, nbytes: int) -> torch.Tensor:
        """A copy as uint8. Raises BadMemory where nothing is mapped, and PeerGone where the process has ended."""
        copy = torch.empty(nbytes, dtype=torch.uint8)
        buffer = memoryview((ctypes.c_char * nbytes).from_address(copy.data_ptr())).cast("B")
        done = 0
        while done < nbytes:
            try:
                count = os.preadv(self._fd, [buffer[done:]], address + done)
            except (OSError, OverflowError) as error:
                raise BadMemory(f"memory at {address + done:#x} cannot be read: {error}") from error
            if count == 0:
                raise PeerGone("its memory is gone")
            done += count
        return copy

    def stopped(self) -> None:
        """The process stands still from here on; until now it may have mapped anything anew."""
        self._files = None

    def parts(self, address: int, nbytes: int) -> list[Part]:
        """What lies behind addresses that have just been read: one page of a file may do so behind several of them."""
        if not nbytes:
            return []
        own = Part(NO_FILE, address, address + nbytes)
        return list(self._parts_in_files(own)) if self._may_be_shared(address, nbytes) else [own]

    def _may_be_shared(self, address: int, nbytes: int) -> bool:
        """Whether a page is a file's, shared memory among these, or may be: no other page is at several places."""
        if self._pagemap is None:
            return True
        first, last = address // mmap.PAGESIZE, -(-(address + nbytes) // mmap.PAGESIZE)
        entries = os.pread(self._pagemap, ENTRY_BYTES * (last - first), ENTRY_BYTES * first)
        told = entries[ENTRY_BYTES - 1 :: ENTRY_BYTES]
        return len(told) < last - first or bool(told.translate(None, OWN))

    def _parts_in_files(self, own: Part) -> Iterator[Part]:
        """The parts of a place, those between files included."""
        if self._files is None:
            self._files = list(self._mapped())
        at = own.first
        for start, end, part in self._files:
            first, last = max(at, start), min(own.last, end)
            if first < last:
                if at < first:
                    yield Part(NO_FILE, at, first)
                yield Part(part.file, part.first + first - start, part.first + last - start)
                at = last
        if at < own.last:
            yield Part(NO_FILE, at, own.last)

    def _mapped(self) -> Iterator[tuple[int, int, Part]]:
        os.lseek(self._maps, 0, os.SEEK_SET)
        with open(self._maps, "rb", closefd=False) as lines:
            for found in filter(None, map(MAPPING.match, lines)):
                start, end, offset = (int(found[number], 16) for number in (1, 2, 3))
                if found[4] != NO_FILE:
                    yield start, end, Part(found[4], offset, offset + end - start)

    def close(self) -> None:
        for fd in (self._fd, self._maps, self._pagemap):
            if fd is not None:
                os.close(fd)


class BadMemory(AssayError, ValueError):
    """A process has nothing where it says it has."""


def keep_what_is_freed() -> None:
    """Have glibc keep freed memory for the next allocation, however large.

    It gives large blocks back to the kernel otherwise, which hands each new one out page by page: four fifths of the
    time of a relu over 4 MB. Which blocks are large then depends on what was freed before. Elsewhere than with glibc
    nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
