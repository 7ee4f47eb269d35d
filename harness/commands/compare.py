"""Show two runs side by side."""

from __future__ import annotations

import argparse
import sys

from harness.errors import UsageError
from harness.reports import compare
from harness.reports.terminal import compare_table
from harness.reports.terminal.consoles import Terminal
from harness.store import listed, run_directory


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    (manifest_a, a), (manifest_b, b) = run_directory.read(arguments.run_a), run_directory.read(arguments.run_b)
    rows = compare.rows(a, b)
    failing = compare.failing(rows, [word.strip() for part in arguments.fail_on for word in part.split(",")])
    ends = [("A", listed.unfinished(a, manifest_a)), ("B", listed.unfinished(b, manifest_b))]
    still = [f"{letter}: {why}" for letter, why in ends if why]
    if still and arguments.fail_on:
        raise UsageError(f"--fail-on needs two finished runs; {'; '.join(still)}. The command of a run resumes it")
    notes = [*still, *compare.notes(rows, manifest_a, manifest_b)]
    heads = [("A", arguments.run_a, manifest_a), ("B", arguments.run_b, manifest_b)]
    if arguments.format == "html":
        from harness.reports.html import comparison

        print(comparison.report(rows, notes, heads), end="")
    else:
        console = Terminal()
        for head in heads:
            console.print(compare_table.head(*head), soft_wrap=True)
        compare_table.comparison(rows, notes, console)
    if failing:
        print(f"--fail-on: {compare.listed(failing)}", file=sys.stderr)
    return 3 if failing else 0
