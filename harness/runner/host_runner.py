"""A runner on the CPU: outputs that the judge reads where they lie, and the runner's own clock."""

from __future__ import annotations

import functools
import time
from typing import Any

import msgspec
import torch

from harness.runner.devices import CommonRunner, copied_or_none, described
from harness.wire import host_memory, layout, values
from harness.wire.messages import SharedBlock
from harness.wire.nodes import OWN_MEMORY, TensorRef


class HostRunner(CommonRunner):
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
            copied = copied_or_none(tensor, _copied)
            if copied is None:
                return described(tensor)
            tensor = copied
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
