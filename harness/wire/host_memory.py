"""Host memory that two processes look at: sealed memfds of the judge's, and a runner's own, read from outside."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os

import torch

from harness.errors import AssayError

# mallopt's names for its parameters.
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4


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


class ForeignMemory:
    """Another process's memory, by a descriptor of its /proc/self/mem, which is this object's from now on."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def read(self, address: int, nbytes: int) -> torch.Tensor:
        """A copy as uint8. Raises BadMemory where nothing is mapped."""
        copy = torch.empty(nbytes, dtype=torch.uint8)
        buffer = memoryview((ctypes.c_char * nbytes).from_address(copy.data_ptr())).cast("B")
        done = 0
        while done < nbytes:
            try:
                count = os.preadv(self._fd, [buffer[done:]], address + done)
            except (OSError, OverflowError) as error:
                raise BadMemory(f"nothing to be read at {address + done:#x}: {error}") from error
            if count == 0:
                raise BadMemory("the process has no memory any more")
            done += count
        return copy

    def close(self) -> None:
        os.close(self._fd)


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
