"""A verdict, what the build said and what the source screen finds, put together as a record."""

from __future__ import annotations

from datetime import UTC, datetime

from harness import wording
from harness.catalog.jobs import Job
from harness.config import Config, limits
from harness.environment import Device
from harness.integrity.findings import remarks
from harness.records import Record
from harness.supervise import provenance
from harness.supervise.builds import BuildResult
from harness.wire.messages import Verdict

# In bytes; file systems take 255 with the ending.
LONGEST_FILE = 220


def record(
    job: Job,
    build: BuildResult,
    verdict: Verdict,
    device: Device,
    config: Config,
    *,
    phases_s: dict[str, float],
    wall_s: float,
) -> Record:
    """What a run keeps of one evaluation; `phases_s` are those that the verdict does not tell of."""
    verdict, found = provenance.told(verdict, job.candidate, build, config.provenance, device.kind)
    outcome = verdict.outcome
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
        evidence=outcome.evidence,
        limit={outcome.limit: limits(config)[outcome.limit]} if outcome.limit else {},
        warnings=[*build.warnings, *verdict.warnings, *warnings],
        notes=[*verdict.notes, *notes],
        device=device.name,
        baseline=config.baseline,
        speedup=verdict.speedup,
        speedup_lo=verdict.speedup_lo,
        speedup_hi=verdict.speedup_hi,
        candidate_ms=verdict.candidate_ms,
        baseline_ms=verdict.baseline_ms,
        error_ratio=verdict.error_ratio,
        sol_fraction=verdict.sol_fraction,
        compile_s=build.compile_s,
        wall_s=round(wall_s, 3),
        phases_s=phases_s | verdict.phases_s,
        timing=verdict.timing,
        provenance=found,
        log=f"logs/{file_name(job)}.log",
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def group_name(job: Job) -> str:
    """The start of the names of a group's logs."""
    return wording.name(f"{job.problem.id.replace('/', '.')}.{job.variant}.{job.precision}", LONGEST_FILE)


def file_name(job: Job) -> str:
    """The name of a job's log, without its ending."""
    return wording.name(f"{group_name(job)}.{job.candidate.name}", LONGEST_FILE)


def build_name(job: Job) -> str:
    """The name of the log of its build, which is one for all variants and precisions, without its ending."""
    return wording.name(f"{job.problem.id.replace('/', '.')}.{job.candidate.name}", LONGEST_FILE)
