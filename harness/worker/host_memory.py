"""Shared host memory: sealed memfds, owned by the judge and mapped by a runner."""

from __future__ import annotations

import fcntl
import mmap
import os

import torch


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
