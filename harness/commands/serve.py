"""Evaluate what comes over HTTP."""

from __future__ import annotations

import argparse

import msgspec

from harness import config as configs
from harness.commands import elsewhere
from harness.commands.saying import said
from harness.errors import UsageError


def carry_out(arguments: argparse.Namespace, words: list[str]) -> int:
    """The exit code."""
    try:
        from harness.serve import command
        from harness.serve.service import Settings
    except ModuleNotFoundError as error:
        raise UsageError(f"serve needs {error.name}: pip install 'kernel-assay[serve]'") from error
    config = configs.load(arguments.config, arguments.set)
    replaced = {"problems": arguments.problems, "device": arguments.device}
    config = msgspec.structs.replace(config, **{name: value for name, value in replaced.items() if value is not None})
    settings = Settings(
        queue=arguments.queue,
        deadline_s=arguments.deadline,
        keep_s=arguments.keep,
        disk_bytes=int(arguments.max_disk * 1e9),
        allow_problem_source=arguments.allow_problem_source,
        share_card=arguments.share_card,
    )
    token = command.token(arguments.token_file)
    where = f"listening on http://{said(arguments.host)}:{arguments.port}, tasks in {said(arguments.dir)}"
    with elsewhere.workplace(arguments.executor, arguments.address) as place:
        command.run(
            config,
            arguments.dir,
            settings,
            host=arguments.host,
            port=arguments.port,
            token=token,
            most_body_mb=arguments.max_body,
            tell=lambda: print(where, flush=True),
            workplace=place,
        )
    return 0
