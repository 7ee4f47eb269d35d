"""The results of `run_eval.py doctor` for the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.reports.terminal import styles


class Finding(Protocol):
    """One line of the table; `lack` says what is wrong and `mend` how to fix it, where it is not ok. `heading` is above
    its part."""

    @property
    def name(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def found(self) -> str: ...
    @property
    def mend(self) -> str: ...
    @property
    def heading(self) -> str: ...
    @property
    def lack(self) -> str: ...


def show(findings: Sequence[Finding], conclusion: str, console: Console) -> None:
    """Print a line for each finding, below it how to fix it if something is missing, and the conclusion."""
    for heading, part in itertools.groupby(findings, key=lambda finding: finding.heading):
        if heading:
            console.print(Text(f"\n{heading}", style="bold"))
        table = Table.grid(padding=(0, 2))
        table.add_column(min_width=max(len(finding.name) for finding in findings))
        table.add_column(min_width=max(len(finding.lack) for finding in findings))
        table.add_column()
        for finding in part:
            state = Text("ok", style=styles.GOOD) if finding.ok else Text(finding.lack, style=styles.DOUBT)
            words = Text(finding.found)
            if not finding.ok:
                words.append(f"\n-> {finding.mend}", style="dim")
            table.add_row(Text(finding.name), state, words)
        console.print(table)
    console.print(f"\n{conclusion}", markup=False, highlight=False)
