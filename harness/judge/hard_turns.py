"""When a candidate meets hard inputs: some calls of a burst now and then, which to the runner are like any other."""

from __future__ import annotations

import contextlib
import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from harness.links.link import Draw
from harness.oracle.expectation import Expectation
from harness.oracle.factor import Factors
from harness.oracle.oracle import Sampled
from harness.oracle.stress import Stress

# Until so many have been hard ones that refuse, and for decisive ones, sets are begun for so many times the time that
# there is for them: of some problems most sets are out of the question, and a busy machine is slow with each.
FEWEST = 4
PATIENCE = 2
# A smaller share of all sets than this is told.
FEW = 0.25
# When all sets have had their turn, and the evaluation goes on, this share of its time goes to more of them on average,
# and at most so many times as much.
LATER_SHARE, LATER_MOST = 0.5, 2.0

# Finds out what to expect of a call on hard inputs; None where nothing can be.
Expected = Callable[[], Expectation | Sampled | None]


@dataclass(frozen=True)
class HardCall:
    """One call on a stress set; `warnings` takes what is said of a set that does not bind, `factors` what one that does
    has shown.

    `expected` tells what to expect; None where nothing can be. It may take a while, and is called after the call.
    Whatever is done to judge the call's answer is done within `charged`.
    """

    draw: Draw
    stress: Stress
    expected: Expected
    warnings: list[str]
    factors: Factors
    charged: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    def refuses(self) -> bool:
        """Whether a wrong answer refuses a candidate, and so an exception in place of one does."""
        with self.charged():
            return self.stress.binding and self.expected() is not None


class HardInputs:
    """One candidate's calls on the stress sets, handed out as far as the time goes.

    Behind the first one a set is begun only if it fits in what is left of `budget_s`, when it takes as long as the one
    before; several at once, when the first one takes `first_s`. That counts what it takes to make inputs, to find out
    what to expect and to compare: not the candidate's own calls, nor what is done to judge its others. Else one that
    is slow on hard inputs would meet no more of them. There is `PATIENCE` times as much for the first `decisive` ones,
    and until something could be expected of `FEWEST` that bind. `done` names the sets handed out of which something
    could be expected, `binding` counts those of them that bind, `warnings` has what was found on those that do not,
    `factors` what all others have shown, and `spent_s` is the time spent within `counted`.

    From `go_on` on there are further sets, from `rounds`. Up to `ahead` are made when the last ones are judged, not
    when they come: a pause before a call would tell of it. With none ahead, as where each takes much of the memory,
    they come one by one.
    """

    def __init__(
        self,
        sets: Iterator[tuple[Stress, Draw, Expected]],
        count: int,
        budget_s: float,
        first_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        ahead: int = 0,
        decisive: int = 0,
        rounds: Iterable[tuple[Stress, Draw, Expected]] = (),
    ) -> None:
        self.done: list[str] = []
        self.binding = 0
        self.warnings: list[str] = []
        self.factors = Factors()
        self.spent_s = 0.0
        self._charged_s = 0.0
        self._sets = sets
        self.count = count
        # There are no more, whatever the time.
        self._over = count == 0
        self._all_tried = False
        self._wanted = count > 0
        # Of these, those of the first round.
        self._taken = self._tried = 0
        self._budget_s = budget_s
        self._next_s = first_s
        self._clock = clock
        self.ahead = ahead
        self._decisive = decisive
        self._rounds = iter(rounds)
        self._ready: list[HardCall] = []
        # When the first pair began.
        self._begun_s = clock()
        # When, by the clock and by `_charged_s`, the further ones began.
        self._later: tuple[float, float] | None = None

    @property
    def lacking(self) -> str:
        """Why none could be used, in words, where there should have been hard inputs; else nothing."""
        if not self._wanted or self.binding:
            return ""
        nothing = "nothing could be expected of any hard input"
        in_time = " that there was time for; a larger check.stress_budget_s may help"
        return nothing if self._all_tried else nothing + in_time

    @property
    def few(self) -> str:
        """How many of all sets there was time or use for, in words, if these are few; else nothing."""
        if self._tried < FEW * self.count and not self._all_tried:
            return f"{self._tried} of {self.count} were tried in the time (check.stress_budget_s)"
        if len(self.done) < FEW * self.count:
            return (
                f"of {len(self.done)} of {self.count} something could be expected: the reference decides little there"
            )
        return ""

    @property
    def left(self) -> int:
        """How many calls are left, as far as can be foreseen; 0 if the time does not do for another one."""
        if self._ready:
            return max(len(self._ready), self._foreseen())
        return 0 if self._over or not self._fits(1) else self._foreseen()

    def _foreseen(self) -> int:
        if self.goes_on:
            return self.count
        in_time = math.inf if self._next_s <= 0 else (self._budget_s - self._charged_s) / self._next_s
        wanted = max(FEWEST - self.binding, self._decisive - self._taken) if self._still() else 0
        return int(max(1, min(self.count - self._taken, max(wanted, in_time))))

    def affordable(self, calls: int, pairs: int) -> float:
        """How often, for each pair that counts, one with so many calls takes `LATER_SHARE` of its time, by what each
        has taken until now. No sooner after a call than long after it: a rest would be a time for carelessness."""
        each_s = self._charged_s / max(1, self._taken)
        pair_s = (self._clock() - self._begun_s - self.spent_s) / max(1, pairs)
        return LATER_SHARE * pair_s / (pair_s + calls * each_s) if pair_s > 0 else LATER_SHARE

    @property
    def goes_on(self) -> bool:
        """Whether there are further rounds by now."""
        return self._later is not None

    def begin(self) -> None:
        """Now the first pair comes."""
        self._begun_s = self._clock()
        self.prepare()
        self.spent_s += self._clock() - self._begun_s

    def go_on(self) -> None:
        """From now on further rounds."""
        if self._later is None:
            self._sets = itertools.chain(self._sets, self._rounds)
            self._later, self._over = (self._clock(), self._charged_s), False

    def take(self, most: int = 1) -> list[HardCall]:
        """The next calls, up to `most` for one burst; empty if there are none."""
        if not self._ready:
            self._make(most)
        calls, self._ready = self._ready[:most], self._ready[most:]
        return calls

    def prepare(self, most: int = 1) -> None:
        """Make the next calls, where there is memory for them."""
        if self.ahead and not self._ready:
            self._make(most)

    def _make(self, most: int) -> None:
        calls = self._ready
        while not self._over and len(calls) < min(most, max(1, self.ahead)) and self._fits(len(calls) + 1):
            with self._charged():
                found = next(self._sets, None)
            if found is None:
                self._over = self._all_tried = True
                break
            self._taken += 1
            self._tried += self._later is None
            calls.append(self._call(*found))

    def _fits(self, calls: int) -> bool:
        if self._later is not None:
            since, charged_s = self._later
            later_s = self._charged_s - charged_s
            most_s = LATER_MOST * LATER_SHARE * (self._clock() - since - later_s)
            return later_s <= most_s + self._budget_s
        return (self._still() and calls == 1) or self._charged_s + calls * self._next_s <= self._budget_s

    def _still(self) -> bool:
        """Whether more are wanted whatever the budget: without them, drawn inputs alone would decide about a large
        problem's candidates on a busy machine."""
        wanting = self.binding < FEWEST or self._taken < self._decisive
        return wanting and (self._taken == 0 or self._charged_s < PATIENCE * self._budget_s)

    def _call(self, stress: Stress, draw: Draw, expect: Expected) -> HardCall:
        def expected() -> Expectation | Sampled | None:
            found = expect()
            if found is not None:
                if stress.name not in self.done:
                    self.done.append(stress.name)
                self.binding += stress.binding
            return found

        return HardCall(draw, stress, expected, self.warnings, self.factors, self._charged)

    @contextlib.contextmanager
    def _charged(self) -> Iterator[None]:
        begun = self._clock()
        try:
            yield
        finally:
            self._charged_s += self._clock() - begun

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """What is done inside, some calls from beginning to end, is spent on hard inputs."""
        begun, before, charged_s = self._clock(), self._taken, self._charged_s
        try:
            yield
        finally:
            self._next_s = (self._charged_s - charged_s) / max(1, self._taken - before)
            self.spent_s += self._clock() - begun


class HardTurns:
    """Spreads a candidate's hard calls over the pairs of its evaluation, of which `pairs` are sure to come.

    A call comes in a pair of its own: the baseline's turn, its length and the order are those of any other, but nothing
    of it counts. Before each pair that counts chance alone decides whether there is such a one first, and then whether
    there is another: nothing that a candidate can know tells of its next turn. Behind the sure pairs they go on: who is
    careful first would be careless then, in the pairs that decide.
    """

    def __init__(self, hard: HardInputs, pairs: int, rng: random.Random) -> None:
        self._hard = hard
        self._pairs = pairs
        self._rng = rng
        # Pairs that count, with the one that is next.
        self._begun = 0

    @property
    def spent_s(self) -> float:
        return self._hard.spent_s

    @property
    def ahead(self) -> int:
        """How many calls are made ahead at the most."""
        return self._hard.ahead

    def before_a_pair(self, most: int, share: float = 1.0) -> Iterator[list[HardCall]]:
        """The calls of each such pair before the next one that counts, up to `most` in a burst; this `share` of all
        that are due."""
        self._begun += 1
        if self._begun == 1:
            self._hard.begin()
        if self._begun > self._pairs and not self._hard.left:
            self._hard.go_on()
        yield from self._some(most, share)

    def before_singles(self) -> Iterator[list[HardCall]]:
        """The same before single calls, which come before every other pair."""
        yield from self._some(1, 1.0)

    def remaining(self, most: int) -> Iterator[list[HardCall]]:
        """All remaining calls of the first round, as far as the time allows, up to `most` for each burst."""
        while self._hard.left and not self._hard.goes_on:
            yield from self._taken(most)
        self._begun = max(self._begun, self._pairs)

    def _some(self, most: int, share: float) -> Iterator[list[HardCall]]:
        while left := self._hard.left:
            due = share * left / (self._pairs if self._hard.goes_on else max(1, self._pairs - self._begun + 1))
            calls = min(most, max(1, math.ceil(due)))
            odds = due / calls
            if self._hard.goes_on:
                odds = min(odds, share * self._hard.affordable(calls, self._begun))
            if self._rng.random() >= odds / (1 + odds):
                return
            yield from self._taken(calls)

    def _taken(self, most: int) -> Iterator[list[HardCall]]:
        with self._hard.counted():
            calls = self._hard.take(most)
            if calls:
                yield calls
            # Before the next ones are made.
            del calls
            self._hard.prepare(most)
