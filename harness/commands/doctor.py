"""Show what this machine lacks."""

from __future__ import annotations

import argparse
import dataclasses
import sys

import msgspec

from harness.doctor import examination
from harness.reports.terminal import doctor_table
from harness.reports.terminal.consoles import Terminal


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    findings = examination.examine()
    sentence = examination.conclusion(findings)
    lost = _lost(findings)
    if arguments.trial and not lost:
        # Not before it is known that torch is there.
        from harness.doctor import trial

        print("evaluating three candidates whose verdicts are known; this takes about a minute", file=sys.stderr)
        tried = trial.try_out(findings)
        findings += tried
        sentence = f"{sentence} {trial.conclusion(tried)}"
        lost = _lost(findings)
    if arguments.json:
        found = [dataclasses.replace(one, lack="") if one.ok else one for one in findings]
        print(msgspec.json.encode({"conclusion": sentence, "found": found}).decode())
    else:
        doctor_table.show(findings, sentence, Terminal())
    return 1 if lost else 0


def _lost(findings: list[examination.Diagnosis]) -> bool:
    return any(finding.vital and not finding.ok for finding in findings)
