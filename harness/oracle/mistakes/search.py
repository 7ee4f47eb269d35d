"""Which usual mistake an output is: the reference runs again with one kind of call exchanged, and is compared."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch.overrides import TorchFunctionMode

from harness.oracle.mistakes import arguments, norms, windows
from harness.oracle.mistakes.call import Call, Mistake, floating

# Runs of the reference that a search costs at most.
MOST = 20
# What a model calls more often than that is exchanged in all places only.
SINGLES = 4
# On a card, numbers out of range that reach these end the judge's own process: an assertion of the device.
_ASSERTING = frozenset(("binary_cross_entropy", "bernoulli", "multinomial"))
_CASTS = frozenset(("long", "int", "short", "to", "type"))

_KINDS = (
    arguments.gelu,
    arguments.sums,
    arguments.losses,
    arguments.attention,
    norms.norms,
    norms.written_out,
    arguments.dimensions,
    arguments.products,
    windows.convolutions,
    windows.pools,
    arguments.layouts,
    arguments.left_out,
    arguments.tails,
    arguments.exponentials,
)


@dataclass(frozen=True)
class Found:
    """`mistake` explains an output. `place`: in which of its calls (None: all of them). `runs` of the reference."""

    mistake: Mistake
    place: int | None
    calls: int
    runs: int

    @property
    def words(self) -> str:
        """What follows "as PyTorch"."""
        where = f", in call {self.place + 1} of {self.calls}" if self.place is not None else ""
        here = f" (the reference: {self.mistake.instead})" if self.mistake.instead else ""
        words = self.mistake.words
        return f"{words if words.startswith('without') else f'with {words}'}{where}{here}"


class Exchanged(TorchFunctionMode):
    """Within it, calls that allow the mistake of those `words` make it: all, or the one in that `place`.

    `met` counts the calls for each mistake they allow. `fragile`: whether wrong numbers could harm the device, as what
    is asserted about, or as indices made of them.
    """

    def __init__(self, words: str = "", place: int | None = None) -> None:
        super().__init__()
        self.met: dict[Mistake, int] = {}
        self.fragile = False
        self._words = words
        self._place = place

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        call = Call.of(func, tuple(args), dict(kwargs or {}))
        made: Callable[[], Any] | None = None
        for mistake in _allowed(call):
            # Without what makes it, which holds the call's tensors.
            kept = replace(mistake, make=_nothing)
            number = self.met.get(kept, 0)
            self.met[kept] = number + 1
            if mistake.words == self._words and self._place in (None, number):
                made = mistake.make
        result = made() if made else call.result()
        cast = call.name in _CASTS and floating(call.input) and not floating(result)
        self.fragile |= cast or call.name in _ASSERTING
        norms.mark(call, result)
        return result


def _nothing() -> None:
    """Makes no mistake."""


def _allowed(call: Call) -> Iterator[Mistake]:
    for kind in _KINDS:
        try:
            yield from kind(call)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RuntimeError):
            # Arguments of another overload than is known here.
            continue


def search(
    run: Callable[[Exchanged], Any], fits: Callable[[Any], float | None], enough: float, broken: bool, until: float
) -> Found | None:
    """The mistake whose output `fits` best; `run` runs the reference in a mode and gives its output.

    `fits` answers with the error that is left, or None if the mistake explains nothing; the first that leaves no more
    than `enough` is taken. What overflows is tried first where the output is `broken`. At most `MOST` runs, none begun
    after `until` (monotonic clock).
    """
    looked = Exchanged()
    if _tried(run, looked) is None or looked.fragile:
        return None
    met = sorted(looked.met.items(), key=lambda item: _order(item[0], broken))
    trials: list[tuple[Mistake, int, int | None]] = [(mistake, calls, None) for mistake, calls in met]
    few = [(mistake, calls) for mistake, calls in met if 1 < calls <= SINGLES]
    trials += [(mistake, calls, place) for mistake, calls in few for place in range(calls)]
    best: tuple[float, Found] | None = None
    runs = 1
    for mistake, calls, place in trials:
        if runs >= MOST or time.monotonic() > until:
            break
        runs += 1
        output = _tried(run, Exchanged(mistake.words, place))
        left = None if output is None else fits(output)
        if left is not None and (best is None or left < best[0]):
            best = (left, Found(mistake, place, calls, runs))
            if left <= enough:
                break
    return best[1] if best else None


def _order(mistake: Mistake, broken: bool) -> tuple[bool, int]:
    return (broken and "maximum" not in mistake.words, mistake.rank)


def _tried(run: Callable[[Exchanged], Any], mode: Exchanged) -> Any | None:
    """None where foreign code raises on what a mistake makes of its numbers, or the device has no room for it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return run(mode)
    except Exception:
        return None
