"""Turn candidates of others into a folder of problems and solutions."""

from __future__ import annotations

import argparse

from harness.commands.saying import quoted
from harness.config import PackConfig
from harness.options import options
from harness.packs import importing
from harness.reading.reading import Reader
from harness.reports import imported


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    fields = [f"{name.replace('-', '_')}_field" for name in options.FIELDS]
    wishes = PackConfig(
        level=arguments.level,
        problem=arguments.problem,
        blocks=arguments.blocks,
        **{name: getattr(arguments, name) for name in fields},
    )
    with Reader() as reader:
        manifest = importing.run(arguments.source, arguments.out, wishes, arguments.kernelbench, reader)
    for line in imported.lines(manifest, f"{options.typed()} run {quoted(importing.config(arguments.out))}"):
        print(line)
    return 3 if arguments.require and manifest.left else 0
