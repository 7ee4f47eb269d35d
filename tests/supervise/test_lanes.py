"""Several evaluations under way on one device. The CPU takes the place of a card: its judges take turns alike."""

import os
import threading
from types import SimpleNamespace

import pytest

from harness import environment, session
from harness.execution import pool
from harness.execution.local import LocalExecutor
from harness.records import Outcome, Status
from harness.supervise import second_chance as second_chance_module
from harness.supervise.builds import BuildResult
from harness.supervise.evaluation import Evaluator
from harness.supervise.lanes import Lanes, how_many
from harness.supervise.losses import ProcessLost
from harness.supervise.second_chance import SecondChance
from harness.wire import faults
from harness.wire.messages import Ending, Verdict
from tests.conftest import HONEST, corpus_config

CPU = environment.choose_devices("cpu")[0]
WRONG = Outcome(status=Status.INCORRECT, reason="mismatch")
RIGHT = Outcome(status=Status.PASSED)
NO_ROOM = Outcome(status=Status.UNSUPPORTED, reason=faults.NEEDS_MEMORY)
JOB, OTHER = (SimpleNamespace(group=name, candidate=SimpleNamespace(baseline="")) for name in ("one", "other"))


class Groups:
    """What a lane holds on its device; nothing here."""

    memory_share = 0.5

    def __init__(self):
        self.ended = 0

    def end(self):
        self.ended += 1


class Phases:
    def report(self, name):
        pass


def second_chance(tmp_path, outcomes, lanes, slowed=0, check=None):
    """Evaluations that end so, one after the other, and how each was done; the baseline is slow in the first
    `slowed`, and `check` looks at the device."""
    asked, groups = [], Groups()

    class Ends:
        def once(self, job, build, phases, alone=False, explained=True):
            # Why an answer is wrong is asked in the evaluation that counts.
            assert explained is (alone or lanes.count == 1 or groups.memory_share == 1.0)
            asked.append((alone, groups.memory_share))
            outcome = outcomes[len(asked) - 1]
            if isinstance(outcome, ProcessLost):
                raise outcome
            return outcome, Verdict(ending=Ending(outcome=outcome, slowed=len(asked) <= slowed))

    return SecondChance(Ends(), groups, CPU, corpus_config("honest"), check, tmp_path, lanes), groups, asked


def concluded(tmp_path, outcomes, lanes=None, slowed=0):
    """What comes of one candidate's evaluations, and how each was done."""
    chance, groups, asked = second_chance(tmp_path, outcomes, lanes or Lanes(2), slowed)
    found = chance.conclude(JOB, BuildResult(), Phases()) or chance.conclude(JOB, BuildResult(), Phases())
    chance.rest()
    assert groups.memory_share == 0.5
    return found, asked


def test_the_cpu_has_one_lane_whatever_is_asked_for():
    config = corpus_config("honest", lanes=4)
    assert how_many(config, CPU) == 1
    assert how_many(config, environment.Device(kind="cuda", spec="cuda:0", name="a card")) == 4


def test_who_fails_beside_others_fails_alone_or_not_at_all(tmp_path):
    found, asked = concluded(tmp_path, [WRONG, RIGHT])
    assert found.outcome == RIGHT
    assert asked == [(False, 0.5), (True, 0.5)]
    assert found.again == ["evaluated_again: beside other candidates it was incorrect (mismatch)"]


def test_nothing_is_said_where_it_fails_in_the_same_way(tmp_path):
    found, asked = concluded(tmp_path, [WRONG, WRONG])
    assert (found.outcome, found.again, len(asked)) == (WRONG, [], 2)


@pytest.mark.parametrize("reason", ["wrong_shape", "exception:TypeError"])
def test_what_comes_of_no_tensor_s_contents_is_its_own_doing_at_once(tmp_path, reason):
    wrong = Outcome(status=Status.INCORRECT, reason=reason)
    found, asked = concluded(tmp_path, [wrong])
    assert (found.outcome, asked) == (wrong, [(False, 0.5)])


def test_who_slows_the_baseline_beside_others_does_so_alone_or_not_at_all(tmp_path):
    found, asked = concluded(tmp_path, [RIGHT, RIGHT], slowed=1)
    assert asked == [(False, 0.5), (True, 0.5)]
    assert found.again == ["evaluated_again: the baseline was slow beside it and other candidates"]


def test_one_lane_asks_nobody_twice(tmp_path):
    found, asked = concluded(tmp_path, [WRONG], Lanes())
    assert (found.outcome, asked) == (WRONG, [(False, 0.5)])


@pytest.mark.parametrize(
    "outcome",
    [Outcome(status=Status.OUT_OF_MEMORY), NO_ROOM],
)
def test_who_lacks_memory_gets_all_of_it_without_the_others(tmp_path, outcome):
    lanes, given_up = Lanes(2), []
    lanes.joined(lambda: given_up.append(1))
    found, asked = concluded(tmp_path, [outcome, RIGHT], lanes)
    assert found.outcome == RIGHT
    assert [share for _, share in asked] == [0.5, 1.0]
    assert given_up == [1]


@pytest.mark.parametrize("opening", [True, False])
def test_what_is_lost_beside_others_is_nobody_s_doing_until_it_is_lost_alone(tmp_path, opening):
    lanes, given_up = Lanes(2), []
    lanes.joined(lambda: given_up.append(1))
    problems = Outcome(status=Status.INVALID_REFERENCE) if opening else None
    lost = ProcessLost("judge_lost", "CUDA out of memory", opening=opening, problems=problems)
    chance, groups, asked = second_chance(tmp_path, [lost, lost, RIGHT], lanes)
    assert chance.conclude(JOB, BuildResult(), Phases()).outcome == RIGHT
    assert [share for _, share in asked] == [0.5, 0.5, 1.0]
    assert given_up == [1]
    # It has room beside them, once who took it is gone.
    assert (chance.later, groups.memory_share) == (set(), 0.5)


def test_losses_of_different_kinds_are_nobody_s_doing(tmp_path):
    killed = Outcome(status=Status.CRASHED, reason="signal:SIGKILL")
    opening, later = (ProcessLost("judge_lost", "it went away", opening=one) for one in (True, False))
    for ends in ([opening, killed, RIGHT], [killed, later, RIGHT], [opening, killed, later, RIGHT]):
        found, asked = concluded(tmp_path, ends, Lanes())
        assert (found.outcome, len(asked)) == (RIGHT, len(ends))
    for ends in ([killed, opening, killed], [later, killed, later]):
        found, _ = concluded(tmp_path, ends, Lanes())
        assert found.outcome.status in (Status.CRASHED, Status.REJECTED)


def test_a_device_without_memory_beside_others_is_not_given_up(tmp_path):
    lanes, given_up = Lanes(2), []
    lanes.joined(lambda: given_up.append(1))
    seen = SimpleNamespace(fault=lambda: "" if given_up else "CUDA error: out of memory")
    chance, _, _ = second_chance(tmp_path, [], lanes, check=seen)
    assert chance.device_fault() == ""
    broken = SimpleNamespace(fault=lambda: "no answer")
    for count in (1, 2):
        chance, _, _ = second_chance(tmp_path, [], Lanes(count), check=broken)
        assert chance.device_fault() == "no answer"


def test_a_group_without_room_beside_others_has_the_device_until_its_lane_rests(tmp_path):
    lanes, given_up = Lanes(2), []
    lanes.joined(lambda: given_up.append(1))
    chance, groups, asked = second_chance(tmp_path, [NO_ROOM, RIGHT, WRONG, RIGHT, RIGHT], lanes)
    assert chance.conclude(JOB, BuildResult(), Phases()) is None
    assert (chance.later, given_up) == ({JOB.group}, [])
    for _ in range(2):
        chance.conclude(JOB, BuildResult(), Phases())
    # It is this group's turn.
    assert chance.later == set()
    # Nobody else is there, so nobody else can have spoilt the second one's answer.
    assert asked == [(False, 0.5), (False, 1.0), (False, 1.0)]
    assert (given_up, groups.ended) == ([1], 0)
    chance.conclude(OTHER, BuildResult(), Phases())
    assert (asked[-1], groups.ended) == ((False, 0.5), 1)
    assert chance.later == {JOB.group}
    # It is known by now.
    chance.conclude(JOB, BuildResult(), Phases())
    assert asked[-1] == (False, 1.0)
    chance.rest()
    with lanes.together():
        assert groups.ended == 2


def test_others_that_wait_too_long_get_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(second_chance_module, "ALONE_S", 0.0)
    lanes = Lanes(2)
    chance, groups, _ = second_chance(tmp_path, [NO_ROOM, RIGHT, RIGHT], lanes)
    for _ in range(2):
        chance.conclude(JOB, BuildResult(), Phases())
    assert groups.ended == 0
    begun = threading.Event()

    def beside():
        with lanes.together():
            begun.set()

    thread = threading.Thread(target=beside)
    thread.start()
    while not lanes.others_wait:
        pass
    chance.conclude(JOB, BuildResult(), Phases())
    assert begun.wait(10)
    thread.join(10)
    assert groups.ended == 1


def test_alone_waits_for_what_is_under_way():
    lanes, events, inside = Lanes(2), [], threading.Event()
    may_end = threading.Event()

    def beside():
        with lanes.together():
            inside.set()
            may_end.wait(10)
            events.append("beside")

    thread = threading.Thread(target=beside)
    thread.start()
    inside.wait(10)
    threading.Timer(0.2, may_end.set).start()
    with lanes.alone():
        events.append("alone")
    thread.join(10)
    assert events == ["beside", "alone"]


def test_each_judge_has_a_file_of_its_own_of_the_same_turns():
    lanes = Lanes(2)
    one, other = lanes.turns(), lanes.turns()
    assert one != other
    assert os.fstat(one).st_ino == os.fstat(other).st_ino
    os.close(one)
    os.close(other)
    lanes.close()
    assert Lanes().turns() is None


@pytest.mark.slow
def test_two_lanes_evaluate_as_one_does(tmp_path, monkeypatch):
    monkeypatch.setattr(pool.lanes, "how_many", lambda config, device: 2)
    seen = set()
    config = corpus_config(*HONEST, "patches_torch")
    executor = LocalExecutor([CPU], config, tmp_path, 0)
    records = list(executor.run(session.plan(config).jobs, lambda slot, job, phase: seen.add(slot)))
    status = {record.candidate: record.status for record in records}
    assert status == dict.fromkeys(HONEST, Status.PASSED) | {"patches_torch": Status.INCORRECT}
    assert {"cpu lane 1", "cpu lane 2"} <= seen


@pytest.mark.slow
def test_who_has_no_room_beside_others_is_put_off(tmp_path, monkeypatch):
    monkeypatch.setattr(pool.lanes, "how_many", lambda config, device: 2)
    once, tried = Evaluator.once, []

    def crowded(self, job, build, phases, **how):
        tried.append(job.group)
        # Beside others the first one's group has no room.
        without = self._groups.memory_share < 1.0 and job.group == tried[0]
        return (NO_ROOM, None) if without else once(self, job, build, phases, **how)

    monkeypatch.setattr(Evaluator, "once", crowded)
    config = corpus_config("honest", "honest_after", precisions=["float32", "float64"])
    records = list(LocalExecutor([CPU], config, tmp_path, 0).run(session.plan(config).jobs, lambda *_: None))
    assert [record.status for record in records] == [Status.PASSED] * 4
    # Though it was begun with.
    assert records[0].precision not in tried[0]
