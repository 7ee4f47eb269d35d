"""The judge's end of a runner on the CPU: its memory read from outside, and the host clock around its turn."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.config import Limits
from harness.links.freezer import Freezer
from harness.links.link import BurstReading, Draw, Link, Places, left_s, nothing
from harness.links.start_watch import StartWatch
from harness.oracle.structure import flatten
from harness.wire import host_memory, layout, values
from harness.wire.channel import Channel, ProtocolError
from harness.wire.host_memory import ForeignMemory
from harness.wire.layout import BadReference
from harness.wire.messages import Armed, Burst, Call, Enqueued, Go, Hello, SharedBlock
from harness.wire.nodes import INPUT_BLOCK, NOWHERE, OWN_MEMORY, Node, TensorRef

# Inputs are spoilt by one of these, drawn anew each time: a known one would be some problem's very answer, as all ones
# are the bitwise complement's. Each changes a number's size: sign or exponent, and more than its last digits.
SPOILING = [mask for mask in range(0x20, 0xFF) if mask & 0x70 and mask.bit_count() >= 3]


class HostLink(Link):
    """CPU: the judge's host clock runs from continuing the runner to stopping it.

    In between there are a message there, the calls, and a message back. Inputs are written and outputs read while the
    runner stands still, so what they take is in no reading, and nothing can be done before or after.
    """

    def __init__(
        self,
        channel: Channel,
        freezer: Freezer,
        device: torch.device,
        limits: Limits,
        late: bool,
        watch: StartWatch,
    ) -> None:
        super().__init__(channel, freezer, device, limits, late)
        self._watch = watch
        self._learns = False
        # From the first burst's end on whatever the runner does outside its turns is known.
        self._watched = False
        self._memory: ForeignMemory | None = None
        self._nodes: list[Node] = []
        self._returned: list[Any] = []
        # What inputs are changed by while outputs are read; 0 where they are not.
        self._mask = 0

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
        meanwhile()
        deadline = time.monotonic() + (deadline_s or self.limits.call_s)
        self._number_burst()
        calls = self._calls(draws)
        late = calls if self._come_late(draws) else []
        # In the other side's turn, whose time it may have made longer.
        beside_us = self.freezer.worked_us() if self._watched else 0.0
        turn_us = self._announce([] if late else calls, profiled, deadline)
        self._write_inputs(draws)
        judge_us, enqueued = self._timed(late, deadline)
        judge_us += beside_us
        if self._learns:
            self._watch.learn(len(draws), turn_us)
        else:
            # What a runner does in its turn before the clock, beyond what the trusted one needed, is on the clock. Also
            # of the trusted one, so that what turns differ by from one to the next is in both sides' times.
            judge_us += self._watch.beyond_us(len(draws), turn_us)
        self._grant_repeat(enqueued)
        self._nodes = enqueued.outputs
        self._owner().stopped()
        with self._inputs_hidden(len(draws)):
            self._returned = self._outputs(enqueued, len(draws))
        # Whatever was done since the clock stopped and before the outputs had been read was done for them.
        judge_us += self.freezer.worked_us()
        self.freezer.mark()
        self._watched = True
        finished = enqueued.finished
        if finished is None:
            raise ProtocolError("an answer without `finished`")
        return BurstReading(
            judge_us=judge_us,
            claimed_us=finished.claimed_us,
            gated=False,
            aliased=tuple(enqueued.aliased),
            profile=finished.profile,
        )

    @contextlib.contextmanager
    def learning(self) -> Iterator[None]:
        self._learns = True
        try:
            yield
        finally:
            self._learns = False

    def output(self, call: int) -> Any:
        return self._returned[call]

    def shared_inputs(self, call: int) -> set[tuple[str, int]]:
        """Found by changing each input, and looking at the output again."""
        returned, found = _tensors(self._returned[call]), set()
        for position, ref in enumerate(self._input_refs[call]):
            place = self._place(ref)
            kept = place.clone()
            place.bitwise_xor_(secrets.choice(SPOILING))
            now = _tensors(self._decode(self._nodes[call], call, defaultdict(list)))
            found |= {(path, position) for path, one in returned.items() if not values.same_bytes(one, now[path])}
            place.copy_(kept)
        return found

    def close(self) -> None:
        super().close()
        if self._memory is not None:
            self._memory.close()

    def _announce(self, calls: list[Call], profiled: bool, deadline: float) -> float:
        """Tell the runner which burst comes, before the clock starts; returns the microseconds that this took."""
        begun = time.perf_counter()
        self.freezer.thaw()
        # No nonce yet: it comes with the inputs.
        self._send(
            Burst(number=self._number, nonce=0, calls=calls, blocks=self._unsent, gated=False, profiled=profiled)
        )
        self._receive_burst(Armed, deadline)
        self.freezer.freeze()
        self.freezer.settle()
        self.freezer.mark()
        return (time.perf_counter() - begun) * 1e6

    def _timed(self, late: list[Call], deadline: float) -> tuple[float, Enqueued]:
        """One turn of a runner that is stopped before and after, told of the `late` calls, if there are any. Its answer
        is decoded after the clock.

        Where a member still runs after it was stopped, the clock goes on until it does not. What was done since then
        and before the clock was done with the inputs in sight.
        """
        ahead_us = self.freezer.worked_us()
        self._send(Go(nonce=self._nonce, calls=late))
        timeout_s = left_s(deadline)
        started = time.perf_counter()
        self.freezer.thaw()
        frame, fds = self.channel.receive_frame(timeout_s)
        self.freezer.freeze()
        self.freezer.mark()
        ended = time.perf_counter()
        if not self.freezer.settle():
            ended = time.perf_counter()
        return (ended - started) * 1e6 + ahead_us, self._enqueued(*self.channel.decode(frame, fds))

    @contextlib.contextmanager
    def _inputs_hidden(self, calls: int) -> Iterator[None]:
        """Change inputs while outputs are read, so that a view of an input in place of a copy is a wrong answer."""
        hidden = [] if self.may_return is None else [ref for refs in self._input_refs[:calls] for ref in refs]
        self._mask = secrets.choice(SPOILING) if hidden else 0
        self._change(hidden)
        try:
            yield
        finally:
            self._change(hidden)
            self._mask = 0

    @contextlib.contextmanager
    def _shown_to(self, call: int, output: str) -> Iterator[None]:
        """Inputs as they were, where the reference's output at the path `output` shares memory with them."""
        allowed = self.may_return if self._mask and self.may_return else ()
        shown = [self._input_refs[call][position] for path, position in allowed if path == output]
        self._change(shown)
        try:
            yield
        finally:
            self._change(shown)

    def _change(self, refs: list[TensorRef]) -> None:
        for ref in refs:
            self._place(ref).bitwise_xor_(self._mask)

    def _place(self, ref: TensorRef) -> torch.Tensor:
        """The bytes of an input, where it lies in this burst."""
        return self._blocks[INPUT_BLOCK][self._base + ref.offset :][: layout.nbytes(ref)]

    def _take_hello(self, hello: Hello, fds: list[int]) -> None:
        if len(fds) not in (2, 3):
            raise ProtocolError("the runner did not send a descriptor of its memory")
        self._memory = ForeignMemory(*fds)

    def _decode(self, node: Node, call: int, places: Places) -> Any:
        left = dict(self._output_refs)

        def tensor(path: str, ref: TensorRef) -> Any:
            if ref.block == NOWHERE:
                return ref
            if ref.block != OWN_MEMORY:
                raise BadReference("an output in memory that is not the runner's own")
            # What is not like the reference's output is judged by its description; its size is only a claim.
            like = self._counterpart(path, ref, left)
            if like is None:
                return ref
            del left[like]
            with self._shown_to(call, path):
                read = self._read(ref)
            for part in self._owner().parts(ref.offset, layout.nbytes(ref)):
                places[part.file].append((part.first, part.last))
            return read

        return values.decode_at(node, tensor)

    def _counterpart(self, path: str, ref: TensorRef, left: dict[str, TensorRef]) -> str | None:
        """The path of the reference's tensor that one at `path` stands for, of those `left`, if it is of its form.

        At a path that the reference has not, any of its form: the message is then about lists and keys.
        """
        own = [path] if path in self._output_refs else list(left)
        return next((one for one in own if one in left and _alike(left[one], ref)), None)

    def _read(self, ref: TensorRef) -> torch.Tensor:
        dtype = layout.checked_dtype(ref)
        places = layout.span(ref.shape, ref.stride)
        if not places:
            return torch.empty(ref.shape, dtype=dtype)
        layout.check_apart(ref)
        if places > layout.MOST_SPREAD * torch.Size(ref.shape).numel():
            raise BadReference(f"elements spread over {places} places")
        copy = self._owner().read(ref.offset, places * dtype.itemsize)
        return copy.view(dtype).as_strided(ref.shape, ref.stride)

    def _owner(self) -> ForeignMemory:
        assert self._memory is not None
        return self._memory

    def _add_block(self, number: int, nbytes: int) -> None:
        fd, block = host_memory.create(nbytes)
        self._blocks[number] = block
        self._unsent.append(SharedBlock(id=number, nbytes=block.numel(), fd=len(self._unsent_fds)))
        self._unsent_fds.append(fd)


def _alike(one: TensorRef, other: TensorRef) -> bool:
    return (one.dtype, one.shape) == (other.dtype, other.shape)


def _tensors(output: Any) -> dict[str, torch.Tensor]:
    """By path."""
    return {path: leaf for path, leaf in flatten(output) if isinstance(leaf, torch.Tensor)}
