"""A card that is made up of host memory: the driver's calls and torch's streams and events, in order and asynchronous.

What is enqueued on a stream is carried out by that stream's thread, one after the other; a wait for a value stands
still until the value is there. So what would hang on a card, because the host waits for a stream that stands, hangs
here, too; and tensors on the made-up card are tensors on the CPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo  # A dispatch mode's first use imports it, which takes seconds.
from cuda.bindings import driver
from torch.utils._python_dispatch import TorchDispatchMode

from harness.links import cuda_snapshot, late_elements
from harness.wire import cuda_driver, cuda_memory

PAGE = 1 << 16
L2_BYTES = 1 << 12
# Operations that change a tensor are what a stream carries out; views are the host's.
ENQUEUED = {
    torch.ops.aten.copy_.default,
    torch.ops.aten.zero_.default,
    getattr(torch.ops.aten.random_, "from"),
    torch.ops.aten.add_.Scalar,
    torch.ops.aten.add_.Tensor,
    torch.ops.aten.index_select.out,
    torch.ops.aten.scatter_.src,
}
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MAP_FIXED = 0x10


def word(address: int) -> int:
    """The unsigned 32 bits at an address."""
    return ctypes.c_uint32.from_address(address).value


def write(address: int, value: int) -> None:
    ctypes.c_uint32.from_address(address).value = value


class Stream:
    """A queue of operations and the thread that carries them out."""

    def __init__(self, card: Card) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._left = 0
        self._counting = threading.Lock()
        self._card = card
        self.cuda_stream = card.number(self)
        threading.Thread(target=self._work, daemon=True).start()

    def put(self, operation: Callable[[], None]) -> None:
        with self._counting:
            self._left += 1
        self._queue.put(operation)

    def query(self) -> bool:
        return self._left == 0

    def synchronize(self) -> None:
        while not self.query():
            time.sleep(1e-4)

    def wait_stream(self, other: Stream) -> None:
        over = threading.Event()
        other.put(over.set)
        if self is self._card.default:
            # What is done outside of any stream is done by the host, at once.
            over.wait(10.0)
        else:
            self.put(lambda: over.wait(10.0) and None)

    def _work(self) -> None:
        while not self._card.over:
            with contextlib.suppress(queue.Empty):
                operation = self._queue.get(timeout=0.05)
                operation()
                with self._counting:
                    self._left -= 1


class Event:
    """Knows when its stream got to it."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self.at: float | None = None

    def record(self) -> None:
        self.at = None
        stream = self._card.current
        stream.put(self._happen)

    def _happen(self) -> None:
        self.at = time.perf_counter()
        self._card.told("event", self)

    def query(self) -> bool:
        return self.at is not None

    def elapsed_time(self, other: Event) -> float:
        assert None not in (self.at, other.at), "an event that has not happened"
        return (other.at - self.at) * 1e3


class _Enqueueing(TorchDispatchMode):
    def __init__(self, stream: Stream, card: Card) -> None:
        super().__init__()
        self._stream, self._card = stream, card

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in ENQUEUED:
            return func(*args, **kwargs)

        def carry_out() -> None:
            func(*args, **kwargs)
            self._card.told(func.overloadpacket.__name__, args[0])

        self._stream.put(carry_out)
        return kwargs.get("out", args[0])


class Card:
    """One made-up card. `trace` lists what streams have carried out, as (name, argument)."""

    def __init__(self) -> None:
        self.over = False
        self.trace: list[tuple[str, Any]] = []
        self._streams: dict[int, Stream] = {}
        self._descriptors: dict[int, int] = {}
        self._ipc: dict[bytes, tuple[int, int]] = {}
        self.default = Stream(self)
        self._entered: list[Stream] = []

    @property
    def current(self) -> Stream:
        return self._entered[-1] if self._entered else self.default

    def told(self, name: str, argument: Any) -> None:
        self.trace.append((name, argument))

    def number(self, stream: Stream) -> int:
        number = len(self._streams)
        self._streams[number] = stream
        return number

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self._entered.append(stream)
        try:
            with _Enqueueing(stream, self):
                yield
        finally:
            self._entered.pop()

    def install(self, monkeypatch: Any) -> None:
        """Put the card in place of torch's and the driver's."""
        for name in dir(self):
            if name.startswith("cu") and name != "current":
                monkeypatch.setattr(driver, name, _succeeding(getattr(self, name)))
        for module in (cuda_memory, cuda_snapshot, late_elements):
            monkeypatch.setattr(module, "as_bytes", _bytes_at)
        # Memory of the host is.
        monkeypatch.setattr(cuda_memory, "ALLOCATION_BYTES", 64)
        monkeypatch.setattr(cuda_driver, "_primary_context", lambda device: 0)
        for name, made in {
            "Stream": lambda device=None: Stream(self),
            "Event": lambda enable_timing=False: Event(self),
            "stream": self.stream,
            "current_stream": lambda device=None: self.current,
            "synchronize": lambda device=None: [stream.synchronize() for stream in list(self._streams.values())],
            "get_device_properties": lambda device: SimpleNamespace(L2_cache_size=L2_BYTES),
        }.items():
            monkeypatch.setattr(torch.cuda, name, made)

    def cuCtxPushCurrent(self, context: Any) -> None: ...

    def cuCtxPopCurrent(self) -> int:
        return 0

    def cuCtxSynchronize(self) -> None:
        for stream in list(self._streams.values()):
            stream.synchronize()

    def cuCtxResetPersistingL2Cache(self) -> None:
        self.told("reset L2", None)

    def cuMemGetAllocationGranularity(self, properties: Any, how: Any) -> int:
        return PAGE

    def cuMemCreate(self, nbytes: int, properties: Any, flags: int) -> int:
        assert nbytes % PAGE == 0
        fd = os.memfd_create("made up")
        os.ftruncate(fd, nbytes)
        # What another process wrote there before, and what must not be seen.
        os.pwrite(fd, b"\xee" * nbytes, 0)
        return fd

    def cuMemExportToShareableHandle(self, allocation: int, kind: Any, flags: int) -> int:
        return os.dup(allocation)

    def cuMemImportFromShareableHandle(self, fd: int, kind: Any) -> int:
        return os.dup(fd)

    def cuMemRelease(self, allocation: int) -> None:
        os.close(allocation)

    def cuMemAddressReserve(self, nbytes: int, alignment: int, address: int, flags: int) -> int:
        return int(_libc.mmap(None, nbytes, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0))

    def cuMemMap(self, address: int, nbytes: int, offset: int, allocation: int, flags: int) -> None:
        self._descriptors[address] = os.dup(allocation)

    def cuMemSetAccess(self, address: int, nbytes: int, access: Any, count: int) -> None:
        """Only now can it be touched."""
        fd = self._descriptors.pop(address)
        protection = mmap.PROT_READ | mmap.PROT_WRITE
        assert _libc.mmap(address, nbytes, protection, mmap.MAP_SHARED | _MAP_FIXED, fd, 0) == address
        os.close(fd)

    def cuMemUnmap(self, address: int, nbytes: int) -> None:
        hidden = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        assert _libc.mmap(address, nbytes, 0, hidden, -1, 0) == address

    def cuMemAddressFree(self, address: int, nbytes: int) -> None:
        assert _libc.munmap(address, nbytes) == 0

    def cuMemsetD8(self, address: int, value: int, nbytes: int) -> None:
        ctypes.memset(address, value, nbytes)

    def exported(self, tensor: torch.Tensor) -> tuple[bytes, int]:
        """Legacy IPC of a runner's tensor: handle and offset. What is exported is all memory of its storage."""
        storage = tensor.untyped_storage()
        handle = struct.pack("<Q", storage.data_ptr()).ljust(cuda_memory.HANDLE_BYTES, b"\0")
        self._ipc[handle] = (storage.data_ptr(), storage.nbytes())
        return handle, tensor.data_ptr() - storage.data_ptr()

    def cuIpcOpenMemHandle(self, handle: Any, flags: int) -> int:
        return self._ipc[bytes(handle.reserved)][0]

    def cuIpcCloseMemHandle(self, address: int) -> None: ...

    def cuPointerGetAttribute(self, attribute: Any, address: int) -> int:
        return 0

    def cuMemGetAddressRange(self, address: int) -> tuple[int, int]:
        return next(held for held in self._ipc.values() if held[0] == address)

    def cuMemcpyDtoH(self, target: bytearray, address: int, nbytes: int) -> None:
        ctypes.string_at(address, nbytes)

    def cuStreamCreate(self, flags: int) -> int:
        return Stream(self).cuda_stream

    def cuStreamDestroy(self, stream: int) -> None: ...

    def cuStreamSynchronize(self, stream: int) -> None:
        self._streams[stream].synchronize()

    def cuStreamWaitValue32(self, stream: int, address: int, value: int, how: int) -> None:
        def wait() -> None:
            while not self.over and not _satisfied(word(address), value, how):
                time.sleep(1e-5)
            self.told("waited", address)

        self._streams[stream].put(wait)

    def cuStreamWriteValue32(self, stream: int, address: int, value: int, how: int) -> None:
        def carry_out() -> None:
            write(address, value)
            self.told("wrote", (address, value))

        self._streams[stream].put(carry_out)

    def cuMemcpyDtoDAsync(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self._streams[stream].put(lambda: ctypes.memmove(target, source, nbytes) and None)


def _succeeding(function: Any) -> Any:
    def call(*arguments: Any) -> tuple[Any, ...]:
        value = function(*arguments)
        success = driver.CUresult.CUDA_SUCCESS
        if value is None:
            return (success,)
        return (success, *value) if isinstance(value, tuple) else (success, value)

    return call


def _satisfied(now: int, value: int, how: int) -> bool:
    if how == 1:
        return now == value
    assert how == 0
    return ctypes.c_int32(now - value).value >= 0


def _bytes_at(address: int, nbytes: int, device: int) -> torch.Tensor:
    return torch.frombuffer((ctypes.c_uint8 * nbytes).from_address(address), dtype=torch.uint8)
