"""The inputs that candidates of one problem are tried on, and what to expect of them."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.judge.hard_turns import Expected
from harness.judge.reference import Reference
from harness.links.link import Draw
from harness.oracle.chunks import Few
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle, Sampled
from harness.oracle.stress import SETS, SIGNS, Stress

# Draws of a set to find out whether anything is asked on it.
LOOKS = 3
# Not Python's own, whose state a problem may set in get_inputs, and show in what it draws.
_rng = random.SystemRandom()
# The number of the first call's draw among what candidates meet; and of what they have met, how much at least is made
# anew for the next one, and more as long as that loads.
FIRST, RENEWED = -1, 6


@dataclass(frozen=True)
class _Kept:
    stress: Stress
    draw: Draw
    expected: Expectation


class TriedInputs:
    """The first call's inputs and the stress sets. With what to expect of them they are kept for the next candidates,
    if there is room (`keep`); else each candidate has its own.

    Each set is made of a draw of its own, and has that one's seed: what several had in common, and drawn inputs have
    not, would tell who remembers it that a call is a hard one. What to expect is found out after a candidate's call:
    a pause before it would tell, too.

    `decisive` names the sets that come first once the problem is open; until then those do that change least, since
    what they tell of, a candidate that looks at a part of its inputs does not see.
    """

    def __init__(self, reference: Reference, oracle: Oracle, draw: Draw, expected: Expectation, *, keep: bool) -> None:
        self.decisive: frozenset[str] = frozenset()
        self._is_open = False
        self._reference = reference
        self._oracle = oracle
        self._keep = keep
        self._first: tuple[Draw, Expectation] | None = (draw, expected) if keep else None
        self._kept: list[_Kept] = []
        # Of those and the first call's draw (FIRST), what a candidate has met.
        self._met: set[int] = set()
        # Those of them that the last candidate was refused on.
        self._refused_on: set[int] = set()
        # What a candidate was given of them.
        self._given: dict[int, Draw] = {}
        largest = reference.promises.largest(list(draw.inputs))
        # Whether sets change anything at all.
        self.changeable = bool(largest)
        # How many inputs a set changes in turn that changes the largest one alone.
        self._largest = max(1, len(largest))
        self._times = {one.name: oracle.times(one, list(draw.inputs)) for one in SETS}
        # Sets that nobody has been tried on.
        self._to_come = self.in_order() if keep else []
        # The set of the last call whose set was not kept before.
        self._last: _Kept | None = None
        # Names of those of which something could be expected.
        self._of_use: set[str] = set()

    def first(self) -> tuple[Draw, Expectation | None]:
        """The inputs of a candidate's first call, and what to expect if it is known."""
        if self._first is None:
            return self._reference.draw(), None
        self._met.add(FIRST)
        self._given[FIRST] = self._first[0]
        return self._first

    def drawn(self) -> Draw:
        """Some that are as they were drawn."""
        return self._first[0] if self._first else self._reference.draw()

    def refused_on(self, draw: Draw) -> None:
        """The candidate's answer to `draw`, if it is one of these, was wrong: it comes first if the same candidate is
        evaluated again (`renewing`)."""
        if self._last is not None and self._last.draw is draw and not any(one is draw for one in self._given.values()):
            self._keep_last()
        self._refused_on |= {number for number, given in self._given.items() if given is draw}

    def _keep_last(self) -> None:
        """Keep what a call has just been made on, in place of another one of that set."""
        assert self._last is not None
        known = [(one.stress.name, one.stress.turn) for one in self._kept]
        this = self._last.stress.name, self._last.stress.turn
        number = known.index(this) if this in known else len(known)
        self._kept[number:] = [self._last, *self._kept[number + 1 :]]
        self._met.add(number)
        self._given[number] = self._last.draw

    def open(self, decisive: frozenset[str]) -> None:
        """From now on it is candidates that meet them."""
        self.decisive, self._is_open = decisive, True
        self._met.clear()

    def stress_sets(self, few: Few | None = None) -> Iterator[tuple[Stress, Draw, Expected]]:
        """So that what time cuts off differs from candidate to candidate (`in_order`); made when first needed, of a
        `few` entries alone if there are any."""
        if not self._keep:
            for one in self.in_order():
                yield from self._made(one, few)
            return
        shuffled = _rng.sample(range(len(self._kept)), len(self._kept))
        for number in sorted(
            shuffled, key=lambda number: (number not in self._refused_on, self._place(self._kept[number].stress))
        ):
            known = self._kept[number]
            self._met.add(number)
            self._given[number] = known.draw
            yield known.stress, known.draw, functools.partial(_itself, known.expected)
        for one in list(self._to_come):
            yield from self._made(one, come=self._to_come.remove)
        for one in self._once_more():
            yield from self._made(one)

    def _once_more(self) -> list[Stress]:
        """Those among the first, where there is room: a second time, some as single calls, some in longer bursts."""
        return [one for one in self.in_order() if one.name in self.among_the_first] if self._keep else []

    @property
    def count(self) -> int:
        """How many `stress_sets` there may be."""
        return len(self.in_order()) + len(self._once_more())

    def asks(self, stress: Stress) -> bool:
        """Whether something is asked on a set, of some draw or other."""
        made = (one for _ in range(LOOKS) for one in self._made(stress))
        return stress.binding and any(expect() is not None for _, _, expect in made)

    def rounds(self, without: Collection[str] = ()) -> Iterator[tuple[Stress, Draw, Expected]]:
        """The sets of use again and again, but for those of some titles, in random order and of other draws: of a
        candidate that goes on, nothing says that it is as careful as before. Every other one is one of the first."""
        waiting: dict[bool, list[Stress]] = {True: [], False: []}
        while some := [one for one in self.in_order() if one.name in self._of_use and one.title not in without]:
            first = _rng.random() < 0.5
            if not waiting[first]:
                those = [one for one in some if (one.name in self.among_the_first) is first]
                waiting[first] = _rng.sample(those, len(those))
            if waiting[first]:
                yield from self._made(waiting[first].pop())

    def _made(
        self, one: Stress, few: Few | None = None, come: Callable[[Stress], None] | None = None
    ) -> Iterator[tuple[Stress, Draw, Expected]]:
        """A set of a draw of its own, between two of which nothing is held; nothing where it cannot be made. `come` is
        told when it is known what to expect of it."""
        draw = self._reference.draw()
        drawn, seed = list(draw.inputs), draw.seed
        drawn = few.inputs(drawn) if few else drawn
        made = next(self._oracle.stress_inputs(drawn, seed, [one]), None)
        if made is None:
            if come is not None:
                come(one)
            return
        stress, inputs = made
        before = drawn if self._oracle.compares(stress) else []
        draw = Draw(inputs=tuple(inputs), seed=seed)
        del made, drawn

        def expect() -> Expectation | Sampled | None:
            found = self._expect(stress, inputs, before, seed)
            if come is not None:
                come(one)
            if found is not None:
                self._of_use.add(stress.name)
            if self._keep and isinstance(found, Expectation):
                self._last = _Kept(stress, draw, found)
                if come is not None:
                    self._keep_last()
            return found

        yield stress, draw, expect

    @property
    def among_the_first(self) -> frozenset[str]:
        """Names of the sets that are tried whatever the time."""
        first = {one.name for one in SETS if self._oracle.comes_first(one)}
        if self._is_open and self._oracle.never_negative:
            # What is wrong below zero goes unseen where nothing drawn is there.
            first.add(SIGNS)
        return self.decisive | first

    def in_order(self) -> list[Stress]:
        """The sets for such a reference in random order, but for those that come first; these, and what alone tells of
        something, change each of several inputs in its turn, the others one of them."""
        some: list[Stress] = []
        for one in filter(self._oracle.suits, SETS):
            each = one.only or one.first or one.name in self.decisive
            turns = range(self._largest * self._times[one.name]) if each else [_rng.randrange(self._largest)]
            some += [replace(one, turn=turn) for turn in turns] if one.largest_only else [one]
        return sorted(_rng.sample(some, len(some)), key=self._place)

    def _place(self, stress: Stress) -> int:
        """The decisive sets and their like come first, then those that are for such a kind of reference and no other;
        last come those that refuse nobody. Whether a reference is of that kind is found out at the very first: a loop
        of its own does not say that it is a recurrence."""
        if stress.first and not self._is_open:
            return -1
        if stress.name in self.among_the_first or (stress.narrow and not self._is_open):
            return 0
        return 3 if not stress.binding else 1 if stress.only else 2

    def _expect(self, stress: Stress, inputs: list[Any], drawn: list[Any], seed: int) -> Expectation | Sampled | None:
        """What to expect of a set's inputs, which were made of the `drawn` ones."""
        if self._keep:
            return self._oracle.expect_stress(stress, inputs, drawn, seed)
        return self._oracle.sampled_stress(stress, inputs, drawn, seed)

    def renewing(self, *, again: bool = False) -> Iterator[bool]:
        """Makes anew what earlier candidates have met, decisive sets first; after each, whether that is enough.

        Who meets inputs may tell a later candidate of them, by ways that no sandbox closes (what is in the page cache).
        `again`: the candidate that comes is the last one once more. What that was refused on stays as it is: of wrong
        answers that few draws tell of, a second look at other draws would let half through.
        """
        self._given.clear()
        self._last = None
        if not again:
            self._refused_on.clear()
        return self._renewed()

    def _renewed(self) -> Iterator[bool]:
        met = sorted(
            _rng.sample(sorted(self._met - self._refused_on), len(self._met - self._refused_on)),
            key=lambda number: -1 if number == FIRST else self._place(self._kept[number].stress),
        )
        for count, number in enumerate(met, 1):
            draw = self._reference.draw()
            inputs = list(draw.inputs)
            if number == FIRST:
                self._first = draw, self._oracle.expect(inputs, draw.seed)
            else:
                # Where nothing can be expected of this draw, the one before stays.
                for stress, known in self._oracle.stress(inputs, draw.seed, [self._kept[number].stress]):
                    self._kept[number] = _Kept(stress, Draw(inputs=tuple(known.inputs), seed=draw.seed), known)
            self._met.discard(number)
            yield count >= RENEWED


def _itself(known: Expectation) -> Expectation:
    return known
