"""What judge, runner and supervisor say to each other, as `channel.Channel` carries it.

Whatever an untrusted process may send is bounded by its type, so that decoding refuses the rest: docs/messages.md goes
through every field of it. Senders of ours keep to these bounds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from harness import config
from harness.compile.resources import Kernel
from harness.compile.toolkit import Toolkit
from harness.instruments.nsight import Launch
from harness.instruments.sanitizer import Finding
from harness.instruments.tools import MOST_LAUNCHES, MOST_SAID, Instrument
from harness.integrity.provenance import Profile
from harness.records import Outcome, Status, Timing, too_deep
from harness.wire.nodes import Node, Size, TensorRef, Word

MOST_NAMES, MOST_BLOCKS, MOST_EXTENSIONS, MOST_WARNINGS, MOST_KERNELS = 1000, 4096, 256, 8, 200
LONGEST_SHOWN, LONGEST_SENTENCE, LONGEST_SAID = 300, 2000, 4000
LARGEST_EVIDENCE_BYTES = 1 << 16
# How a build may fail. That a problem or the harness is at fault is not for an untrusted process to say.
BUILD_FAULTS = frozenset(
    (Status.COMPILE_ERROR, Status.LOAD_ERROR, Status.UNSUPPORTED, Status.OUT_OF_MEMORY, Status.RESOURCE_LIMIT)
)
# What a machine may lack for it, as the process that builds may say; the rest of a reason tells more. That the harness
# lacks something (`needs_memory`, say) excuses a candidate, and is not for it to say.
BUILD_LACKS = frozenset(("needs_cuda", "missing_module", "missing_headers", "not_implemented"))

Said = Annotated[str, msgspec.Meta(max_length=LONGEST_SAID)]
Shown = Annotated[str, msgspec.Meta(max_length=LONGEST_SHOWN)]
# Of a call (compile.calls.Identity), and of a file below the build's folder.
CallKey = Annotated[str, msgspec.Meta(max_length=LONGEST_SENTENCE, pattern="^[0-9a-f.]+$")]
File = Annotated[str, msgspec.Meta(max_length=LONGEST_SENTENCE, pattern="^[^\\x00]+$")]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Common settings of every message."""


class SharedBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Shared memory by reference. What the judge shares travels as a file descriptor beside the frame (`fd` is its
    place among them), a runner's CUDA memory as an IPC handle."""

    id: Count
    nbytes: Size
    fd: Annotated[int, msgspec.Meta(ge=-1, le=1 << 31)] = -1
    cuda_handle: Annotated[bytes, msgspec.Meta(max_length=LONGEST_SAID)] = b""


class CandidateSource(msgspec.Struct, frozen=True, kw_only=True):
    """A file to take the entry class from, and what was built for it beforehand.

    `libraries` maps the digest of a `load_inline` call to its shared object, `failures` to the compiler's words;
    `unconstructed` is what the constructor raised there.
    """

    path: str
    entries: tuple[str, ...]
    overrides: dict[str, Any] = {}
    libraries: dict[str, str] = {}
    failures: dict[str, str] = {}
    unconstructed: str = ""
    # The way of PyTorch's own to run it in (catalog.baselines), and lower precisions granted to that.
    baseline: str = ""
    allow: tuple[str, ...] = ()


# Judge to runner.


class ComeUp(Message, frozen=True, kw_only=True, tag=True):
    """Make use of the device already, which takes a while: what to run comes later."""

    device: str


class Construction(msgspec.Struct, frozen=True, kw_only=True):
    """What a module is constructed with, so that whoever constructs the same has the same weights: the seed of
    PyTorch's generator, by how many times matrices are `larger` than the source asks for, and names and numbers of
    elements of the parameters outside normalisations that are `drawn`, or changed, from the start, which of those have
    a structure (`structured`), and of what normalisations have (`norms`; weights.py); and of what is shared, each
    further name with the first (`aliases`)."""

    seed: int
    larger: float = 1.0
    drawn: list[tuple[str, int]] = []
    structured: list[tuple[str, int]] = []
    norms: list[tuple[str, int]] = []
    aliases: dict[str, str] = {}


class Prepare(Message, frozen=True, kw_only=True, tag=True):
    """Import the source, construct its entry class, cast it, take over the reference's state.

    `plain` has, of what was drawn in place of what modules begin with (weights.py), the latter. With `own_weights` it
    keeps what it has constructed.
    """

    source: CandidateSource
    device: str
    precision: str
    init_args: Node
    construction: Construction
    state: dict[str, TensorRef]
    plain: dict[str, TensorRef] = {}
    own_weights: bool = False
    blocks: list[SharedBlock]


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One forward: its inputs, and the seed its generators start from, where the reference draws from them."""

    inputs: Node
    seed: int | None = None


class Burst(Message, frozen=True, kw_only=True, tag=True):
    """Calls to carry out one after the other. On CUDA the runner's stream waits for gate `number` before the first.

    `gated`: the gate opens only when everything is enqueued. Otherwise it is open already, and the runner waits for the
    whole device before it reports the burst done. `profiled`: with PyTorch's profiler watching. `nonce` is secret until
    now, and the answer repeats it: nobody answers what has not been asked. Without calls, a burst shows what the
    protocol itself costs.
    """

    number: int
    nonce: int
    calls: list[Call]
    blocks: list[SharedBlock] = []
    gated: bool = True
    profiled: bool = False


class Go(Message, frozen=True, kw_only=True, tag=True):
    """On the CPU: the inputs of the burst announced before are there. `nonce` takes the place of the burst's, and so
    do `calls`, if there are any: what they say is not to be worked on before the clock starts (`Link`)."""

    nonce: int
    calls: list[Call] = []


# Runner to judge. Every word of these is a claim.


class Hello(Message, frozen=True, kw_only=True, tag=True):
    """The first word of a runner, before any foreign code is in it; beside it travel descriptors of its memory."""


class Ready(Message, frozen=True, kw_only=True, tag=True):
    """Constructed. `unmatched`: parameters and buffers of the candidate that did not take the reference's values;
    `lacks`: those of the reference whose values none of them took.

    `plain`: it lacks a name of `Prepare.plain`, and so all of those have their plain values. `changed`: some that took
    the reference's values had others by construction; `as_begun`: those that modules begin with.
    """

    unmatched: Annotated[list[Word], msgspec.Meta(max_length=MOST_NAMES)]
    lacks: Annotated[list[Word], msgspec.Meta(max_length=MOST_NAMES)] = []
    plain: bool = False
    changed: bool = False
    as_begun: bool = False


class Armed(Message, frozen=True, kw_only=True, tag=True):
    """On the CPU: the burst is understood, and only its inputs are missing."""

    number: Count


class Finished(Message, frozen=True, kw_only=True, tag=True):
    """The burst is over by the runner's own clock."""

    number: Count
    # It may be nonsense, but not so large that sums of it are no numbers.
    claimed_us: Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
    profile: Profile | None = None


class Enqueued(Message, frozen=True, kw_only=True, tag=True):
    """All calls of a burst are issued. `nonce` is the request's; on the CPU they are `finished`, too."""

    number: Count
    nonce: Size
    outputs: list[Node]
    blocks: Annotated[list[SharedBlock], msgspec.Meta(max_length=MOST_BLOCKS)] = []
    # The calls wrote to one buffer, so that only the last output is left: once more, please.
    repeat: bool = False
    # Of a runner's first call: positions of the input tensors that its output shares memory with.
    aliased: Annotated[list[Count], msgspec.Meta(max_length=MOST_NAMES)] = []
    finished: Finished | None = None


class Failed(Message, frozen=True, kw_only=True, tag=True):
    """The candidate raised. `line` is of the candidate's own file, 0 where none is known; `outside` tells where else it
    was raised, if it passed through no line of that file (faults.outside)."""

    phase: Literal["load", "call"]
    exception: Word
    text: Said
    line: Count = 0
    outside: Word = ""


# Supervisor to judge.


class Open(Message, frozen=True, kw_only=True, tag=True):
    """Load a problem; the baseline runner's channel travels beside it, and `runner_pid` is its process.

    Behind it, where the device has several lanes, comes the file of their turns (machine.card_turns). Of the device's
    memory this one may take `memory_share`.
    """

    problem: CandidateSource
    baseline: CandidateSource
    precision: str
    device: str
    seed: int
    allow: tuple[str, ...]
    check: config.CheckConfig
    timing: config.TimingConfig
    limits: config.Limits
    runner_pid: int
    memory_share: float = 1.0
    why_no_cuda: str = ""


class Evaluate(Message, frozen=True, kw_only=True, tag=True):
    """Judge one candidate; its runner's channel travels beside it, and `runner_pid` is its process.

    `profiled`: with one profiled call at the end. `alone`: from its first call on nothing of another lane's is on the
    device. `own_weights`: it keeps those that it has constructed. Without `explained`, nobody asks why an answer is
    wrong, which takes further runs of the reference: one that is will be evaluated again. `without` the hard inputs of
    these titles, on which it raised though nothing was asked of it there.
    """

    candidate: CandidateSource
    runner_pid: int
    profiled: bool = False
    alone: bool = False
    own_weights: bool = False
    explained: bool = True
    without: tuple[str, ...] = ()


class Retime(Message, frozen=True, kw_only=True, tag=True):
    """Time the baseline alone once more: the candidate that it was slow beside is gone."""


class Leave(Message, frozen=True, kw_only=True, tag=True):
    """No more candidates of this problem come; another one may be opened."""


class TestDevice(Message, frozen=True, kw_only=True, tag=True):
    """Is the device still of use: compute something trivial on it."""

    device: str


# Judge to supervisor.


class Phase(Message, frozen=True, kw_only=True, tag=True):
    """What the judge does now; `reached` says how far it is in that, for whoever watches."""

    name: str
    reached: str = ""


class Waiting(Message, frozen=True, kw_only=True, tag=True):
    """The judge waits for its turn on the device, from now on or not any more: that time is nobody's to answer for."""

    begins: bool


class Opened(Message, frozen=True, kw_only=True, tag=True):
    """The problem is fit to judge by, or why it is not."""

    fault: Outcome | None = None
    runner: str = "ok"


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What a candidate's times come to. `sol_fraction` is None where the device's best rates are not known."""

    speedup: float
    speedup_lo: float
    speedup_hi: float
    candidate_ms: float
    baseline_ms: float
    timing: Timing
    sol_fraction: float | None = None


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How an evaluation ended: with figures, or why without.

    `runner` says what became of the candidate's process: ok, gone, hung or broke_protocol; `phase` in what it was when
    it went.
    """

    outcome: Outcome
    runner: str = "ok"
    phase: str = ""
    baseline_ok: bool = True
    # The baseline was slower beside this candidate than alone.
    slowed: bool = False
    # Titles of hard inputs on which nothing is ever asked, and one of which it may have raised on.
    raised_on: list[str] = []
    # An answer was wrong, and it had constructed other weights than it was given.
    changed_weights: bool = False
    figures: Figures | None = None
    # Still to be sorted by whose kernels they are, with what only the supervisor knows.
    profile: Profile | None = None
    warnings: list[str] = []


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a candidate's answers: of the first call, and once all calls were answered, of the others.

    `kernelbench_correct`: what KernelBench's rule says, where it was asked and is known.
    """

    kernelbench_correct: bool | None = None
    error_ratio: float | None = None
    evidence: dict[str, Any] = {}
    warnings: list[str] = []
    notes: list[str] = []


class Verdict(Message, frozen=True, kw_only=True, tag=True):
    """How a candidate did. Each part is made where it is known, and nobody changes it."""

    ending: Ending
    checks: Checks = Checks()
    phases_s: dict[str, float] = {}

    @property
    def outcome(self) -> Outcome:
        return self.ending.outcome

    @property
    def evidence(self) -> dict[str, Any]:
        """All that is known, of the outcome and of the answers."""
        return self.ending.outcome.evidence | self.checks.evidence


class Retimed(Message, frozen=True, kw_only=True, tag=True):
    """Whether the baseline has become slower by itself; then its time now is the one that counts."""

    slower: bool


class Left(Message, frozen=True, kw_only=True, tag=True):
    """What the problem's code left behind, in words; empty where another problem can be opened in this process."""

    changed: str = ""


class DeviceTested(Message, frozen=True, kw_only=True, tag=True):
    """The answer to a TestDevice; `fault` is empty where all is well."""

    fault: str


# Supervisor to builder.


class Build(Message, frozen=True, kw_only=True, tag=True):
    """Compile what `candidate` asks for, below `folder`: at its import, and in its constructor if there is a `problem`,
    with its init arguments under these `overrides`.

    `headers`, `prepared` (empty for none) and `arch` as compile.extensions.Builder has them. `absent_card` names the
    GPU that the runner will have and this process has not; empty where it has one, or nobody will.
    """

    candidate: str
    folder: str
    problem: str = ""
    overrides: dict[str, Any] = {}
    why_no_cuda: str = ""
    headers: str = "stock"
    prepared: str = ""
    arch: str = ""
    absent_card: str = ""


# Builder to supervisor.


class Built(Message, frozen=True, kw_only=True, tag=True):
    """The candidate's extensions.

    `libraries`: digest of the call -> file in the build folder. `failures`: digest -> what the compiler said of an
    extension that the candidate went on without. `self_contained`: the candidate's own file is all that was compiled.
    `unconstructed`: what its constructor raised, so that more may have to be compiled; empty where it was not called.
    """

    libraries: Annotated[dict[CallKey, File], msgspec.Meta(max_length=MOST_EXTENSIONS)]
    failures: Annotated[dict[CallKey, Said], msgspec.Meta(max_length=MOST_EXTENSIONS)] = {}
    self_contained: bool = False
    warnings: Annotated[list[Shown], msgspec.Meta(max_length=MOST_WARNINGS)] = []
    unconstructed: Shown = ""


class BuildFailed(Message, frozen=True, kw_only=True, tag=True):
    """There is nothing to run. The outcome becomes the record's, and so it may only be the candidate's own fault.

    Raises ValueError for another outcome, which decoding turns into a message refused.
    """

    outcome: Outcome

    def __post_init__(self) -> None:
        outcome = self.outcome
        if outcome.status not in BUILD_FAULTS or not outcome.reason:
            raise ValueError(f"a build cannot end {outcome.status} by its own account")
        if outcome.status is Status.UNSUPPORTED and outcome.reason.partition(":")[0] not in BUILD_LACKS:
            raise ValueError("a build cannot excuse itself")
        if outcome.limit:
            raise ValueError("an outcome by a limit that only others hold")
        if max(len(outcome.reason), len(outcome.message)) > LONGEST_SENTENCE:
            raise ValueError("an outcome with an endless reason or message")
        # Before anything that recurses sees it, here or later.
        if too_deep(outcome.evidence):
            raise ValueError("an outcome with evidence in endless depth")
        if len(msgspec.json.encode(outcome.evidence)) > LARGEST_EVIDENCE_BYTES:
            raise ValueError("an outcome with endless evidence")


# Supervisor to checker, and back.


class TryBuild(Message, frozen=True, kw_only=True, tag=True):
    """Build, with `toolkit` in place of the one that torch would look for, and tell what the kernels use.

    `why_no_device` says why nothing can run on a card here; empty where it can.
    """

    build: Build
    toolkit: Toolkit | None
    why_no_device: str = ""


class BuildTried(Message, frozen=True, kw_only=True, tag=True):
    """What became of the build. `absent` counts the functions that were only stood in for, by the library they are in,
    which this machine lacks. `hint`: how to mend a failure, where its message is a usual one."""

    built: Built | BuildFailed
    hint: Said = ""
    kernels: Annotated[list[Kernel], msgspec.Meta(max_length=MOST_KERNELS)] = []
    absent: Annotated[dict[Word, Count], msgspec.Meta(max_length=MOST_NAMES)] = {}


# Supervisor to inspector, and back.


class Inspect(Message, frozen=True, kw_only=True, tag=True):
    """Build, then have an instrument look into one call on the problem's own inputs."""

    build: Build
    instrument: Instrument
    problem: str
    precision: str
    device: str
    timeout_s: float


class Inspected(Message, frozen=True, kw_only=True, tag=True):
    """What became of the build, and what the instrument told: launches or findings. `report`: whether there is a file
    tools.REPORT in the folder; `failed` is why the call itself ended early, `said` the end of what was printed."""

    built: Built | BuildFailed
    launches: Annotated[list[Launch], msgspec.Meta(max_length=MOST_LAUNCHES)] = []
    findings: Annotated[list[Finding], msgspec.Meta(max_length=MOST_SAID)] = []
    report: bool = False
    failed: Said = ""
    said: Said = ""


# Supervisor to auditor, and back.


class Audit(Message, frozen=True, kw_only=True, tag=True):
    """Try the oracle's controls on one problem; `compiled` adds torch.compile to those that must be accepted."""

    problem: CandidateSource
    precision: str
    device: str
    seed: int
    compiled: bool = False
    why_no_cuda: str = ""


class ControlResult(msgspec.Struct, frozen=True, kw_only=True):
    """One control: whether it should be refused, and the inputs (drawn, or a stress set) that refused it, if any."""

    name: str
    refuse: bool
    refused_on: str
    reason: str = ""
    message: str = ""
    error_ratio: float | None = None

    @property
    def as_it_should(self) -> bool:
        """Whether a wrong answer was refused, or a right one accepted."""
        return bool(self.refused_on) == self.refuse


class Audited(Message, frozen=True, kw_only=True, tag=True):
    """The controls that apply to a problem and what its inputs promise, or why it could not be audited."""

    results: list[ControlResult] = []
    promises: list[str] = []
    fault: Outcome | None = None
    float64: str = ""
    exact_precision: str = ""
    wall_s: float = 0.0


ToRunner = ComeUp | Prepare | Burst | Go
FromRunner = Hello | Ready | Armed | Enqueued | Finished | Failed
ToJudge = Open | Evaluate | Retime | Leave | TestDevice
FromJudge = Phase | Waiting | Opened | Verdict | Retimed | Left | DeviceTested
FromBuilder = Built | BuildFailed
