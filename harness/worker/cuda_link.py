"""The judge's end of a runner on a card: device memory by IPC, and the judge's own events around a gated burst."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Iterator
from typing import Any

import torch

from harness.config import Limits
from harness.worker import values
from harness.worker.cuda_gate import Gate
from harness.worker.cuda_memory import CudaBlock, CudaHandle, ImportRefused, Imports
from harness.worker.devices import GATE_BLOCK
from harness.worker.layout import BadReference
from harness.worker.link import POISON, Draw, Link, Reading
from harness.worker.messages import (
    Burst,
    Channel,
    CopyOnly,
    DeadlineExceeded,
    Enqueued,
    Finished,
    ProtocolError,
    SharedBlock,
)
from harness.worker.nodes import Node, TensorRef

FLUSH_FACTOR = 4
"""Times the card's L2 that are written before each burst."""


class CudaLink(Link):
    """CUDA: the judge's own events around a gate that the runner's stream waits behind, everything enqueued.

    `warm` leaves a burst's inputs in the L2, as far as they fit; otherwise each burst starts with none of them there.
    """

    # How long a runner may take to enqueue a burst behind the closed gate. One that synchronises never does.
    ENQUEUE_S = 2.0
    # The same, with a profiler to load before it.
    PROFILER_S = 15.0

    def __init__(self, channel: Channel, device: torch.device, limits: Limits, *, warm: bool) -> None:
        super().__init__(channel, device, limits)
        self._warm = warm
        self._owned: dict[int, CudaBlock] = {}
        # The runner's memory as the last burst left it. Opened anew for each burst: an allocation that stays open stays
        # taken on the card, and stands in the way of new ones.
        self._imports = Imports(device.index or 0)
        self._foreign: dict[int, SharedBlock] = {}
        self._returned: list[torch.Tensor] = []
        self._stream = torch.cuda.Stream(device)
        cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(FLUSH_FACTOR * cache_bytes, dtype=torch.uint8, device=device)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._add_block(GATE_BLOCK, Gate.BYTES)
        self._gate = Gate(self._blocks[GATE_BLOCK])

    def burst(
        self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None, profiled: bool = False
    ) -> Reading:
        deadline_s = deadline_s or self.limits.call_s
        reading, repeat = self._burst(draws, gated, deadline_s, profiled)
        if repeat:
            reading, repeat = self._burst(draws, gated, deadline_s, profiled)
        if repeat:
            raise ProtocolError("the runner will not keep the outputs of a burst apart")
        return reading

    def _burst(self, draws: list[Draw], gated: bool, deadline_s: float, profiled: bool) -> tuple[Reading, bool]:
        self._number += 1
        deadline = time.monotonic() + deadline_s
        self._poison()
        calls = self._calls(draws)
        request = Burst(number=self._number, calls=calls, blocks=self._unsent, gated=gated, profiled=profiled)
        self._settle()
        snapshot = Snapshot([])
        with self._released_on_failure():
            enqueued = None
            if gated:
                self._send(request)
                enqueued = self._enqueued_in_time(deadline, self.PROFILER_S if profiled else self.ENQUEUE_S)
                if enqueued is not None:
                    # Before the gate opens, so that the outputs can be looked at the moment it is over.
                    outputs = self._outputs(enqueued, len(draws))
                    snapshot = Snapshot(outputs)
                self._open(draws, snapshot)
            else:
                self._open(draws, snapshot)
                self._send(request)
            was_gated = enqueued is not None
            enqueued = enqueued or self._receive_burst(Enqueued, deadline)
            finished = self._await_end(deadline)
        if not was_gated:
            outputs = self._outputs(enqueued, len(draws))
        self._returned = values.tensors(outputs)
        reading = Reading(
            judge_us=self._start.elapsed_time(self._end) * 1e3,
            claimed_us=finished.claimed_us,
            outputs=outputs,
            gated=was_gated,
            late_share=snapshot.changed_share(self._stream),
            aliased=tuple(enqueued.aliased),
            profile=finished.profile,
        )
        return reading, enqueued.repeat

    def null_us(self, draws: list[Draw], *, gated: bool = True) -> float:
        self._number += 1
        deadline = time.monotonic() + self.limits.call_s
        request = CopyOnly(number=self._number, calls=[], blocks=self._unsent)
        with self._released_on_failure():
            if gated:
                self._send(request)
                self._receive_burst(Enqueued, deadline)
                self._open([], Snapshot([]))
            else:
                self._open([], Snapshot([]))
                self._send(request)
                self._receive_burst(Enqueued, deadline)
            self._await_end(deadline)
        return self._start.elapsed_time(self._end) * 1e3

    def close(self) -> None:
        torch.cuda.synchronize(self.device)
        super().close()
        self._returned.clear()
        self._imports.close()
        self._gate.close()
        for block in self._owned.values():
            block.close()

    def _enqueued_in_time(self, deadline: float, patience_s: float) -> Enqueued | None:
        """The runner's answer, or None where it did not come: the candidate waits for the device itself."""
        try:
            answer: Enqueued = self._receive_burst(Enqueued, min(deadline, time.monotonic() + patience_s))
        except DeadlineExceeded:
            return None
        return answer

    def _open(self, draws: list[Draw], snapshot: Snapshot) -> None:
        """On the judge's stream: inputs, a cold cache, start, gate, wait for the runner, end, a look at outputs."""
        with torch.cuda.stream(self._stream):
            # Writing the inputs leaves them in the L2; writing several times its size of something else evicts them. It
            # also keeps the stream busy while the host enqueues the rest, whose time is then not in the reading.
            if self._warm:
                self._flush.zero_()
            self._write_inputs(draws)
            if not self._warm:
                self._flush.zero_()
            self._start.record()
            self._gate.open(self._number, self._stream.cuda_stream)
            self._gate.wait_done(self._number, self._stream.cuda_stream)
            self._end.record()
            snapshot.take()

    def _await_end(self, deadline: float) -> Finished:
        """Wait for the device and for the runner's last word on the burst.

        Both at once: a runner whose context died never reports to the device, but it says so, or hangs up.
        """
        finished: Finished | None = None
        pause_s = 20e-6
        while not self._end.query():
            if time.monotonic() > deadline:
                raise DeadlineExceeded("the device did not finish the burst in time")
            if finished is None and select.select([self.channel], [], [], 0)[0]:
                finished = self._receive_burst(Finished, deadline)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 2e-3)
        return finished or self._receive_burst(Finished, deadline)

    @contextlib.contextmanager
    def _released_on_failure(self) -> Iterator[None]:
        """Free the judge's stream where the runner will never report the burst done."""
        try:
            yield
        except BaseException:
            self._gate.release(self._number)
            with torch.cuda.stream(self._stream):
                self._gate.open(self._number, self._stream.cuda_stream)
            raise

    def _poison(self) -> None:
        """Spoil the previous burst's outputs where they lie: memory handed out again must hold no answers."""
        for tensor in self._returned:
            if tensor.is_contiguous() and tensor.numel():
                tensor.view(-1).view(torch.uint8).fill_(POISON)
            else:
                tensor.fill_(POISON)
        self._returned = []
        self._imports.close()
        self._imports = Imports(self.device.index or 0)

    def _decode(self, node: Node, call: int) -> Any:
        def tensor(ref: TensorRef) -> Any:
            if ref.block == -1:
                return ref
            block = self._foreign.get(ref.block)
            if block is None:
                raise BadReference(f"block {ref.block} was never announced")
            handle = CudaHandle(block.cuda_handle, ref.offset, block.nbytes, self.device.index or 0)
            try:
                return self._imports.view(handle, values.dtype_named(ref.dtype), ref.shape, ref.stride)
            except ImportRefused as error:
                raise BadReference(str(error)) from error

        return values.decode(node, tensor)

    def _outputs(self, enqueued: Enqueued, calls: int) -> list[Any]:
        self._foreign |= {block.id: block for block in enqueued.blocks}
        return super()._outputs(enqueued, calls)

    def _reserve_outputs(self, nbytes: int) -> None:
        """Outputs stay where the candidate puts them."""

    def _add_block(self, number: int, nbytes: int) -> None:
        block = CudaBlock(max(nbytes, 1), self.device.index or 0)
        self._owned[number] = block
        self._blocks[number] = block.tensor
        self._unsent.append(
            SharedBlock(
                id=number,
                nbytes=block.tensor.numel(),
                cuda_handle=block.handle.handle,
                cuda_offset=block.handle.offset,
            )
        )

    def _settle(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()


class Snapshot:
    """Random elements of a burst's outputs, read right behind the end mark and again when everything is over.

    A candidate that returns before its work is done (on another stream, say) has elements that change in between.
    """

    ELEMENTS = 4096

    def __init__(self, outputs: list[Any]) -> None:
        self._flat = [_flat_bytes(tensor) for tensor in values.tensors(outputs) if tensor.numel()]
        self._places = [
            torch.randint(flat.numel(), (self.ELEMENTS,), device=flat.device, dtype=torch.int64) for flat in self._flat
        ]
        # Allocated beforehand: an allocation behind the end mark could wait for the device.
        self._seen = [torch.empty(self.ELEMENTS, dtype=flat.dtype, device=flat.device) for flat in self._flat]
        if self._flat:
            torch.cuda.current_stream().synchronize()

    def take(self) -> None:
        """Enqueue the first look on the current stream."""
        # The last call's output first: it has had the least time.
        for flat, places, seen in reversed(list(zip(self._flat, self._places, self._seen, strict=True))):
            torch.index_select(flat, 0, places, out=seen)

    def changed_share(self, stream: torch.cuda.Stream) -> float:
        """The share of sampled elements that are not now what they were."""
        if not self._flat:
            return 0.0
        with torch.cuda.stream(stream):
            pairs = zip(self._flat, self._places, self._seen, strict=True)
            changed = torch.stack([(flat[places] != seen).sum() for flat, places, seen in pairs])
            return int(changed.sum()) / (len(self._flat) * self.ELEMENTS)


def _flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """All memory between a tensor's first and last element, one-dimensional, in integers of its elements' size."""
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.as_strided((span,), (1,))
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return flat.view(integers.get(tensor.element_size(), torch.uint8))
