"""Problems whose own code ends the judge, or holds it up, while it opens them."""

import pytest

from harness import environment, session
from harness.config import Config, Limits
from harness.processes.nursery import Nursery
from harness.records import Status
from harness.store.journal import Journal
from harness.supervise.builds import BuildResult
from harness.supervise.supervisor import Supervisor
from tests.conftest import QUICK

PROBLEM = """
import ctypes, os, time, torch
class Model(torch.nn.Module):
    def forward(self, x): return x + 1
def get_inputs():
    {act}
    return [torch.randn(8)]
def get_init_inputs(): return []
"""
CANDIDATE = "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x + 1\n"
# Each with what the message must say.
ENDS = {
    "os._exit(3)": "ended itself with code 3 in its phase 'reference'",
    "ctypes.string_at(0)": "died of SIGSEGV in its phase 'reference'",
    "os.closerange(3, 100)": "ended itself with code 70 in its phase 'reference'",
    "raise KeyboardInterrupt": "ended itself with code 70 in its phase 'reference'",
    "time.sleep(1e6)": "limits.load_s + first_call_s + total_s = 6 s, in its phase 'reference'",
}


@pytest.fixture
def evaluate(tmp_path):
    """The jobs of two candidates of a problem that carries out `act`, their records, and the phases on the way."""

    def run(act):
        sources = {"problems/set/p": PROBLEM, "solutions/set/p/a": CANDIDATE, "solutions/set/p/b": CANDIDATE}
        for place, text in sources.items():
            file = tmp_path / f"{place}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{act}", act))
        config = Config(
            problems=[str(tmp_path / "problems")],
            solutions=[str(tmp_path / "solutions")],
            device="cpu",
            timing=QUICK,
            limits=Limits(load_s=2.0, first_call_s=2.0, total_s=2.0),
        )
        jobs = session.plan(config).jobs
        seen = []
        nursery, cpu = Nursery(), environment.choose_devices("cpu")[0]
        supervisor = Supervisor(nursery, cpu, config, tmp_path, 0, lambda job, phase: seen.append(phase))
        try:
            return jobs, [supervisor.evaluate(job, BuildResult()) for job in jobs], seen
        finally:
            supervisor.close()
            nursery.close()

    return run


@pytest.mark.parametrize("act", ENDS)
def test_what_the_problem_does_to_its_judge_is_the_problem_s_own_fault(act, evaluate, tmp_path):
    jobs, records, seen = evaluate(act)
    assert [record.candidate for record in records] == ["a", "b"]
    for record in records:
        assert (record.status, record.reason) == (Status.INVALID_REFERENCE, "judge_lost")
        assert ENDS[act] in record.message
    # The second candidate's record needs no third and fourth try.
    assert seen.count("starting judge") == 2
    with Journal(tmp_path / "records.jsonl") as book:
        for record in records:
            book.append(record)
        assert book.finished({}) == {job.key for job in jobs}


def test_a_judge_killed_from_outside_while_it_opens_a_problem_is_tried_again_by_the_next_run(evaluate):
    _, records, _ = evaluate("os.kill(os.getpid(), 9)")
    assert {(record.status, record.reason) for record in records} == {(Status.HARNESS_ERROR, "judge_lost")}
