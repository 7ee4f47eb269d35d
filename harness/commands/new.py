"""Write a working problem or candidate to begin with."""

from __future__ import annotations

import argparse

from harness.catalog import starting_points
from harness.commands.saying import quoted, said
from harness.options import options


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    write = {"problem": starting_points.problem, "solution": starting_points.solution}[arguments.kind]
    path = write(arguments.name, arguments.root)
    print(f"wrote {said(path)}")
    if arguments.kind == "problem":
        steps = [f"audit {quoted(path)} --variant small", f"new solution {arguments.name.removesuffix('.py')}/mine"]
    else:
        small = "small" in starting_points.variants(arguments.name, arguments.root)
        steps = [f"run {quoted(path)}{' --variant small' if small else ''}"]
    for step in steps:
        print(said(f"next: {options.typed()} {step}"))
    return 0
