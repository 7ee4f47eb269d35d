"""The judge's end of one runner: prepare it, give it inputs, time its bursts, read its outputs."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import torch

from harness.config import Limits
from harness.errors import AssayError
from harness.integrity.provenance import Profile
from harness.links.freezer import Freezer
from harness.wire import layout, values
from harness.wire.channel import Channel, PeerGone, ProtocolError
from harness.wire.layout import ALIGNMENT_BYTES, BadReference, moved, place, view
from harness.wire.messages import (
    Burst,
    Call,
    CandidateSource,
    Construction,
    Enqueued,
    Failed,
    Go,
    Hello,
    Prepare,
    Ready,
    SharedBlock,
)
from harness.wire.nodes import INPUT_BLOCK, STATE_BLOCK, Node, TensorRef

INPUT_PLACES = 64
"""A burst's inputs lie at one of so many places, drawn anew: few enough for who keeps something for each address."""

SPREAD_BYTES = 1 << 26
"""From the first of these places to the last there are no more bytes: places have to differ, not to lie apart."""


Places = dict[Any, list[tuple[int, int]]]
"""By memory, the first byte of each tensor and the one behind its last."""


class RunnerFailed(AssayError):
    """The candidate raised, by its runner's own account; `unasked` has the titles of hard inputs among its calls on
    which nothing is ever asked."""

    def __init__(self, failure: Failed, unasked: tuple[str, ...] = ()) -> None:
        super().__init__(failure.text)
        self.failure = failure
        self.unasked = unasked


class _Nothing:
    """What a runner has to say before it is asked for a burst."""


def nothing() -> None:
    """What is done meanwhile where there is nothing to do."""


class Draw(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's own copy of one call's inputs, and the seed that its generator starts from."""

    inputs: tuple[Any, ...]
    seed: int


class BurstReading(msgspec.Struct, frozen=True, kw_only=True):
    """One burst: microseconds by the judge's clock (fixed cost included) and by the runner's claim.

    `gated` tells whether the device waited for the judge with everything already enqueued; `aliased` the positions of
    inputs that the runner says the output of its first call shares memory with; `profile` what it says that it ran,
    where it was asked to be profiled; `opening_us` what of a burst without the gate the judge took to open its outputs,
    which are `Link.output`'s.
    """

    judge_us: float
    claimed_us: float
    gated: bool
    # The inputs may have been seen before the clock started.
    slow_start: bool = False
    aliased: tuple[int, ...] = ()
    profile: Profile | None = None
    opening_us: float = 0.0


class RepeatAsked(AssayError):
    """What a burst returned is the candidate's to change, by its next call at the latest. Again, on other inputs."""


class LateOutput(AssayError):
    """An output changed after the clock stopped. `share`: the part of its sampled elements that changed."""

    def __init__(self, share: float) -> None:
        super().__init__(f"{share:.2%} of the output's elements changed after the burst was reported as finished")
        self.share = share


class Link:
    """One runner, from the judge's side. Subclasses hold the clock of their kind of device.

    From `prepare` on the runner stands still, but for its own bursts. With `late`, calls are told with their seeds, and
    only when the clock has started.
    """

    def __init__(self, channel: Channel, freezer: Freezer, device: torch.device, limits: Limits, late: bool) -> None:
        self.channel = channel
        self.freezer = freezer
        self.device = device
        self.limits = limits
        self.calls_reserved = 0
        self._tells_late = late
        # Of the first call's inputs, what is no tensor.
        self._numbers: list[Node | None] = []
        # Whether the runner had a burst again because its outputs shared a buffer.
        self.repeated = False
        # Which inputs' memory outputs may have in common, by path and number, as the reference's do; None until they
        # are known to have no other's, and may not from then on.
        self.may_return: frozenset[tuple[str, int]] | None = None
        # Whether what becomes of inputs is part of the answer.
        self.inputs_change = False
        self._number = self._nonce = 0
        # As if they began at byte 0 of their block. In each burst they do at `_base`.
        self._input_refs: list[list[TensorRef]] = []
        self._base = self._call_bytes = self._step_bytes = 0
        self._places = INPUT_PLACES
        # What an output's tensors look like, by path: a dict may have its keys in any order.
        self._output_refs: dict[str, TensorRef] = {}
        self._blocks: dict[int, torch.Tensor] = {}
        self._unsent: list[SharedBlock] = []
        self._unsent_fds: list[int] = []

    def prepare(
        self,
        source: CandidateSource,
        precision: str,
        init_args: Any,
        construction: Construction,
        state: dict[str, torch.Tensor],
        plain: dict[str, torch.Tensor],
        meanwhile: Iterable[bool] = (),
        *,
        own_weights: bool = False,
    ) -> Ready:
        """Have the runner construct its class, and take over `state`, or what is `plain` of it where it lacks a name of
        that, or nothing if it is to keep its `own_weights`. Raises as `_receive` does.

        While it does, steps of `meanwhile` are taken: until it is done, and one has said that they may end.
        """
        self._take_hello(*self._receive_with_fds(Hello, self.limits.load_s))
        given = values.tensors(init_args)
        sent = [*state.values(), *plain.values(), *given]
        refs, nbytes = place(sent, STATE_BLOCK)
        self._add_block(STATE_BLOCK, nbytes)
        for ref, tensor in zip(refs, sent, strict=True):
            view(self._blocks[STATE_BLOCK], ref).copy_(tensor)
        self._settle()
        init_refs = iter(refs[len(state) + len(plain) :])
        request = Prepare(
            source=source,
            device=str(self.device),
            precision=precision,
            init_args=values.encode(init_args, lambda _: next(init_refs)),
            construction=construction,
            state=dict(zip(state, refs, strict=False)),
            plain=dict(zip(plain, refs[len(state) :], strict=False)),
            own_weights=own_weights,
            blocks=self._unsent,
        )
        self._send(request)
        with self._at_work():
            for may_end in meanwhile:
                if may_end and self.channel.has_news():
                    break
            ready: Ready = self._receive(Ready, self.limits.load_s)
        self.freezer.freeze()
        return ready

    def _at_work(self) -> contextlib.AbstractContextManager[None]:
        """Within this the runner works, and nothing is timed."""
        return contextlib.nullcontext()

    def reserve(
        self, calls: int, inputs: list[TensorRef], outputs: dict[str, TensorRef], places: int = INPUT_PLACES
    ) -> None:
        """Make room for bursts of up to `calls` calls, of inputs and outputs as `layout.place` describes them, the
        latter by path.

        A burst's inputs lie at one of `places`; at a single one only for who is trusted and has to know it.
        """
        self._places = places
        self._call_bytes = layout.aligned(max((ref.offset + layout.nbytes(ref) for ref in inputs), default=0))
        inputs = [msgspec.structs.replace(ref, block=INPUT_BLOCK) for ref in inputs]
        self._input_refs = [[moved(ref, call * self._call_bytes) for ref in inputs] for call in range(calls)]
        # The last place is one call's inputs behind the first one, or as far as places may lie apart.
        spread = min(self._call_bytes, SPREAD_BYTES - ALIGNMENT_BYTES * places)
        self._step_bytes = layout.aligned(-(-spread // places))
        self._add_block(INPUT_BLOCK, calls * self._call_bytes + (places - 1) * self._step_bytes)
        self._output_refs = outputs
        self.calls_reserved = calls

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
        """Time one burst on these inputs, which the runner sees only when the clock starts.

        Unless it is `timed`, nobody goes by the clock, and other lanes may work beside it. `meanwhile` is called once:
        while the runner enqueues behind a gate, or else before anything is begun.
        Raises RepeatAsked once a runner; a second time it is a ProtocolError.
        """
        raise NotImplementedError

    def null_us(self, *, gated: bool = True) -> float:
        """The judge's reading of a burst without calls: the fixed cost. Only a trusted runner may be asked."""
        return self.burst([], gated=gated).judge_us

    def output(self, call: int) -> Any:
        """What call number `call` of the last burst returned, in memory that no runner can write to.

        A leaf is a tensor, a scalar, or what is known of a thing that could not be handed over (`TensorRef`, `Opaque`).
        Raises LateOutput where it is not what lay there when the clock stopped.
        """
        raise NotImplementedError

    def outputs(self, calls: Sequence[int]) -> list[Any] | None:
        """What several calls returned, which takes a card less than one after the other; None where `output` would
        raise for one of them."""
        try:
            return [self.output(call) for call in calls]
        except LateOutput:
            return None

    @property
    def output_bytes(self) -> int:
        """Of one call."""
        return sum(map(layout.nbytes, self._output_refs.values()))

    def seen_inputs(self, call: int) -> list[torch.Tensor]:
        """The inputs of call number `call` as they lie in shared memory now. With `inputs_change` raises LateOutput if
        that is not what lay there when the clock stopped."""
        return [view(self._blocks[INPUT_BLOCK], moved(ref, self._base)) for ref in self._input_refs[call]]

    def shared_inputs(self, call: int) -> set[tuple[str, int]]:
        """The path of each tensor of call number `call`'s output that shares memory with an input, and which one,
        beside `aliased`."""
        return set()

    def learn_start(self, example: Draw) -> None:
        """Find out how long inputs are on their way, while no candidate is there. Raises what `null_us` raises."""

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        """On the CPU: what turns take before the clock is learnt from those within, while no candidate is there."""
        yield

    def close(self) -> None:
        """Close the channel and let the runner end by itself, so that it can write its last output."""
        self.channel.close()
        with contextlib.suppress(PeerGone):
            self.freezer.thaw()
        self._close_fds()
        self._blocks.clear()

    def _write_inputs(self, draws: list[Draw]) -> None:
        for refs, draw in zip(self._input_refs, draws, strict=False):
            for ref, tensor in zip(refs, values.tensors(draw.inputs), strict=True):
                view(self._blocks[INPUT_BLOCK], moved(ref, self._base)).copy_(tensor)

    def _calls(self, draws: list[Draw]) -> list[Call]:
        """A burst's calls, with inputs at a place that is drawn anew."""
        self._base = secrets.randbelow(self._places) * self._step_bytes
        calls = []
        for refs, draw in zip(self._input_refs, draws, strict=False):
            waiting = iter([moved(ref, self._base) for ref in refs])
            inputs = values.encode(draw.inputs, lambda _, waiting=waiting: next(waiting))  # type: ignore[misc]
            calls.append(Call(inputs=inputs, seed=draw.seed if self._tells_late else None))
        if len(calls) != len(draws):
            raise ValueError(f"{len(draws)} calls in a burst; {self.calls_reserved} are reserved")
        return calls

    def _come_late(self, draws: list[Draw]) -> bool:
        """Whether what these calls say must not be known before the clock starts: it is not what the first one said."""
        numbers = [values.beside_tensors(draw.inputs) for draw in draws]
        self._numbers = self._numbers or numbers[:1]
        return self._tells_late or any(one != self._numbers[0] for one in numbers)

    def _send(self, message: Prepare | Burst | Go) -> None:
        self.channel.send(message, tuple(self._unsent_fds))
        self._close_fds()

    def _close_fds(self) -> None:
        for fd in self._unsent_fds:
            os.close(fd)
        self._unsent, self._unsent_fds = [], []

    def _receive(self, kind: Any, timeout_s: float) -> Any:
        """The next message, which must be a `kind`. Raises RunnerFailed, PeerGone, DeadlineExceeded, ProtocolError."""
        return self._without_fds(*self._receive_with_fds(kind, timeout_s))

    def _without_fds(self, message: Any, fds: list[int]) -> Any:
        for fd in fds:
            os.close(fd)
        return message

    def _receive_with_fds(self, kind: Any, timeout_s: float) -> tuple[Any, list[int]]:
        return self._expected(kind, *self.channel.receive(self._still_s(timeout_s)))

    def _still_s(self, timeout_s: float) -> float:
        """Seconds to wait for a message of the runner's, which may take `timeout_s` of its own time."""
        return timeout_s

    def _expected(self, kind: Any, message: Any, fds: list[int]) -> tuple[Any, list[int]]:
        if isinstance(message, kind):
            return message, fds
        for fd in fds:
            os.close(fd)
        if isinstance(message, Failed):
            raise RunnerFailed(message)
        raise ProtocolError(f"expected {kind.__name__.strip('_')}, got {type(message).__name__}")

    def _take_hello(self, hello: Hello, fds: list[int]) -> None:
        """What a runner of ours says before any foreign code is in it."""
        for fd in fds:
            os.close(fd)

    def _number_burst(self) -> None:
        if self.channel.has_news():
            # Or it has ended. Who knows what comes next could answer before it is asked.
            self._expected(_Nothing, *self.channel.receive(left_s(0.0)))
        self._number += 1
        self._nonce = secrets.randbits(62)

    def _receive_enqueued(self, deadline: float) -> Enqueued:
        return self._enqueued(*self.channel.receive(self._still_s(left_s(deadline))))

    def _enqueued(self, message: Any, fds: list[int]) -> Enqueued:
        """An answer to the burst at hand, and to no other."""
        answer: Enqueued = self._of_this_burst(self._without_fds(*self._expected(Enqueued, message, fds)))
        if answer.nonce != self._nonce:
            raise ProtocolError("an answer to a burst that was not requested yet")
        return answer

    def _receive_burst(self, kind: Any, deadline: float) -> Any:
        return self._of_this_burst(self._receive(kind, left_s(deadline)))

    def _of_this_burst(self, message: Any) -> Any:
        if message.number != self._number:
            raise ProtocolError(f"an answer to burst {message.number}, not {self._number}")
        return message

    def _grant_repeat(self, enqueued: Enqueued) -> None:
        """Raises RepeatAsked where the runner asks for it and may."""
        if enqueued.repeat and self.repeated:
            raise ProtocolError(
                "the runner returns the same memory for several outputs of a burst, after one repetition"
            )
        if enqueued.repeat:
            self.repeated = True
            raise RepeatAsked

    def _outputs(self, enqueued: Enqueued, calls: int) -> list[Any]:
        """What the calls returned. Raises ProtocolError where any two of them share memory: what is written once is not
        the work of two calls."""
        if len(enqueued.outputs) != calls:
            raise ProtocolError(f"{len(enqueued.outputs)} outputs for {calls} calls")
        places: Places = defaultdict(list)
        try:
            outputs = [self._decode(node, call, places) for call, node in enumerate(enqueued.outputs)]
            for some in places.values():
                layout.check_disjoint(some)
            return outputs
        except (BadReference, ValueError) as error:
            raise ProtocolError(f"an output that cannot be read: {error}") from error

    def _decode(self, node: Node, call: int, places: Places) -> Any:
        """One call's output; adds the places of its tensors to `places`."""
        raise NotImplementedError

    def _add_block(self, number: int, nbytes: int) -> None:
        raise NotImplementedError

    def _settle(self) -> None:
        """Wait until what the judge wrote is there for the runner to see."""


def left_s(deadline: float) -> float:
    """Seconds until a time of the monotonic clock; a little where that has passed, for what is there already."""
    return max(deadline - time.monotonic(), 0.001)
