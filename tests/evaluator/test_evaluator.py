"""Evaluations by the call: from texts and paths, side by side, and what one submission costs the others."""

import asyncio
import contextlib
import os
import threading
import time

import msgspec
import pytest

from harness import api
from harness.api import Evaluator, Status, UsageError
from harness.config import BuildConfig, CheckConfig, ProvenanceConfig
from harness.evaluator import evaluator as evaluator_module
from harness.evaluator import planning
from harness.evaluator.planning import Submission
from harness.execution import build_slots
from harness.processes import folders
from harness.supervise import builds, disk, recording
from harness.supervise.builds import Workshop
from harness.supervise.supervisor import Supervisor
from tests.conftest import CORPUS, corpus_config

SCALE = CORPUS / "problems/toy/scale.py"
CONFIG = msgspec.structs.replace(
    corpus_config(), check=CheckConfig(stress=False), provenance=ProvenanceConfig(profile=False), seed=987654321
)
CANDIDATE = """import os
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        {line}
"""
PROBLEM = """import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * {factor}


def get_inputs():
    return [torch.randn(100)]


def get_init_inputs():
    return []
"""
TIMES = """from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x * {factor}
"""


def candidate(line):
    return CANDIDATE.format(line=line)


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(CONFIG) as one:
        yield one


def test_texts_and_paths_are_evaluated_side_by_side_with_what_crashes(evaluator, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(candidate("return self.linear(x).tanh()"))
    found = list(
        evaluator.map(SCALE, [candidate("os.kill(os.getpid(), 11)"), path, candidate("return self.linear(x)")])
    )
    assert [record.status for record in found] == [Status.CRASHED, Status.PASSED, Status.INCORRECT]
    assert [record.candidate for record in found] == ["candidate", "mine", "candidate"]
    assert {record.problem for record in found} == {"toy/scale"}
    # The evidence has what a reader may know, and a model may not.
    wrong = found[2]
    assert isinstance(wrong.evidence["worst"]["expected"], float)
    told = api.feedback(wrong)
    assert "as PyTorch without tanh" in told
    assert not any(secret in told for secret in (f"{wrong.evidence['worst']['expected']:.6g}", str(CONFIG.seed)))
    # Nothing is left of them.
    assert list(evaluator._pool._scratch.rglob("mine*.py")) == []
    assert evaluator._open == {}


def test_a_problem_that_is_edited_between_two_submissions_is_another_one(evaluator, tmp_path):
    path = tmp_path / "set/times.py"
    path.parent.mkdir()
    path.write_text(PROBLEM.format(factor=2))
    assert evaluator.submit(path, TIMES.format(factor=2)).result().status is Status.PASSED
    path.write_text(PROBLEM.format(factor=3))
    assert evaluator.submit(path, TIMES.format(factor=2)).result().status is Status.INCORRECT
    assert evaluator.submit(PROBLEM.format(factor=2), TIMES.format(factor=2)).result().problem.startswith("source/")


class Held:
    """Evaluations that wait until they are let go, and judge nothing."""

    def __init__(self, monkeypatch):
        self.seen, self.begun, self.go = [], threading.Event(), threading.Event()
        held = self

        def evaluate(self, job, build):
            held.seen.append(job.candidate.name)
            held.begun.set()
            held.go.wait(120.0)
            if "breaks" in job.candidate.name:
                raise ZeroDivisionError("our own mistake")
            outcome = recording.Outcome(status=Status.INCORRECT, reason="made_up")
            conclusion = recording.Conclusion(outcome=outcome)
            return recording.record(job, build, conclusion, self._device, self._config, phases_s={}, wall_s=0.0, log="")

        monkeypatch.setattr(Supervisor, "evaluate", evaluate)


def test_deadlines_count_the_wait_and_cancelled_ones_are_not_begun(monkeypatch):
    held = Held(monkeypatch)
    with Evaluator(CONFIG) as one:
        first = one.submit(SCALE, TIMES.format(factor=1), name="first")
        assert held.begun.wait(30.0)
        begun = time.monotonic()
        late = one.submit(SCALE, TIMES.format(factor=2), name="late", deadline_s=0.3)
        other = one.submit(SCALE, TIMES.format(factor=3), name="other")
        urgent = one.submit(SCALE, TIMES.format(factor=4), name="urgent", priority=1)
        same = one.submit(SCALE, TIMES.format(factor=3), name="other")
        gone = one.submit(SCALE, TIMES.format(factor=5), name="gone")
        assert (late.result().status, late.result().reason) == (Status.HARNESS_ERROR, "deadline")
        assert 0.3 <= time.monotonic() - begun < 20
        assert first.running()
        assert not first.cancel()
        time.sleep(1.0)
        assert gone.cancel()
        held.go.set()
        assert same.result() == other.result()
        assert urgent.result().candidate == "urgent"
    assert [name.partition("-")[0] for name in held.seen] in (
        ["first", "urgent", "other"],
        ["first", "other", "urgent"],  # where the urgent one came too late for the round
    )
    with pytest.raises(UsageError, match="closed"):
        one.submit(SCALE, "x\n")


def test_a_deadline_that_passes_while_it_is_evaluated_excuses_nobody(monkeypatch):
    monkeypatch.setattr(evaluator_module, "LOOK_AGAIN_S", 0.05)
    held = Held(monkeypatch)
    with Evaluator(CONFIG) as one:
        first = one.submit(SCALE, TIMES.format(factor=1), name="first")
        assert held.begun.wait(30.0)
        (entry,) = one._open.values()
        one._expire(entry.waiting[0])
        time.sleep(0.3)
        assert not first.done()
        held.go.set()
        assert first.result().reason == "made_up"
        until(lambda: not one.deadlines._calls)


def test_what_comes_while_a_full_disk_is_cleared_waits_for_that(monkeypatch):
    held = Held(monkeypatch)
    held.go.set()
    with Evaluator(CONFIG) as one:
        cleared = threading.Event()
        monkeypatch.setattr(folders, "removing", lambda: not cleared.is_set())
        monkeypatch.setattr(disk, "is_full", lambda folder: not cleared.is_set())
        first = one.submit(SCALE, TIMES.format(factor=1))
        given_up = one.submit(SCALE, TIMES.format(factor=2), deadline_s=0.5)
        assert given_up.result().reason == "deadline"
        assert not first.done()
        cleared.set()
        assert first.result().reason == "made_up"


HANGS_IN_ITS_BUILD = """
import time
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

time.sleep(1e6)

class ModelNew(nn.Module):
    pass
"""


def test_nor_does_one_that_passes_while_it_is_built():
    config = msgspec.structs.replace(CONFIG, build=BuildConfig(timeout_s=12.0))
    with Evaluator(config) as one:
        record = one.submit(SCALE, HANGS_IN_ITS_BUILD, deadline_s=10.0).result()
    assert (record.status, record.reason) == (Status.TIMEOUT, "compile")
    assert list(record.limit) == ["build.timeout_s"]
    assert api.reward(record) == 0.0


def test_a_build_that_nobody_waits_for_any_more_is_ended():
    with Evaluator(CONFIG) as one:
        hangs = one.submit(SCALE, HANGS_IN_ITS_BUILD)
        until(lambda: any(entry.task and one._pool.has_begun(entry.task) for entry in list(one._open.values())))
        assert hangs.cancel()
        # On the CPU nothing is measured beside a build.
        honest = one.submit(SCALE, candidate("return self.linear(x)"))
        assert honest.result(timeout=100).status is Status.INCORRECT


def test_what_joins_a_waiting_one_makes_it_as_urgent(monkeypatch):
    held = Held(monkeypatch)
    with Evaluator(CONFIG) as one:
        one.submit(SCALE, TIMES.format(factor=1), name="first")
        assert held.begun.wait(30.0)
        waiting = [one.submit(SCALE, TIMES.format(factor=2 + n), name=f"n{n}", priority=n // 2) for n in range(3)]
        until(lambda: len(one._pool._schedule._arrived) == 3)
        joined = one.submit(SCALE, TIMES.format(factor=2), name="n0", priority=5)
        (entry,) = (entry for entry in one._open.values() if entry.name == "n0")
        until(lambda: entry.task.priority == 5)
        again = one.submit(SCALE, TIMES.format(factor=2), name="n0", priority=-1)
        until(lambda: len(entry.waiting) == 3)
        held.go.set()
        assert joined.result() == waiting[0].result() == again.result()
    assert [name.partition("-")[0] for name in held.seen] == ["first", "n0", "n2", "n1"]


def until(true):
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_text_of_an_ended_submission_is_not_kept_until_its_deadline(monkeypatch):
    held = Held(monkeypatch)
    held.go.set()
    with Evaluator(CONFIG) as one:
        one.submit(SCALE, TIMES.format(factor=1), deadline_s=80_000).result()
        until(lambda: not one.deadlines._calls)


def test_an_error_of_ours_costs_one_record_and_the_next_is_evaluated(monkeypatch):
    held = Held(monkeypatch)
    held.go.set()
    with Evaluator(CONFIG) as one:
        broken = one.submit(SCALE, TIMES.format(factor=1), name="breaks").result()
        assert (broken.status, broken.reason) == (Status.HARNESS_ERROR, "exception:ZeroDivisionError")
        assert api.reward(broken) is None
        assert one.submit(SCALE, TIMES.format(factor=1), name="next").result().status is Status.INCORRECT


def test_leaving_by_an_exception_waits_for_nobody(monkeypatch):
    held = Held(monkeypatch)
    with contextlib.suppress(ZeroDivisionError), Evaluator(CONFIG) as one:
        first = one.submit(SCALE, TIMES.format(factor=1), name="first")
        held.begun.wait(30.0)
        second = one.submit(SCALE, TIMES.format(factor=2), name="second")
        threading.Timer(0.5, held.go.set).start()
        raise ZeroDivisionError
    assert second.cancelled()
    assert isinstance(first.exception(), UsageError)
    assert not one._folder.exists()


def test_libraries_and_copies_go_with_their_last_job(monkeypatch):
    held = Held(monkeypatch)
    held.go.set()
    folders = []

    def build(self, job, nursery, folder, log, card):
        folder.mkdir()
        folders.append(folder)
        return build_slots.BuildResult(libraries={"one": str(folder / "one.so")})

    monkeypatch.setattr(Workshop, "build", build)
    monkeypatch.setattr(builds, "needs_build", lambda job: True)
    with Evaluator(CONFIG, devices=["cpu", "cpu"]) as one:
        found = [record.status for record in one.map(SCALE, [TIMES.format(factor=number) for number in range(5)])]
        assert found == [Status.INCORRECT] * 5
        assert len(folders) == 5
        assert not any(map(os.path.exists, folders))
        assert len(list((one._pool._scratch / "sources").iterdir())) == 1


def test_asyncio_has_the_same(monkeypatch):
    held = Held(monkeypatch)
    held.go.set()

    async def both():
        with Evaluator(CONFIG) as one:
            first = await one.aevaluate(SCALE, TIMES.format(factor=1), name="first")
            return [first, *[record async for record in one.amap(SCALE, [TIMES.format(factor=2)], name="second")]]

    assert [record.candidate for record in asyncio.run(both())] == ["first", "second"]


@pytest.mark.parametrize(
    ("problem", "more", "why"),
    [
        ("toy/nothing", {}, "there is no problem 'toy/nothing'"),
        (CORPUS / "problems", {}, "is no file"),
        (SCALE, {"variant": "wid"}, "did you mean 'wide'"),
        (SCALE, {"precision": "float31"}, "did you mean 'float3"),
        (SCALE, {"name": "../x"}, "use letters"),
    ],
)
def test_what_is_asked_wrongly_is_a_usage_error(evaluator, problem, more, why):
    with pytest.raises(UsageError, match=why):
        evaluator.submit(problem, TIMES.format(factor=1), **more).result()


def test_a_run_is_loaded_as_a_table():
    found = api.load(CORPUS.parents[1] / "results/starter-h200")
    assert {"problem", "status", "speedup"} <= set(found.columns)
    assert len(found) == 92


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidate": None},
        {"candidate": b"x"},
        {"problem": None},
        {"priority": "high"},
        {"priority": None},
        {"variant": ["small"]},
        {"deadline_s": "5"},
        {"deadline_s": float("inf")},
        {"deadline_s": float("nan")},
        {"deadline_s": 0},
    ],
)
def test_an_argument_of_no_use_is_refused_at_once(wrong):
    given = {
        "problem": SCALE,
        "candidate": "x",
        "variant": "default",
        "precision": "default",
        "name": "",
        "priority": 0,
    }
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Submission(**given | wrong)


def test_what_a_model_wrote_is_no_path(tmp_path):
    good = tmp_path / "good.py"
    good.write_text("x = 1\n")
    one = Submission(SCALE, str(good), "default", "default", "", 0)
    assert planning._candidate_file(one, tmp_path / "folder").read_text() == str(good)
