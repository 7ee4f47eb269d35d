"""The results of `run_eval.py doctor` for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text


class Finding(Protocol):
    """One line of the table; `mend` says how to fix it, and is shown if it is not ok."""

    @property
    def name(self) -> str: ...
    @property
    def ok(self) -> bool: ...
    @property
    def found(self) -> str: ...
    @property
    def mend(self) -> str: ...


def show(findings: Sequence[Finding], console: Console) -> None:
    """Print a line for each finding; below it how to fix it, if something is missing."""
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column()
    for finding in findings:
        state = Text("ok", style="green") if finding.ok else Text("missing", style="yellow")
        words = Text(finding.found)
        if not finding.ok:
            words.append(f"\n-> {finding.mend}", style="dim")
        table.add_row(Text(finding.name), state, words)
    console.print(table)
