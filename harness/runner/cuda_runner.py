"""A runner on a CUDA card: outputs whose memory the judge opens, behind the judge's gate."""

from __future__ import annotations

import torch

from harness.runner.devices import CommonRunner, copied_or_none, described
from harness.wire import layout
from harness.wire.cuda_driver import reset_persisting_l2
from harness.wire.messages import SharedBlock
from harness.wire.nodes import GATE_BLOCK, TensorRef


class CudaRunner(CommonRunner):
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
            own = tensor
            if not self._may_stay(tensor):
                copied = copied_or_none(tensor, lambda one: one.clone(memory_format=torch.contiguous_format))
                if copied is None:
                    return ref
                own = copied
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
        storage = tensor.untyped_storage().data_ptr()
        # What the judge shared cannot be shared again. To be told so by the driver, an exception, may keep a call's
        # other outputs from being freed.
        return storage not in self._forbidden and storage not in self._judges and self._is_alone(tensor)

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
