"""The record of one evaluation: what the journal keeps and every report reads (JSON, one object a line)."""

from __future__ import annotations

import enum
import math
import re
import traceback
from collections.abc import Callable
from typing import Any

import msgspec

from harness import wording

# A candidate that is one sample of several of its problem: `sample_3`, or `model_a-sample_3`, of the series `model_a`.
SAMPLE = re.compile(r"(?:(.+)[-_])?sample_(\d{1,6})", re.ASCII | re.DOTALL)

# Of records and run.json: raised if an older reader would misread them. A reader refuses a newer one.
SCHEMA_VERSION = 1

# What a machine lacked may have been installed since. (Another card has another key.)
MAY_BE_THERE = ("needs_compiler", "missing_module", "missing_headers")

# Part of every resume key: raised if the same files may get another verdict or another time after a change.
PROTOCOL_VERSION = 30


class Status(enum.StrEnum):
    """How an evaluation ended; exactly one a record."""

    PASSED = "passed"
    INCORRECT = "incorrect"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    RESOURCE_LIMIT = "resource_limit"
    UNSUPPORTED = "unsupported"
    INVALID_REFERENCE = "invalid_reference"
    HARNESS_ERROR = "harness_error"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with its grounds, before it becomes a record.

    `reason` is a short machine-readable word list, `message` one sentence for people, `evidence` the figures behind it.
    `limit` is the config's key of the limit that ended it, if one did (`limits.load_s`).
    """

    status: Status
    reason: str = ""
    message: str = ""
    evidence: dict[str, Any] = {}
    limit: str = ""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples. Entry i of each list belongs to pair i; times are microseconds a call, fixed cost removed.
    Bursts hold `calls_per_burst` calls, or up to a quarter fewer.

    `clock` says how the judge read the time: `device` (its own CUDA events around a gated burst), `device_ungated`
    (the candidate synchronises, so launch latency is included, on both sides) or `host` (CPU).
    """

    clock: str
    calls_per_burst: int
    baseline_calls_per_burst: int
    fixed_us: float
    candidate_us: list[float]
    baseline_us: list[float]
    candidate_claimed_us: list[float]
    baseline_claimed_us: list[float]
    #: The share of the baseline's times that the speedup and `baseline_ms` are over: below 1 with `slow_baseline` and
    #: `own_wait`. Records without it hold times that had been multiplied by it.
    baseline_factor: float = 1.0
    #: In how many pairs the baseline took longer beside the candidate than is tolerated of its time alone, and counts
    #: as if it had taken that.
    baseline_held: int = 0
    #: Bursts of one call each, taken in between if the others have several calls.
    candidate_single_us: list[float] = []
    baseline_single_us: list[float] = []
    #: Which side of each pair ran first; used to remove an order effect.
    baseline_first: list[bool] = []
    #: The clock's own relative error, which the interval includes.
    systematic: float = 0.0
    #: The time that a caller waits for one call, launch and Python included, with nothing enqueued before.
    candidate_latency_us: float | None = None
    baseline_latency_us: float | None = None
    #: The least time of one call at this device's best rates, what bounds it, and what was not counted.
    floor_us: float | None = None
    floor_bound: str = ""
    floor_notes: list[str] = []
    #: Clocks, power, temperature and throttling over the measurement.
    card: dict[str, Any] = {}
    #: Why sampling ended, unusable pairs by reason, and how long it took.
    stopped: str = ""
    dropped: dict[str, int] = {}
    elapsed_s: float = 0.0


# What a profile of the CPU calls the rest of a call: native code, and Python.
OUTSIDE = "outside PyTorch's operators"
# A reason, and a warning where no rule is about whose kernels do the work.
HIDES = "fails_when_profiled"
OWN = "own kernels"


class KernelUse(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of a profiled call, or one operator where the CPU was profiled.

    `kind` (`class` in JSON) is one of integrity.kernel_names.KINDS. `op` is the operator that launched it, where one
    did. `device_us` is the time of all its calls; of an operator, without those that it calls.
    """

    name: str
    kind: str = msgspec.field(name="class")
    op: str = ""
    calls: int = 1
    device_us: float = 0.0


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Whose kernels one profiled call ran, as reported by the candidate's own process.

    `shares` divides the device's time by kind, and sums to 1; `kernels` are those with the most time, and `omitted`
    counts the others.
    """

    own_share: float
    device_us: float
    shares: dict[str, float] = {}
    kernels: list[KernelUse] = []
    omitted: int = 0

    @property
    def own_words(self) -> str:
        """What `own_share` is the share of: on a CPU it is no kernels', and of a candidate without any, Python's."""
        return OUTSIDE if any(use.name == OUTSIDE for use in self.kernels) else OWN


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One finished evaluation. A speedup exists on a passed record only, and every other status has a reason.

    `device` is the card's (or processor's) name, `log` a path relative to the run directory, `error_ratio` the
    candidate's error over the reference's own at this precision, both against float64. `warnings` are for whoever reads
    the result, `notes` for whoever looks closer: things in the source that are nothing unusual. `phases_s` are seconds:
    load, first call and timing (with hard inputs and profile) add up to about judge; evaluate is timing again, by the
    judge's own clock, hard inputs and profile parts of it; open: ..., where the problem had to be opened.
    """

    key: str
    problem: str
    variant: str
    precision: str
    candidate: str
    status: Status
    device: str
    baseline: str
    schema: int = SCHEMA_VERSION
    caption: str = ""
    reason: str = ""
    message: str = ""
    evidence: dict[str, Any] = {}
    #: The limit of the config's that it ended by, with its value then; where it is raised, the job is evaluated again.
    limit: dict[str, float] = {}
    warnings: list[str] = []
    notes: list[str] = []
    speedup: float | None = None
    speedup_lo: float | None = None
    speedup_hi: float | None = None
    candidate_ms: float | None = None
    baseline_ms: float | None = None
    error_ratio: float | None = None
    sol_fraction: float | None = None
    compile_s: float | None = None
    wall_s: float | None = None
    phases_s: dict[str, float] = {}
    timing: Timing | None = None
    provenance: Provenance | None = None
    #: Of an imported candidate: what its source says about it (catalog.claims).
    claimed_status: str = ""
    claimed_speedup: float | None = None
    claimed_said: str = ""
    # Whether KernelBench's rule takes its answers for right; None where it was not asked (check.kernelbench), says
    # nothing, or did not get five answers.
    kernelbench_correct: bool | None = None
    log: str = ""
    finished_at: str = ""

    @property
    def own_share(self) -> float | None:
        """The share of device time in the candidate's own kernels; None where no call was profiled."""
        return self.provenance.own_share if self.provenance else None

    @property
    def sample(self) -> int | None:
        """Which sample of its problem the candidate is, as its name says; None if it says nothing."""
        found = SAMPLE.fullmatch(self.candidate)
        return int(found[2]) if found else None

    @property
    def series(self) -> str:
        """Of a sample, the rest of its name: `model_a` of `model_a-sample_3`."""
        found = SAMPLE.fullmatch(self.candidate)
        return (found[1] or "") if found else ""

    def __post_init__(self) -> None:
        if fault := newer(self.schema):
            raise ValueError(fault)
        who = f"{self.problem}/{self.candidate}"
        if self.claimed_speedup is not None and not 0 < self.claimed_speedup < math.inf:
            raise ValueError(f"a claimed speedup is positive and finite: {who}")
        interval = (self.speedup_lo, self.speedup, self.speedup_hi)
        if self.status is Status.PASSED:
            figures = (*interval, self.candidate_ms, self.baseline_ms)
            if not all(figure is not None and 0 < figure < math.inf for figure in figures):
                raise ValueError(f"a passed record needs its speedup, interval and times, positive and finite: {who}")
            if not self.speedup_lo <= self.speedup <= self.speedup_hi:  # type: ignore[operator]
                raise ValueError(f"a passed record's speedup lies within its interval: {who}")
            return
        if any(value is not None for value in interval):
            raise ValueError(f"only a passed record has a speedup: {who} is {self.status}")
        if not self.reason:
            raise ValueError(f"a {self.status} record needs a reason: {who}")

    @property
    def title(self) -> str:
        """As Job.title."""
        return f"{self.problem} {self.variant} {self.precision} {self.candidate}"


# Ends that say nothing about a candidate: the harness failed, its machine had no GPU or compiler, too little room or no
# profiler, or the problem cannot be judged. The reasons count with their status only: with others a candidate gives
# them itself.
# A module that is missing is its own doing: it is told what there is, and any name would excuse it.
NOT_ITS_DOING = (Status.HARNESS_ERROR, Status.INVALID_REFERENCE)
LACKS = ("needs_cuda", "needs_compiler", "needs_memory", "no_profile")
NOT_ITS_DOING_REASONS = tuple((Status.UNSUPPORTED, lack) for lack in LACKS)


def is_no_word(record: Record) -> bool:
    """Whether a record says nothing about its candidate."""
    return record.status in NOT_ITS_DOING or (record.status, record.reason) in NOT_ITS_DOING_REASONS


def newer(schema: object) -> str:
    """Why something of this schema cannot be read; empty where it can."""
    if not isinstance(schema, int) or schema <= SCHEMA_VERSION:
        return ""
    return f"a newer version of Assay wrote it (schema {schema}; this version reads up to {SCHEMA_VERSION})"


# Of a record's texts, in characters. They quote candidates, compilers and their output.
LONGEST = {"caption": 300, "message": 4000, "reason": 200, "warnings": 1000, "notes": 1000}
LONGEST_OTHER, MOST_ITEMS, MOST_DEPTH = 5000, 100, 8
# Fields that say whose record it is.
NAMING = ("key", "problem", "variant", "precision", "candidate")
# Of all evidence together: each value counts the characters that it prints.
MOST_EVIDENCE = 200_000


def with_texts(record: Record, change: Callable[[str], str]) -> Record:
    """The record with `change` applied to each text that processes may have had a part in.

    Where that fails, by a mistake of ours, the record is a `harness_error` that says so: the others go on.
    """
    fields = ("message", "evidence", "warnings", "notes")
    try:
        return msgspec.structs.replace(
            record, **{name: wording.each_text(getattr(record, name), change) for name in fields}
        )
    except Exception as error:
        fault = unrecorded(error)
        kept = {name: getattr(record, name) for name in (*NAMING, "device", "baseline", "log", "finished_at")}
        return Record(**kept, status=fault.status, reason=fault.reason, message=fault.message, evidence=fault.evidence)


def unrecorded(error: Exception) -> Outcome:
    """The outcome of a job whose record could not be put together."""
    said = "".join(traceback.format_exception(error, limit=-5))
    message = f"its record could not be put together: {type(error).__name__}: {error}"
    return Outcome(
        status=Status.HARNESS_ERROR, reason="unrecorded", message=message, evidence={"traceback": said[-LONGEST_OTHER:]}
    )


def presentable(record: Record) -> Record:
    """The record with every text safe to keep and show: bounded, and without control characters.

    Much of the text comes from processes that run candidates.
    """
    fields = {name: _fit(getattr(record, name), name) for name in record.__struct_fields__ if name != "evidence"}
    return msgspec.structs.replace(record, evidence=_bounded(record.evidence, _Room(MOST_EVIDENCE)), **fields)


def too_deep(evidence: Any) -> bool:
    """Whether evidence is nested deeper than a record keeps it. No recursion: it may come from an untrusted process."""
    level = [evidence]
    for _ in range(MOST_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [item for items in inner for item in items]
    return any(isinstance(one, dict | list) for one in level)


class _Room:
    """What is left of a record's space for evidence."""

    def __init__(self, characters: int) -> None:
        self.characters = characters

    def take(self, wanted: int) -> bool:
        self.characters -= wanted
        return self.characters >= 0


def _fit(value: Any, field: str) -> Any:
    """A typed part of a record, its texts bounded and its lists of texts short."""
    match value:
        case enum.Enum():
            return value
        case str():
            return wording.plain(value, LONGEST.get(field, LONGEST_OTHER))
        case list() if value and not isinstance(value[0], int | float):
            kept = [_fit(item, field) for item in value[:MOST_ITEMS]]
            more = len(value) - len(kept)
            return [*kept[:-1], f"and {more + 1} more"] if more and isinstance(value[0], str) else kept
        case dict():
            return {wording.plain(key, 200): _fit(item, field) for key, item in list(value.items())[:MOST_ITEMS]}
        case msgspec.Struct():
            fields = {name: _fit(getattr(value, name), name) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
    return value


def _bounded(value: Any, room: _Room, depth: int = 0) -> Any:
    """Evidence of any shape, bounded in size and depth, as JSON can hold it."""
    match value:
        case None | bool() | float():
            return value if room.take(8) else None
        case int():
            return value if room.take(20) and abs(value) < 2**63 else None
        case str():
            text = wording.plain(value, LONGEST_OTHER)
            return text if room.take(len(text) + 2) else ""
        case list() | tuple() if depth < MOST_DEPTH:
            found = []
            for item in value:
                if room.characters <= 0:
                    break
                found.append(_bounded(item, room, depth + 1))
            return found
        case dict() if depth < MOST_DEPTH:
            kept = {}
            for key, item in value.items():
                if room.characters <= 0:
                    break
                room.take(len(word := wording.plain(str(key), 200)))
                kept[word] = _bounded(item, room, depth + 1)
            return kept
    return _bounded(f"[{type(value).__name__}]", room, depth)


def is_final(record: Record) -> bool:
    """Whether the same files would end so again, under the same limits."""
    may_be_there = record.status is Status.UNSUPPORTED and record.reason.partition(":")[0] in MAY_BE_THERE
    return record.status is not Status.HARNESS_ERROR and not may_be_there


def encode(record: Record) -> bytes:
    """One JSON line, without its newline."""
    return msgspec.json.encode(record)


def decode(line: bytes) -> Record:
    """Raises msgspec.DecodeError (or its subclass ValidationError) where the line is torn or not a record."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        # What a newer version added may be what does not fit; its number then says more.
        if fault := newer(msgspec.json.decode(line, type=_Versioned).schema):
            raise msgspec.ValidationError(fault) from error
        raise


_DECODER = msgspec.json.Decoder(Record)


class _Versioned(msgspec.Struct):
    """The part of a record that every version has written in the same way."""

    schema: int = SCHEMA_VERSION
