"""The results of an audit, as a terminal table and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.records import Outcome
from harness.reports import markdown, text
from harness.reports.terminal import styles


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """One problem's audit: number of controls, wrong answers that passed, right ones that were refused, and what its
    inputs promise."""

    problem: str
    variant: str
    precision: str
    tried: int = 0
    accepted_wrong: list[str] = []
    refused_right: list[str] = []
    promises: list[str] = []
    fault: Outcome | None = None
    wall_s: float = 0.0

    @property
    def verdict(self) -> str:
        """`sound`, `weak` (a wrong answer passes), `strict` (a right one does not), or `unusable`."""
        if self.fault is not None:
            return "unusable"
        if self.accepted_wrong:
            return "weak"
        return "strict" if self.refused_right else "sound"


STYLES = {"sound": styles.GOOD, "weak": styles.BAD, "strict": styles.DOUBT, "unusable": styles.OURS}


def line(row: AuditRow) -> str:
    """What is wrong with a problem, in a clause, or the number of controls if nothing is; then its promises."""
    if row.fault is not None:
        return f"{row.fault.status} ({row.fault.reason}): {row.fault.message}"
    parts = []
    if row.accepted_wrong:
        parts.append(f"accepts wrong answers: {', '.join(row.accepted_wrong)}")
    if row.refused_right:
        parts.append(f"refuses right answers: {', '.join(row.refused_right)}")
    promised = [f"promises {one}" for one in row.promises]
    return "; ".join([*(parts or [f"all {row.tried} controls as expected"]), *promised])


def show(rows: Sequence[AuditRow], console: Console) -> None:
    """Print a line per problem, and a count."""
    table = Table(box=None, pad_edge=False)
    for title in ("problem", "variant", "precision", "verdict", "details"):
        table.add_column(title, overflow="fold", no_wrap=title in ("variant", "verdict"))
    for row in rows:
        verdict = Text(row.verdict, style=STYLES[row.verdict])
        words = (row.problem, row.variant, row.precision)
        table.add_row(*(Text(text.clean(word)) for word in words), verdict, Text(text.clean(line(row))))
    console.print(table)
    console.print(summary(rows))


def summary(rows: Sequence[AuditRow]) -> str:
    """Counts by verdict."""
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in STYLES}
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{len(rows)} {'audit' if len(rows) == 1 else 'audits'}: {words}"


def page(rows: Sequence[AuditRow]) -> str:
    """The problems that are not sound or promise something, as a Markdown table, and a count."""
    lines = ["| problem | verdict | details |", "|---|---|---|"]
    for row in rows:
        if row.verdict != "sound" or row.promises:
            lines.append(markdown.line(markdown.code(row.problem), row.verdict, markdown.escape(line(row))))
    return "\n".join([summary(rows), "", *lines, ""])
