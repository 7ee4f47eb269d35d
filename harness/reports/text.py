"""Formats values as text, for the terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness import wording
from harness.records import OWN, Provenance, Record, Status
from harness.reports.groups import Summary

# Candidates write captions and error messages; a long one must not fill the report.
LONGEST = 600
# Ends of an interval that are so many times away from the speedup are told by their first digit.
FAR = 1e3
OFF = "off: a candidate could read and change everything that its user can"

# What a status says of a candidate, for a reader who does not know the words.
MEANINGS = {
    Status.PASSED: "right in every call",
    Status.INCORRECT: "an output is wrong, or it changed an input",
    Status.REJECTED: "not a fair answer",
    Status.COMPILE_ERROR: "the compiler refused it",
    Status.LOAD_ERROR: "it could not be read, imported or constructed",
    Status.RUNTIME_ERROR: "its forward raised an exception, or the device faulted",
    Status.CRASHED: "its process died or ended itself",
    Status.TIMEOUT: "no answer before a deadline",
    Status.OUT_OF_MEMORY: "host or device memory ran out",
    Status.RESOURCE_LIMIT: "it met a limit of the sandbox",
    Status.UNSUPPORTED: "this machine cannot run it, or it does not take this case",
    Status.INVALID_REFERENCE: "the problem is at fault, not the candidate",
    Status.HARNESS_ERROR: "the harness failed; the next run tries again",
}


def clean(text: str) -> str:
    """One printable line: text from candidates must not move the cursor, hide text or break a table."""
    # The text may be long and consist of spaces only.
    line = " ".join(text[: 4 * LONGEST].split())
    if not line.isprintable():
        line = "".join(letter if letter.isprintable() else "?" for letter in line)
    line = wording.with_few_marks(line)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def duration(ms: float | None) -> str:
    """Three digits in the unit that suits: `4.12 µs`, `412 µs`, `7.42 ms`, `1.23 s`; empty for None."""
    if ms is None:
        return ""
    if ms < 1:
        return f"{_three_digits(ms * 1000)} µs"
    return f"{_three_digits(ms)} ms" if ms < 1000 else f"{_three_digits(ms / 1000)} s"


def elapsed(seconds: float) -> str:
    """Whole seconds, for progress: `12 s`, `3 min 05 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def factor(value: float) -> str:
    """A speedup: `3.10x`, `0.843x`, `0.084x`, `1.2e-05x`."""
    return f"{value:{_form(value)}}x"


def interval(record: Record) -> str:
    """The 95 % interval, with as many decimals as its speedup: `[3.08, 3.12]`; empty unless the record passed."""
    if record.speedup is None:
        return ""
    form = _form(record.speedup)
    ends = (record.speedup_lo or 0.0, record.speedup_hi or 0.0)
    # Where nothing is known, an end may have a hundred digits.
    told = [f"{end:{form if record.speedup / FAR < end < record.speedup * FAR else '.1g'}}" for end in ends]
    return f"[{', '.join(told)}]"


def speedup(record: Record) -> str:
    """`3.10x [3.08, 3.12]`; empty unless the record passed."""
    return "" if record.speedup is None else f"{factor(record.speedup)} {interval(record)}"


def verdict(record: Record) -> str:
    """The verdict as one sentence, without the record's own message."""
    if record.speedup is None:
        return f"{MEANINGS[record.status].capitalize()}."
    times = (
        f"{duration(record.candidate_ms)} a call, where {clean(record.baseline)} takes {duration(record.baseline_ms)}"
    )
    return f"Right in every call. {factor(record.speedup)} as fast as {clean(record.baseline)}: {times}."


def sure(record: Record) -> str:
    """`faster` or `slower` than the baseline, if the whole interval is; else empty."""
    if record.speedup_lo is not None and record.speedup_lo > 1:
        return "faster"
    return "slower" if record.speedup_hi is not None and record.speedup_hi < 1 else ""


def ratio(value: float, lo: float, hi: float) -> str:
    """One speedup over another, with its interval: `1.051x [1.045, 1.057]`; more digits than a speedup has."""
    form = _form(value, least=3)
    return f"{value:{form}}x [{lo:{form}}, {hi:{form}}]"


def number(value: float | None) -> str:
    """Three significant digits; empty if there is no finite value."""
    return "" if value is None or not math.isfinite(value) else f"{value:.3g}"


def percent(share: float | None) -> str:
    """`67%`; empty for None."""
    return "" if share is None else f"{share:.0%}"


def lacking(record: Record) -> str:
    """What the machine of the run lacks for this candidate; empty unless that is why it is unsupported."""
    kind, _, name = record.reason.partition(":")
    if record.status is not Status.UNSUPPORTED:
        return ""
    return {
        "needs_cuda": "a GPU that torch can use",
        "needs_compiler": "a C++ compiler",
        "missing_module": f"the module {clean(name)}",
    }.get(kind, "")


def summary(found: Summary) -> str:
    """How many candidates ended how, then the figures over all problems."""
    count = sum(found.statuses.values())
    statuses = ", ".join(f"{number} {status}" for status, number in found.statuses.items())
    return f"{count} {'candidate' if count == 1 else 'candidates'}: {statuses}. {scores(found)}"


def scores(summary: Summary) -> str:
    """The figures over all problems, as one or two sentences."""
    if summary.geomean is None:
        return "No candidate passed."
    of = f"of {summary.problems} {'problem' if summary.problems == 1 else 'problems'}"
    return (
        f"Best speedup per problem: geomean {factor(summary.geomean)} over the {summary.solved} {of} with a passed "
        f"candidate. fast_1: {summary.fast_1:.0%}, {faster(summary)}."
    )


def faster(summary: Summary) -> str:
    """How many problems have a faster candidate: `2 of 3 problems above 1x, 1 of them surely`."""
    problems = "problem" if summary.problems == 1 else "problems"
    sure = f", {summary.surely} of them surely" if summary.faster else ""
    return f"{summary.faster} of {summary.problems} {problems} above 1x{sure}"


def provenance(record: Record) -> str:
    """`own kernels 62%, cublas 30% (aten::mm), torch 8% (aten::add)`: whose kernels it ran; empty if not profiled.

    On a CPU: `outside PyTorch's operators 57%, torch 43% (aten::add)`.
    """
    found = record.provenance
    if found is None:
        return ""
    others = sorted((share, kind) for kind, share in found.shares.items() if kind != "own")
    parts = [f"{kind} {share:.0%} ({_first_kernel(found, kind)})" for share, kind in reversed(others) if share >= 0.005]
    return ", ".join([f"{found.own_words} {found.own_share:.0%}", *parts])


def own_kernels(record: Record) -> float | None:
    """The share of device time in its own kernels; None where it was not profiled, or on a CPU, which has none."""
    return record.own_share if record.provenance and record.provenance.own_words == OWN else None


def _first_kernel(found: Provenance, kind: str) -> str:
    """The kernel of this kind with the most time: its operator, or its name without its arguments."""
    use = next((use for use in found.kernels if use.kind == kind), None)
    if use is None:
        return "many small kernels"
    return use.op or use.name.partition("<")[0].partition("(")[0].removeprefix("void ")[:60] or use.name[:60]


def sandbox_note(manifest: Mapping[str, Any]) -> str:
    """What a reader should know about a run's sandbox; empty if it was complete. `manifest` holds run.json."""
    mode = (manifest.get("config") or {}).get("sandbox")
    parts = manifest.get("parts") or [{"sandbox_mode": mode} | (manifest.get("environment") or {})]
    said = [_of_sandbox(part) for part in parts]
    if not any(said):
        return ""
    if len(set(said)) == 1:
        note = f"the sandbox was {said[0]}"
    else:
        # Neighbouring parts that are equal become one.
        changes = [number for number in range(len(said)) if number == 0 or said[number] != said[number - 1]]
        spans = [f"{said[at] or 'complete'} from record {parts[at].get('after_line', 0) + 1} on" for at in changes]
        note = f"the sandbox changed during the run: {'; '.join(spans)}"
    return note if set(said) <= {"", OFF} else f"{note}; run `run_eval.py doctor` to see why"


def _of_sandbox(part: Mapping[str, Any]) -> str:
    if part.get("sandbox_mode") == "off":
        return OFF
    missing = part.get("sandbox_missing") or {}
    return f"incomplete, without {', '.join(map(clean, missing))}" if missing else ""


def _three_digits(value: float) -> str:
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def _form(value: float, least: int = 0) -> str:
    """With enough decimals to distinguish a 0.5 % interval from its speedup up to 10x; fewer far below 1x, and with an
    exponent where there would be no end of digits."""
    if not 1e-3 <= value < 1e6:
        return ".1e"
    decimals = 2 if value >= 1 else 3 if value >= 0.1 else 1 - math.floor(math.log10(value))
    return f".{max(decimals, least)}f"
