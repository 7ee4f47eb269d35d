"""Try known right and wrong answers on problems."""

from __future__ import annotations

import argparse
import ast
import contextlib
import sys

import msgspec
from rich.markup import escape

from harness import audit
from harness.commands import saying
from harness.errors import UsageError
from harness.reports import text
from harness.reports.terminal import audit_table
from harness.reports.terminal.consoles import Terminal


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    console = Terminal(stderr=arguments.format == "markdown")
    rows: list[audit_table.AuditRow] = []
    total = begun = 0

    def planned(count: int, sentence: str) -> None:
        nonlocal total
        total = count
        print(saying.said(sentence), file=sys.stderr)

    def started(title: str) -> None:
        nonlocal begun
        begun += 1
        status.update(escape(f"auditing {title} ({begun} of {total})"))

    with console.status("audit") as status:
        found = audit.run(
            arguments.problems,
            variants=arguments.variant or ["default"],
            constants=_constants(arguments.constant),
            device=arguments.device,
            compiled=arguments.compile,
            timeout_s=arguments.timeout,
            seed=arguments.seed,
            at_once=arguments.jobs,
            planned=planned,
            started=started,
        )
        # Whatever becomes of a row, its processes go.
        with contextlib.closing(found):
            for row in found:
                rows.append(row)
                said = text.clean(f"{row.problem} {row.variant}: {audit_table.line(row)}")
                place = f"[{len(rows)}/{total}]"
                console.print(f"{place} {row.verdict:<8} {said}", soft_wrap=True, markup=False, highlight=False)
    if arguments.format == "markdown":
        print(audit_table.page(rows), end="")
    else:
        audit_table.show(rows, console)
    return 3 if arguments.require and any(row.verdict != arguments.require for row in rows) else 0


def _constants(words: list[str]) -> dict[str, object]:
    constants: dict[str, object] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            constants[name] = ast.literal_eval(text)
            # As it is sent to the process that tries it.
            msgspec.json.encode(constants[name])
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            raise UsageError(f"--constant {word}: write it as NAME=VALUE, with a number or another literal") from None
    return constants
