"""Device memory shared between judge and runner, without a copy.

What the judge shares is a `SharedMemory`, whose descriptor travels beside a message: nobody can open it who was not
handed that. What a runner shares lies where the candidate's own allocator put it, and only legacy CUDA IPC can open
that: `export` makes the small `CudaHandle` to be sent as a message, `Imports.view` looks at the same bytes. What a
runner sends is a claim, down to the 64 plain bytes of the driver's handle: the driver takes an allocation's size and
place from them, so an edited handle would lead the judge's kernels to where nothing is mapped, which costs a process
its context. `Imports` therefore tries an allocation's ends in a way that cannot do harm. What no check can promise is
that the bytes stay as they are: whoever compares a runner's output takes a copy first.

Who may open what by IPC, as seen on driver 580: handles can be guessed, but memory that was never exported cannot be
opened; exported memory can be, by every process on the card, other candidates included. And IPC shares whole
allocations: a tensor of torch's caching allocator lies in a segment of 2 MiB or more together with its neighbours, and
all of them become readable and writable. So the judge never exports memory by IPC.

Nothing here touches CUDA, or needs cuda-bindings, before the first call: `CudaHandle` and the exceptions can be
imported on a machine without a GPU.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, Self

import msgspec
import torch

from harness.errors import AssayError
from harness.wire.cuda_driver import CudaCallFailed, driver_call, on_device, refusals_as

HANDLE_BYTES = 64
"""Size of the driver's CUipcMemHandle."""

_INT64_MAX = 2**63 - 1
# Whatever CUDA allocates begins at a multiple of this ("CUDA C++ Programming Guide", Device Memory Accesses).
ALLOCATION_BYTES = 256
_IPC_LAZY_ENABLE_PEER_ACCESS = 1  # the only flag cuIpcOpenMemHandle accepts


class NotExportable(AssayError, ValueError):
    """The tensor's memory cannot be opened by another process as it is; the message says why in one sentence."""


class ImportRefused(AssayError, ValueError):
    """The other side's claim does not hold: no such memory, or the view would reach outside of it."""


class CudaHandle(msgspec.Struct, frozen=True):
    """Where a tensor's data lies, in words that another process can open.

    `handle` names the allocation (64 bytes; all zero for a tensor without elements, which has no memory), `offset` is
    the distance in bytes from the allocation's start to the tensor's data, `nbytes` the size of the allocation in
    bytes as the sender sees it, `device` the sender's ordinal of the card: both sides must see the same cards.
    """

    handle: bytes
    offset: int
    nbytes: int
    device: int


def export(tensor: torch.Tensor) -> CudaHandle:
    """Name the memory of `tensor` so that another process can open it; the tensor must stay alive meanwhile.

    Shares the whole allocation around the tensor (see the module's text). Raises `NotExportable` for memory that IPC
    cannot share and for tensors whose memory does not hold their values, `CudaCallFailed` if the context is broken.
    """
    if not tensor.is_cuda:
        raise NotExportable(f"a tensor on {tensor.device} has no CUDA memory to share")
    if tensor.layout is not torch.strided:
        raise NotExportable(f"a tensor of layout {tensor.layout} is not one strided piece of memory")
    if tensor.is_conj() or tensor.is_neg():
        raise NotExportable("a lazily conjugated or negated tensor does not hold its values: resolve it first")
    device = tensor.get_device()
    if tensor.numel() == 0:
        return CudaHandle(bytes(HANDLE_BYTES), 0, 0, device)
    address = tensor.data_ptr()
    sentence = (
        "only plain cudaMalloc memory can be shared by CUDA IPC, not expandable segments, cudaMallocAsync, managed "
        "memory, or memory opened from another process"
    )
    with refusals_as(NotExportable, sentence), on_device(device):
        base, nbytes = driver_call("cuMemGetAddressRange", address)
        handle = driver_call("cuIpcGetMemHandle", base)
    return CudaHandle(bytes(handle.reserved), address - int(base), int(nbytes), device)


class _DeviceBytes:
    """Raw device memory, offered to torch by the public `__cuda_array_interface__` protocol."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),  # False: not read-only
            "strides": None,
            "version": 3,
        }


def as_bytes(address: int, nbytes: int, device: int) -> torch.Tensor:
    """A uint8 tensor over memory that torch does not own."""
    return torch.as_tensor(_DeviceBytes(address, nbytes), device=torch.device("cuda", device))


class SharedMemory:
    """Device memory that a descriptor leads to, mapped here: `nbytes` of uint8 as `tensor`.

    Of the creator's, on pages that hold nothing else, or another process's, opened. Raises `CudaCallFailed`, with
    CUDA_ERROR_OUT_OF_MEMORY when the card is full (memory that torch caches counts as taken: `torch.cuda.empty_cache()`
    first).
    """

    def __init__(self, allocation: Any, nbytes: int, device: int) -> None:
        """Takes over `allocation`, a handle of the driver's."""
        self._device = device
        self._address = 0
        self._size = _whole_pages(nbytes, device)
        with on_device(device):
            try:
                address = int(driver_call("cuMemAddressReserve", self._size, 0, 0, 0))
                try:
                    driver_call("cuMemMap", address, self._size, 0, allocation, 0)
                    driver_call("cuMemSetAccess", address, self._size, [_readable_and_writable(device)], 1)
                except BaseException:
                    driver_call("cuMemAddressFree", address, self._size)
                    raise
            finally:
                # A mapping keeps the memory by itself.
                driver_call("cuMemRelease", allocation)
        self._address = address
        self.tensor = as_bytes(address, nbytes, device)

    @classmethod
    def create(cls, nbytes: int, device: int = 0) -> tuple[Self, int]:
        """Zeroed memory, and its descriptor, which the caller closes.

        Zeroed, because fresh device memory may hold what this process wrote and freed before.
        """
        from cuda.bindings import driver

        if nbytes <= 0:
            raise ValueError(f"a shared block needs a positive size, not {nbytes}")
        with on_device(device):
            allocation = driver_call("cuMemCreate", _whole_pages(nbytes, device), _properties(device), 0)
            descriptor = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
            try:
                fd = int(driver_call("cuMemExportToShareableHandle", allocation, descriptor, 0))
            except BaseException:
                driver_call("cuMemRelease", allocation)
                raise
            try:
                memory = cls(allocation, nbytes, device)
                driver_call("cuMemsetD8", memory._address, 0, memory._size)
                driver_call("cuStreamSynchronize", 0)  # the fill runs on the default stream; others do not wait for it
            except BaseException:
                os.close(fd)
                raise
        return memory, fd

    @classmethod
    def open(cls, fd: int, nbytes: int, device: int = 0) -> Self:
        """The memory of another process behind `fd`, which stays the caller's. `nbytes` as it was created with."""
        from cuda.bindings import driver

        descriptor = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
        with on_device(device):
            allocation = driver_call("cuMemImportFromShareableHandle", fd, descriptor)
        return cls(allocation, nbytes, device)

    def close(self) -> None:
        """Unmap the memory; tensors over it must not be used any more. Idempotent.

        Waits for the device's work: release a stream of this process that stands at a gate before.
        """
        address, self._address = self._address, 0
        if address:
            with on_device(self._device):
                driver_call("cuCtxSynchronize")
                driver_call("cuMemUnmap", address, self._size)
                driver_call("cuMemAddressFree", address, self._size)


def _properties(device: int) -> Any:
    """What the driver is to know of shared memory on `device`."""
    from cuda.bindings import driver

    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.requestedHandleTypes = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = device
    return properties


def _readable_and_writable(device: int) -> Any:
    from cuda.bindings import driver

    access = driver.CUmemAccessDesc()
    access.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return access


def _whole_pages(nbytes: int, device: int) -> int:
    from cuda.bindings import driver

    least = driver.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    with on_device(device):
        page = int(driver_call("cuMemGetAllocationGranularity", _properties(device), least))
    return -(-nbytes // page) * page


def _extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Elements from the first to one past the last that a strided tensor touches. Raises `ImportRefused`."""
    if len(shape) != len(stride):
        raise ImportRefused(f"shape {tuple(shape)} and stride {tuple(stride)} differ in length")
    if any(not 0 <= number <= _INT64_MAX for number in (*shape, *stride)):
        raise ImportRefused(f"shape {tuple(shape)} or stride {tuple(stride)} holds a number out of range")
    count = math.prod(shape)
    if count > _INT64_MAX:
        raise ImportRefused(f"shape {tuple(shape)} has more elements than can be counted")
    if count == 0:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


class Imports:
    """The other process's allocations, opened on one device: each once, on first sight, until `close`.

    Meant to be short-lived, one for the outputs of one burst (opening and closing takes 0.1 to 0.5 ms an allocation).
    Until then memory stays readable after its owner freed it or died, but also stays taken on the card, and the owner's
    new allocations that overlap it are refused. At most `limit` allocations are opened. Not for use from several
    threads at once.
    """

    def __init__(self, device: int = 0, limit: int = 4096) -> None:
        self._device = device
        self._limit = limit
        self._opened: dict[bytes, tuple[int, torch.Tensor]] = {}  # handle -> address from the driver, all its bytes
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def view(self, handle: CudaHandle, dtype: torch.dtype, shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
        """The claimed tensor, over the other process's memory; `stride` in elements, as torch has it.

        Valid until `close`. The bytes are the other process's and may change at any time. In a `torch.bool` view they
        may be other than 0 and 1, which torch's kernels do not expect: look at untrusted ones as `torch.uint8`.

        Raises `ImportRefused` if the handle opens nothing on this device or the view would reach outside of the
        allocation, `CudaCallFailed` if the driver fails for a reason of its own, `RuntimeError` after `close`.
        """
        if handle.device != self._device:
            raise ImportRefused(f"the memory is said to be on device {handle.device}, expected {self._device}")
        extent = _extent(shape, stride)
        if extent == 0:
            try:
                return torch.empty_strided(shape, stride, dtype=dtype, device=torch.device("cuda", self._device))
            except RuntimeError as error:
                raise ImportRefused(f"no tensor has these sizes: {error}") from error
        whole = self.allocation(handle.handle)
        start, stop = handle.offset, handle.offset + extent * dtype.itemsize
        if start < 0 or start % dtype.itemsize or stop > whole.numel():
            raise ImportRefused(f"bytes {start} to {stop} as {dtype} do not fit an allocation of {whole.numel()} bytes")
        return whole[start:stop].view(dtype).as_strided(shape, stride)

    def allocation(self, name: bytes) -> torch.Tensor:
        """All bytes of the allocation that the 64-byte handle `name` stands for, as uint8. Errors as for `view`."""
        if self._closed:
            raise RuntimeError("these imports are closed")
        known = self._opened.get(name)
        if known is not None:
            return known[1]
        if len(name) != HANDLE_BYTES:
            raise ImportRefused(f"a memory handle has {HANDLE_BYTES} bytes, not {len(name)}")
        if len(self._opened) >= self._limit:
            raise ImportRefused(f"more than {self._limit} allocations")
        from cuda.bindings import driver

        handle = driver.CUipcMemHandle()
        handle.reserved = name
        sentence = "the handle names no memory that this process can open"
        with refusals_as(ImportRefused, sentence), on_device(self._device):
            address = int(driver_call("cuIpcOpenMemHandle", handle, _IPC_LAZY_ENABLE_PEER_ACCESS))
            try:
                whole = self._inspect(address)
            except BaseException:
                driver_call("cuIpcCloseMemHandle", address)
                raise
        self._opened[name] = address, whole
        return whole

    def _inspect(self, address: int) -> torch.Tensor:
        """The bytes of an allocation just opened at `address`, having made sure of device and size."""
        from cuda.bindings import driver

        ordinal = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        device = int(driver_call("cuPointerGetAttribute", ordinal, address))
        if device != self._device:
            raise ImportRefused(f"the memory is on device {device}, expected {self._device}")
        base, size = driver_call("cuMemGetAddressRange", address)
        nbytes = int(size) - (address - int(base))
        if nbytes <= 0:
            raise ImportRefused("the handle leads to an allocation without a size")
        if address % ALLOCATION_BYTES:
            # A kernel that takes several bytes at such an address breaks the context as well.
            raise ImportRefused("the handle leads to an address where no allocation begins")
        # The driver's answer repeats the handle's claim. A kernel that reads past the real end breaks the context for
        # good, whereas a copy to the host is checked against what is mapped before it starts, and refused.
        for end in (address, address + nbytes - 1):
            driver_call("cuMemcpyDtoH", bytearray(1), end, 1)
        return as_bytes(address, nbytes, self._device)

    def close(self) -> None:
        """Unmap everything; no view may be used any more. Idempotent.

        Waits for the device's work: release a stream of this process that stands at a gate before. Tries every
        allocation, then raises the first `CudaCallFailed`, if any.
        """
        self._closed = True
        failures: list[CudaCallFailed] = []
        with on_device(self._device):
            while self._opened:
                _, (address, _) = self._opened.popitem()
                try:
                    driver_call("cuIpcCloseMemHandle", address)
                except CudaCallFailed as failure:
                    failures.append(failure)
        if failures:
            raise failures[0]
