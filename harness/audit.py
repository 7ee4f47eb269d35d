"""The steps of an audit: find problems, try the oracle's controls on each, report which problems cannot judge."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor

from harness import environment
from harness.catalog import problems as catalog
from harness.catalog.problems import Problem
from harness.environment import Device
from harness.errors import UsageError, nearest
from harness.processes.nursery import Nursery
from harness.reading.reading import Reader
from harness.reports.terminal.audit_table import AuditRow
from harness.supervise.audits import audit
from harness.wire.messages import Audited, ControlResult


def run(
    patterns: list[str],
    *,
    variants: list[str],
    constants: dict[str, object],
    device: str,
    compiled: bool,
    timeout_s: float,
    seed: int | None,
    at_once: int,
    planned: Callable[[int, str], None],
    started: Callable[[str], None],
) -> Generator[AuditRow, None, None]:
    """Audit each problem in each of its `variants` with `constants` replaced, `at_once` at a time.

    `planned` is called first, with the number of audits and a sentence that says what there is to do; `started` for
    each problem as it begins. Raises UsageError for a pattern or variant that matches nothing.
    """
    chosen = environment.choose_devices(device)[0]
    with Reader() as reader:
        jobs = _jobs(catalog.discover(patterns, reader), variants, constants)
    planned(len(jobs), _plan(jobs, chosen))
    nursery = Nursery()

    def carry_out(job: tuple[Problem, str, dict[str, object]]) -> AuditRow:
        problem, variant, overrides = job
        started(f"{problem.id} {variant} {problem.precision}")
        drawn_from = secrets.randbits(63) if seed is None else seed
        answer = audit(
            problem,
            overrides,
            problem.precision,
            chosen,
            nursery,
            seed=drawn_from,
            compiled=compiled,
            timeout_s=timeout_s,
        )
        return _row(problem, variant, answer)

    pool = ThreadPoolExecutor(at_once)
    try:
        yield from pool.map(carry_out, jobs)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        nursery.close()


def _jobs(
    found: list[Problem], variants: list[str], constants: dict[str, object]
) -> list[tuple[Problem, str, dict[str, object]]]:
    jobs = []
    for problem in found:
        for variant in variants:
            overrides = catalog.overrides(problem, variant)
            if overrides is not None:
                own = {name: value for name, value in constants.items() if name in problem.constants}
                jobs.append((problem, variant, overrides | own))
    if not jobs:
        names = {name for problem in found for name in catalog.variant_names(problem)}
        raise UsageError(f"no problem has the variant '{variants[0]}'; {nearest(variants[0], names)}")
    return jobs


def _plan(jobs: list[tuple[Problem, str, dict[str, object]]], chosen: Device) -> str:
    count = f"{len(jobs)} {'audit' if len(jobs) == 1 else 'audits'}"
    sizes = ", ".join(dict.fromkeys(variant for _, variant, _ in jobs))
    quicker = any(variant == "default" and catalog.has_variant(problem, "small") for problem, variant, _ in jobs)
    hint = "; --variant small is much quicker on a CPU" if chosen.kind == "cpu" and quicker else ""
    return f"{count} at variant {sizes} on {chosen.spec}{hint}"


def _row(problem: Problem, variant: str, answer: Audited) -> AuditRow:
    wrong = [result for result in answer.results if not result.as_it_should]
    return AuditRow(
        problem=problem.id,
        variant=variant,
        precision=problem.precision,
        tried=len(answer.results),
        accepted_wrong=[result.name for result in wrong if result.refuse],
        refused_right=[_why(result) for result in wrong if not result.refuse],
        promises=answer.promises,
        fault=answer.fault,
        wall_s=answer.wall_s,
    )


def _why(result: ControlResult) -> str:
    """On which inputs a right answer was refused, and for which reason."""
    error = "" if result.error_ratio is None else f", {result.error_ratio:.3g} times the reference's error"
    return f"{result.name} (on {result.refused_on} inputs: {result.reason}{error})"
