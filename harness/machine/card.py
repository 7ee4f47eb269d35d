"""The state of the device around measurements: clocks, power, heat, throttling, and who else is using it.

Sources: NVML on a GPU, /proc and /sys on the CPU. No torch. Whatever cannot be read here is None in the state, and
costs nothing from then on; a measurement never fails because its circumstances are unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

import msgspec

# Seconds for which what was read at some cost is not read again.
REFRESH_S = 0.25

# What makes a reading unusable. A power cap is not among them: dense matrix products run into it on every large card,
# so it belongs to the program that draws the power, and dropping its readings would leave none.
SPOILING = frozenset({"thermal", "hw_slowdown", "power_brake", "sync_boost", "reliability"})
# Share of the time between two looks for which a counted slowdown must have lasted.
SLOWED_SHARE = 0.01
# Share of the device that others may use: a GPU is time-sliced, so any is felt; cores left idle are not.
OTHERS_ON_A_GPU = 0.05
OTHERS_ON_A_CPU = 0.25
# The word for a reading beside other programs.
DISTURBED = "disturbed"

# What a summary gives the range of, and what can be known of each kind of device.
RANGES = ("clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "pstate", "others", "others_share", "load_1min")
KNOWABLE = {
    "cuda": (*RANGES[:-1], "throttle"),
    "cpu": ("clock_mhz", "throttle_events", "others_share", "load_1min"),
}


class State(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One look. None is "cannot be read here".

    `at_s` is on the monotonic clock. `clock_mhz` is that of the multiprocessors, or of the fastest core looked at;
    `power_w` is the driver's average, of up to a second. `throttle` names the reasons in force now, `throttled_ns` and
    `throttle_events` count them up since boot. `others` is the number of other processes that hold the GPU,
    `others_share` the part (0 to 1) of the device's time that they used of late. `load_1min` includes our own.
    """

    kind: str
    at_s: float
    clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    pstate: int | None = None
    throttle: tuple[str, ...] | None = None
    throttled_ns: dict[str, int] = {}
    throttle_events: int | None = None
    others: int | None = None
    others_share: float | None = None
    load_1min: float | None = None


class Card(Protocol):
    """A device that can be looked at. `state` never raises."""

    def state(self) -> State: ...


def unusable(before: State, after: State) -> str:
    """Why what was measured between two looks must not count: `throttled`, `disturbed`, or empty."""
    words = set(before.throttle or ()) | set(after.throttle or ())
    allowed_ns = SLOWED_SHARE * max(0.0, after.at_s - before.at_s) * 1e9
    for word, count in after.throttled_ns.items():
        if count - before.throttled_ns.get(word, count) > allowed_ns:
            words.add(word)
    events = None not in (before.throttle_events, after.throttle_events)
    if words & SPOILING or (events and (after.throttle_events or 0) > (before.throttle_events or 0)):
        return "throttled"
    limit = OTHERS_ON_A_GPU if after.kind == "cuda" else OTHERS_ON_A_CPU
    return DISTURBED if (after.others_share or 0.0) > limit else ""


class Watch:
    """Looks at a card again and again, and keeps what a record needs: extremes and counts, not every state."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._first: State | None = None
        self._last: State | None = None
        self._looks = 0
        self._ranges: dict[str, tuple[float, float]] = {}
        self._throttle: Counter[str] = Counter()
        self._unusable: Counter[str] = Counter()

    def look(self) -> str:
        """Look once; the answer says (see `unusable`) whether what happened since the last look may count."""
        state = self._card.state()
        word = unusable(self._last, state) if self._last else ""
        self._first = self._first or state
        self._last = state
        self._looks += 1
        self._throttle.update(state.throttle or ())
        self._unusable.update([word] if word else [])
        for name in RANGES:
            value = getattr(state, name)
            if value is not None:
                low, high = self._ranges.get(name, (value, value))
                self._ranges[name] = (min(low, value), max(high, value))
        return word

    def __enter__(self) -> Watch:
        self.look()
        return self

    def __exit__(self, *_: object) -> None:
        self.look()

    def summary(self) -> dict[str, Any]:
        """What was seen, as JSON of bounded size: `first` and `last` state, [min, max] of each quantity that could
        be read, how many looks found each throttle reason, and how many intervals were unusable, by word. `unknown`
        names what could not be read."""
        if self._first is None or self._last is None:
            return {"looks": 0}
        return {
            "looks": self._looks,
            "seconds": round(self._last.at_s - self._first.at_s, 3),
            "first": _without_time(self._first),
            "last": _without_time(self._last),
            "ranges": {name: list(ends) for name, ends in self._ranges.items()},
            "throttle": dict(self._throttle),
            "unusable": dict(self._unusable),
            "unknown": [name for name in KNOWABLE[self._last.kind] if getattr(self._last, name) is None],
        }


def _without_time(state: State) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(state)
    del known["at_s"]
    return known
