"""Compile candidates and show what their kernels use, without a GPU."""

from __future__ import annotations

import argparse
import contextlib
import sys

from rich.markup import escape

from harness import check, environment
from harness.reports import text
from harness.reports.terminal import check_table
from harness.reports.terminal.consoles import Terminal


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    console = Terminal()
    rows = []
    with console.status("check") as status:
        found = check.run(
            arguments.files,
            problems=arguments.problems,
            architecture=arguments.arch,
            logs=arguments.out,
            timeout_s=arguments.timeout,
            at_once=arguments.jobs or max(1, environment.cores() // 2),
            started=lambda title: status.update(escape(f"checking {title}")),
            note=lambda words: print(f"note: {text.clean(words)}", file=sys.stderr),
        )
        # Whatever becomes of a row, its processes and folders go.
        with contextlib.closing(found):
            for row in found:
                rows.append(row)
                check_table.show(row, console)
    console.print(check_table.summary(rows))
    accepted = ("ok",) if arguments.require else ("ok", "unsure")
    return 0 if all(row.verdict in accepted for row in rows) else 3
