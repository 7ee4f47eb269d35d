"""What an instrument told of a candidate, as terminal and page show it. No markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.instruments import sanitizer
from harness.instruments.insight import Insight
from harness.instruments.nsight import FIGURES, Launch
from harness.instruments.sanitizer import Finding, Place
from harness.instruments.tools import NSIGHT
from harness.records import Record
from harness.reports import text

MOST_KERNELS, MOST_FINDINGS = 5, 10
# Of what a tool printed, where it has told nothing else.
LAST_LINES = 12

Tone = Literal["good", "doubt", "bad"]


@dataclass(frozen=True)
class Kernel:
    """A kernel with the figures, name and value, of its longest launch."""

    name: str
    note: str
    figures: list[tuple[str, str]]


@dataclass(frozen=True)
class Trouble:
    """A finding of a sanitizer. `places` has where, and the line of the source, which may be empty."""

    text: str
    note: str
    places: list[tuple[str, str]]
    more: str


@dataclass(frozen=True)
class Shown:
    """All of an insight that people are shown. `more` says what was left out."""

    instrument: str
    words: list[tuple[Tone, str]]
    kernels: list[Kernel]
    troubles: list[Trouble]
    more: str
    lines: list[str]


def shown(insight: Insight) -> Shown:
    """The kernels with the most time, the first findings, and what it means that there are none."""
    nothing = not insight.fault and not insight.launches and not insight.findings
    kernels = _kernels(insight.launches)
    troubles = [_trouble(one) for one in insight.findings]
    left = len(kernels) - MOST_KERNELS, len(troubles) - MOST_FINDINGS
    more = f"and {left[0]} more kernels; the report has all" if left[0] > 0 else ""
    if left[1] > 0:
        more = f"and {left[1]} more; the log has all"
    return Shown(
        instrument=insight.instrument,
        words=list(_words(insight)),
        kernels=kernels[:MOST_KERNELS],
        troubles=troubles[:MOST_FINDINGS],
        more=more,
        lines=[text.clean(line) for line in insight.said.splitlines()[-LAST_LINES:]] if nothing else [],
    )


def roofline(record: Record) -> str:
    """The least time of a call at this device's best rates, and how near the candidate is; empty where not known."""
    timing = record.timing
    if timing is None or timing.floor_us is None:
        return ""
    bound = f" by {text.clean(timing.floor_bound)}" if timing.floor_bound else ""
    near = f"; it reaches {record.sol_fraction:.0%} of that speed" if record.sol_fraction is not None else ""
    least = text.duration(timing.floor_us / 1e3)
    return f"Roofline: a call takes at least {least}{bound} at this device's best rates{near}."


def _words(insight: Insight) -> Iterator[tuple[Tone, str]]:
    if insight.fault:
        yield "bad", f"nothing was looked into: {text.clean(insight.fault)}"
    if insight.failed:
        yield "doubt", f"the call ended early: {text.clean(insight.failed)}"
    if insight.instrument != NSIGHT and not insight.fault and not insight.findings:
        yield _nothing_found(insight)


def _nothing_found(insight: Insight) -> tuple[Tone, str]:
    """What no finding of a sanitizer means: only one that has looked at a whole call can say that nothing is wrong."""
    if insight.failed:
        return "doubt", f"{insight.instrument} found nothing wrong before that."
    if not sanitizer.is_complete(insight.said):
        return "bad", f"{insight.instrument} did not come to its end: it has told nothing."
    return "good", f"{insight.instrument} found nothing wrong with this call."


def _kernels(launches: Sequence[Launch]) -> list[Kernel]:
    """Those with the most time first."""
    alike: dict[str, list[Launch]] = {}
    for launch in launches:
        alike.setdefault(launch.kernel, []).append(launch)
    total_us = sum(map(_us, launches))
    return [_kernel(members, total_us) for members in sorted(alike.values(), key=lambda one: -sum(map(_us, one)))]


def _kernel(launches: Sequence[Launch], total_us: float) -> Kernel:
    longest = max(launches, key=_us)
    notes = [
        f"{sum(map(_us, launches)) / total_us:.0%} of the time" if total_us else "",
        f"{len(launches)} launches" if len(launches) > 1 else "",
        f"grid {text.clean(longest.grid)}",
        f"block {text.clean(longest.block)}",
    ]
    figures = [
        (figure.name, _value(longest.figures[figure.name], figure.unit))
        for figure in FIGURES
        if figure.name in longest.figures
    ]
    return Kernel(text.clean(longest.kernel), " · ".join(filter(None, notes)), figures)


def _us(launch: Launch) -> float:
    return max(launch.figures.get("time", 0.0), 0.0)


def _value(value: float, unit: str) -> str:
    if unit == "us":
        return text.duration(value / 1e3)
    if unit == "%":
        return f"{value:.1f}%"
    if unit.startswith("byte"):
        power = next((at for at in (4, 3, 2, 1) if value >= 10 ** (3 * at)), 0)
        return f"{value / 10 ** (3 * power):.3g} {' kMGT'[power].strip()}B{unit.removeprefix('byte')}"
    return f"{value:.3g}"


def _trouble(finding: Finding) -> Trouble:
    return Trouble(
        text=text.clean(finding.text),
        note=f"{finding.times} times" if finding.times > 1 else "",
        places=[(_where(place), text.clean(place.source_line)) for place in finding.places],
        more=text.clean(finding.more),
    )


def _where(place: Place) -> str:
    kernel = text.clean(place.kernel)
    if place.own_line:
        return f"line {place.own_line} of the candidate, in {kernel}"
    return f"{text.clean(place.file)}:{place.line}, in {kernel}" if place.line else f"in {kernel}"
