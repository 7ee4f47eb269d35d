"""What `get_inputs` promises of its floating tensors: what several draws share and chance does not explain.

A candidate may build on it, so hard inputs keep it: zeros in a fixed pattern, symmetry, labels of -1 and 1, rows that
sum to one. That numbers lie in some range is no promise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle import orders
from harness.oracle.orders import Order, Ordered
from harness.oracle.projections import Kept, all_same, mirrored, pieces, rows_along, same
from harness.oracle.properties import DIGITS, HEAD, FewValues, Integers, Property, Sorted, along, of_each
from harness.oracle.slices import blocks, coordinates, real, sample
from harness.oracle.structure import convert, flatten, tensors

# A promise is believed where chance makes it with a probability of 2**-30 at most; as many elements as that explains
# may be taken for fixed.
BITS = 30.0
# Draws to look at. More than the fewest only while something is neither sure nor gone, up to the most, and for small
# inputs up to `MOST_SMALL`.
FEWEST, MOST, MOST_SMALL = 3, 10, 40
SMALL = 1 << 22
# At the end, elements that chance explains may be this share of those that are taken for fixed.
CHANCE_SHARE = 0.01
# Positions at which values are kept, to find out how often two are equal by chance.
SAMPLED = 1 << 16
# What float32 arithmetic leaves of two numbers that should be equal: the diagonal of correlations, mirrored elements.
NEARLY = 2.0**-20


@dataclass(frozen=True)
class Promises:
    """By position among the floating tensors that have elements; `words` names each promise for people."""

    kept: tuple[Kept, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words)

    def of(self, position: int) -> Kept | None:
        """What a tensor promises; None where that is nothing."""
        kept = self.kept[position] if self.words else None
        return None if kept is None or kept.nothing else kept

    def changed(
        self, drawn: list[Any], change: Callable[[torch.Tensor], torch.Tensor], turn: int | None = None
    ) -> list[Any]:
        """New inputs, whose floating tensors are `change` of the drawn ones with what these promise.

        Tensors without a change are the drawn ones themselves; a `turn` leaves all but one of the `largest` so.
        """
        largest = self.largest(drawn)
        only = None if turn is None or not largest else largest[turn % len(largest)]
        # Of each floating tensor that has elements, the drawn one and the new one.
        made: list[tuple[torch.Tensor, torch.Tensor]] = []

        def new(tensor: torch.Tensor) -> torch.Tensor:
            kept = self.of(len(made))
            if kept is not None and kept.copy_of is not None:
                before, after = made[kept.copy_of]
                if after is before:
                    return tensor
                return (after.mT if kept.transposed else after).clone(memory_format=torch.contiguous_format)
            if kept is not None and kept.whole:
                return tensor
            if only not in (None, len(made)):
                after = tensor
            else:
                after = change(tensor) if kept is None else kept.changed(tensor, change)
            return after if kept is None else _ordered(tensor, after, made, kept)

        def replaced(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.is_complex() and tensor.numel() and only is None:
                return torch.complex(change(tensor.real.contiguous()), change(tensor.imag.contiguous()))
            if not tensor.is_floating_point() or tensor.numel() == 0:
                return tensor
            made.append((tensor, new(tensor)))
            return made[-1][1]

        result: list[Any] = convert(list(drawn), replaced)
        return result

    def largest(self, drawn: list[Any]) -> list[int]:
        """The numbers of the floating tensors that can be changed and are as large as any. A scale or a temperature
        that comes before the data is none of them."""
        sizes: dict[int, int] = {}
        for number, (_, tensor) in enumerate(leaves(drawn)):
            kept = self.of(number)
            if kept is None or (kept.copy_of is None and not kept.whole):
                sizes[number] = tensor.numel()
        return [number for number, size in sizes.items() if size == max(sizes.values())]


NOTHING = Promises()


def leaves(inputs: list[Any]) -> list[tuple[str, torch.Tensor]]:
    """The floating tensors that have elements, with their paths, in the order of `Promises`."""
    found = ((path, leaf) for path, leaf in flatten(inputs, "input") if isinstance(leaf, torch.Tensor))
    return [(path, leaf) for path, leaf in found if leaf.is_floating_point() and leaf.numel()]


def find(first: list[Any], draw: Callable[[], list[Any]]) -> Promises:
    """What `first`, a draw that stays as it is, has in common with more of them; one at a time is held."""
    named = leaves(first)
    forms = [(tensor.shape, tensor.dtype) for _, tensor in named]
    looks = [_Look(tensor) for _, tensor in named]
    copies = list(_pairs(named))
    ordered = [order for order in _orders(named) if order.in_draw([tensor for _, tensor in named])]
    elements = sum(tensor.numel() for _, tensor in named)
    most = max(MOST, min(MOST_SMALL, SMALL // max(1, elements)))
    for count in range(2, most + 1 if named else 0):
        another = [tensor for _, tensor in leaves(draw())]
        if [(tensor.shape, tensor.dtype) for tensor in another] != forms:
            return NOTHING
        for look, tensor in zip(looks, another, strict=True):
            look.see(tensor, count)
        copies = [copy for copy in copies if copy.in_draw(another)]
        ordered = [order for order in ordered if order.in_draw(another)]
        del another
        bits = [copy.bits(looks[copy.position], count) for copy in copies] + [order.bits for order in ordered]
        if count >= FEWEST and _enough(bits, count, most) and all(look.settled(count, most) for look in looks):
            break
    if not looks or all(look.whole for look in looks):
        # Whoever draws nothing tells nothing.
        return NOTHING
    sure = {copy.position: copy for copy in reversed(copies) if copy.bits(looks[copy.position], count) >= BITS}
    kept, words = [], []
    for position, (look, (path, _)) in enumerate(zip(looks, named, strict=True)):
        copy = None if look.whole else sure.get(position)
        if copy is not None:
            kept.append(Kept(copy_of=copy.source, transposed=copy.transposed))
            words.append(f"{path}: {'the transpose of' if copy.transposed else 'equal to'} {named[copy.source][0]}")
        else:
            kept.append(look.kept(count))
            words += [f"{path}: {text}" for text in look.words(kept[-1])]
            if kept[-1].nothing:
                its = [order for order in ordered if order.bits >= BITS and max(order.low, order.high) == position]
                floors = tuple(order.low for order in its if order.high == position)
                ceilings = tuple(order.high for order in its if order.low == position)
                kept[-1] = Kept(floors=floors, ceilings=ceilings)
                words += [f"{path}: nowhere below {named[floor][0]}" for floor in floors]
                words += [f"{path}: nowhere above {named[ceiling][0]}" for ceiling in ceilings]
    return Promises(tuple(kept), tuple(words)) if words else NOTHING


def as_drawn(inputs: list[Any], drawn: list[Any]) -> bool:
    """Whether no floating or complex tensor differs from the drawn one."""
    pairs = zip(tensors(inputs), tensors(drawn), strict=True)
    return all(all_same(real(new), real(old)) for new, old in pairs if new.is_floating_point() or new.is_complex())


def _enough(bits: list[float], count: int, most: int) -> bool:
    """Whether all is sure after `count` draws that could become so in `most`."""
    return not any(b < BITS <= b * most / count for b in bits)


@dataclass(frozen=True)
class _Copy:
    """That a tensor equals an earlier one, or its transpose."""

    source: int
    position: int
    transposed: bool

    def in_draw(self, tensors: list[torch.Tensor]) -> bool:
        return _is_copy(tensors[self.position], tensors[self.source], self.transposed)

    def bits(self, look: _Look, count: int) -> float:
        return count * look.varying * look.rarity()


def _pairs(named: list[tuple[str, torch.Tensor]]) -> Iterator[_Copy]:
    for (i, (_, one)), (j, (_, other)) in itertools.combinations(enumerate(named), 2):
        for transposed in (False, True):
            if one.dtype is other.dtype and _is_copy(other, one, transposed):
                yield _Copy(i, j, transposed)
                break


def _orders(named: list[tuple[str, torch.Tensor]]) -> Iterator[Order]:
    for (i, (_, one)), (j, (_, other)) in itertools.permutations(enumerate(named), 2):
        if one.shape == other.shape and one.dtype is other.dtype and one.dtype in DIGITS:
            yield Order(i, j)


def _ordered(
    drawn: torch.Tensor, after: torch.Tensor, made: list[tuple[torch.Tensor, torch.Tensor]], kept: Kept
) -> torch.Tensor:
    """`after`, which a tensor has become, or as much of it as its floors and ceilings leave, which came before it."""
    bounds = kept.floors + kept.ceilings
    if not bounds or (after is drawn and all(new is old for old, new in (made[number] for number in bounds))):
        return after
    result = torch.empty_like(after, memory_format=torch.contiguous_format)
    for at in pieces(result):
        floors = [made[number][1][at] for number in kept.floors]
        result[at] = orders.between(after[at], floors, [made[number][1][at] for number in kept.ceilings])
    return result


def _is_copy(tensor: torch.Tensor, source: torch.Tensor, transposed: bool) -> bool:
    if transposed:
        if source.dim() < 2:
            return False
        source = source.mT
    if tensor.shape != source.shape:
        return False
    head = next(blocks(tensor.shape, HEAD))
    return bool(same(tensor[head], source[head]).all()) and all_same(tensor, source)


class _Look:
    """One tensor, draw by draw."""

    def __init__(self, first: torch.Tensor) -> None:
        self._first: torch.Tensor = first
        self._fixed: torch.Tensor | None = None
        self._count_fixed = first.numel()
        # Evidence by property and dimension, in bits; what some draw lacks is gone.
        self._properties: dict[tuple[int | None, Property], float] = dict.fromkeys(_imaginable(first), 0.0)
        self._repeated = [d for d in range(first.dim()) if first.shape[d] > 1]
        self._symmetric = first.dim() > 1 and first.shape[-1] == first.shape[-2] > 1
        self._unequal_pairs = 0
        self._begun = False
        self._positions = coordinates(sample(first.numel(), first.device, SAMPLED), first.shape)
        self._values = [first[self._positions].reshape(-1)]
        self._share: float | None = None

    @property
    def whole(self) -> bool:
        """Whether every draw was the same."""
        return self._count_fixed == self._first.numel()

    @property
    def varying(self) -> int:
        return self._first.numel() - self._count_fixed

    def see(self, tensor: torch.Tensor, count: int) -> None:
        """Another draw, the `count`-th. The first is looked at with the second, when it is known what is fixed."""
        if self._count_fixed:
            self._compare(tensor, count)
        self._values.append(tensor[self._positions].reshape(-1))
        self._share = None
        if self.whole:
            return
        for drawn in (tensor,) if self._begun else (self._first, tensor):
            self._look_at(drawn)
        self._begun = True
        if count >= FEWEST:
            # Nothing comes of what has told nothing so far.
            self._properties = {one: bits for one, bits in self._properties.items() if bits > 0}

    def settled(self, count: int, most: int) -> bool:
        """Whether more draws, up to `most`, would tell nothing new."""
        if self._count_fixed and self._chance_fixed(count) > 2.0**-BITS:
            return False
        if self.whole:
            return True
        bits = [self._bits_repeated(d, count) for d in self._repeated] + [self._bits_symmetric(count)]
        return _enough([*bits, *self._properties.values()], count, most)

    def kept(self, count: int) -> Kept:
        """What chance does not explain after so many draws."""
        if self.whole:
            return Kept(whole=True)
        explained = self._chance_fixed(count) <= CHANCE_SHARE * self._count_fixed
        properties = [one for one, bits in self._properties.items() if bits >= BITS]
        kinds = {(d, type(one)) for d, one in properties}
        # What says more says this, too.
        properties = [
            (d, one)
            for d, one in properties
            if not (isinstance(one, Integers) and (None, FewValues) in kinds)
            and not (isinstance(one, Ordered) and (d, Sorted) in kinds)
        ]
        return Kept(
            fixed=self._fixed if self._count_fixed and explained else None,
            repeated=tuple(d for d in self._repeated if self._bits_repeated(d, count) >= BITS),
            symmetric=self._bits_symmetric(count) >= BITS,
            properties=tuple(properties),
        )

    def words(self, kept: Kept) -> Iterator[str]:
        """A clause for each promise."""
        if kept.whole:
            yield "the same in every draw"
        if kept.fixed is not None:
            zeros = int(((self._first == 0) & kept.fixed).sum())
            share = self._count_fixed / self._first.numel()
            yield f"{share:.3g} of its elements the same in every draw, {zeros} of {self._count_fixed} zero"
        for dimension in kept.repeated:
            yield f"equal slices along dimension {dimension}"
        if kept.symmetric:
            yield "symmetric"
        for d, one in kept.properties:
            yield one.words if d in (None, self._first.dim() - 1) else f"{one.words}, along dimension {d}"

    def rarity(self) -> float:
        """In bits, how seldom two varying elements are equal by chance."""
        return -math.log2(self._commonest())

    def _compare(self, tensor: torch.Tensor, count: int) -> None:
        if self._fixed is None:
            self._fixed = torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)
        self._count_fixed = 0
        for at in pieces(tensor):
            still = self._fixed[at]
            if count == 2 or bool(still.any()):
                still &= _nearly_same(tensor[at], self._first[at])
                self._count_fixed += int(still.sum())
        if not self._count_fixed:
            self._fixed = None

    def _look_at(self, drawn: torch.Tensor) -> None:
        self._repeated = [d for d in self._repeated if _is_repeated(drawn, d)]
        self._symmetric = self._symmetric and self._is_symmetric(drawn)
        told: dict[tuple[int | None, Property], float] = {}
        for (d, one), before in self._properties.items():
            rows = rows_along(drawn, d)
            fixed = None if self._fixed is None else rows_along(self._fixed, d)
            if isinstance(one, FewValues):
                one.next_draw()
            elif not isinstance(one, Ordered) and one.bits(rows[next(blocks(rows.shape, HEAD, 1))], None) is None:
                continue
            bits = [one.bits(rows[at], None if fixed is None else ~fixed[at]) for at in pieces(rows, 1)]
            if None not in bits:
                told[d, one] = before + sum(b for b in bits if b is not None)
        self._properties = told

    def _is_symmetric(self, drawn: torch.Tensor) -> bool:
        """But for what rounding leaves in a few places of a product with its own transpose."""
        unequal, largest, furthest = 0, 0.0, 0.0
        for at in pieces(drawn):
            one, other = drawn[at], mirrored(drawn, at)
            differ = ~same(one, other)
            if bool(differ.any()):
                unequal += int(differ.sum())
                furthest = max(furthest, float((one - other).abs().max()))
                largest = max(largest, float(one.abs().max()))
                if not furthest <= max(NEARLY, 2 * 2.0 ** -DIGITS.get(drawn.dtype, 0)) * largest:
                    return False
        self._unequal_pairs = max(self._unequal_pairs, unequal)
        return 4 * unequal <= 3 * drawn.numel()

    def _bits_repeated(self, dimension: int, count: int) -> float:
        length = self._first.shape[dimension]
        return count * self.varying * (length - 1) / length * self.rarity()

    def _bits_symmetric(self, count: int) -> float:
        if not self._symmetric:
            return 0.0
        pairs = max(0.0, (self.varying - self._first.numel() / self._first.shape[-1]) / 2)
        # Some of the pairs are not equal: any choice of them would do.
        unequal = self._unequal_pairs / 2
        return count * ((pairs - unequal) * self.rarity() - (pairs if unequal else 0.0))

    def _chance_fixed(self, count: int) -> float:
        """How many elements would come out the same in all draws by chance."""
        if self.whole:
            # Each element that is not like most is one more coincidence.
            first = self._values[0]
            others = first.numel() - _most(first)
            return float(2.0 ** -(max(1, others) * (count - 1)))
        return float(self.varying * self._commonest() ** (count - 1))

    def _commonest(self) -> float:
        """An upper estimate of the share that the most common value has among elements that vary."""
        if self._share is None:
            values = torch.stack(self._values)
            if self._fixed is not None:
                values = values[:, ~self._fixed[self._positions].reshape(-1)]
            self._share = (_most(values) + 1) / (values.numel() + 1)
        return self._share


def _imaginable(tensor: torch.Tensor) -> Iterator[tuple[int | None, Property]]:
    """What a tensor may promise, as in `Kept.properties`."""
    if tensor.dtype not in DIGITS:
        return
    for d, length in enumerate(tensor.shape):
        yield from ((d, one) for one in along(length))
        if 1 < length <= orders.LONGEST:
            yield d, Ordered(length, BITS)
    yield from ((None, one) for one in of_each())


def _nearly_same(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Which elements are equal, but for `NEARLY` where the format has the digits and all are numbers."""
    if DIGITS.get(one.dtype, 0) < DIGITS[torch.float32] or not bool(other.isfinite().all()):
        return same(one, other)
    return (one - other).abs_() <= other.abs().mul_(NEARLY)


def _most(values: torch.Tensor) -> int:
    """How often the most common value is there."""
    return int(values.unique(return_counts=True)[1].max()) if values.numel() else 0


def _is_repeated(tensor: torch.Tensor, dimension: int) -> bool:
    first = tensor.narrow(dimension, 0, 1)
    second = tensor.narrow(dimension, 1, 1)
    head = next(blocks(first.shape, HEAD))
    if not bool(same(first[head], second[head]).all()):
        return False
    return all_same(tensor, first.expand_as(tensor))
