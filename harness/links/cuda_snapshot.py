"""A look at a burst's outputs right after its end, to compare with a later copy: random elements of each, and sums.

Elements are drawn, not places in memory, so that strides make no output harder to look at, and nothing here takes more
memory than an output has elements. That look is at most one kernel for each size of element, however many outputs
there are: what is enqueued on a stream that stands still has to be few, and loaded before.

A few elements of millions are hardly ever among those that are drawn. So of some outputs, of all where a burst has no
more, the bits of all elements are added up, too: what is written late was all ones or all zeros before, by coins that
nobody knows, and whoever does not know yet what he will write cannot keep the sum. Nor can he by moving elements to
other places later: each class of places has a sum of its own, all those that are so many elements apart, a number that
is drawn for each burst; or each row and each column, where an output does not lie together.

Inputs that a call changes are part of its answer, and are looked at like outputs.
"""

from __future__ import annotations

import functools
import random
import secrets
from collections.abc import Sequence
from typing import Any

import torch

from harness.links.elements import ADDRESSES, in_units, offsets
from harness.links.link import LateOutput
from harness.wire import values
from harness.wire.cuda_memory import as_bytes

ELEMENTS = 4096
# Outputs of a burst that are added up: each takes a few operations behind the end.
SUMS = 128
# The classes of places that are added up by themselves, from and to.
CLASSES = (128, 512)
# An element is looked at as integers, so that bytes count and not values.
INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Snapshot:
    """A burst's outputs where the candidate put them, and random elements of each as they were right behind the end.

    A candidate that returns before its work is done (on another stream, say) has elements that change in between.
    `inputs` has those of each call where they are looked at, too; `tensors` are the outputs' alone.
    """

    def __init__(self, outputs: list[Any], inputs: Sequence[list[torch.Tensor]] = ()) -> None:
        self.tensors = values.tensors(outputs)
        self._outputs = outputs
        self._inputs = inputs
        alike: dict[Any, list[torch.Tensor]] = {}
        for tensor in [*self.tensors, *values.tensors(list(inputs))]:
            if tensor.numel():
                alike.setdefault((tensor.shape, tensor.stride(), tensor.dtype), []).append(tensor)

        # The same places in all outputs of a size: drawn after the calls were enqueued, so that no runner knows them.
        @functools.cache
        def drawn(count: int, device: torch.device) -> torch.Tensor:
            some = torch.randint(count, (ELEMENTS,), device=device)
            return some if count > ELEMENTS else torch.arange(count, device=device)

        groups = [_Alike(tensors, drawn(tensors[0].numel(), tensors[0].device)) for tensors in alike.values()]
        self._groups = {id(tensor): group for group in groups for tensor in group.tensors}
        large = [(group, row) for group in groups for row in group.large]
        for group, row in random.SystemRandom().sample(large, min(SUMS, len(large))):
            group.summed.append(row)
        self._summing = [group for group in groups if group.summed]
        units = {group.unit for group in groups}
        self._looks = [_Look([group for group in groups if group.unit == unit], unit) for unit in units]
        if groups and groups[0].tensors[0].is_cuda:
            torch.cuda.current_stream(groups[0].tensors[0].device).synchronize()

    def take(self) -> None:
        """Enqueue the first look on the current stream."""
        for look in self._looks:
            look.take()
        for group in self._summing:
            group.add_up()

    def output(self, call: int) -> Any:
        """The output of a call as it is now, copied. Raises LateOutput where it is not what was seen."""
        return self._copied(self._outputs[call])

    def inputs(self, call: int) -> list[torch.Tensor]:
        """The same of the inputs of a call."""
        return list(self._copied(self._inputs[call]))

    def _copied(self, its: Any) -> Any:
        changed: list[float] = []

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.numel():
                return tensor
            copy, share = self._groups[id(tensor)].copied(tensor)
            changed.append(share)
            return copy

        found = values.mapped(its, copied)
        if any(changed):
            raise LateOutput(max(changed))
        return found

    def together(self, calls: Sequence[int]) -> list[Any] | None:
        """The outputs of some calls as they are now, copied; None where any is not what was seen."""
        tensors = values.tensors([self._outputs[call] for call in calls])
        found = {id(tensor): tensor for tensor in tensors if not tensor.numel()}
        changed: list[torch.Tensor] = []
        for group in self._groups_of(tensors):
            some = [tensor for tensor in tensors if self._groups.get(id(tensor)) is group]
            copies, same = group.copies(some)
            changed.append(~same)
            found |= {id(tensor): copy for tensor, copy in zip(some, copies, strict=True)}
        if changed and bool(torch.stack(changed).any()):
            return None
        return [values.mapped(self._outputs[call], lambda tensor: found[id(tensor)]) for call in calls]

    def _groups_of(self, tensors: list[torch.Tensor]) -> list[_Alike]:
        return list({id(group): group for tensor in tensors if (group := self._groups.get(id(tensor)))}.values())


class _Alike:
    """Tensors of one shape, one dtype and the same strides, and the elements of each that are looked at."""

    def __init__(self, tensors: list[torch.Tensor], elements: torch.Tensor) -> None:
        self.tensors = tensors
        self._rows = {id(tensor): row for row, tensor in enumerate(tensors)}
        one = tensors[0]
        self.unit = min(one.element_size(), max(INTEGERS))
        lanes = one.element_size() // self.unit
        self._places = in_units(elements, lanes)
        # From a tensor's first element on, in units.
        self.offsets = in_units(offsets(elements, one.shape, one.stride()), lanes)
        # One row for each tensor.
        self.seen = self.offsets[:0]
        # Those of which the look does not have every element, and of these the ones that are added up.
        self.large = range(len(tensors)) if one.numel() > ELEMENTS else range(0)
        self.summed: list[int] = []
        self._word = _word(tensors)
        # torch converts before it adds: a sum of another width than its terms takes a copy of them, up to eight times
        # as large, behind the end mark. One of their own width wraps around, which hides nothing in 32 bits.
        self._total = self._word if self._word.itemsize >= 4 else torch.int64
        words = signed(one).view(self._word)
        self._shape = words.shape
        self._classes = secrets.choice(range(*CLASSES)) if _lies_together(words) else 0
        self._sums = [
            torch.zeros((len(tensors), *left[1:]), dtype=self._total, device=one.device)
            for some, dims in self._summands(words[None])
            for left in ([size for dim, size in enumerate(some.shape) if dim not in dims],)
        ]

    def _summands(self, stack: torch.Tensor) -> list[tuple[torch.Tensor, tuple[int, ...]]]:
        """Of a stack of tensors in words, what is added up along which dimensions."""
        if not self._classes:
            dims = tuple(range(1, stack.dim()))
            return [(stack, dims[1:]), (stack, dims[:-1])]
        flat = stack.view(len(stack), -1)
        whole = flat.shape[1] - flat.shape[1] % self._classes
        return [(flat[:, :whole].view(len(flat), -1, self._classes), (1,)), (flat[:, None, whole:], (1,))]

    def add_up(self) -> None:
        for row in self.summed:
            words = signed(self.tensors[row]).view(self._word)
            for (some, dims), sums in zip(self._summands(words[None]), self._sums, strict=True):
                # In memory of before: an allocation behind the end mark could wait for the device.
                torch.sum(some, dims, dtype=self._total, out=sums[row : row + 1])

    def _same_sums(self, flat: torch.Tensor, rows: list[int]) -> torch.Tensor:
        """Whether copies, one in each row of `flat`, of the tensors in these `rows` have the sums that were seen."""
        unknown = torch.tensor([row not in self.summed for row in rows], device=flat.device)
        its = torch.tensor(rows, device=flat.device)
        stack = flat.view(self._word).view(len(rows), *self._shape)
        same = torch.ones_like(unknown)
        for (some, dims), sums in zip(self._summands(stack), self._sums, strict=True):
            same &= (some.sum(dims, dtype=self._total) == sums[its]).flatten(1).all(1)
        return (same | unknown).all()

    def copies(self, tensors: list[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
        """Some of the tensors as they are now, and whether what was seen is the same there (one bool, on the card)."""
        flat = torch.stack([signed(tensor) for tensor in tensors]).view(len(tensors), -1)
        rows = [self._rows[id(tensor)] for tensor in tensors]
        whole = rows == list(range(len(self.tensors)))
        seen = self.seen if whole else self.seen[torch.tensor(rows, device=flat.device)]
        same = (flat[:, self._places] == seen).all() & self._same_sums(flat, rows)
        one = self.tensors[0]
        return [row.view(one.dtype).view(one.shape) for row in flat], same

    def copied(self, tensor: torch.Tensor) -> tuple[torch.Tensor, float]:
        """The tensor as it is now, in memory of its own, and the share of what was seen that is not the same there."""
        flat = signed(tensor).clone(memory_format=torch.contiguous_format).view(-1)
        row = self._rows[id(tensor)]
        now, seen = flat[self._places], self.seen[row]
        share = (now != seen).float().mean().item()
        if not share and not bool(self._same_sums(flat[None], [row])):
            # Fewer than were looked at.
            share = 1 / flat.numel()
        return flat.view(tensor.dtype).view(tensor.shape), share


class _Look:
    """One gather for all tensors whose elements are looked at in integers of `unit` bytes."""

    def __init__(self, groups: list[_Alike], unit: int) -> None:
        tensors = [tensor for group in groups for tensor in group.tensors]
        device, first = tensors[0].device, min(tensor.data_ptr() for tensor in tensors)
        self._memory = as_bytes(first, ADDRESSES, device.index or 0).view(INTEGERS[unit])
        places = []
        for group in groups:
            begins = [(tensor.data_ptr() - first) // unit for tensor in group.tensors]
            places.append((torch.tensor(begins, device=device)[:, None] + group.offsets).flatten())
        self._places = torch.cat(places)
        # Allocated beforehand: an allocation behind the end mark could wait for the device.
        self._seen = torch.empty(len(self._places), dtype=INTEGERS[unit], device=device)
        for group, part in zip(groups, self._seen.split([len(some) for some in places]), strict=True):
            group.seen = part.view(len(group.tensors), -1)

    def take(self) -> None:
        torch.index_select(self._memory, 0, self._places, out=self._seen)


def _lies_together(words: torch.Tensor) -> bool:
    """Whether it can be looked at as one row."""
    try:
        words.view(-1)
    except RuntimeError:
        return False
    return True


def _word(tensors: list[torch.Tensor]) -> torch.dtype:
    """The widest integers that tensors of one shape can be added up in, where they lie: several elements in one, if
    their last dimension lies together."""
    own = signed(tensors[0]).dtype
    for wider in (torch.int64, torch.int32):
        if wider.itemsize > own.itemsize and all(_fits(tensor, wider) for tensor in tensors):
            return wider
    return own


def _fits(tensor: torch.Tensor, word: torch.dtype) -> bool:
    share = word.itemsize // tensor.element_size()
    *others, last = tensor.stride() or (0,)
    together = last == 1 and tensor.shape[-1] % share == 0 and not any(stride % share for stride in others)
    return together and not tensor.storage_offset() % share and not tensor.data_ptr() % word.itemsize


def signed(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements as signed integers, with the same strides."""
    if tensor.dtype is torch.complex128:
        tensor = torch.view_as_real(tensor)
    return tensor.view(INTEGERS[tensor.element_size()])
