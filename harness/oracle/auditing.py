"""Can a problem tell right from wrong? Known wrong answers must be refused on it, and known right ones accepted."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.oracle import controls
from harness.oracle.controls import Tried
from harness.oracle.expectation import Expectation
from harness.oracle.oracle import Oracle
from harness.oracle.stress import Stress

Sets = Iterable[tuple[str, Expectation]]
More = Callable[[Expectation], list[controls.Control]]
DRAWN = "drawn"


def negative(oracle: Oracle, other: Any, sets: Sets) -> list[Tried]:
    """What became of each wrong answer; one that gets through a set, the drawn inputs at first, is tried on the next.

    `other` is the reference's output for other drawn inputs. One set at a time is held.
    """
    return _tried(oracle, controls.negative(oracle.reference, other), sets, _simpler(oracle))


def decisive(oracle: Oracle, other: Any, sets: Sets) -> tuple[list[Tried], frozenset[str]]:
    """As `negative`, with the names of the sets that tell of something that no set before tells of: careless answers
    count here, too, which may be right on all inputs that there can be."""
    careless = controls.careless(oracle.reference)
    found = _tried(oracle, [*controls.negative(oracle.reference, other), *careless], sets, _simpler(oracle))
    refused = frozenset(one.refused_on for one in found) - {DRAWN, ""}
    return [one for one in found if one.control not in careless], refused


def positive(oracle: Oracle, sets: Sets, compiled: bool) -> list[Tried]:
    """What became of each right answer; `compiled` adds torch.compile, which takes its time."""
    return _tried(oracle, controls.positive(oracle.reference, compiled), sets)


def drawn_first(expected: Expectation, sets: Sets) -> Sets:
    """What to expect of drawn inputs before the stress sets."""
    return itertools.chain([(DRAWN, expected)], sets)


def binding(
    sets: Iterable[tuple[Stress, Expectation]],
    budget_s: float = math.inf,
    first_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[tuple[str, Expectation]]:
    """The stress sets that can refuse a candidate, by name, as far as the time goes.

    One is begun only if it fits in the budget when it takes as long as the one before, the first one `first_s`.
    """
    waiting = iter(sets)
    spent_s, next_s = 0.0, first_s
    while spent_s + next_s <= budget_s:
        begun = clock()
        one = next(waiting, None)
        if one is None:
            return
        if one[0].binding:
            yield one[0].name, one[1]
        # Before the next one is made.
        del one
        next_s = clock() - begun
        spent_s += next_s


def _simpler(oracle: Oracle) -> More:
    return functools.partial(controls.simpler, oracle.reference)


def _tried(oracle: Oracle, some: list[controls.Control], sets: Sets, more: More = lambda expected: []) -> list[Tried]:
    """`more` of them are known when it is known what to expect of the first set."""
    found: dict[str, Tried] = {}

    def unrefused() -> list[controls.Control]:
        return [control for control in some if control.name not in found or not found[control.name].refused_on]

    # Expectations are large, and take several runs of the reference: each set is made once, if a control needs it.
    waiting, first = iter(sets), True
    while unrefused() and (one := next(waiting, None)):
        if first:
            some, first = [*some, *more(one[1])], False
        for tried in controls.try_all(oracle, unrefused(), [one]):
            known = found.get(tried.control.name)
            if known is None or known.finding is None or tried.refused_on:
                found[tried.control.name] = tried
        # Before the next one is made.
        del one
        some = [control for control in some if control.name in found or not control.by_form]
    # What has been right on everything is no wrong answer.
    tried_all = (found[control.name] for control in some if control.name in found)
    return [one for one in tried_all if one.finding is not None]
