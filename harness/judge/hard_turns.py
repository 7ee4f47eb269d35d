"""When a candidate meets hard inputs: one call of a burst now and then, which to the runner is like any other."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.links.link import Draw
from harness.oracle.expectation import Expectation
from harness.oracle.factor import Factors
from harness.oracle.stress import Stress

# Finds out what to expect of a call on hard inputs; None where nothing can be.
Expected = Callable[[], Expectation | None]


@dataclass(frozen=True)
class HardCall:
    """One call on a stress set; `warnings` takes what is said of a set that does not bind, `factors` what one that does
    has shown.

    `expected` tells what to expect; None where nothing can be. It may take a while, and is called after the call.
    """

    draw: Draw
    stress: Stress
    expected: Expected
    warnings: list[str]
    factors: Factors


class HardInputs:
    """One candidate's calls on the stress sets, handed out one by one as far as the time goes.

    A set is begun only if it fits in what is left of `budget_s`, when it takes as long as the one before, the first
    `first_s`. `done` names the sets handed out of which something could be expected, `warnings` has what was found on
    those that do not bind, `factors` what all others have shown, and `spent_s` is the time spent within `counted`.
    """

    def __init__(
        self,
        sets: Iterator[tuple[Stress, Draw, Expected]],
        count: int,
        budget_s: float,
        first_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.done: list[str] = []
        self.warnings: list[str] = []
        self.factors = Factors()
        self.spent_s = 0.0
        self._sets = sets
        self._count = count
        self._taken = 0
        self._budget_s = budget_s
        self._next_s = first_s
        self._clock = clock

    @property
    def left(self) -> int:
        """How many calls are left; 0 if the time does not do for another one."""
        fits = self.spent_s + self._next_s <= self._budget_s
        return self._count - self._taken if fits else 0

    def take(self) -> HardCall | None:
        """The next call; None if there is none."""
        pair = next(self._sets, None) if self.left else None
        if pair is None:
            self._count = self._taken
            return None
        stress, draw, expect = pair
        self._taken += 1

        def expected() -> Expectation | None:
            found = expect()
            if found is not None:
                self.done.append(stress.name)
            return found

        return HardCall(draw, stress, expected, self.warnings, self.factors)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """What is done inside, a set from beginning to end, counts towards the budget."""
        begun = self._clock()
        try:
            yield
        finally:
            self._next_s = self._clock() - begun
            self.spent_s += self._next_s


class HardTurns:
    """Spreads a candidate's hard calls over the pairs of its evaluation.

    As many as leave few for each of the `pairs` that are sure to come, and before those that the baseline begins, so
    that its turn lies between a hard one's and a timed one's. What is done with a call before the next one is asked for
    counts towards the budget of hard inputs.
    """

    def __init__(self, hard: HardInputs, pairs: int, rng: random.Random) -> None:
        self._hard = hard
        self._pairs = pairs
        self._rng = rng
        self._begun = 0

    @property
    def spent_s(self) -> float:
        return self._hard.spent_s

    def before_a_pair(self, baseline_first: bool) -> Iterator[HardCall]:
        """The calls that are due before the next pair."""
        self._begun += 1
        pairs_left = max(1, self._pairs - self._begun + 1)
        if not baseline_first and pairs_left > 1:
            return
        share = 2 * self._hard.left / pairs_left
        for _ in range(math.floor(share + self._rng.random())):
            yield from self._next()

    def remaining(self) -> Iterator[HardCall]:
        """All remaining calls, as far as the time allows."""
        while self._hard.left:
            yield from self._next()

    def _next(self) -> Iterator[HardCall]:
        with self._hard.counted():
            hard = self._hard.take()
            if hard is not None:
                yield hard
