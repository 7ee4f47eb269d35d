"""The command line: each command is carried out by a file of `commands`, which is loaded only then."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gc
import importlib
import os
import resource
import sys
from collections.abc import Sequence
from types import ModuleType

from harness.commands import premises, saying, streams
from harness.errors import UsageError
from harness.options import options
from harness.processes import interruption

# The file of each command's name.
COMMANDS = {
    "run": "run",
    "new": "new",
    "check": "check",
    "audit": "audit",
    "report": "report",
    "compare": "compare",
    "import": "importing",
    "serve": "serve",
    "profile": "profile",
    "doctor": "doctor",
    "completion": "completion",
}
# What the system says about a path that it does not let us use.
REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the harness failed, 2 wrong usage, 3 a gate failed, and 128
    with the number of the signal that ended it."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Records of a large run are millions of objects in no circle. To look for circles among them after every 700 more,
    # as Python does, takes as long as reading them.
    gc.set_threshold(1_000_000)
    streams.see_to_them()
    # Descriptors in transit count against their user's limit. A candidate may send many that nobody receives, so this
    # process, which may have the same user, takes the largest limit that it can get.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with interruption.heard():
        return _exit_code(words)


def _exit_code(words: list[str]) -> int:
    # Without a command, the quickstart is run.
    resumes = words[:1] in ([], ["run"])
    try:
        arguments = options.parsed(words or ["run", options.QUICKSTART])
        if arguments.command is None:
            raise UsageError(f"choose a command: {', '.join(COMMANDS)}; see {options.typed()} --help")
        premises.check()
        command = importlib.import_module(f"harness.commands.{COMMANDS[arguments.command]}")
        return _carried_out(command, arguments, words)
    except UsageError as error:
        _say(f"error: {saying.said(error)}")
        return 2
    except KeyboardInterrupt as interrupt:
        saved = " Finished results are saved; run the same command to resume." if resumes else ""
        _say(f"Interrupted.{saved}")
        return interruption.exit_code(interrupt)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if resumes:
            _say("Nobody reads the output any more. Finished results are saved; run the same command to resume.")
        return 1 if resumes else 0
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if isinstance(error.filename, str | bytes) else ""
        if error.errno in REFUSALS and where and _is_given(os.fsdecode(error.filename), words):
            _say(f"error: {saying.said(error.strerror)}{saying.said(where)}")
            return 2
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        said = f"{saying.said(error.strerror)}{saying.said(where)}"
        saved = " Finished results are saved." if resumes else ""
        _say(f"error: {said}.{saved} Free some disk space")
        return 2


def _carried_out(command: ModuleType, arguments: argparse.Namespace, words: list[str]) -> int:
    try:
        code: int = command.carry_out(arguments, words)
    except SystemExit as error:
        # So rich ends a process whose output nobody reads; whatever else ends one stays.
        if isinstance(error.__context__, BrokenPipeError):
            raise error.__context__ from None
        raise
    return code


def _say(sentence: str) -> None:
    """The terminal may be gone, or its disk full."""
    with contextlib.suppress(OSError):
        print(sentence, file=sys.stderr)


def _is_given(place: str, words: list[str]) -> bool:
    """Whether a path is one of the command's words, or lies below one or above; any other is our own choice."""
    given = {os.path.abspath(part) for word in words for part in (word, word.partition("=")[2]) if part}
    return any(os.path.commonpath([os.path.abspath(place), one]) in (os.path.abspath(place), one) for one in given)
