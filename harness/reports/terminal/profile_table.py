"""What `run_eval.py profile` found, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.instruments import sanitizer
from harness.instruments.nsight import FIGURES, Launch
from harness.instruments.sanitizer import Finding, Place
from harness.instruments.tools import NSIGHT
from harness.records import Record
from harness.reports import text
from harness.reports.terminal import styles

MOST_KERNELS, MOST_FINDINGS = 5, 10
# Of what a tool printed, where it has told nothing else.
LAST_LINES = 12


class Insight(Protocol):
    """What an instrument told (profile.Insight)."""

    @property
    def instrument(self) -> str: ...
    @property
    def launches(self) -> list[Launch]: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def fault(self) -> str: ...
    @property
    def failed(self) -> str: ...
    @property
    def said(self) -> str: ...


def show(insight: Insight, record: Record | None, console: Console) -> None:
    """Print the verdict and the roofline, and beside them what the instrument told."""
    if record is not None:
        console.print(Text(text.verdict(record), style="" if record.speedup else styles.STATUSES[record.status]))
        if said := roofline(record):
            console.print(Text(said))
    if insight.fault:
        console.print(Text.assemble(("nothing was looked into: ", styles.BAD), text.clean(insight.fault)))
    if insight.failed:
        console.print(Text.assemble(("the call ended early: ", styles.DOUBT), text.clean(insight.failed)))
    for part in (*_kernels(insight.launches), *_findings(insight.findings)):
        console.print(part)
    if insight.instrument != NSIGHT and not insight.fault and not insight.findings:
        console.print(_nothing_found(insight))
    if not insight.fault and not insight.launches and not insight.findings:
        for line in insight.said.splitlines()[-LAST_LINES:]:
            console.print(Text(f"  {text.clean(line)}", style="dim"))


def _nothing_found(insight: Insight) -> Text:
    """What no finding of a sanitizer means: only one that has looked at a whole call can say that nothing is wrong."""
    if insight.failed:
        return Text(f"{insight.instrument} found nothing wrong before that.", style=styles.DOUBT)
    if not sanitizer.is_complete(insight.said):
        return Text(f"{insight.instrument} did not come to its end: it has told nothing.", style=styles.BAD)
    return Text(f"{insight.instrument} found nothing wrong with this call.", style=styles.GOOD)


def roofline(record: Record) -> str:
    """The least time of a call at this device's best rates, and how near the candidate is; empty where not known."""
    timing = record.timing
    if timing is None or timing.floor_us is None:
        return ""
    bound = f" by {text.clean(timing.floor_bound)}" if timing.floor_bound else ""
    near = f"; it reaches {record.sol_fraction:.0%} of that speed" if record.sol_fraction is not None else ""
    least = text.duration(timing.floor_us / 1e3)
    return f"Roofline: a call takes at least {least}{bound} at this device's best rates{near}."


def _kernels(launches: Sequence[Launch]) -> Iterator[Text | Table | Padding]:
    """The kernels with the most time, each with the figures of its longest launch."""
    alike: dict[str, list[Launch]] = {}
    for launch in launches:
        alike.setdefault(launch.kernel, []).append(launch)
    total_us = sum(map(_us, launches))
    order = sorted(alike.values(), key=lambda members: -sum(map(_us, members)))
    for members in order[:MOST_KERNELS]:
        us = sum(map(_us, members))
        share = f" · {us / total_us:.0%} of the time" if total_us else ""
        count = f" · {len(members)} launches" if len(members) > 1 else ""
        longest = max(members, key=_us)
        shape = f" · grid {text.clean(longest.grid)} · block {text.clean(longest.block)}"
        yield Text()
        yield Text.assemble((text.clean(longest.kernel), "bold"), f"{share}{count}{shape}")
        yield Padding(_figures(longest), (0, 0, 0, 2))
    if len(order) > MOST_KERNELS:
        yield Text(f"and {len(order) - MOST_KERNELS} more kernels; the report has all", style="dim")


def _us(launch: Launch) -> float:
    return max(launch.figures.get("time", 0.0), 0.0)


def _figures(launch: Launch) -> Table:
    """Two figures a line."""
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(style="dim", min_width=max(len(figure.name) for figure in FIGURES))
        table.add_column(justify="right", min_width=10)
    cells = [
        (figure.name, _shown(launch.figures[figure.name], figure.unit))
        for figure in FIGURES
        if figure.name in launch.figures
    ]
    half = (len(cells) + 1) // 2
    for row in range(half):
        right = cells[half + row] if half + row < len(cells) else ("", "")
        table.add_row(*cells[row], *right)
    return table


def _shown(value: float, unit: str) -> str:
    if unit == "us":
        return text.duration(value / 1e3)
    if unit == "%":
        return f"{value:.1f}%"
    if unit.startswith("byte"):
        power = next((at for at in (4, 3, 2, 1) if value >= 10 ** (3 * at)), 0)
        return f"{value / 10 ** (3 * power):.3g} {' kMGT'[power].strip()}B{unit.removeprefix('byte')}"
    return f"{value:.3g}"


def _findings(findings: Sequence[Finding]) -> Iterator[Text]:
    for finding in findings[:MOST_FINDINGS]:
        times = f" · {finding.times} times" if finding.times > 1 else ""
        yield Text.assemble((text.clean(finding.text), styles.BAD), times)
        for place in finding.places:
            yield Text(f"  {_where(place)}")
            if place.source_line:
                yield Text(f"    {text.clean(place.source_line)}", style="bold")
        if finding.more:
            yield Text(f"  {text.clean(finding.more)}", style="dim")
    if len(findings) > MOST_FINDINGS:
        yield Text(f"and {len(findings) - MOST_FINDINGS} more; the log has all", style="dim")


def _where(place: Place) -> str:
    kernel = text.clean(place.kernel)
    if place.own_line:
        return f"line {place.own_line} of the candidate, in {kernel}"
    return f"{text.clean(place.file)}:{place.line}, in {kernel}" if place.line else f"in {kernel}"
