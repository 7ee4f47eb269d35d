"""How a job ended, what the build said and what the source screen finds, put together as a record."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from harness import wording
from harness.catalog.jobs import Job
from harness.config import Config, limits
from harness.environment import Device
from harness.integrity.findings import remarks
from harness.records import Outcome, Record, Status
from harness.supervise import provenance
from harness.supervise.builds import BuildResult, built_for
from harness.wire.messages import Ending, Verdict

# In bytes; file systems take 255 with the ending.
LONGEST_FILE = 220

REPLAYED = "replayed: the run's seed was given, and a candidate that guesses it knows all inputs ahead"


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """How a job ended. `outcome` is that of the judge's `verdict`, or what was seen in its place; `again` are warnings
    that say why it was evaluated once more."""

    outcome: Outcome
    verdict: Verdict | None = None
    again: list[str] = []


def record(
    job: Job,
    build: BuildResult,
    conclusion: Conclusion,
    device: Device,
    config: Config,
    *,
    phases_s: dict[str, float],
    wall_s: float,
    log: str,
) -> Record:
    """What a run keeps of one job; `phases_s` are those that no verdict tells of. `log` is the name of the log of the
    process that came last, or empty if there was none."""
    # Without a verdict there is the outcome alone.
    verdict = conclusion.verdict or Verdict(ending=Ending(outcome=conclusion.outcome))
    profiled = provenance.told(verdict.ending, job.candidate, build, config.provenance, device.kind)
    # The run's rules have the last word.
    outcome = profiled.refusal or conclusion.outcome
    refusal_evidence = profiled.refusal.evidence if profiled.refusal else {}
    passed = outcome.status is Status.PASSED
    figures = verdict.ending.figures
    warnings, notes = remarks(job.candidate.facts.findings)
    return Record(
        key=job.key,
        problem=job.problem.id,
        variant=job.variant,
        precision=job.precision,
        candidate=job.candidate.name,
        caption=job.candidate.caption,
        status=outcome.status,
        reason=outcome.reason,
        message=outcome.message,
        evidence=conclusion.outcome.evidence | verdict.checks.evidence | refusal_evidence,
        limit={outcome.limit: limits(config)[outcome.limit]} if outcome.limit else {},
        warnings=[
            *build.warnings,
            *conclusion.again,
            *verdict.checks.warnings,
            *verdict.ending.warnings,
            *profiled.warnings,
            *warnings,
            *([REPLAYED] if config.seed is not None else []),
        ],
        notes=[*verdict.checks.notes, *notes],
        device=device.name,
        baseline=config.baseline,
        # Times stay as evidence; a speedup is for those who passed.
        speedup=figures.speedup if figures and passed else None,
        speedup_lo=figures.speedup_lo if figures and passed else None,
        speedup_hi=figures.speedup_hi if figures and passed else None,
        candidate_ms=figures.candidate_ms if figures else None,
        baseline_ms=figures.baseline_ms if figures else None,
        error_ratio=verdict.checks.error_ratio,
        kernelbench_correct=verdict.checks.kernelbench_correct,
        sol_fraction=figures.sol_fraction if figures else None,
        compile_s=build.compile_s,
        wall_s=round(wall_s, 3),
        phases_s=phases_s | verdict.phases_s,
        timing=figures.timing if figures else None,
        provenance=profiled.provenance,
        log=f"logs/{log}" if log else "",
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def group_name(job: Job) -> str:
    """The start of the names of a group's logs."""
    return _joined(*job.problem.id.split("/"), job.variant, job.precision)


def without_result(job: Job, device: Device, config: Config, why: Outcome, log: str = "") -> Record:
    """The record of a job that the harness could not carry out."""
    conclusion = Conclusion(outcome=why)
    return record(job, BuildResult(), conclusion, device, config, phases_s={}, wall_s=0.0, log=log)


def logs(job: Job) -> list[str]:
    """The names of all logs that a job may have."""
    return [log_name(job), *(f"{name}.build.txt" for name in (file_name(job), build_name(job)))]


def file_name(job: Job) -> str:
    """What the names of a job's own files begin with."""
    return _joined(*job.problem.id.split("/"), job.variant, job.precision, job.candidate.name)


def log_name(job: Job) -> str:
    """The name of the log of its evaluation."""
    return f"{file_name(job)}.log"


def build_name(job: Job) -> str:
    """The name of the log of its build, which is one for all precisions and mostly all variants, without its ending."""
    # `small.fast`, built for all variants, is not `fast`, built for the variant `small`.
    return _joined(*job.problem.id.split("/"), built_for(job) or "_", job.candidate.name)


def _joined(*parts: str) -> str:
    """The parts with dots between them; where one has a dot itself, told apart from what other parts would give."""
    shown = wording.name(".".join(parts), LONGEST_FILE)
    return wording.told_apart(shown, "\0".join(parts), LONGEST_FILE) if any("." in part for part in parts) else shown
