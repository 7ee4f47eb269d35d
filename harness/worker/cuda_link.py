"""The judge's end of a runner on a card: device memory by IPC, and the judge's own events around a gated burst."""

from __future__ import annotations

import contextlib
import functools
import select
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.config import Limits
from harness.worker import values
from harness.worker.channel import Channel, DeadlineExceeded
from harness.worker.cuda_gate import Gate
from harness.worker.cuda_memory import CudaBlock, CudaHandle, ImportRefused, Imports
from harness.worker.devices import GATE_BLOCK
from harness.worker.family import Family
from harness.worker.layout import BadReference
from harness.worker.link import POISON, Draw, LateOutput, Link, Reading
from harness.worker.messages import Burst, Enqueued, Finished, SharedBlock
from harness.worker.nodes import NOWHERE, Node, TensorRef

FLUSH_FACTOR = 4
"""Times the card's L2 that are written before each burst."""


class CudaLink(Link):
    """CUDA: the judge's own events around a gate that the runner's stream waits behind, everything enqueued.

    `warm` leaves a burst's inputs in the L2, as far as they fit; otherwise each burst starts with none of them there.
    """

    # How long a runner may take to enqueue a burst behind the closed gate. One that synchronises never does.
    ENQUEUE_S = 1.0
    # The same, with a profiler to load before it.
    PROFILER_S = 15.0

    def __init__(self, channel: Channel, family: Family, device: torch.device, limits: Limits, *, warm: bool) -> None:
        super().__init__(channel, family, device, limits)
        self._warm = warm
        self._owned: dict[int, CudaBlock] = {}
        # The runner's memory as the last burst left it. Opened anew for each burst: an allocation that stays open stays
        # taken on the card, and stands in the way of new ones.
        self._imports = Imports(device.index or 0)
        self._foreign: dict[int, SharedBlock] = {}
        self._snapshot = Snapshot([])
        self._stream = torch.cuda.Stream(device)
        cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(FLUSH_FACTOR * cache_bytes, dtype=torch.uint8, device=device)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        self._kernel = torch.zeros(1, device=device)
        # Loaded now: a kernel's first launch waits for the device, which may stand at a gate.
        self._kernel.add_(1)
        self._add_block(GATE_BLOCK, Gate.BYTES)
        self._gate = Gate(self._blocks[GATE_BLOCK])
        # In memory of the judge's own.
        self._hold = Gate(torch.zeros(Gate.BYTES, dtype=torch.uint8, device=device))

    def burst(
        self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None, profiled: bool = False
    ) -> Reading:
        self._begin()
        request = Burst(
            number=self._number,
            nonce=self._nonce,
            calls=self._calls(draws),
            blocks=self._unsent,
            gated=gated,
            profiled=profiled,
        )
        deadline = time.monotonic() + (deadline_s or self.limits.call_s)
        enqueued, was_gated, finished = self._timed(request, draws, gated, deadline)
        self._grant_repeat(enqueued)
        return Reading(
            judge_us=self._start.elapsed_time(self._end) * 1e3,
            claimed_us=finished.claimed_us,
            gated=was_gated,
            aliased=tuple(enqueued.aliased),
            profile=finished.profile,
        )

    def output(self, call: int) -> Any:
        return self._snapshot.output(call)

    def _begin(self) -> None:
        self._number_burst()
        self._poison()
        self._settle()

    def _timed(
        self, request: Burst, draws: list[Draw], gated: bool, deadline: float
    ) -> tuple[Enqueued, bool, Finished]:
        """One burst with the judge's events around it; whether all of it was enqueued before the gate opened.

        The outputs' places are known before the clock stops, so that a look at them is the next thing on the judge's
        stream. Ungated they come with the runner's answer, and the way there is in the reading, as in an empty burst's.
        """
        enqueued = None
        with self._released_on_failure():
            self.family.go()
            if gated:
                self._send(request)
                patience_s = self.PROFILER_S if request.profiled else self.ENQUEUE_S
                enqueued = self._enqueued_in_time(deadline, patience_s)
            was_gated = enqueued is not None
            if enqueued is None:
                self._open(draws, held=False)
                if not gated:
                    self._send(request)
                enqueued = self._receive_enqueued(deadline)
            self._snapshot = Snapshot(self._outputs(enqueued, len(request.calls)))
            if was_gated:
                self._open(draws, held=True)
            self._stop()
            finished = self._await_end(deadline)
            self.family.stop()
            return enqueued, was_gated, finished

    def close(self) -> None:
        torch.cuda.synchronize(self.device)
        super().close()
        self._snapshot = Snapshot([])
        self._imports.close()
        self._gate.close()
        self._hold.close()
        for block in self._owned.values():
            block.close()

    def _enqueued_in_time(self, deadline: float, patience_s: float) -> Enqueued | None:
        """The runner's answer, or None where it did not come: the candidate waits for the device itself."""
        try:
            return self._receive_enqueued(min(deadline, time.monotonic() + patience_s))
        except DeadlineExceeded:
            return None

    def _open(self, draws: list[Draw], *, held: bool) -> None:
        """On the judge's stream: inputs, a cold cache, start, gate.

        `held`: the stream stands before the start until the host has enqueued the end, too.
        """
        with torch.cuda.stream(self._stream):
            # Writing the inputs leaves them in the L2; writing several times its size of something else evicts them.
            if self._warm:
                self._flush.zero_()
            self._write_inputs(draws)
            if not self._warm:
                self._flush.zero_()
            if held:
                self._hold.hold(self._number, self._stream.cuda_stream)
            self._start.record()
            self._gate.open(self._number, self._stream.cuda_stream)

    def _stop(self) -> None:
        """On the judge's stream: wait for the runner to be done and off the card, end, a look at the outputs."""
        with torch.cuda.stream(self._stream):
            self._gate.wait_done(self._number, self._stream.cuda_stream)
            # A card runs one process's kernels at a time: where this one runs, none of the runner's does, on whatever
            # stream. An event alone is recorded without that.
            self._kernel.add_(1)
            self._end.record()
            self._hold.open_now(self._number)
            self._snapshot.take()

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
        # The look at the outputs may still be under way, which those who compare with it have to wait for.
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return finished or self._receive_burst(Finished, deadline)

    @contextlib.contextmanager
    def _released_on_failure(self) -> Iterator[None]:
        """Free the judge's stream where the runner will never report the burst done."""
        try:
            yield
        except BaseException:
            self._hold.open_now(self._number)
            self._gate.release(self._number)
            with torch.cuda.stream(self._stream):
                self._gate.open(self._number, self._stream.cuda_stream)
            raise

    def _poison(self) -> None:
        """Spoil the previous burst's outputs where they lie: memory handed out again must hold no answers."""
        for tensor in self._snapshot.tensors:
            if tensor.is_contiguous() and tensor.numel():
                tensor.view(-1).view(torch.uint8).fill_(POISON)
            else:
                tensor.fill_(POISON)
        self._snapshot = Snapshot([])
        self._imports.close()
        self._imports = Imports(self.device.index or 0)

    def _decode(self, node: Node, call: int) -> Any:
        def tensor(ref: TensorRef) -> Any:
            if ref.block == NOWHERE:
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
    """A burst's outputs where the candidate put them, and random elements of each as they were right behind the end.

    A candidate that returns before its work is done (on another stream, say) has elements that change in between.
    """

    ELEMENTS = 4096

    def __init__(self, outputs: list[Any]) -> None:
        self.tensors = values.tensors(outputs)
        self._outputs = outputs

        # The same places in all outputs of a size: drawn after the calls were enqueued, so that no runner knows them.
        @functools.cache
        def places(size: int, device: torch.device) -> torch.Tensor:
            return torch.randint(size, (self.ELEMENTS,), device=device)

        self._seen = {id(tensor): _Sample(tensor, places) for tensor in self.tensors if tensor.numel()}
        if self._seen:
            torch.cuda.current_stream().synchronize()

    def take(self) -> None:
        """Enqueue the first look on the current stream."""
        # The last call's output first: it has had the least time.
        for sample in reversed(self._seen.values()):
            sample.take()

    def output(self, call: int) -> Any:
        """The output of a call as it is now, copied. Raises LateOutput where it is not what was seen."""
        changed: list[float] = []

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.numel():
                return tensor
            copy, share = self._seen[id(tensor)].copied()
            changed.append(share)
            return copy

        output = values.mapped(self._outputs[call], copied)
        if any(changed):
            raise LateOutput(max(changed))
        return output


class _Sample:
    """Random elements of a tensor on a card, whose other elements and strides may be anything."""

    def __init__(self, tensor: torch.Tensor, places: Callable[[int, torch.device], torch.Tensor]) -> None:
        self._tensor = tensor
        self._flat = _flat_bytes(tensor)
        self._places = places(self._flat.numel(), tensor.device)
        # Allocated beforehand: an allocation behind the end mark could wait for the device.
        self._seen = torch.empty(len(self._places), dtype=self._flat.dtype, device=tensor.device)

    def take(self) -> None:
        torch.index_select(self._flat, 0, self._places, out=self._seen)

    def copied(self) -> tuple[torch.Tensor, float]:
        """The tensor as it is now, in memory of its own, and the share of elements seen that are not the same there."""
        flat = self._flat.clone()
        now = flat[self._places]
        share = 0.0 if torch.equal(now, self._seen) else (now != self._seen).float().mean().item()
        return flat.view(self._tensor.dtype).as_strided(self._tensor.shape, self._tensor.stride()), share


def _flat_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """All memory between a tensor's first and last element, one-dimensional, in integers of its elements' size."""
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.as_strided((span,), (1,))
    integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return flat.view(integers.get(tensor.element_size(), torch.uint8))
