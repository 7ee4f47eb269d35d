"""The build process: run a candidate's module so that its `load_inline` calls happen, and keep what they make.

Untrusted, like the runner: it executes the candidate. It never has a device, inputs or a reference's outputs.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import partial
from pathlib import Path
from types import ModuleType

import msgspec

from harness.catalog import modules
from harness.compile import diagnostics, extensions
from harness.compile.ways import order
from harness.records import Outcome, Status
from harness.runner import absent_card
from harness.wire import faults
from harness.wire.channel import Channel
from harness.wire.messages import (
    LONGEST_SAID,
    LONGEST_SENTENCE,
    LONGEST_SHOWN,
    MOST_WARNINGS,
    Build,
    BuildFailed,
    Built,
)

# Of a build beside evaluations, by `nice`: a machine of many builds keeps its cards fed.
NICENESS = 10


def main(channel_fd: int) -> None:
    """Serve one Build request, answer Built or BuildFailed, and end."""
    # Whoever waits for a card, or for what it has computed, has more of the cores. Not where the kernel shares them out
    # by sessions (sched_autogroup), of which each of our processes leads one: nice counts within a session only.
    os.nice(NICENESS)
    channel = Channel.from_fd(channel_fd, Build)
    request, _ = channel.receive(60.0)
    channel.send(build(request))


def build(request: Build) -> Built | BuildFailed:
    """Import the candidate, and construct its module if there is a problem to do it for."""
    path = Path(request.candidate)
    os.environ.setdefault("MAX_JOBS", "2")
    builder = extensions.Builder(
        Path(request.folder),
        request.why_no_cuda,
        ways=order.chosen(request.headers),
        prepared=Path(request.prepared) if request.prepared else None,
        arch=request.arch,
        place=str(path.parent),
    )
    extensions.intercept(builder)
    try:
        unconstructed = _carried_out(path, request, builder)
    except extensions.NeedsCuda as error:
        return BuildFailed(
            outcome=Outcome(status=Status.UNSUPPORTED, reason="needs_cuda", message=str(error)[:LONGEST_SENTENCE])
        )
    except BaseException as error:
        traceback.print_exc()
        sys.stderr.flush()
        return BuildFailed(outcome=_outcome(error, path, request, builder))
    return Built(
        libraries=builder.libraries,
        failures={key: text[:LONGEST_SAID] for key, text in builder.failures.items()},
        self_contained=builder.self_contained,
        warnings=[text[:LONGEST_SHOWN] for text in builder.warnings[:MOST_WARNINGS]],
        unconstructed=unconstructed[:LONGEST_SHOWN],
    )


def _carried_out(path: Path, request: Build, builder: extensions.Builder) -> str:
    """Import the candidate, and construct its module if there is a problem to do it for; what constructing raised.

    A file that asks whether there is a card is told of its runner's. One that goes on to use it cannot, here: it is
    carried out once more, by the truth.
    """
    if not request.absent_card:
        return _imported(path, request, builder)
    with absent_card.announced(request.arch, request.absent_card) as asked:
        try:
            unconstructed = _imported(path, request, builder)
        except Exception as error:
            if not asked or _by_compiler(error, builder):
                raise
        else:
            if not (asked and unconstructed):
                return unconstructed
    return _imported(path, request, builder)


def _imported(path: Path, request: Build, builder: extensions.Builder) -> str:
    module = modules.execute(path)
    return _construct(module, request, builder) if request.problem else ""


def _by_compiler(error: BaseException, builder: extensions.Builder) -> bool:
    text = faults.printed(partial(str, error))
    return extensions.ERROR_PREFIX in text or text in builder.failures.values()


def _construct(module: ModuleType, request: Build, builder: extensions.Builder) -> str:
    """Construct the candidate's module as the runner will, for the compiling on the way; what that raised, if it did.

    What else fails is the runner's to find out, which has a device; only compile failures count here.
    """
    _, make = modules.entry(module, ("ModelNew", "Model"))
    try:
        make(*modules.execute(Path(request.problem), request.overrides).get_init_inputs())
    except Exception as error:
        if _by_compiler(error, builder):
            raise
        text = faults.printed(partial(str, error))
        said = f"{faults.exception_name(error)}: {text.strip().partition(chr(10))[0]}"
        print(f"constructing raised {said}", file=sys.stderr)
        return said
    return ""


def _outcome(error: BaseException, path: Path, request: Build, builder: extensions.Builder) -> Outcome:
    text = str(error)
    if text in builder.failures.values():
        return _compile_error(error, text, path)
    line = faults.candidate_line(error, path)
    name, outside = faults.exception_name(error), faults.outside(error, path)
    return faults.classify("load", name, text, path.name, line, request.why_no_cuda, outside)


def _compile_error(error: BaseException, text: str, path: Path) -> Outcome:
    found = diagnostics.errors(text, path)
    if not found and extensions.ERROR_PREFIX not in text:
        # Compilers were never reached: no ninja, no nvcc, wrong arguments.
        line = faults.candidate_line(error, path)
        return Outcome(
            status=Status.COMPILE_ERROR,
            reason="no_build",
            message=f"{path.name}:{line}: {text.partition(chr(10))[0][:500]}",
            evidence={"exception": type(error).__name__},
        )
    found = found or [diagnostics.first_error(text, path)]
    first = found[0]
    if first.line:
        where = f"{path.name}:{first.line}"
    elif first.generated_file:
        where = f"{path.name} ({first.generated_file}:{first.generated_line})"
    else:
        where = path.name
    return Outcome(
        status=Status.COMPILE_ERROR,
        # Built, but what it needs of itself is defined nowhere.
        reason="compiler" if extensions.ERROR_PREFIX in text else "undefined_symbol",
        message=f"{where}: {first.text}"
        + (f" | {first.source_line}" if first.source_line else "")
        + (f" ({first.hint})" if first.hint else ""),
        evidence={
            "line": first.line,
            "source_line": first.source_line,
            "errors": msgspec.to_builtins(found),
            "output_tail": text[-4000:],
        },
    )
