"""What `run_eval.py profile` found, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from harness.instruments.insight import Insight
from harness.instruments.nsight import FIGURES
from harness.records import Record
from harness.reports import insights, text
from harness.reports.insights import Trouble
from harness.reports.terminal import styles

TONES = {"good": styles.GOOD, "doubt": styles.DOUBT, "bad": styles.BAD}


def show(insight: Insight, record: Record | None, console: Console) -> None:
    """Print the verdict and the roofline, and beside them what the instrument told."""
    if record is not None:
        console.print(Text(text.verdict(record), style="" if record.speedup else styles.STATUSES[record.status]))
        if said := insights.roofline(record):
            console.print(Text(said))
    found = insights.shown(insight)
    for tone, sentence in found.words:
        console.print(Text(sentence, style=TONES[tone]))
    for kernel in found.kernels:
        console.print(Text.assemble("\n", (kernel.name, "bold"), f" · {kernel.note}"))
        console.print(Padding(_figures(kernel.figures), (0, 0, 0, 2)))
    for trouble in found.troubles:
        _tell(trouble, console)
    if found.more:
        console.print(Text(found.more, style="dim"))
    for line in found.lines:
        console.print(Text(f"  {line}", style="dim"))


def _figures(cells: Sequence[tuple[str, str]]) -> Table:
    """Two figures a line."""
    table = Table.grid(padding=(0, 2))
    for _ in range(2):
        table.add_column(style="dim", min_width=max(len(figure.name) for figure in FIGURES))
        table.add_column(justify="right", min_width=10)
    half = (len(cells) + 1) // 2
    for row in range(half):
        right = cells[half + row] if half + row < len(cells) else ("", "")
        table.add_row(*cells[row], *right)
    return table


def _tell(trouble: Trouble, console: Console) -> None:
    note = f" · {trouble.note}" if trouble.note else ""
    console.print(Text.assemble((trouble.text, styles.BAD), note))
    for where, source_line in trouble.places:
        console.print(Text(f"  {where}"))
        if source_line:
            console.print(Text(f"    {source_line}", style="bold"))
    if trouble.more:
        console.print(Text(f"  {trouble.more}", style="dim"))
