"""Exceptions of candidates -> status, reason and a sentence. One place, for builder, runner and judge."""

from __future__ import annotations

import builtins
import re
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

from harness import places
from harness.catalog.sources import LoadFault
from harness.compile import hints
from harness.config import Limits
from harness.errors import DOORS
from harness.records import Outcome, Status
from harness.sandbox import enforcement
from harness.wire import causes
from harness.wire.channel import NotSendable

# Said by torch where a candidate reaches for CUDA on a machine that has none.
NO_CUDA = re.compile(
    r"not compiled with CUDA|requires CUDA support|no NVIDIA driver|No CUDA GPUs are available"
    r"|CUDA_HOME environment variable",
    re.I,
)
# As glibc, torch's allocators and CUDA's libraries say it; a candidate may write "out of memory slots" about anything.
OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED"
    r"|DefaultCPUAllocator: (?:not enough|can't allocate) memory"
    r"|\[Errno 12\] Cannot allocate memory|Cannot allocate memory \(12\)|std::bad_alloc"
)
# What the kernel's refusals look like in an OSError, and a thread's in a RuntimeError.
SYSTEM_LIMITS = {
    "[Errno 11] Resource temporarily unavailable": "processes",
    "[Errno 24] Too many open files": "open_files",
    "[Errno 27] File too large": "file_size",
    "[Errno 28] No space left on device": "disk_full",
}
THREAD_LIMIT = "can't start new thread"
LIMIT_SIGNALS = {"SIGXFSZ": ("file_size", "a file grew over its limit"), "SIGXCPU": ("cpu_time", "its CPU time was up")}
# CUDA's errors by the driver's name for them, by words that nobody else uses, and by words that may mean anything, and
# count only at the end of a sentence that names CUDA before ("CUDA error: invalid argument").
DEVICE_CODES = {
    "ILLEGAL_ADDRESS": "illegal_address",
    "MISALIGNED_ADDRESS": "misaligned_address",
    "ASSERT": "device_assert",
    "LAUNCH_FAILED": "launch_failure",
    "ILLEGAL_INSTRUCTION": "illegal_instruction",
}
DEVICE_PHRASES = {
    "an illegal memory access was encountered": "illegal_address",
    "device-side assert triggered": "device_assert",
    "unspecified launch failure": "launch_failure",
    "invalid configuration argument": "invalid_launch",
    "too many resources requested for launch": "invalid_launch",
    "no kernel image is available for execution on the device": "wrong_architecture",
    "an illegal instruction was encountered": "illegal_instruction",
}
AMBIGUOUS_PHRASES = {
    "misaligned address": "misaligned_address",
    "invalid argument": "invalid_launch",
    "out of memory": "out_of_memory",
}
CUDA_CODE = re.compile(rf"\bCUDA_ERROR_({'|'.join(DEVICE_CODES)})\b")
CUDA_PHRASE = re.compile("|".join(DEVICE_PHRASES))
CUDA_SENTENCE = re.compile(rf"cuda[^\n]{{0,300}}: ({'|'.join(AMBIGUOUS_PHRASES)})(?=[ \t]*(?:$|[\n.;,(]))", re.I)
DEVICE_WORDS = frozenset((*DEVICE_CODES.values(), *DEVICE_PHRASES.values(), "misaligned_address", "invalid_launch"))
# Of a call with arguments that a method does not take, as Python says it.
TOO_MANY = re.compile(
    r"(?P<method>forward|__init__)\(\) takes (?:from \d+ to )?(?P<most>\d+) positional arguments? "
    r"but (?P<given>\d+) (?:was|were) given"
)
TOO_FEW = re.compile(r"(?P<method>forward|__init__)\(\) missing \d+ required positional arguments?: (?P<names>.+)")
# What a process has done that died of a signal, mostly.
USUALLY = {
    "SIGSEGV": "it read or wrote memory that is not its own, as an index out of bounds does",
    "SIGABRT": "it called abort, as an uncaught C++ exception does",
    "SIGFPE": "it divided an integer by zero",
}
# Phases of a judge that come before it reads a problem's file.
BEFORE_THE_PROBLEM = ("judge", "ceilings")

# The reason of a problem that the harness has no room to judge: no candidate's doing.
NEEDS_MEMORY = "needs_memory"
# What the machine lacks, whoever asks for it; a problem that asks for anything else that is not there is at fault.
LACKS = ("needs_cuda", "needs_compiler", NEEDS_MEMORY)
# How places in our own files begin.
OURS = "harness/"
ODD = "what it has registered or returned is something that cannot be handled"
# Characters of an exception that are kept at either end.
PRINTED = 50_000


def candidate_line(error: BaseException, path: Path) -> int:
    """The last line of the candidate's own file that the exception passed through; 0 where there is none."""
    if isinstance(error, LoadFault) and error.line:
        return error.line
    own = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return (own[-1] or 0) if own else 0


def outside(error: BaseException, path: Path) -> str:
    """Where an exception was raised that passed through no line of the file at `path`: `torch/nn/modules/conv.py:548`,
    or `harness/...` where that is our own mistake. Empty where the file is to blame, as for a wrong signature."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, LoadFault) or not frames or any(code.co_filename == str(path) for code, _ in frames):
        return ""
    ours = [number for number, (code, _) in enumerate(frames) if _is_ours(code.co_filename)]
    last = ours[-1] if ours else -1
    if ours and frames[last][0] not in DOORS:
        code, line = frames[last]
        return f"{OURS}{Path(code.co_filename).relative_to(places.PACKAGE).as_posix()}:{line}"
    if last == len(frames) - 1:
        return ""
    code, line = frames[-1]
    return f"{code.co_filename.rpartition('site-packages/')[2]}:{line}"


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(places.PACKAGE) and not Path(file).is_relative_to(places.INSIDE)


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


def classify(
    phase: str,
    exception: str,
    text: str,
    file: str,
    line: int,
    why_no_cuda: str,
    outside: str = "",
    *,
    trusted: bool = False,
) -> Outcome:
    """The outcome of an exception that a candidate raised in `phase` (load, call, ...), or that came of `outside`.

    Only from a `trusted` process is one of our own code our own mistake. In a candidate's, that code handles what the
    candidate has made, as it did what the reference makes, without failing.
    """
    first = text.strip().partition("\n")[0][:500]
    where = f"{file}:{line}" if line else file
    evidence = {"exception": exception, "phase": phase, "line": line, "text": text[:2000]}
    if outside:
        evidence["raised_in"] = outside
        where = f"{outside} (for {file}, of which no line called it)"
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
    if _out_of_memory(exception, text):
        message = f"{where} ran out of memory: {first}"
        return Outcome(status=Status.OUT_OF_MEMORY, reason="out_of_memory", message=message, evidence=evidence)
    if limit := _system_limit(exception, text):
        message = f"{where} met a limit of the sandbox: {first}"
        return Outcome(status=Status.RESOURCE_LIMIT, reason=limit, message=message, evidence=evidence)
    # What a kernel did is heard of wherever the device is waited for.
    if (
        trusted
        and outside.startswith(OURS)
        and not _device_fault(exception, text)
        and not (_of_libraries(exception) and "CUDA" in text)
    ):
        message = f"the harness itself raised {exception} in {outside}, with {file}: {first}"
        return Outcome(status=Status.HARNESS_ERROR, reason=f"exception:{exception}", message=message, evidence=evidence)
    if exception == "NotImplementedError":
        mend = hints.hint(first)
        message = f"{where} raised NotImplementedError: {first}" + (f" ({mend})" if mend else "")
        return Outcome(status=Status.UNSUPPORTED, reason="not_implemented", message=message, evidence=evidence)
    if exception == "LateCompile":
        return Outcome(status=Status.LOAD_ERROR, reason="late_compile", message=f"{where}: {first}", evidence=evidence)
    if exception == "PermissionError" or "Read-only file system" in first:
        first += (
            " (the sandbox leaves a candidate its own file, files named after it, and TMPDIR; docs/threat-model.md)"
        )
    if exception == "FileNotFoundError":
        first += (
            " (the working directory is another one: open what lies beside it by Path(__file__).parent; only files that"
            f" are named after it are there, as {Path(file).stem}.data.bin)"
        )
    if exception == "NameError":
        first += " (a candidate has no names of its problem's file, in whose namespace KernelBench runs it)"
    if "Connection refused" in first:
        first += (
            " (the sandbox lets no process connect to a socket: tensors in shared memory reach workers that are forked"
            " after share_memory_(), not through a queue, nor by the sharing strategy file_system)"
        )
    message = f"{where}: {exception}: {first}"
    if outside.startswith(OURS) and not _device_fault(exception, text):
        message += f"; {ODD}"
    if exception == "TypeError" and not line and (wrong := _wrong_call(first)):
        message = f"{file}: {wrong} ({exception}: {first})"
    status = Status.LOAD_ERROR if phase == "load" else Status.RUNTIME_ERROR
    reason = _device_fault(exception, text) or f"exception:{exception}"
    return Outcome(status=status, reason=reason, message=message, evidence=evidence)


def _wrong_call(text: str) -> str:
    """What the problem passes and a method of the candidate's class does not take, or the reverse; empty if unknown."""
    if found := TOO_MANY.search(text):
        # Python counts self, too.
        most, given = int(found["most"]) - 1, int(found["given"]) - 1
        return (
            f"{found['method']} takes {most} {'argument' if most == 1 else 'arguments'}, but the problem passes {given}"
        )
    if found := TOO_FEW.search(text):
        return f"{found['method']} asks for {found['names']}, which the problem does not pass"
    return ""


def _of_libraries(exception: str) -> bool:
    """Whether a library may have thrown it for the device: a RuntimeError, which is what C++ throws, or no class of
    Python's. The others are about Python values, whatever they say."""
    return exception == "RuntimeError" or not hasattr(builtins, exception)


def _out_of_memory(exception: str, text: str) -> bool:
    if exception in ("OutOfMemoryError", "MemoryError"):
        return True
    if not (_of_libraries(exception) or _of_system(exception)):
        return False
    return bool(OUT_OF_MEMORY.search(text)) or _sentence(text) == "out_of_memory"


def _system_limit(exception: str, text: str) -> str:
    """The limit of the system's that was met; empty where none was."""
    if _of_libraries(exception) and THREAD_LIMIT in text:
        return "processes"
    if not _of_system(exception):
        return ""
    return next((limit for words, limit in SYSTEM_LIMITS.items() if words in text), "")


def _of_system(exception: str) -> bool:
    found = getattr(builtins, exception, None)
    return isinstance(found, type) and issubclass(found, OSError)


def _device_fault(exception: str, text: str) -> str:
    """What the device's driver said in this exception, in a word; empty where it said nothing."""
    if not _of_libraries(exception):
        return ""
    if code := CUDA_CODE.search(text):
        return DEVICE_CODES[code.group(1)]
    if phrase := CUDA_PHRASE.search(text):
        return DEVICE_PHRASES[phrase.group()]
    return _sentence(text)


def _sentence(text: str) -> str:
    found = CUDA_SENTENCE.search(text)
    return AMBIGUOUS_PHRASES[found.group(1).lower()] if found else ""


def memory_ran_out(error: BaseException) -> bool:
    """Whether an exception says that the device's or the host's memory is full."""
    return _out_of_memory(type(error).__name__, str(error))


def of_problem(error: BaseException, path: Path, why_no_cuda: str) -> Outcome:
    """The outcome of an exception in opening a problem: its own fault, the machine's or ours, no candidate's."""
    name, line = exception_name(error), candidate_line(error, path)
    found = classify("call", name, str(error), path.name, line, why_no_cuda, outside(error, path), trusted=True)
    machines = found.status is Status.UNSUPPORTED and found.reason in LACKS
    if machines or found.status in (Status.OUT_OF_MEMORY, Status.HARNESS_ERROR):
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


def lacks_room(outcome: Outcome) -> bool:
    """Whether the harness had no room to judge. The word alone may be one that a candidate has raised."""
    return (outcome.status, outcome.reason) == (Status.UNSUPPORTED, NEEDS_MEMORY)


def short_of_memory(phase: str) -> Outcome:
    """The outcome where a process was ended for want of memory that others had; the next run tries again."""
    message = (
        f"there was not enough host memory on this machine in {phase}, and the largest process was ended for it; free "
        "some, or let less run at the same time (other programs, build.slots, lanes), and run the same command again"
    )
    return Outcome(status=Status.HARNESS_ERROR, reason=causes.SHORTAGE, message=message)


def is_short_of_memory(outcome: Outcome | None) -> bool:
    """Whether it is one of `short_of_memory`, or may be: what came back as it ended may have been another's."""
    if outcome is None:
        return False
    short = (outcome.status, outcome.reason) == (Status.HARNESS_ERROR, causes.SHORTAGE)
    return short or causes.GIVEN_BACK in outcome.evidence


def unsendable(error: NotSendable, status: Status = Status.LOAD_ERROR) -> Outcome:
    """The outcome of what a process cannot be told of, a candidate or (by another status) a problem."""
    message = f"its process cannot be told of it: {error} (file names beside it, paths and constants are told)"
    return Outcome(status=status, reason="unsendable", message=message)


def too_small(key: str, limits: Limits, seen: str) -> str:
    """What to say of a limit of the config's that a problem's own reference does not keep."""
    value = getattr(limits, key.removeprefix("limits."))
    # 0 leaves it to the machine.
    amount = f" = {value:g}" if value else ""
    return f"{key}{amount} is too small for the problem's own reference, unless that hangs or leaks; raise it: {seen}"


def death(exit_code: int | None, phase: str, cause: str = "") -> Outcome:
    """The outcome of a runner that went away by itself, or was killed for a `cause` of the zygote's."""
    if cause == enforcement.CAUSE:
        message = "a sandbox layer could not be enabled, so the candidate was not run; see its log"
        return Outcome(status=Status.HARNESS_ERROR, reason="sandbox", message=message)
    if cause == causes.SHORTAGE:
        return short_of_memory(phase)
    if cause:
        message = (
            "the process took more host memory than limits.host_memory_gb allows, or the most when the machine ran "
            f"out of it, in {phase}"
        )
        reason, evidence = causes.OVER_LIMIT, {}
        if cause == causes.GIVEN_BACK:
            message = (
                f"the machine ran out of host memory in {phase}, and had most of it again when this process ended, "
                "whose memory is the kernel's own (mappings, buffers)"
            )
            evidence = {causes.GIVEN_BACK: True}
        return Outcome(
            status=Status.OUT_OF_MEMORY,
            reason=reason,
            message=message,
            limit="limits.host_memory_gb",
            evidence=evidence,
        )
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
        usually = f" ({USUALLY[name]})" if name in USUALLY else ""
        message = f"the process died of {name} in {phase}{usually}"
        return Outcome(status=Status.CRASHED, reason=f"signal:{name}", message=message)
    if exit_code is None:
        message = f"the process closed its connection in {phase}, without an answer"
        return Outcome(status=Status.CRASHED, reason="gone", message=message)
    message = f"the process ended itself with code {exit_code} in {phase}"
    return Outcome(status=Status.CRASHED, reason=f"exit:{exit_code}", message=message)
