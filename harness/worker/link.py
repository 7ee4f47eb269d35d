"""The judge's end of one runner: prepare it, put inputs before it, time its bursts, look at what it returned."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from harness.config import Limits
from harness.worker import host_memory, values
from harness.worker.devices import GATE_BLOCK
from harness.worker.layout import BadReference, contiguous, place, view
from harness.worker.messages import (
    Burst,
    Call,
    CandidateSource,
    Channel,
    CopyOnly,
    DeadlineExceeded,
    Enqueued,
    Failed,
    Finished,
    Prepare,
    ProtocolError,
    Ready,
    SharedBlock,
)
from harness.worker.nodes import Node, TensorRef

POISON = 0xFF
"""Fills outputs before each burst: NaN in every floating type, an unlikely number in the others."""

FLUSH_FACTOR = 4
"""Times the card's L2 that are written before each burst."""

STATE_BLOCK, INPUT_BLOCK, OUTPUT_BLOCK = 1, 2, 3


class RunnerFailed(Exception):
    """The candidate raised, by its runner's own account."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's own copy of one call's inputs, and the seed that its generator starts from."""

    inputs: tuple[Any, ...]
    seed: int


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One burst: microseconds by the judge's clock (fixed cost included) and by the runner's claim, outputs by call.

    An output leaf is a tensor in shared memory, a scalar, or what is known of a thing that could not be handed over
    (`TensorRef`, `Opaque`). `gated` tells whether the device waited for the judge with everything already enqueued.
    """

    judge_us: float
    claimed_us: float
    outputs: list[Any]
    gated: bool


class Link:
    """One runner, from the judge's side. Subclasses hold the clock of their kind of device."""

    def __init__(self, channel: Channel, device: torch.device, limits: Limits) -> None:
        self.channel = channel
        self.device = device
        self.limits = limits
        self.calls_reserved = 0
        self._number = 0
        self._input_refs: list[list[TensorRef]] = []
        self._output_refs: list[list[TensorRef]] = []
        self._blocks: dict[int, torch.Tensor] = {}
        self._unsent: list[SharedBlock] = []
        self._unsent_fds: list[int] = []

    def prepare(
        self, source: CandidateSource, precision: str, init_args: Any, init_seed: int, state: dict[str, torch.Tensor]
    ) -> Ready:
        """Have the runner construct its class and take over `state`. Raises as `_receive` does."""
        given = values.tensors(init_args)
        refs, nbytes = place([*state.values(), *given], STATE_BLOCK)
        self._add_block(STATE_BLOCK, nbytes)
        for ref, tensor in zip(refs, [*state.values(), *given], strict=True):
            view(self._blocks[STATE_BLOCK], ref).copy_(tensor)
        self._settle()
        init_refs = iter(refs[len(state) :])
        request = Prepare(
            source=source,
            device=str(self.device),
            precision=precision,
            init_args=values.encode(init_args, lambda _: next(init_refs)),
            init_seed=init_seed,
            state=dict(zip(state, refs, strict=False)),
            blocks=self._unsent,
        )
        self._send(request)
        return self._receive(Ready, self.limits.load_s)

    def reserve(self, calls: int, inputs: tuple[Any, ...], outputs: Any) -> None:
        """Make room for bursts of up to `calls` calls with inputs and outputs like these."""
        start = 0
        self._input_refs, self._output_refs = [], []
        for _ in range(calls):
            refs, start = place(values.tensors(inputs), INPUT_BLOCK, start)
            self._input_refs.append(refs)
        self._add_block(INPUT_BLOCK, start)
        start = 0
        for _ in range(calls):
            refs, start = place(values.tensors(outputs), OUTPUT_BLOCK, start)
            self._output_refs.append([contiguous(ref) for ref in refs])
        self._reserve_outputs(start)
        self.calls_reserved = calls

    def burst(self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None) -> Reading:
        """Time one burst on these inputs, which the runner sees only when the clock starts."""
        raise NotImplementedError

    def null_us(self, draws: list[Draw], *, gated: bool = True) -> float:
        """The judge's reading of a burst that calls nothing: the fixed cost. Only a trusted runner may be asked."""
        raise NotImplementedError

    def seen_inputs(self, call: int) -> list[torch.Tensor]:
        """The inputs of call number `call` as they lie in shared memory now."""
        return [view(self._blocks[INPUT_BLOCK], ref) for ref in self._input_refs[call]]

    def close(self) -> None:
        self.channel.close()
        self._close_fds()
        self._blocks.clear()

    def _write_inputs(self, draws: list[Draw]) -> None:
        for refs, draw in zip(self._input_refs, draws, strict=False):
            for ref, tensor in zip(refs, values.tensors(draw.inputs), strict=True):
                view(self._blocks[INPUT_BLOCK], ref).copy_(tensor)

    def _calls(self, draws: list[Draw]) -> list[Call]:
        calls = []
        for refs, destinations, draw in zip(self._input_refs, self._output_refs, draws, strict=False):
            waiting = iter(refs)
            inputs = values.encode(draw.inputs, lambda _, waiting=waiting: next(waiting))  # type: ignore[misc]
            calls.append(Call(inputs=inputs, seed=draw.seed, outputs=destinations))
        if len(calls) != len(draws):
            raise ValueError(f"{len(draws)} calls in a burst; {self.calls_reserved} are reserved")
        return calls

    def _send(self, message: Prepare | Burst | CopyOnly) -> None:
        self.channel.send(message, tuple(self._unsent_fds))
        self._close_fds()

    def _close_fds(self) -> None:
        for fd in self._unsent_fds:
            os.close(fd)
        self._unsent, self._unsent_fds = [], []

    def _receive(self, kind: Any, timeout_s: float) -> Any:
        """The next message, which must be a `kind`. Raises RunnerFailed, PeerGone, DeadlineExceeded, ProtocolError."""
        message, fds = self.channel.receive(timeout_s)
        for fd in fds:
            os.close(fd)
        if isinstance(message, Failed):
            raise RunnerFailed(message)
        if not isinstance(message, kind):
            raise ProtocolError(f"expected {kind.__name__}, got {type(message).__name__}")
        return message

    def _receive_burst(self, kind: Any, deadline: float) -> Any:
        message = self._receive(kind, max(deadline - time.monotonic(), 0.001))
        if message.number != self._number:
            raise ProtocolError(f"an answer to burst {message.number}, not {self._number}")
        return message

    def _outputs(self, enqueued: Enqueued, calls: int) -> list[Any]:
        if len(enqueued.outputs) != calls:
            raise ProtocolError(f"{len(enqueued.outputs)} outputs for {calls} calls")
        try:
            return [self._decode(node, call) for call, node in enumerate(enqueued.outputs)]
        except (BadReference, ValueError) as error:
            raise ProtocolError(f"an output that lies nowhere: {error}") from error

    def _decode(self, node: Node, call: int) -> Any:
        raise NotImplementedError

    def _reserve_outputs(self, nbytes: int) -> None:
        raise NotImplementedError

    def _add_block(self, number: int, nbytes: int) -> None:
        raise NotImplementedError

    def _settle(self) -> None:
        """Wait until what the judge wrote is there for the runner to see."""


class HostLink(Link):
    """CPU: the judge's host clock around a message there and a message back."""

    def burst(self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None) -> Reading:
        self._number += 1
        self._write_inputs(draws)
        self._blocks[OUTPUT_BLOCK].fill_(POISON)
        request = Burst(number=self._number, calls=self._calls(draws), blocks=self._unsent)
        judge_us, enqueued, finished = self._timed(request, deadline_s or self.limits.call_s)
        return Reading(
            judge_us=judge_us,
            claimed_us=finished.claimed_us,
            outputs=self._outputs(enqueued, len(draws)),
            gated=False,
        )

    def null_us(self, draws: list[Draw], *, gated: bool = True) -> float:
        self._number += 1
        self._blocks[OUTPUT_BLOCK].fill_(POISON)
        request = CopyOnly(number=self._number, calls=self._calls(draws), blocks=self._unsent)
        return self._timed(request, self.limits.call_s)[0]

    def _timed(self, request: Burst | CopyOnly, deadline_s: float) -> tuple[float, Enqueued, Finished]:
        deadline = time.monotonic() + deadline_s
        started = time.perf_counter()
        self._send(request)
        enqueued = self._receive_burst(Enqueued, deadline)
        judge_us = (time.perf_counter() - started) * 1e6
        return judge_us, enqueued, self._receive_burst(Finished, deadline)

    def _decode(self, node: Node, call: int) -> Any:
        allowed = set(self._output_refs[call])

        def tensor(ref: TensorRef) -> Any:
            if ref.block == -1:
                return ref
            # Only this call's own places count: an output cannot be an input or another call's output.
            if ref not in allowed:
                raise BadReference("outside the places given to this call")
            return view(self._blocks[OUTPUT_BLOCK], ref)

        return values.decode(node, tensor)

    def _reserve_outputs(self, nbytes: int) -> None:
        self._add_block(OUTPUT_BLOCK, nbytes)

    def _add_block(self, number: int, nbytes: int) -> None:
        fd, block = host_memory.create(nbytes)
        self._blocks[number] = block
        self._unsent.append(SharedBlock(id=number, nbytes=block.numel(), fd=len(self._unsent_fds)))
        self._unsent_fds.append(fd)


class CudaLink(Link):
    """CUDA: the judge's own events around a gate that the runner's stream waits behind, everything enqueued."""

    # How long a runner may take to enqueue a burst behind the closed gate. One that synchronises never does.
    ENQUEUE_S = 2.0

    def __init__(self, channel: Channel, device: torch.device, limits: Limits) -> None:
        from harness.worker.cuda_gate import Gate
        from harness.worker.cuda_memory import CudaBlock, Imports

        super().__init__(channel, device, limits)
        self._block_type = CudaBlock
        self._owned: dict[int, CudaBlock] = {}
        self._imports_type = Imports
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

    def burst(self, draws: list[Draw], *, gated: bool = True, deadline_s: float | None = None) -> Reading:
        reading, repeat = self._burst(draws, gated, deadline_s or self.limits.call_s)
        if repeat:
            reading, repeat = self._burst(draws, gated, deadline_s or self.limits.call_s)
        if repeat:
            raise ProtocolError("the runner will not keep the outputs of a burst apart")
        return reading

    def _burst(self, draws: list[Draw], gated: bool, deadline_s: float) -> tuple[Reading, bool]:
        self._number += 1
        deadline = time.monotonic() + deadline_s
        self._poison()
        request = Burst(number=self._number, calls=self._calls(draws), blocks=self._unsent)
        self._settle()
        with self._released_on_failure():
            if gated:
                self._send(request)
                enqueued = self._enqueued_in_time(deadline)
                was_gated = enqueued is not None
                self._open(draws)
            else:
                was_gated, enqueued = False, None
                self._open(draws)
                self._send(request)
            enqueued = enqueued or self._receive_burst(Enqueued, deadline)
            self._await(deadline)
            finished = self._receive_burst(Finished, deadline)
        outputs = self._outputs(enqueued, len(draws))
        self._returned = values.tensors(outputs)
        reading = Reading(
            judge_us=self._start.elapsed_time(self._end) * 1e3,
            claimed_us=finished.claimed_us,
            outputs=outputs,
            gated=was_gated,
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
                self._open([])
            else:
                self._open([])
                self._send(request)
                self._receive_burst(Enqueued, deadline)
            self._await(deadline)
            self._receive_burst(Finished, deadline)
        return self._start.elapsed_time(self._end) * 1e3

    def close(self) -> None:
        torch.cuda.synchronize(self.device)
        super().close()
        self._returned.clear()
        self._imports.close()
        self._gate.close()
        for block in self._owned.values():
            block.close()

    def _enqueued_in_time(self, deadline: float) -> Enqueued | None:
        """The runner's answer, or None where it did not come: the candidate waits for the device itself."""
        try:
            answer: Enqueued = self._receive_burst(Enqueued, min(deadline, time.monotonic() + self.ENQUEUE_S))
        except DeadlineExceeded:
            return None
        return answer

    def _open(self, draws: list[Draw]) -> None:
        """On the judge's stream: fresh inputs, a cold cache, start, gate, wait for the runner, end."""
        with torch.cuda.stream(self._stream):
            self._write_inputs(draws)
            # Writing the inputs left them in the L2; writing several times its size of something else evicts them. It
            # also keeps the stream busy while the host enqueues the rest, whose time is then not in the reading.
            self._flush.zero_()
            self._start.record()
            self._gate.open(self._number, self._stream.cuda_stream)
            self._gate.wait_done(self._number, self._stream.cuda_stream)
            self._end.record()

    def _await(self, deadline: float) -> None:
        pause_s = 20e-6
        while not self._end.query():
            if time.monotonic() > deadline:
                raise DeadlineExceeded("the device did not finish the burst in time")
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 2e-3)

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
        self._imports = self._imports_type(self.device.index or 0)

    def _decode(self, node: Node, call: int) -> Any:
        from harness.worker.cuda_memory import CudaHandle, ImportRefused

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
        block = self._block_type(max(nbytes, 1), self.device.index or 0)
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


def link(channel: Channel, device: torch.device, limits: Limits) -> Link:
    """The right kind of link for the device under test."""
    return HostLink(channel, device, limits) if device.type == "cpu" else CudaLink(channel, device, limits)
