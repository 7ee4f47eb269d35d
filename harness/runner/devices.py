"""What differs between the CPU and a CUDA card in a runner: opening shared memory, the gate, handing over outputs."""

from __future__ import annotations

import bisect
import functools
import os
import time
from typing import Any, Protocol

import msgspec
import torch

from harness.wire import host_memory, layout, values
from harness.wire.cuda_driver import reset_persisting_l2
from harness.wire.messages import SharedBlock
from harness.wire.nodes import GATE_BLOCK, NOWHERE, OWN_MEMORY, Node, TensorRef


class RunnerDevice(Protocol):
    """One runner's side of the protocol on one kind of device."""

    device: torch.device
    # Whether a call is over when it returns.
    synchronous: bool

    def open(self, blocks: list[SharedBlock], fds: list[int]) -> None:
        """Map the judge's blocks; takes over the descriptors."""

    def block(self, number: int) -> torch.Tensor:
        """The bytes of an open block (uint8, one-dimensional)."""

    def begin(self, number: int, outputs_forbidden: frozenset[int]) -> None:
        """Wait for the judge's gate and start the runner's own clock.

        Outputs in the storages at the given addresses are not to be handed over in place.
        """

    def publish(self, output: Any) -> None:
        """Hand over one call's output, now or at `end`; part of the call."""

    def outputs(self) -> list[Node]:
        """Where the outputs are that were published since `begin`."""

    def end(self, number: int, whole_device: bool) -> None:
        """Stop the runner's clock and tell the judge's stream that the burst is over.

        `whole_device` waits for all streams first, where the host may wait: not behind a closed gate.
        """

    def new_blocks(self) -> list[SharedBlock]:
        """Blocks of the runner's own that `publish` has mentioned for the first time."""

    def must_repeat(self) -> bool:
        """Whether the burst's outputs are of no use, because calls share a buffer; later bursts copy them."""

    def claimed_us(self) -> float: ...

    def synchronize(self) -> None: ...


def runner_device(spec: str) -> RunnerDevice:
    """The runner's side for torch's device `spec`."""
    return HostRunner() if spec == "cpu" else CudaRunner(spec)


def described(tensor: torch.Tensor, block: int = NOWHERE, offset: int = 0) -> TensorRef:
    """A reference that tells what a tensor is; it lies somewhere only if a block is given."""
    strided = tensor.layout is torch.strided
    kind = "Tensor" if type(tensor) in (torch.Tensor, torch.nn.Parameter) else type(tensor).__qualname__
    return TensorRef(
        block=block,
        offset=offset,
        dtype=values.dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=tuple(tensor.stride()) if strided else (0,) * tensor.dim(),
        device=tensor.device.type,
        kind=kind[:200] if strided else str(tensor.layout).removeprefix("torch."),
    )


class _Runner:
    """What both kinds of device have in common: the judge's blocks, and outputs that have to stay apart."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._blocks: dict[int, torch.Tensor] = {}
        self._judges: set[int] = set()
        self._outputs: list[Node] = []
        # What keeps outputs alive until they have been looked at.
        self._kept: list[torch.Tensor] = []
        # Those of each call that are handed over where they lie.
        self._in_place: list[list[torch.Tensor]] = []
        # Where the call's outputs lie so far, from the first byte to behind the last, in order.
        self._taken: list[tuple[int, int]] = []
        self._always_copy = False

    def open(self, blocks: list[SharedBlock], fds: list[int]) -> None:
        for block in blocks:
            self._blocks[block.id] = self._opened(fds[block.fd], block)
        self._judges = {block.untyped_storage().data_ptr() for block in self._blocks.values()}
        for fd in fds:
            os.close(fd)

    def _opened(self, fd: int, block: SharedBlock) -> torch.Tensor:
        raise NotImplementedError

    def block(self, number: int) -> torch.Tensor:
        return self._blocks[number]

    def outputs(self) -> list[Node]:
        return self._outputs

    def publish(self, output: Any) -> None:
        self._in_place.append([])
        self._taken = []
        self._outputs.append(values.encode(output, self._hand_over))

    def must_repeat(self) -> bool:
        """From the first time on that this is true, every output is copied."""
        self._always_copy |= (shared := self._shared() or self._held_elsewhere())
        return shared

    def _shared(self) -> bool:
        """Whether two calls returned the same memory, of which only the last output is left."""
        if len(self._in_place) < 2:
            return False
        calls = [{tensor.untyped_storage().data_ptr() for tensor in call} for call in self._in_place]
        return len(set[int]().union(*calls)) < sum(map(len, calls))

    def _held_elsewhere(self) -> bool:
        """Whether the candidate keeps what it returned, so that any later call may change it.

        On a card the judge spoils outputs before they are written, too, and a table that is used again would be lost.
        """
        storages = [tensor.untyped_storage() for call in self._in_place for tensor in call]
        ours: dict[int, int] = {}
        for storage in storages:
            ours[storage._cdata] = ours.get(storage._cdata, 0) + 1
        # A storage that Python looks at is used once more.
        return any(torch._C._storage_Use_Count(number) > uses + 1 for number, uses in ours.items())

    def _start_over(self) -> None:
        self._outputs = []
        self._kept.clear()
        self._in_place.clear()

    def _hand_over(self, tensor: torch.Tensor) -> TensorRef:
        raise NotImplementedError

    def _is_alone(self, tensor: torch.Tensor) -> bool:
        """Whether no output of the call before it lies where this one does; from then on it does."""
        first = tensor.data_ptr()
        last = first + layout.span(tensor.shape, tensor.stride()) * tensor.element_size()
        place = bisect.bisect_left(self._taken, (first, last))
        before, behind = self._taken[place - 1 : place], self._taken[place : place + 1]
        if (before and before[0][1] > first) or (behind and behind[0][0] < last):
            return False
        self._taken.insert(place, (first, last))
        return True

    def _stays(self, tensor: torch.Tensor) -> None:
        # Another tensor over the same memory, so that who else holds it can be told.
        self._kept.append(tensor.detach())
        # An input that is returned lies where no other call's does.
        if tensor.untyped_storage().data_ptr() not in self._judges:
            self._in_place[-1].append(self._kept[-1])


class HostRunner(_Runner):
    """On the CPU, outputs stay where the candidate left them, and the judge reads them there.

    All that is done for a call is on the clock: between calls outputs are only kept, and after the last one described.
    """

    synchronous = True

    def __init__(self) -> None:
        super().__init__(torch.device("cpu"))
        self._started = self._claimed_us = 0.0
        self._returned: list[Any] = []
        host_memory.keep_what_is_freed()

    def open(self, blocks: list[SharedBlock], fds: list[int]) -> None:
        super().open(blocks, fds)
        # The last burst's outputs have been read. Given back here, which is before the clock.
        self._start_over()

    def _opened(self, fd: int, block: SharedBlock) -> torch.Tensor:
        return host_memory.attach(fd)

    def begin(self, number: int, outputs_forbidden: frozenset[int]) -> None:
        # Nobody poisons outputs here. Parameters handed over are held by the model, and copied for that.
        self._started = time.perf_counter()

    def publish(self, output: Any) -> None:
        if type(output) is not torch.Tensor or self._always_copy:
            # A list or a dict may be another one after the next call.
            output = values.mapped(output, self._before_the_next_call)
        self._returned.append(output)

    def _before_the_next_call(self, tensor: torch.Tensor) -> torch.Tensor:
        return _copied(tensor) if self._always_copy and _is_plain(tensor) else tensor

    def _hand_over(self, tensor: torch.Tensor) -> TensorRef:
        if not _is_plain(tensor):
            return described(tensor)
        if not tensor.numel():
            return described(tensor, OWN_MEMORY)
        self._stays(tensor)
        place = _placed(tensor)
        if place is None or not self._is_alone(tensor):
            tensor = _copied(tensor)
            self._kept.append(tensor)
            place = described(tensor, OWN_MEMORY)
        return msgspec.structs.replace(place, offset=tensor.data_ptr())

    def end(self, number: int, whole_device: bool) -> None:
        for output in self._returned:
            super().publish(output)
        self._returned.clear()
        self._claimed_us = (time.perf_counter() - self._started) * 1e6

    def new_blocks(self) -> list[SharedBlock]:
        return []

    def claimed_us(self) -> float:
        return self._claimed_us

    def synchronize(self) -> None:
        pass


def _is_plain(tensor: torch.Tensor) -> bool:
    """Whether it is a tensor of PyTorch's own in the host's memory, which can be read by its address."""
    kinds = (torch.Tensor, torch.nn.Parameter)
    return type(tensor) in kinds and tensor.layout is torch.strided and tensor.device.type == "cpu"


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()


def _placed(tensor: torch.Tensor) -> TensorRef | None:
    """How a plain tensor is told where it lies; None where it has to be copied."""
    if tensor.is_conj() or tensor.is_neg():
        return None
    return _told(tensor.dtype, tensor.shape, tensor.stride())


@functools.lru_cache(maxsize=64)
def _told(dtype: torch.dtype, shape: tuple[int, ...], stride: tuple[int, ...]) -> TensorRef | None:
    """Each form is told once: a call's outputs have that of the last one's."""
    torn = layout.span(shape, stride) > layout.MOST_SPREAD * torch.Size(shape).numel()
    if torn or not layout.apart(shape, stride):
        return None
    name = values.dtype_name(dtype)
    return TensorRef(block=OWN_MEMORY, offset=0, dtype=name, shape=tuple(shape), stride=stride, device="cpu")


class CudaRunner(_Runner):
    """On a card, outputs stay where the candidate left them, and the judge opens their memory.

    The current stream is the legacy default stream, because kernels launched without naming a stream run there.
    """

    synchronous = False

    def __init__(self, spec: str) -> None:
        from harness.wire.cuda_gate import Gate

        super().__init__(torch.device(spec))
        torch.cuda.set_device(self.device)
        torch.cuda.init()
        self._gate_type = Gate
        self._gate: Gate | None = None
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._forbidden: frozenset[int] = frozenset()
        self._exported: dict[bytes, int] = {}
        self._fresh: list[SharedBlock] = []

    def _opened(self, fd: int, block: SharedBlock) -> torch.Tensor:
        from harness.wire.cuda_memory import SharedMemory

        opened = SharedMemory.open(fd, block.nbytes, self.device.index or 0).tensor
        if block.id == GATE_BLOCK:
            self._gate = self._gate_type(opened)
            self._gate.rehearse(torch.cuda.current_stream().cuda_stream)
        return opened

    def begin(self, number: int, outputs_forbidden: frozenset[int]) -> None:
        self._start_over()
        self._forbidden = outputs_forbidden
        reset_persisting_l2(self.device.index or 0)
        assert self._gate is not None
        self._gate.wait_open(number, torch.cuda.current_stream().cuda_stream)
        self._start.record()

    def _hand_over(self, tensor: torch.Tensor) -> TensorRef:
        from harness.wire.cuda_memory import NotExportable, export

        ref = described(tensor)
        if ref.kind != "Tensor" or ref.device != "cuda":
            return ref
        try:
            own = tensor if self._may_stay(tensor) else tensor.clone(memory_format=torch.contiguous_format)
            handle = export(own)
        except NotExportable:
            own = torch.empty_like(tensor, memory_format=torch.contiguous_format).copy_(tensor)
            handle = export(own)
        if own is tensor and own.numel():
            self._stays(own)
        else:
            self._kept.append(own)
        if handle.handle not in self._exported:
            self._exported[handle.handle] = number = len(self._exported)
            self._fresh.append(SharedBlock(id=number, nbytes=handle.nbytes, cuda_handle=handle.handle))
        return described(own, self._exported[handle.handle], handle.offset)

    def _may_stay(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor may be handed over where it lies: not where a copy would be another thing to write to."""
        if self._always_copy or not layout.apart(tensor.shape, tensor.stride()):
            return False
        return tensor.untyped_storage().data_ptr() not in self._forbidden and self._is_alone(tensor)

    def end(self, number: int, whole_device: bool) -> None:
        if whole_device:
            torch.cuda.synchronize(self.device)
        self._end.record()
        assert self._gate is not None
        self._gate.mark_done(torch.cuda.current_stream().cuda_stream)

    def new_blocks(self) -> list[SharedBlock]:
        fresh, self._fresh = self._fresh, []
        return fresh

    def claimed_us(self) -> float:
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e3

    def synchronize(self) -> None:
        torch.cuda.synchronize()
