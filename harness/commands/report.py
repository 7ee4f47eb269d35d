"""Show a run."""

from __future__ import annotations

import argparse
import sys

from harness.store import run_directory


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    if arguments.format == "terminal" and not arguments.claims and not arguments.samples:
        from harness.reports.terminal import leaderboard
        from harness.reports.terminal.consoles import Terminal

        manifest, records = run_directory.as_kept(arguments.run_dir)
        leaderboard.show(records, Terminal(), manifest, every=arguments.all)
        return 0
    manifest, records = run_directory.read(arguments.run_dir)
    if arguments.claims:
        from harness.reports import agreement

        print("\n".join(agreement.lines(records)))
    elif arguments.samples:
        from harness.reports import samples

        print(samples.to_csv(records), end="")
        if not samples.series(records):
            print("note: no problem of this run has several samples (sample_0, sample_1, ...)", file=sys.stderr)
    elif arguments.format == "csv":
        from harness.reports import rows

        print(rows.to_csv(records), end="")
    elif arguments.format == "html":
        from harness.reports.html import page

        print(page.report(records, manifest, arguments.run_dir), end="")
    elif arguments.format == "junit":
        from harness.reports import junit

        print(junit.xml(records, manifest), end="")
    else:
        from harness.reports import markdown

        print(markdown.leaderboard(records, manifest), end="")
    return 0
