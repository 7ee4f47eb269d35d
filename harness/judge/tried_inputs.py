"""The inputs that candidates of one problem are tried on, and what to expect of them."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

from harness.judge.hard_turns import Expected
from harness.judge.reference import Reference
from harness.links.link import Draw
from harness.oracle.chunks import Few
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS, Stress

# Not Python's own, whose state a problem may set in get_inputs, and show in what it draws.
_rng = random.SystemRandom()
# The number of the first call's draw among what candidates meet; and of what they have met, how much at least is made
# anew for the next one, and more as long as that loads.
FIRST, RENEWED = -1, 6


class TriedInputs:
    """The first call's inputs and the stress sets. With what to expect of them they are kept for the next candidates,
    if there is room (`keep`); else each candidate has its own.

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
        self._kept: list[tuple[Stress, Expectation]] = []
        # Of those and the first call's draw (FIRST), what a candidate has met.
        self._met: set[int] = set()
        # Those of them that the last candidate was refused on.
        self._refused_on: set[int] = set()
        # What a candidate was given of them.
        self._given: dict[int, Draw] = {}
        # How many inputs a set changes in turn that changes the largest one alone.
        self._largest = max(1, len(reference.promises.largest(list(draw.inputs))))
        self._times = {one.name: oracle.times(one, list(draw.inputs)) for one in SETS}
        self._to_come = oracle.stress(list(draw.inputs), draw.seed, self.in_order()) if keep else iter(())

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
        self._refused_on |= {number for number, given in self._given.items() if given is draw}

    def open(self, decisive: frozenset[str]) -> None:
        """From now on it is candidates that meet them."""
        self.decisive, self._is_open = decisive, True
        self._met.clear()

    def stress_sets(self, few: Few | None = None) -> Iterator[tuple[Stress, Draw, Expected]]:
        """So that what time cuts off differs from candidate to candidate (`in_order`); made when first needed, of a
        `few` entries alone if there are any.

        Where expectations are too large to be kept, what to expect is found out after the call: a pause before it would
        tell of it.
        """
        if self._keep:
            shuffled = _rng.sample(range(len(self._kept)), len(self._kept))
            known_ones = sorted(
                shuffled, key=lambda number: (number not in self._refused_on, self._place(self._kept[number][0]))
            )
            for number in itertools.chain(known_ones, self._more_to_keep()):
                stress, known = self._kept[number]
                self._met.add(number)
                self._given[number] = Draw(inputs=tuple(known.inputs), seed=known.seed)
                yield stress, self._given[number], functools.partial(_itself, known)
            return
        for one in self.in_order():
            # Drawn anew, so that between two sets nothing is held.
            draw = self._reference.draw()
            drawn, seed = list(draw.inputs), draw.seed
            drawn = few.inputs(drawn) if few else drawn
            for stress, inputs in self._oracle.stress_inputs(drawn, seed, [one]):
                before = drawn if self._oracle.compares(stress) else []
                expect = functools.partial(self._oracle.sampled_stress, stress, inputs, before, seed)
                made = Draw(inputs=tuple(inputs), seed=seed)
                del draw, drawn, before, inputs
                yield stress, made, expect
                del made, expect
                break

    def in_order(self) -> list[Stress]:
        """The sets for such a reference in random order, but for those that come first; these change each of several
        inputs in its turn, the others one of them."""
        some: list[Stress] = []
        for one in filter(self._oracle.suits, SETS):
            each = one.only or one.name in self.decisive
            turns = range(self._largest * self._times[one.name]) if each else [_rng.randrange(self._largest)]
            some += [replace(one, turn=turn) for turn in turns] if one.largest_only else [one]
        return sorted(_rng.sample(some, len(some)), key=self._place)

    def _place(self, stress: Stress) -> int:
        """The decisive sets come first, then those that are for such a kind of reference and no other; last come those
        that refuse nobody."""
        if stress.name in self.decisive or (stress.narrow and not self._is_open):
            return 0
        return 3 if not stress.binding else 1 if stress.only else 2

    def _more_to_keep(self) -> Iterator[int]:
        for pair in self._to_come:
            self._kept.append(pair)
            yield len(self._kept) - 1

    def renewing(self, *, again: bool = False) -> Iterator[bool]:
        """Makes anew what earlier candidates have met, decisive sets first; after each, whether that is enough.

        Who meets inputs may tell a later candidate of them, by ways that no sandbox closes (what is in the page cache).
        `again`: the candidate that comes is the last one once more. What that was refused on stays as it is: of wrong
        answers that few draws tell of, a second look at other draws would let half through.
        """
        self._given.clear()
        if not again:
            self._refused_on.clear()
        return self._renewed()

    def _renewed(self) -> Iterator[bool]:
        met = sorted(
            _rng.sample(sorted(self._met - self._refused_on), len(self._met - self._refused_on)),
            key=lambda number: -1 if number == FIRST else self._place(self._kept[number][0]),
        )
        for count, number in enumerate(met, 1):
            draw = self._reference.draw()
            inputs = list(draw.inputs)
            if number == FIRST:
                self._first = draw, self._oracle.expect(inputs, draw.seed)
            else:
                # Where nothing can be expected of this draw, the one before stays.
                for pair in self._oracle.stress(inputs, draw.seed, [self._kept[number][0]]):
                    self._kept[number] = pair
            self._met.discard(number)
            yield count >= RENEWED


def _itself(known: Expectation) -> Expectation:
    return known
