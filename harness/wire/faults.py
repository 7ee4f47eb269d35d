"""Exceptions of candidates -> status, reason and a sentence. One place, for builder, runner and judge."""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from harness.catalog.sources import LoadFault
from harness.compile import hints
from harness.records import Outcome, Status
from harness.sandbox import enforcement

# Said by torch where a candidate reaches for CUDA on a machine that has none.
NO_CUDA = re.compile(
    r"not compiled with CUDA|requires CUDA support|no NVIDIA driver|No CUDA GPUs are available"
    r"|CUDA_HOME environment variable",
    re.I,
)
OUT_OF_MEMORY = re.compile(
    r"out of memory|can't allocate memory|Cannot allocate memory|DefaultCPUAllocator: not enough", re.I
)
RESOURCE_LIMITS = {
    "[Errno 11] Resource temporarily unavailable": "processes",
    "can't start new thread": "processes",
    "[Errno 24] Too many open files": "open_files",
    "[Errno 27] File too large": "file_size",
    "[Errno 28] No space left on device": "disk_full",
}
LIMIT_SIGNALS = {"SIGXFSZ": ("file_size", "a file grew over its limit"), "SIGXCPU": ("cpu_time", "its CPU time was up")}
DEVICE_FAULTS = (
    ("illegal memory access", "illegal_address"),
    ("CUDA_ERROR_ILLEGAL_ADDRESS", "illegal_address"),
    ("CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned_address"),
    ("CUDA_ERROR_ASSERT", "device_assert"),
    ("CUDA_ERROR_LAUNCH_FAILED", "launch_failure"),
    ("misaligned address", "misaligned_address"),
    ("device-side assert triggered", "device_assert"),
    ("unspecified launch failure", "launch_failure"),
    ("invalid configuration argument", "invalid_launch"),
    ("too many resources requested", "invalid_launch"),
    ("invalid argument", "invalid_launch"),
    ("no kernel image", "wrong_architecture"),
    ("illegal instruction", "illegal_instruction"),
)
DEVICE_WORDS = frozenset(word for _, word in DEVICE_FAULTS)
# Phases of a judge that come before it reads a problem's file.
BEFORE_THE_PROBLEM = ("judge", "ceilings")

# Characters of an exception that are kept at either end.
PRINTED = 50_000


def candidate_line(error: BaseException, path: Path) -> int:
    """The last line of the candidate's own file that the exception passed through; 0 where there is none."""
    if isinstance(error, LoadFault) and error.line:
        return error.line
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return (own[-1] or 0) if own else 0


def exception_name(error: BaseException) -> str:
    """The class, or for a LoadFault its reason, by which the judge tells them apart."""
    name = f"LoadFault:{error.reason}" if isinstance(error, LoadFault) else type(error).__name__
    return printed(lambda: name[:80])


def printed(text: Callable[[], str]) -> str:
    """`text()` as it can be sent and shown: valid Unicode, without control characters; a stand-in where it raises.

    An exception's own code makes its text, and a terminal obeys an escape sequence.
    """
    try:
        raw = str(text())
    except BaseException as error:
        return f"[printing the exception raised {type(error).__name__[:200]}]"
    if len(raw) > 2 * PRINTED:
        raw = raw[:PRINTED] + raw[-PRINTED:]
    whole = raw.encode(errors="replace").decode()
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in whole
    )


def classify(phase: str, exception: str, text: str, file: str, line: int, why_no_cuda: str) -> Outcome:
    """The outcome of an exception that a candidate raised in `phase` (load, call, ...)."""
    first = text.strip().partition("\n")[0][:500]
    where = f"{file}:{line}" if line else file
    evidence = {"exception": exception, "phase": phase, "line": line, "text": text[:2000]}
    if exception.startswith("LoadFault:"):
        reason = exception.partition(":")[2] or "exception"
        return Outcome(status=Status.LOAD_ERROR, reason=reason, message=first, evidence=evidence)
    if why_no_cuda and NO_CUDA.search(text):
        message = f"{where} needs a CUDA device: {why_no_cuda}"
        return Outcome(status=Status.UNSUPPORTED, reason="needs_cuda", message=message, evidence=evidence)
    if exception in ("ModuleNotFoundError", "ImportError") and (
        missing := re.search(r"No module named '([\w.]+)'", text)
    ):
        name = missing.group(1)[:100]
        message = f"{where} imports '{name}', which is not installed here"
        return Outcome(status=Status.UNSUPPORTED, reason=f"missing_module:{name}", message=message, evidence=evidence)
    if exception in ("OutOfMemoryError", "MemoryError") or OUT_OF_MEMORY.search(text):
        message = f"{where} ran out of memory: {first}"
        return Outcome(status=Status.OUT_OF_MEMORY, reason="out_of_memory", message=message, evidence=evidence)
    for words, reason in RESOURCE_LIMITS.items():
        if words in text:
            message = f"{where} met a limit of the sandbox: {first}"
            return Outcome(status=Status.RESOURCE_LIMIT, reason=reason, message=message, evidence=evidence)
    if exception == "NotImplementedError":
        mend = hints.hint(first)
        message = f"{where} says that it does not take this case: {first}" + (f" ({mend})" if mend else "")
        return Outcome(status=Status.UNSUPPORTED, reason="not_implemented", message=message, evidence=evidence)
    if exception == "LateCompile":
        return Outcome(status=Status.LOAD_ERROR, reason="late_compile", message=f"{where}: {first}", evidence=evidence)
    if exception == "PermissionError" or "Read-only file system" in first:
        first += (
            " (the sandbox leaves a candidate its own file, files named after it, and TMPDIR; docs/threat-model.md)"
        )
    if "Connection refused" in first:
        first += (
            " (the sandbox lets no process connect to a socket: tensors in shared memory reach workers that are forked"
            " after share_memory_(), not through a queue, nor by the sharing strategy file_system)"
        )
    status = Status.LOAD_ERROR if phase == "load" else Status.RUNTIME_ERROR
    reason = next((word for phrase, word in DEVICE_FAULTS if phrase in text), f"exception:{exception}")
    return Outcome(status=status, reason=reason, message=f"{where}: {exception}: {first}", evidence=evidence)


def of_problem(error: BaseException, path: Path, why_no_cuda: str) -> Outcome:
    """The outcome of an exception that the problem's own code raised: its fault or the machine's, no candidate's."""
    name, line = exception_name(error), candidate_line(error, path)
    found = classify("call", name, str(error), path.name, line, why_no_cuda)
    if found.status in (Status.OUT_OF_MEMORY, Status.UNSUPPORTED):
        return found
    return Outcome(status=Status.INVALID_REFERENCE, reason=found.reason, message=found.message, evidence=found.evidence)


def unopened(exit_code: int | None, phase: str, limit_s: float, log: str) -> Outcome | None:
    """The outcome where a judge died in `phase` of opening a problem, or hung (no exit code) until `limit_s`.

    None where that may be somebody else's doing: the problem's code runs in later phases only, and SIGKILL comes from
    outside, as from the kernel when memory runs out.
    """
    if phase in BEFORE_THE_PROBLEM or exit_code == -signal.SIGKILL:
        return None
    where = f"its phase '{phase}'"
    if exit_code is None:
        seen = f"had not opened the problem after limits.load_s + first_call_s + total_s = {limit_s:g} s, in {where}"
    else:
        seen = death(exit_code, where).message.removeprefix("the process ")
    message = f"the judge, which runs the problem's code, {seen}, in both of two tries; see {log}"
    evidence = {"phase": phase, "judge_exit_code": exit_code, "limit_s": limit_s}
    return Outcome(status=Status.INVALID_REFERENCE, reason="judge_lost", message=message, evidence=evidence)


def death(exit_code: int | None, phase: str, cause: str = "") -> Outcome:
    """The outcome of a runner that went away by itself, or was killed for a `cause` of the zygote's."""
    if cause == enforcement.CAUSE:
        message = "a layer of the sandbox could not be put in force, and so the process did nothing; its log says why"
        return Outcome(status=Status.HARNESS_ERROR, reason="sandbox", message=message)
    if cause:
        message = f"the process took more host memory than limits.host_memory_gb allows, in {phase}"
        return Outcome(status=Status.OUT_OF_MEMORY, reason=cause, message=message)
    if exit_code is not None and exit_code < 0:
        try:
            name = signal.Signals(-exit_code).name
        except ValueError:
            name = f"signal {-exit_code}"
        if name == "SIGKILL":
            message = f"the process was killed (SIGKILL) in {phase}, as the kernel does when memory runs out"
            return Outcome(status=Status.CRASHED, reason="signal:SIGKILL", message=message)
        if name in LIMIT_SIGNALS:
            reason, what = LIMIT_SIGNALS[name]
            return Outcome(status=Status.RESOURCE_LIMIT, reason=reason, message=f"{what} in {phase}")
        return Outcome(status=Status.CRASHED, reason=f"signal:{name}", message=f"the process died of {name} in {phase}")
    message = f"the process ended itself with code {exit_code} in {phase}"
    return Outcome(status=Status.CRASHED, reason=f"exit:{exit_code}", message=message)
