"""Show what this machine lacks."""

from __future__ import annotations

import argparse

import msgspec
from rich.console import Console

from harness import doctor
from harness.reports import doctor_table


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    findings = doctor.examine()
    if arguments.json:
        print(msgspec.json.encode({"conclusion": doctor.conclusion(findings), "found": findings}).decode())
    else:
        doctor_table.show(findings, doctor.conclusion(findings), Console())
    return 1 if any(finding.vital and not finding.ok for finding in findings) else 0
