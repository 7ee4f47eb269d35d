"""Print the completion for a shell."""

from __future__ import annotations

import argparse

from harness.options import options


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    print(options.completion(arguments.shell))
    return 0
