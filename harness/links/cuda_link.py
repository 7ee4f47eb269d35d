"""The judge's end of a runner on a card: shared device memory, and the judge's own events around a gated burst."""

from __future__ import annotations

import contextlib
import math
import secrets
import select
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from harness.config import Limits
from harness.links.cuda_snapshot import Snapshot, signed
from harness.links.freezer import Freezer
from harness.links.late_elements import LateElements
from harness.links.link import BurstReading, Draw, Link, Places, nothing
from harness.links.start_watch import StartWatch
from harness.machine.card_turns import CardTurns
from harness.wire import layout, values
from harness.wire.channel import Channel, DeadlineExceeded, PeerGone, ProtocolError
from harness.wire.cuda_driver import reset_persisting_l2
from harness.wire.cuda_gate import Gate, Hold, fresh_secret
from harness.wire.cuda_memory import CudaHandle, ImportRefused, Imports, SharedMemory
from harness.wire.layout import BadReference, view
from harness.wire.messages import Burst, Enqueued, Finished, SharedBlock
from harness.wire.nodes import GATE_BLOCK, INPUT_BLOCK, NOWHERE, Node, TensorRef

FLUSH_FACTOR = 4
"""Times the card's L2 that are written over before each burst."""

MOST_BLOCKS = 1 << 16
"""Of a runner's memory: more than PyTorch's allocator asks of any card, each of 2 MB or more."""

DRAIN_S = 30.0
"""How long the judge's own stream may take to end once everything that it waits for is given."""

LOOK_S = 2e-4
"""How often who waits for a runner looks whether another lane waits."""

LATER = 1.1
"""How much later each look at a burst under way comes than the one before: a tenth of its time is lost at its end."""

START_BURSTS = 12
"""Bursts of either length, to learn from how long inputs are on their way."""


class CudaLink(Link):
    """CUDA: the judge's own events around a gate that the runner's stream waits behind, everything enqueued.

    `warm` leaves a burst's inputs in the L2, as far as they fit; otherwise each burst starts with none of them there.
    """

    # How long a runner may take to enqueue a burst behind the closed gate. One that synchronises never does.
    ENQUEUE_S = 1.0
    # The same, with a profiler to load before it.
    PROFILER_S = 15.0

    def __init__(
        self,
        channel: Channel,
        freezer: Freezer,
        device: torch.device,
        limits: Limits,
        late: bool,
        watch: StartWatch,
        *,
        warm: bool,
        turns: CardTurns,
    ) -> None:
        super().__init__(channel, freezer, device, limits, late)
        self._warm = warm
        self._turns = turns
        self._watch = watch
        self._owned: dict[int, SharedMemory] = {}
        # The runner's memory as the last burst left it. Opened anew for each burst: an allocation that stays open stays
        # taken on the card, and stands in the way of new ones.
        self._imports = Imports(device.index or 0)
        self._foreign: dict[int, SharedBlock] = {}
        self._snapshot = Snapshot([])
        self._stream = torch.cuda.Stream(device)
        cache_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(FLUSH_FACTOR * cache_bytes, dtype=torch.uint8, device=device)
        # Its first part is no longer in the cache once all of it was written.
        self._late = LateElements(self._flush[:cache_bytes])
        self._way = torch.cuda.Event(enable_timing=True)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        # Made now, as a first record makes it.
        self._way.record()
        self._nothing = self._staged = torch.empty(0, dtype=torch.uint8, device=device)
        self._staged_refs: list[TensorRef] = []
        self._coins = torch.Generator(device).manual_seed(secrets.randbits(63))
        self._kernel = torch.zeros(1, device=device)
        # Loaded now: a kernel's first launch waits for the device, which may stand at a gate.
        self._kernel.add_(1)
        self._late.draw(self._staged, [], self._flush.data_ptr(), [])
        self._late.deliver()
        self._add_block(GATE_BLOCK, Gate.BYTES)
        self._gate = Gate(self._blocks[GATE_BLOCK])
        # In memory of the judge's own.
        self._hold = Hold(torch.zeros(Hold.BYTES, dtype=torch.uint8, device=device))
        self._secret = fresh_secret()
        self._opening_us = 0.0

    def burst(
        self,
        draws: list[Draw],
        *,
        gated: bool = True,
        timed: bool = True,
        deadline_s: float | None = None,
        profiled: bool = False,
        meanwhile: Callable[[], None] = nothing,
    ) -> BurstReading:
        # The runner hears of its calls before the gate opens.
        gated = gated and not self._come_late(draws)
        if not gated:
            meanwhile()
        self._begin(draws)
        request = Burst(
            number=self._number,
            nonce=self._nonce,
            calls=self._calls(draws),
            blocks=self._unsent,
            gated=gated,
            profiled=profiled,
        )
        limit_s = deadline_s or self.limits.call_s
        enqueued, was_gated, finished = self._run(request, gated, limit_s, timed=timed, meanwhile=meanwhile)
        self._grant_repeat(enqueued)
        return BurstReading(
            judge_us=self._start.elapsed_time(self._end) * 1e3,
            claimed_us=finished.claimed_us,
            gated=was_gated,
            slow_start=was_gated and self._watch.slow(len(draws), self._way_us),
            aliased=tuple(enqueued.aliased),
            profile=finished.profile,
            opening_us=0.0 if was_gated else self._opening_us,
        )

    def output(self, call: int) -> Any:
        return self._snapshot.output(call)

    def outputs(self, calls: Sequence[int]) -> list[Any] | None:
        return self._snapshot.together(calls)

    def seen_inputs(self, call: int) -> list[torch.Tensor]:
        return self._snapshot.inputs(call) if self.inputs_change else super().seen_inputs(call)

    def null_us(self, *, gated: bool = True) -> float:
        self._null([], gated)
        return self._start.elapsed_time(self._end) * 1e3

    def learn_start(self, example: Draw) -> None:
        with self._turns.alone():
            for calls in {1, self.calls_reserved}:
                for _ in range(START_BURSTS):
                    if self._null([example] * calls, gated=True):
                        self._watch.learn(calls, self._way_us)

    def _null(self, draws: list[Draw], gated: bool) -> bool:
        """An empty burst, with inputs but without calls; whether all of it was enqueued before the gate opened."""
        self._begin(draws)
        request = Burst(number=self._number, nonce=self._nonce, calls=[], blocks=self._unsent, gated=gated)
        return self._run(request, gated, self.limits.call_s)[1]

    @property
    def _way_us(self) -> float:
        """How long the inputs of the last gated burst were in place before the clock started, writing included."""
        return self._way.elapsed_time(self._start) * 1e3

    def _begin(self, draws: list[Draw]) -> None:
        self._number_burst()
        self._secret = fresh_secret()
        self._poison()
        self._turns.pause()
        self._stage(draws)
        self._turns.pause()
        reset_persisting_l2(self.device.index or 0)
        self._gate.reset(self._stream.cuda_stream)
        self._stream.synchronize()
        self._settle()

    def _stage(self, draws: list[Draw]) -> None:
        """Lay out a burst's inputs as they are to lie in shared memory, so that a single copy puts them there.

        Zeroed, because what is between them is copied, too, and must hold nothing of the judge's.
        """
        self._staged_refs = [ref for refs in self._input_refs[: len(draws)] for ref in refs]
        tensors = [tensor for draw in draws for tensor in values.tensors(draw.inputs)]
        staged = torch.zeros(len(draws) * self._call_bytes, dtype=torch.uint8, device=self.device)
        for ref, tensor in zip(self._staged_refs, tensors, strict=True):
            view(staged, ref).copy_(tensor)
        self._staged = staged

    def _run(
        self,
        request: Burst,
        gated: bool,
        limit_s: float,
        *,
        timed: bool = True,
        meanwhile: Callable[[], None] = nothing,
    ) -> tuple[Enqueued, bool, Finished]:
        """One burst with the judge's events around it; whether all of it was enqueued before the gate opened."""
        enqueued = None
        if gated:
            with self._released_on_failure():
                self.freezer.thaw()
                self._send(request)
                with self._at_work():
                    meanwhile()
                with self._turns.away(self.freezer.freeze):
                    enqueued = self._enqueued_in_time(request, limit_s)
        return self._carried_out(request, enqueued, limit_s, timed=timed)

    def _carried_out(
        self, request: Burst, enqueued: Enqueued | None, limit_s: float, *, timed: bool
    ) -> tuple[Enqueued, bool, Finished]:
        """A burst that was `enqueued` behind the gate, or, if that is None, will be enqueued without it.

        The outputs' places are known before the clock stops, so that a look at them is the next thing on the judge's
        stream. Ungated they come with the runner's answer, and the way there is in the reading, as in an empty burst's.
        To enqueue behind the gate, or behind a hold, is nothing that another lane's burst would feel; from then on the
        card is this one's, if it is `timed`.
        """
        was_gated = enqueued is not None
        if enqueued is not None:
            with self._released_on_failure():
                with self._at_work():
                    self._ready_to_start(enqueued, len(request.calls))
                self._start_held()
                self._stop()
        alone = self._turns.alone(self.freezer.freeze, settled=was_gated) if timed else self._at_work()
        with self._released_on_failure(), alone, self._released_on_failure():
            deadline, waited_s = time.monotonic() + limit_s, self._turns.waited_s
            self.freezer.thaw()
            if enqueued is not None:
                return enqueued, was_gated, self._let_go(deadline)
            self._start_first()
            if not request.gated:
                self._send(request)
            enqueued = self._receive_enqueued(deadline)
            deadline += self._turns.waited_s - waited_s
            self._await_card(deadline)
            opens = time.monotonic()
            self._snapshot = self._found(enqueued, len(request.calls))
            self._opening_us = 1e6 * (time.monotonic() - opens)
            self._stop()
            return enqueued, was_gated, self._let_go(deadline)

    def _let_go(self, deadline: float) -> Finished:
        """What is held, or nothing any more, until its end."""
        self._hold.release(self._number)
        finished = self._await_end(deadline)
        self.freezer.freeze()
        return finished

    def _at_work(self) -> contextlib.AbstractContextManager[None]:
        return self._turns.beside(self.freezer.freeze, self._go_on)

    def _go_on(self) -> None:
        # Whoever waits for it is told.
        with contextlib.suppress(PeerGone):
            self.freezer.thaw()

    def _still_s(self, timeout_s: float) -> float:
        """Lets other lanes have their turns until the runner says something."""
        if self._turns.by_itself:
            return timeout_s
        begun, waited_s = time.monotonic(), self._turns.waited_s
        while (left := begun + timeout_s + self._turns.waited_s - waited_s - time.monotonic()) > 0:
            if select.select([self.channel], [], [], min(left, LOOK_S))[0]:
                break
            self._turns.pause()
        return max(left, LOOK_S)

    def close(self) -> None:
        self._drain()
        torch.cuda.synchronize(self.device)
        super().close()
        self._snapshot = Snapshot([])
        self._imports.close()
        self._gate.close()
        self._hold.close()
        for block in self._owned.values():
            block.close()

    def _drain(self) -> None:
        """Wait for the judge's stream. A runner may have written over the word that let it go. Raises RuntimeError if
        it does so for ever, which ends the judge."""
        deadline = time.monotonic() + DRAIN_S
        while not self._stream.query():
            if time.monotonic() > deadline:
                raise RuntimeError(f"the judge's stream did not end within {DRAIN_S:g} s")
            self._gate.release(self._secret)
            time.sleep(1e-3)

    def _enqueued_in_time(self, request: Burst, limit_s: float) -> Enqueued | None:
        """The runner's answer, or None if it did not come because the candidate waits for the device itself."""
        patience_s = self.PROFILER_S if request.profiled else self.ENQUEUE_S
        try:
            return self._receive_enqueued(time.monotonic() + min(limit_s, patience_s))
        except DeadlineExceeded:
            return None

    def _start_first(self) -> None:
        """On the judge's stream: start, and only then inputs, a cold cache, gate.

        For a runner that is not held: whatever it does, it does after the start.
        """
        with torch.cuda.stream(self._stream):
            self._start.record()
            self._put_inputs()
            self._gate.open(self._number, self._secret, self._stream.cuda_stream)

    def _ready_to_start(self, enqueued: Enqueued, calls: int) -> None:
        """What can be done for `_start_held` beside others' work: where outputs will lie, and which of their elements
        and of the inputs' come late."""
        self._snapshot = self._found(enqueued, calls)
        self._turns.pause()
        lie_at = self._blocks[INPUT_BLOCK].data_ptr() + self._base
        self._late.draw(self._staged, self._staged_refs, lie_at, self._snapshot.tensors)
        self._turns.pause()
        self._stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self._stream):
            # Once before the stop: the first time may wait for this very stream.
            self._snapshot.take()
            self._spoil({(one.dtype, one.is_contiguous()): one for one in self._snapshot.tensors}.values())
        # For other lanes' bursts. From the hold on nothing of this process can be waited for.
        self._stream.synchronize()

    def _start_held(self) -> None:
        """On the judge's stream, which stands still until its host has enqueued the end, too: inputs, start, gate.

        Behind the hold, and with nothing of the host's between them: inputs that lie there before the clock starts may
        be seen. All that is enqueued here and in `_stop` has been before: what is new may wait for this very stream.
        """
        with torch.cuda.stream(self._stream):
            self._hold.hold(self._number, self._stream.cuda_stream)
            # What was put there before the clock (zeros, where most of an output is zero) has to be put there again.
            # Behind the stop: who answers to it has as little time as who answers to the inputs.
            self._spoil(self._snapshot.tensors)
            self._way.record()
            self._put_inputs()
            self._start.record()
            self._late.deliver()
            self._gate.open(self._number, self._secret, self._stream.cuda_stream)

    def _put_inputs(self) -> None:
        """Where the runner sees them. Copying leaves them in the L2; several times its size of something else does not.

        Enqueues two operations, however many inputs there are: about a thousand are what fits behind a stop.
        """
        if self._warm:
            self._flush.zero_()
        self._blocks[INPUT_BLOCK][self._base :][: len(self._staged)].copy_(self._staged)
        if not self._warm:
            self._flush.zero_()

    def _stop(self) -> None:
        """On the judge's stream: wait for the runner to be done and off the card, end, a look at the outputs."""
        with torch.cuda.stream(self._stream):
            self._off_card()
            self._end.record()
            self._snapshot.take()

    def _await_card(self, deadline: float) -> None:
        """Wait until the runner has said that it is done and is off the card.

        For an ungated burst, before anything else is done for it: who answers before its work is over would have the
        judge's own time for nothing.
        """
        with torch.cuda.stream(self._stream):
            self._off_card()
            self._way.record()
        while not self._way.query():
            if time.monotonic() > deadline:
                raise DeadlineExceeded("the device did not finish the burst in time")
            time.sleep(20e-6)

    def _off_card(self) -> None:
        """On the current stream: wait for the runner's last word, and for its kernels.

        A card runs one process's kernels at a time: where this one runs, none of the runner's does, on whatever stream.
        An event alone is recorded without that.
        """
        self._gate.wait_done(self._secret, self._stream.cuda_stream)
        self._kernel.add_(1)

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
            pause_s = min(pause_s * LATER, 2e-3)
        self._staged = self._nothing
        # The look at the outputs may still be under way, which those who compare with it have to wait for.
        torch.cuda.current_stream(self.device).wait_stream(self._stream)
        return finished or self._receive_burst(Finished, deadline)

    @contextlib.contextmanager
    def _released_on_failure(self) -> Iterator[None]:
        """Free the judge's stream where the runner will never report the burst done."""
        try:
            yield
        except BaseException:
            self._hold.release(self._number)
            self._gate.release(self._secret)
            self._gate.open(self._number, self._secret, self._stream.cuda_stream)
            self._drain()
            raise

    def _poison(self) -> None:
        """Spoil the previous burst's outputs where they lie: memory handed out again must hold no answers."""
        self._spoil(self._snapshot.tensors)
        self._snapshot = Snapshot([])
        self._imports.close()
        self._imports = Imports(self.device.index or 0)

    def _spoil(self, tensors: Iterable[torch.Tensor]) -> None:
        """Each element all ones (NaN in every floating type) or all zeros, by a coin.

        What an output was spoilt with must not be an answer: not where most of it is -1 or true or zero, either.
        """
        for tensor in tensors:
            if tensor.numel():
                signed(tensor).random_(-1, 1, generator=self._coins)

    def _decode(self, node: Node, call: int, places: Places) -> Any:
        # All of it is copied into the judge's memory, and each tensor is spoilt and looked at by kernels of its own,
        # behind a stop where few of them have room: no more elements nor tensors than were asked for.
        room, tensors = sum(math.prod(ref.shape) for ref in self._output_refs.values()), len(self._output_refs)

        def tensor(ref: TensorRef) -> Any:
            nonlocal room, tensors
            if ref.block == NOWHERE:
                return ref
            room -= math.prod(ref.shape)
            tensors -= 1
            if room < 0 or tensors < 0:
                return ref
            block = self._foreign.get(ref.block)
            if block is None:
                raise BadReference(f"block {ref.block} was not announced")
            layout.check_apart(ref)
            handle = CudaHandle(block.cuda_handle, ref.offset, block.nbytes, self.device.index or 0)
            try:
                found = self._imports.view(handle, values.dtype_named(ref.dtype), ref.shape, ref.stride)
            except ImportRefused as error:
                raise BadReference(str(error)) from error
            if found.numel():
                places[self.device].append((found.data_ptr(), found.data_ptr() + layout.nbytes(ref)))
            return found

        return values.decode(node, tensor)

    def _outputs(self, enqueued: Enqueued, calls: int) -> list[Any]:
        self._foreign |= {block.id: block for block in enqueued.blocks}
        if len(self._foreign) > MOST_BLOCKS:
            raise ProtocolError(f"more than {MOST_BLOCKS} blocks of memory")
        # Outputs of a burst that does not count may share memory, may be the candidate's own, and are not spoilt.
        return [] if enqueued.repeat else super()._outputs(enqueued, calls)

    def _found(self, enqueued: Enqueued, calls: int) -> Snapshot:
        """Where a burst's answers are."""
        inputs = [super(CudaLink, self).seen_inputs(call) for call in range(calls)] if self.inputs_change else []
        return Snapshot(self._outputs(enqueued, calls), inputs)

    def _add_block(self, number: int, nbytes: int) -> None:
        memory, fd = SharedMemory.create(max(nbytes, 1), self.device.index or 0)
        self._owned[number] = memory
        self._blocks[number] = memory.tensor
        self._unsent.append(SharedBlock(id=number, nbytes=memory.tensor.numel(), fd=len(self._unsent_fds)))
        self._unsent_fds.append(fd)

    def _settle(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()
