"""The plot of a run with an executor that runs nothing: resuming, interruption, reports, notes."""

import json

import pytest
from rich.console import Console

from harness import session
from harness.errors import UsageError
from harness.records import Record, Status
from harness.store import run_directory
from tests.conftest import HONEST, corpus_config

CONSOLE = Console(quiet=True)


class FakeExecutor:
    """Records every job as incorrect, in order; raises `error` after `limit` jobs."""

    def __init__(self, limit: int = 1000, error: BaseException | None = None) -> None:
        self.limit = limit
        self.error = error
        self.seen: list[str] = []

    def __call__(self, devices, config, logs, seed):
        return self

    def run(self, jobs, report_phase):
        for number, job in enumerate(jobs):
            if number == self.limit and self.error:
                raise self.error
            report_phase("cpu", job.title, "evaluating")
            self.seen.append(job.candidate.name)
            yield Record(
                key=job.key,
                problem=job.problem.id,
                variant=job.variant,
                precision=job.precision,
                candidate=job.candidate.name,
                status=Status.INCORRECT,
                reason="mismatch",
                device="fake",
                baseline="eager",
            )


def run(out, executor, *candidates, **options):
    config = corpus_config(*candidates)
    return session.run(config, out, CONSOLE, command=["test"], make_executor=executor, **options)


def test_a_second_run_does_only_what_is_missing(tmp_path):
    first = FakeExecutor(limit=2, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, first, *HONEST)
    assert first.seen == ["honest", "honest_after"]
    assert len(run_directory.read(tmp_path)[1]) == 2
    second = FakeExecutor()
    records = run(tmp_path, second, *HONEST)
    assert second.seen == ["honest_cpp"]
    assert [record.candidate for record in records] == ["honest", "honest_after", "honest_cpp"]
    third = FakeExecutor()
    run(tmp_path, third, *HONEST)
    assert third.seen == []


def test_fresh_forgets(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    again = FakeExecutor()
    assert len(run(tmp_path, again, *HONEST, fresh=True)) == 3
    assert len(again.seen) == 3


def test_the_run_directory_is_complete_after_an_interruption(tmp_path):
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, FakeExecutor(limit=1, error=ZeroDivisionError()), *HONEST)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"run.json", "records.jsonl", "results.csv", "leaderboard.md"} <= names
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert manifest["environment"]["torch"]
    assert manifest["finished_at"] >= manifest["started_at"]


def test_only_the_plan_s_records_are_returned(tmp_path):
    run(tmp_path, FakeExecutor(), *HONEST)
    assert [record.candidate for record in run(tmp_path, FakeExecutor(), "honest")] == ["honest"]


def test_two_sessions_do_not_share_a_run_directory(tmp_path):
    class Nested(FakeExecutor):
        def run(self, jobs, report_phase):
            with pytest.raises(UsageError, match="another run is writing"):
                run(tmp_path, FakeExecutor(), "honest")
            return super().run(jobs, report_phase)

    run(tmp_path, Nested(), "honest")
