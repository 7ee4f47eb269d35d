import threading
from pathlib import Path

from harness import session
from harness.environment import choose_devices
from harness.execution.build_slots import BuildSlots
from harness.records import Outcome, Status
from harness.supervise.builds import KILLED, BuildResult
from tests.conftest import corpus_config


class Workshop:
    """Builds that take until their process is stopped, as which they then end."""

    def __init__(self):
        self.begun = threading.Event()
        self.folders: list[Path] = []

    def build(self, job, nursery, folder, log, card):
        self.folders.append(folder)
        child = nursery.start("builder")
        log.write_text("begun")
        self.begun.set()
        assert child.stopped.wait(10.0)
        return BuildResult(fault=Outcome(status=Status.CRASHED, reason=KILLED))


class Nursery:
    def start(self, role):
        return Child()


class Child:
    def __init__(self):
        self.stopped = threading.Event()

    def stop(self):
        self.stopped.set()


def test_a_build_that_is_ended_is_not_tried_again(tmp_path):
    config = corpus_config("honest_cpp")
    (job,) = session.plan(config).jobs
    slots = BuildSlots(choose_devices("cpu")[0], config, Nursery(), tmp_path, tmp_path, lambda *_: None)
    slots._workshop = workshop = Workshop()
    build = slots.start(job)
    assert workshop.begun.wait(10.0)
    # Whoever was killed from outside is tried once more; nobody waits for this one.
    assert slots.end(job) == workshop.folders
    assert build.result(10.0).fault.reason == "withdrawn"
    assert len(workshop.folders) == 1
    assert list(tmp_path.iterdir()) == []
    assert slots.end(job) == []
    slots.close()


def test_what_is_no_python_opens_no_problem(evaluate):
    record = evaluate("syntax_error")["syntax_error"]
    assert (record.status, record.reason) == (Status.LOAD_ERROR, "syntax_error")
    # As who loads it would say it.
    assert record.message.startswith(f"syntax_error.py:{record.evidence['line']}: ")
    assert record.evidence["exception"] == "LoadFault:syntax_error"
    assert not record.phases_s
