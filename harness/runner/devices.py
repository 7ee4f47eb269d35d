"""A runner's side of the protocol on a device: shared memory, the gate, handing over outputs; what all kinds of device
have in common of it."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch

from harness.wire import layout, values
from harness.wire.messages import SharedBlock
from harness.wire.nodes import NOWHERE, Node, TensorRef


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


def come_up(spec: str) -> None:
    """Create the process's context on torch's device `spec`, if that is a card."""
    if spec != "cpu":
        # Where it fails, it does so again once there is somebody to tell.
        with contextlib.suppress(RuntimeError):
            torch.ones(1, device=spec).add_(1)


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


def copied_or_none(tensor: torch.Tensor, copy: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor | None:
    """A copy; None if there is no room for one of an expanded tensor, whose description then has to do.

    Its elements share memory, so it may claim more of them than any machine holds.
    """
    try:
        return copy(tensor)
    except RuntimeError:
        if layout.apart(tensor.shape, tensor.stride()):
            raise
        return None


class CommonRunner:
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
        """Whether calls returned the same memory, in whole or in part: only what the last one wrote is left."""
        calls = [{tensor.untyped_storage().data_ptr() for tensor in call} for call in self._in_place]
        if len(set[int]().union(*calls)) < sum(map(len, calls)):
            return True
        # Of one call they may be interleaved.
        places = sorted(place for call in self._in_place for place in _united(_place(tensor) for tensor in call))
        return any(before[1] > behind[0] for before, behind in itertools.pairwise(places))

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
        first, last = _place(tensor)
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


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of its first byte and of the one behind its last."""
    first = tensor.data_ptr()
    return first, first + layout.span(tensor.shape, tensor.stride()) * tensor.element_size()


def _united(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same addresses without those that are in two."""
    united: list[tuple[int, int]] = []
    for first, last in sorted(places):
        if united and first < united[-1][1]:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return united
