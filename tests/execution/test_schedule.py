"""In what order a device's slot gets its jobs, while builds are still going on."""

import sys
from concurrent.futures import Future
from pathlib import Path

import msgspec
import pytest

from harness import session
from harness.execution.schedule import MOST_OVERTAKEN, BuildRoom, Schedule
from harness.execution.tasks import Task, build_key
from harness.records import Outcome, Status
from harness.supervise.builds import BuildResult
from tests.conftest import corpus_config

FAULT = BuildResult(fault=Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="no"))


def ended(result):
    future = Future()
    future.set_result(result)
    return future


@pytest.fixture
def jobs():
    return session.plan(corpus_config("honest", "honest_after", "honest_cpp")).jobs


class Work:
    """A schedule of jobs whose builds the test ends, and that says which job a slot gets."""

    def __init__(self, jobs, *builds, all_builds_first=True, slots=1):
        keyed = {build_key(job): build for job, build in zip(jobs, builds, strict=True)}
        self.started = []
        self.all = Schedule(
            lambda job: self.started.append(job) or keyed[build_key(job)], slots, all_builds_first=all_builds_first
        )
        self.tasks = self.add(*jobs)

    def add(self, *jobs, priority=0):
        tasks = [Task(job=job, priority=priority) for job in jobs]
        self.all.add(tasks)
        return tasks

    def take(self, slot):
        task = self.all.take(slot)
        return task and task.job

    def builds_awaited(self):
        return self.all.builds_awaited()

    def leave(self, slot):
        return [task.job for task in self.all.leave(slot)]

    @property
    def empty(self):
        self.all.close()
        return self.all.done


work = Work


def test_on_the_cpu_nothing_is_measured_before_the_last_build(jobs):
    last = Future()
    todo = work(jobs, ended(BuildResult()), ended(BuildResult()), last)
    assert todo.take("cpu") is None
    assert todo.builds_awaited() == 1
    last.set_result(BuildResult())
    assert todo.take("cpu") == jobs[0]
    assert todo.builds_awaited() == 0


def test_a_build_that_failed_gets_its_record_at_once(jobs):
    todo = work(jobs, ended(BuildResult()), ended(FAULT), Future())
    assert todo.take("cpu") == jobs[1]
    assert todo.take("cpu") is None


def test_a_build_that_broke_ends_the_run_at_once(jobs):
    broken = Future()
    broken.set_exception(OSError("no space"))
    assert work(jobs, Future(), broken, Future()).take("cpu") == jobs[1]


def test_on_a_card_what_is_built_is_measured(jobs):
    todo = work(jobs, Future(), ended(BuildResult()), Future(), all_builds_first=False)
    assert todo.take("cpu") == jobs[1]
    assert todo.take("cpu") is None
    assert todo.builds_awaited() == 0


@pytest.fixture
def many(jobs):
    """Jobs of three groups: ten, three and two candidates."""

    def one(variant, number):
        candidate = msgspec.structs.replace(jobs[0].candidate, path=Path(f"{number}.py"))
        return msgspec.structs.replace(jobs[0], variant=variant, candidate=candidate)

    sizes = {"first": 10, "second": 3, "third": 2}
    return [
        one(variant, number) for number, variant in enumerate(v for v, count in sizes.items() for _ in range(count))
    ]


def groups_of(todo, turns):
    """Which group each slot of `turns` is given a job of; None for none."""
    return [(job := todo.take(slot)) and job.variant for slot in turns]


def test_slots_keep_to_groups_of_their_own(many):
    todo = work(many, *[ended(BuildResult())] * 15, all_builds_first=False)
    assert groups_of(todo, "abababab") == ["first", "second"] * 3 + ["first", "third"]
    assert groups_of(todo, "ab") == ["first", "third"]
    # Five of the first group are left: worth a second judge.
    assert groups_of(todo, "bbbbb") == ["first"] * 5
    assert todo.empty


def test_the_end_of_a_group_is_left_to_the_slot_that_has_it(many):
    todo = work(many[:13], *[ended(BuildResult())] * 13, all_builds_first=False)
    assert groups_of(todo, "aaaaaaabbb") == ["first"] * 7 + ["second"] * 3
    assert groups_of(todo, "b") == [None]
    assert not todo.empty
    assert groups_of(todo, "aaab") == ["first"] * 3 + [None]
    assert todo.empty


def test_nobody_else_opens_a_group_while_others_are_to_come(many):
    """Five jobs of the first group are left; those of the second will be built soon."""
    builds = [*[ended(BuildResult())] * 10, *[Future() for _ in range(3)]]
    todo = work(many[:13], *builds, all_builds_first=False)
    assert groups_of(todo, "aaaaab") == ["first"] * 5 + [None]
    builds[10].set_result(BuildResult())
    assert groups_of(todo, "bba") == ["second", None, "first"]


def test_what_opens_no_group_is_told_by_anybody_and_takes_none(many):
    builds = [*[ended(BuildResult())] * 9, ended(FAULT), *[ended(BuildResult())] * 3]
    todo = work(many[:13], *builds, all_builds_first=False)
    assert groups_of(todo, "abbbbb") == ["first", *["second"] * 3, "first", "first"]


def test_a_lost_slots_group_is_free_again(many):
    todo = work(many[:12], *[ended(BuildResult())] * 12, all_builds_first=False, slots=2)
    assert groups_of(todo, "aaaaaaaabb") == ["first"] * 8 + ["second"] * 2
    assert groups_of(todo, "b") == [None]
    assert todo.leave("a") == []
    assert groups_of(todo, "bb") == ["first"] * 2


def test_groups_that_are_built_come_first(many):
    builds = [ended(BuildResult()), *[Future() for _ in range(9)], *[ended(BuildResult())] * 5]
    assert groups_of(work(many, *builds, all_builds_first=False), "aaaa") == ["second"] * 3 + ["third"]


def test_on_the_cpu_what_comes_during_a_round_is_of_the_next(jobs):
    first, second = jobs[:2]
    second_build = Future()
    todo = work(jobs, ended(BuildResult()), second_build, ended(BuildResult()))
    assert todo.started == jobs
    todo = Work([], all_builds_first=True)
    builds = {build_key(first): ended(BuildResult()), build_key(second): second_build}
    todo.all._start_build = lambda job: todo.started.append(job) or builds[build_key(job)]
    (task,) = todo.add(first)
    assert todo.take("cpu") == first
    todo.add(second)
    # No compiler beside a measurement.
    assert todo.started == [first]
    unneeded = []
    todo.all.ended(task, unneeded.append)
    assert unneeded == [first]
    assert todo.started == [first, second]
    second_build.set_result(BuildResult())
    assert todo.take("cpu") == second


@pytest.mark.parametrize(
    ("priorities", "how", "order"),
    [
        ([0, 0, 1], "arrives", [0, 2, 1]),
        ([-1, -1, 0], "arrives", [0, 2, 1]),
        ([0, 0, 1], "is hurried", [0, 2, 1]),
        ([0, 0, 0], "arrives", [0, 1, 2]),
    ],
)
def test_on_the_cpu_what_is_more_urgent_than_all_that_waits_ends_the_round(jobs, priorities, how, order):
    """Its build still waits for the end of the measurement under way, and nothing is measured beside it."""
    build = Future()
    todo = Work([], all_builds_first=True)
    todo.all._start_build = lambda job: todo.started.append(job) or (build if job == jobs[2] else ended(BuildResult()))
    tasks = [Task(job=job, priority=priority) for job, priority in zip(jobs, priorities, strict=True)]
    todo.all.add(tasks[:2])
    first = todo.all.take("cpu")
    if how == "is hurried":
        tasks[2].priority = 0
    todo.all.add(tasks[2:])
    todo.all.hurry(tasks[2], priorities[2])
    assert jobs[2] not in todo.started
    taken = [first]
    if order[1] == 2:
        # Also for another slot.
        assert todo.all.take("other") is None
        todo.all.ended(first)
        assert todo.all.take("cpu") is None
        build.set_result(BuildResult())
    else:
        build.set_result(BuildResult())
        todo.all.ended(first)
    for _ in range(2):
        taken.append(todo.all.take("cpu"))
        todo.all.ended(taken[-1])
    assert [jobs.index(task.job) for task in taken] == order


def test_a_build_that_nobody_needs_is_ended_and_awaited_until_it_is(jobs):
    first, again = Future(), Future()
    for build in (first, again):
        build.set_running_or_notify_cancel()
    todo = work(jobs[:1], first)
    todo.all._start_build = lambda job: again
    (task,) = todo.tasks
    assert todo.all.withdraw(task)
    unneeded = []
    todo.all.ended(task, unneeded.append)
    assert unneeded == jobs[:1]
    # The same candidate once more has a build of its own.
    todo.add(jobs[0])
    assert todo.builds_awaited() == 2
    first.set_result(FAULT)
    assert todo.builds_awaited() == 1
    assert todo.take("cpu") is None
    again.set_result(BuildResult())
    assert todo.take("cpu") == jobs[0]


def test_the_more_urgent_comes_first(jobs):
    todo = work(jobs[:2], *[ended(BuildResult())] * 2, all_builds_first=False)
    todo.all._start_build = lambda job: ended(BuildResult())
    todo.add(jobs[2], priority=1)
    assert [todo.take("a") for _ in range(4)] == [jobs[2], *jobs[:2], None]


def test_a_group_that_is_open_does_not_starve_another(many):
    todo = work(many[:1], ended(BuildResult()), all_builds_first=False)
    todo.all._start_build = lambda job: ended(BuildResult())
    assert todo.take("a") == many[0]
    todo.add(many[10])
    for _ in range(MOST_OVERTAKEN):
        todo.add(many[1])
        assert todo.take("a") == many[1]
    todo.add(many[1])
    assert todo.take("a") == many[10]


def test_groups_for_later_come_when_no_others_are_left(many):
    todo = work(many[:3] + many[10:12], *[ended(BuildResult())] * 5, all_builds_first=False, slots=2)
    crowded = todo.all.take("a")
    assert crowded.job == many[0]
    todo.all.put_off("a", crowded)
    later = frozenset({many[0].group})
    taken = [todo.all.take("a", later=later).job for _ in range(5)]
    assert taken == [*many[10:12], *many[:3]]


def test_where_no_more_come_nothing_is_taken_before_its_group(many):
    wait = MOST_OVERTAKEN + 1
    todo = work([*many[:1], *[many[10]] * wait, many[13]], *[ended(BuildResult())] * (wait + 2), all_builds_first=False)
    todo.all.put_off("a", todo.all.take("a"))
    todo.all.close()
    later = frozenset({many[0].group})
    taken = [todo.all.take("a", later=later).job for _ in range(wait + 2)]
    assert taken == [*[many[10]] * wait, many[13], many[0]]


def test_what_is_put_off_is_there_to_take_and_to_withdraw(jobs):
    todo = work(jobs, *[ended(BuildResult())] * 3, all_builds_first=False)
    first = todo.all.take("a")
    todo.all.put_off("a", first)
    assert todo.all.take("a") is first
    todo.all.put_off("a", first)
    assert todo.all.withdraw(first)
    assert [todo.take("a") for _ in range(3)] == [*jobs[1:], None]
    assert todo.empty


def test_a_task_is_withdrawn_until_a_slot_has_it(jobs):
    todo = work(jobs[:1], ended(BuildResult()), all_builds_first=False)
    todo.all._start_build = lambda job: ended(BuildResult())
    (second,) = todo.add(jobs[1])
    (third,) = todo.add(jobs[2])
    assert todo.all.withdraw(second)
    assert not todo.all.withdraw(second)
    assert (todo.take("a"), todo.take("a")) == (jobs[0], jobs[2])
    assert not todo.all.withdraw(third)


def test_without_a_slot_no_task_is_taken_in(jobs):
    todo = work(jobs[:1], ended(BuildResult()))
    assert todo.leave("cpu") == jobs[:1]
    assert not todo.all.add([Task(job=jobs[1])])


def test_what_has_begun_is_what_does_not_wait_for_its_turn(jobs):
    build = Future()
    work = Work(jobs, build, Future(), ended(BuildResult()))
    first, queued, built = work.tasks
    assert [work.all.has_begun(task) for task in (first, queued, built)] == [False, False, False]
    build.set_running_or_notify_cancel()
    assert work.all.has_begun(first)
    build.set_result(BuildResult())
    # It waits for the other builds.
    assert not work.all.has_begun(first)
    work.all._builds[build_key(queued.job)].set_result(FAULT)
    assert work.all.has_begun(queued)
    taken = [work.all.take("cpu") for _ in range(2)]
    assert all(map(work.all.has_begun, taken))
    (late,) = work.add(jobs[0])
    assert not work.all.has_begun(late)


def steps_of(jobs, *, withdrawn):
    """How many lines are carried out for tasks from their arrival to their end."""
    builds = {build_key(job): Future() for job in jobs}
    every = Schedule(lambda job: builds[build_key(job)], 1, all_builds_first=True)
    tasks = [Task(job=job) for job in jobs]
    seen = [0]

    def count(frame, event, argument):
        seen[0] += 1
        return count

    sys.settrace(count)
    try:
        every.add(tasks)
        for build in builds.values():
            build.set_result(BuildResult())
        if withdrawn:
            for task in tasks:
                every.withdraw(task)
                every.ended(task)
        else:
            while task := every.take("cpu"):
                every.builds_awaited()
                every.ended(task)
    finally:
        sys.settrace(None)
    return seen[0]


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_task_takes_no_longer_among_many_of_its_group(jobs, withdrawn):
    def candidates(count):
        one = jobs[0].candidate
        return [
            msgspec.structs.replace(jobs[0], candidate=msgspec.structs.replace(one, path=Path(f"{number}.py")))
            for number in range(count)
        ]

    few, many = (steps_of(candidates(count), withdrawn=withdrawn) for count in (50, 200))
    assert many < 4.5 * few


@pytest.fixture
def large():
    """Candidates that are built, and what building each of them leaves: 100 bytes."""
    one = session.plan(corpus_config("honest_cpp")).jobs[0]

    def candidate(number):
        return msgspec.structs.replace(one.candidate, path=Path(f"{number}.py"))

    return [msgspec.structs.replace(one, candidate=candidate(number)) for number in range(6)]


class Builds:
    """Builds that end when the test says so; each leaves 100 bytes."""

    def __init__(self):
        self.started = []
        self._going = []

    def start(self, job):
        self.started.append(job)
        self._going.append(Future())
        self._going[-1].set_running_or_notify_cancel()
        return self._going[-1]

    def end(self):
        going, self._going = self._going, []
        for build in going:
            build.set_result(BuildResult(size_bytes=100))


@pytest.mark.parametrize("on_cpu", [False, True])
def test_what_is_built_and_not_measured_has_one_bound_for_all(large, on_cpu):
    builds, most = Builds(), 0
    every = Schedule(builds.start, 1, all_builds_first=on_cpu, room=BuildRoom(at_once=1, most_bytes=200))
    tasks = [Task(job=job) for job in large]
    assert every.add(tasks)
    measured = []
    while len(measured) < len(large):
        builds.end()
        task = every.take("slot")
        most = max(most, 100 * (len(builds.started) - len(measured)))
        if task is None:
            continue
        if on_cpu:
            # No build beside a measurement.
            assert not builds._going
        measured.append(task.job)
        every.ended(task)
    assert measured == large
    # One is under way as the bound is reached.
    assert most <= 300


def test_builds_that_end_at_once_are_all_begun(large):
    most = 2 * sys.getrecursionlimit()
    one = large[0].candidate
    many = [
        msgspec.structs.replace(large[0], candidate=msgspec.structs.replace(one, path=Path(f"{number}.py")))
        for number in range(most)
    ]
    every = Schedule(lambda job: ended(BuildResult()), 1, all_builds_first=True, room=BuildRoom(1, 1))
    assert every.add([Task(job=job) for job in many])
    assert every.builds_awaited() == 0


def test_builds_go_on_where_nothing_can_be_measured_to_make_room(large):
    builds = Builds()
    every = Schedule(builds.start, 1, all_builds_first=True, room=BuildRoom(at_once=2, most_bytes=0))
    first, second = (Task(job=job) for job in large[:2])
    every.add([first, second])
    builds.end()
    assert every.take("slot") is first
    assert every.withdraw(second)
    every.ended(second)
    third = Task(job=large[2])
    every.add([third])
    every.ended(first)
    builds.end()
    assert every.take("slot") is third
