"""What differs between the CPU and a CUDA card in a runner: opening shared memory, the gate, handing over outputs."""

from __future__ import annotations

import os
import time
from typing import Any, Protocol

import torch

from harness.worker import host_memory, layout, values
from harness.worker.cuda_driver import reset_persisting_l2
from harness.worker.messages import SharedBlock
from harness.worker.nodes import NOWHERE, OWN_MEMORY, Node, TensorRef

GATE_BLOCK = 0
"""The block that holds a CUDA gate's words."""


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
        """Hand over one call's output; part of the call."""

    def outputs(self) -> list[Node]:
        """Where the outputs are that were published since `begin`."""

    def end(self, number: int, whole_device: bool) -> None:
        """Stop the runner's clock and tell the judge's stream that the burst is over.

        `whole_device` waits for all streams first, where the host may wait: not behind a closed gate.
        """

    def new_blocks(self) -> list[SharedBlock]:
        """Blocks of the runner's own that `publish` has mentioned for the first time."""

    def must_repeat(self) -> bool:
        """Whether the burst's outputs are of no use, because calls shared a buffer; the next burst copies them."""

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


class HostRunner:
    """On the CPU, outputs stay where the candidate left them, and the judge reads them there."""

    synchronous = True

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self._blocks: dict[int, torch.Tensor] = {}
        self._started = self._claimed_us = 0.0
        self._outputs: list[Node] = []
        self._kept: list[torch.Tensor] = []
        self._seen: set[int] = set()
        self._forbidden: frozenset[int] = frozenset()
        self._always_copy = self._shared_buffer = False
        self._given: set[int] = set()
        host_memory.keep_what_is_freed()

    def open(self, blocks: list[SharedBlock], fds: list[int]) -> None:
        for block in blocks:
            self._blocks[block.id] = host_memory.attach(fds[block.fd])
            self._given.add(self._blocks[block.id].untyped_storage().data_ptr())
        for fd in fds:
            os.close(fd)

    def block(self, number: int) -> torch.Tensor:
        return self._blocks[number]

    def begin(self, number: int, outputs_forbidden: frozenset[int]) -> None:
        self._outputs = []
        self._kept.clear()
        self._seen.clear()
        self._forbidden = outputs_forbidden
        self._shared_buffer = False
        self._started = time.perf_counter()

    def publish(self, output: Any) -> None:
        addresses = set[int]()
        self._outputs.append(values.encode(output, lambda tensor: self._hand_over(tensor, addresses)))
        self._seen |= addresses

    def outputs(self) -> list[Node]:
        return self._outputs

    def _hand_over(self, tensor: torch.Tensor, addresses: set[int]) -> TensorRef:
        ref = described(tensor)
        if ref.kind != "Tensor" or ref.device != "cpu":
            return ref
        if not tensor.numel():
            return described(tensor, OWN_MEMORY)
        address = tensor.untyped_storage().data_ptr()
        spread = layout.span(tensor.shape, tensor.stride()) > layout.MOST_SPREAD * tensor.numel()
        copied = address in self._forbidden or spread or tensor.is_conj() or tensor.is_neg()
        if not copied:
            # What is copied anyway keeps calls apart. All inputs are in one block, and each call has its own.
            if address in self._given:
                address = tensor.data_ptr()
            addresses.add(address)
            if address in self._seen and not self._always_copy:
                self._shared_buffer = self._always_copy = True
        if self._always_copy or copied:
            tensor = tensor.clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg()
        self._kept.append(tensor)
        return described(tensor, OWN_MEMORY, tensor.data_ptr())

    def end(self, number: int, whole_device: bool) -> None:
        self._claimed_us = (time.perf_counter() - self._started) * 1e6

    def new_blocks(self) -> list[SharedBlock]:
        return []

    def must_repeat(self) -> bool:
        return self._shared_buffer

    def claimed_us(self) -> float:
        return self._claimed_us

    def synchronize(self) -> None:
        pass


class CudaRunner:
    """On a card, outputs stay where the candidate left them, and the judge opens their memory.

    The current stream is the legacy default stream, because kernels launched without naming a stream run there.
    """

    synchronous = False

    def __init__(self, spec: str) -> None:
        from harness.worker.cuda_gate import Gate

        self.device = torch.device(spec)
        torch.cuda.set_device(self.device)
        torch.cuda.init()
        self._blocks: dict[int, torch.Tensor] = {}
        self._gate_type = Gate
        self._gate: Gate | None = None
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._exported: dict[bytes, int] = {}
        self._fresh: list[SharedBlock] = []
        self._outputs: list[Node] = []
        self._kept: list[Any] = []
        self._seen: set[int] = set()
        self._forbidden: frozenset[int] = frozenset()
        self._always_copy = self._shared_buffer = False

    def open(self, blocks: list[SharedBlock], fds: list[int]) -> None:
        from harness.worker.cuda_memory import SharedMemory

        for block in blocks:
            self._blocks[block.id] = SharedMemory.open(fds[block.fd], block.nbytes, self.device.index or 0).tensor
            if block.id == GATE_BLOCK:
                self._gate = self._gate_type(self._blocks[block.id])
                self._gate.rehearse(torch.cuda.current_stream().cuda_stream)
        for fd in fds:
            os.close(fd)

    def block(self, number: int) -> torch.Tensor:
        return self._blocks[number]

    def begin(self, number: int, outputs_forbidden: frozenset[int]) -> None:
        self._outputs = []
        self._kept.clear()
        self._seen.clear()
        self._forbidden = outputs_forbidden
        self._shared_buffer = False
        reset_persisting_l2(self.device.index or 0)
        assert self._gate is not None
        self._gate.wait_open(number, torch.cuda.current_stream().cuda_stream)
        self._start.record()

    def publish(self, output: Any) -> None:
        self._outputs.append(values.encode(output, self._hand_over))
        self._seen |= _addresses(output)

    def outputs(self) -> list[Node]:
        return self._outputs

    def _hand_over(self, tensor: torch.Tensor) -> TensorRef:
        from harness.worker.cuda_memory import NotExportable, export

        ref = described(tensor)
        if ref.kind != "Tensor" or ref.device != "cuda":
            return ref
        address = tensor.untyped_storage().data_ptr() if tensor.numel() else 0
        if address in self._seen and not self._always_copy:
            self._shared_buffer = self._always_copy = True
        if self._always_copy or address in self._forbidden:
            tensor = tensor.clone()
        try:
            handle = export(tensor)
        except NotExportable:
            tensor = torch.empty_like(tensor, memory_format=torch.contiguous_format).copy_(tensor)
            handle = export(tensor)
        self._kept.append(tensor)
        if handle.handle not in self._exported:
            self._exported[handle.handle] = number = len(self._exported)
            self._fresh.append(SharedBlock(id=number, nbytes=handle.nbytes, cuda_handle=handle.handle))
        return described(tensor, self._exported[handle.handle], handle.offset)

    def end(self, number: int, whole_device: bool) -> None:
        if whole_device:
            torch.cuda.synchronize(self.device)
        self._end.record()
        assert self._gate is not None
        self._gate.mark_done(torch.cuda.current_stream().cuda_stream)

    def new_blocks(self) -> list[SharedBlock]:
        fresh, self._fresh = self._fresh, []
        return fresh

    def must_repeat(self) -> bool:
        return self._shared_buffer

    def claimed_us(self) -> float:
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e3

    def synchronize(self) -> None:
        torch.cuda.synchronize()


def _addresses(output: Any) -> set[int]:
    """Where the storages of an output's tensors begin."""
    return {
        tensor.untyped_storage().data_ptr()
        for tensor in values.tensors(output)
        if tensor.is_cuda and tensor.layout is torch.strided and tensor.numel()
    }
