"""Both sides of a comparison on made-up cards: what is batched, and what is slow in company."""

import contextlib
import dataclasses
import itertools
import random
from collections import defaultdict
from types import SimpleNamespace
from unittest import mock

import msgspec
import pytest

from harness.config import TimingConfig
from harness.judge import appraisal, measurement, suspicions
from harness.judge.bench import Before, Bench, OpenProblem, Surroundings
from harness.judge.drawn_ahead import DrawnAhead
from harness.judge.endings import Refused
from harness.judge.hard_turns import HardInputs
from harness.judge.planning import Workload
from harness.links.link import BurstReading, RepeatAsked, RunnerFailed, nothing
from harness.machine.card import State
from harness.records import Status
from harness.timing import fixed_cost
from harness.timing.company import Usual
from harness.timing.stopping import StoppingRule
from harness.wire.messages import Failed

PLAN = Workload(
    inputs=[],
    outputs={},
    work=SimpleNamespace(work=None, notes=(), operators=1),
    call_bytes=1,
    memory_bytes=1 << 30,
    most_calls=32,
    call_s=1e-5,
)
RULE = StoppingRule(precision=0.01, budget_s=5.0, min_pairs=8, max_pairs=8)
GATE_US, HOST_US, LAUNCH_US = 280.0, 900.0, 250.0


class Card:
    """Behind the gate a burst takes GATE_US and its calls' time; without it HOST_US more, and LAUNCH_US for each call.
    `waits`: never behind it."""

    device = SimpleNamespace(type="cuda")

    def __init__(self, first_us, later_us, *, waits=False):
        self.first_us, self.later_us, self.waits = first_us, later_us, waits
        self.repeated = False
        self.rng = random.Random(1)

    def burst(self, draws, *, gated, timed=True, deadline_s=None, profiled=False, meanwhile=nothing):
        meanwhile()
        behind = gated and not self.waits
        us = self._fixed(behind) + self.first_us + (len(draws) - 1) * self.later_us
        us += 0.0 if behind else len(draws) * LAUNCH_US
        return BurstReading(judge_us=us, claimed_us=us, gated=behind)

    def null_us(self, *, gated=True):
        return self._fixed(gated)

    def _fixed(self, behind):
        return GATE_US + self.rng.uniform(0, 0.5) + (0.0 if behind else HOST_US)


class Slowed(Card):
    """Ten times as slow as at first, from the time on that a candidate is there."""

    slowed = False

    def burst(self, draws, **options):
        factor = 10 if self.slowed else 1
        with mock.patch.multiple(self, first_us=self.first_us * factor, later_us=self.later_us * factor):
            return super().burst(draws, **options)


def given(**links):
    """What Bench is made of."""
    reference = SimpleNamespace(device=SimpleNamespace(type="cuda"), draw=object)
    examiners = {
        side: SimpleNamespace(burst=lambda link, draws, hard, only: None, answers=lambda *_: None) for side in links
    }
    watched = Surroundings(SimpleNamespace(state=lambda: State(kind="cuda", at_s=0.0)), None)
    ahead = DrawnAhead(reference, 32)
    return OpenProblem(reference, PLAN, watched, TimingConfig(burst_ms=0.5), ahead), examiners, links


def sampled(baseline, candidate):
    """A bench whose baseline was looked at before, and samples."""
    before = alone(baseline)
    baseline.slowed = True
    made = Bench(*given(baseline=baseline, candidate=candidate), before)
    made.warm_up()
    return made, made.sample(RULE)


def alone(baseline):
    problem, examiners, links = given(baseline=baseline)
    return measurement.measure_before(problem, examiners["baseline"], links["baseline"])


def test_calls_that_are_done_in_the_first_one_are_timed_alone():
    made, samples = sampled(Card(20.0, 18.0), Card(40.0, 0.1))
    found, samples = suspicions.batching(made, samples)
    assert found.word == "batched_calls"
    assert len(samples.candidate_single_us) == len(samples.baseline_single_us) == 40
    made.one_call_a_burst()
    assert made.sample(RULE).speedup().value == pytest.approx(0.5, rel=0.05)


def test_whose_bursts_have_one_call_takes_no_more_time_for_single_calls():
    made, samples = sampled(Card(300.0, 300.0), Card(9000.0, 9000.0))
    assert (made.clock.bursts["candidate"].calls, made.clock.bursts["baseline"].calls) == (1, 2)
    assert samples.candidate_single_us == samples.baseline_single_us == []
    assert suspicions.batching(made, samples) == (None, samples)
    assert samples.speedup().value == pytest.approx(300 / 9000, rel=0.01)


class Leaving(Card):
    """Leaves the gate, once the warm-up is over, in bursts of up to so many calls."""

    most_calls = 1
    bursts = 0

    def burst(self, draws, *, gated, **options):
        self.bursts += 1
        if self.bursts > 20 and len(draws) <= self.most_calls:
            gated = False
        return super().burst(draws, gated=gated, **options)


def test_who_leaves_the_gate_in_single_calls_is_no_less_suspicious():
    made, samples = sampled(Card(20.0, 18.0), Leaving(40.0, 0.1))
    made._links["candidate"].bursts = 20
    samples = made.sample(RULE)
    assert suspicions.batching(made, samples)[0].word == "batched_calls"


def test_who_leaves_the_gate_is_timed_without_it():
    made, _ = sampled(Card(20.0, 18.0), Leaving(20.0, 18.0))
    made._links["candidate"].bursts, made._links["candidate"].most_calls = 20, 99
    samples = made.sample(RULE)
    assert made.clock.name == "device_ungated"
    assert samples.taken_back == 0 < len(samples.candidate_us)


def test_honest_calls_stay_in_bursts():
    made, samples = sampled(Card(20.0, 18.0), Card(12.0, 10.5))
    found, samples = suspicions.batching(made, samples)
    assert found is None
    assert samples.speedup().value == pytest.approx(18 / 10.5, rel=0.05)


def test_disturbed_single_calls_are_taken_again():
    class Disturbed(Card):
        calls_alone = 0

        def burst(self, draws, **options):
            reading = super().burst(draws, **options)
            self.calls_alone += len(draws) == 1
            late_us = 60.0 if len(draws) == 1 and self.calls_alone < 18 else 0.0
            return BurstReading(judge_us=reading.judge_us + late_us, claimed_us=reading.claimed_us, gated=reading.gated)

    made, samples = sampled(Card(20.0, 18.0), Disturbed(12.0, 10.5))
    assert min(samples.candidate_single_us) > 30
    assert suspicions.batching(made, samples)[0] is None


def test_a_candidate_of_many_launches_gets_fewer_calls_on_both_sides():
    class Launching(Card):
        """Calls of which no more than nine can be enqueued."""

        def burst(self, draws, *, gated, **options):
            return super().burst(draws, gated=gated and len(draws) < 10, **options)

    made, _ = sampled(Card(20.0, 18.0), Launching(120.0, 118.0))
    assert made.clock.name == "device"
    assert made.clock.bursts["candidate"].calls == made.clock.bursts["baseline"].calls == 3
    made, _ = sampled(Card(20.0, 18.0), Card(20.0, 18.0))
    assert made.clock.bursts["candidate"].calls > 20


@pytest.mark.parametrize("most_calls", [1, 5])
def test_who_waits_for_the_device_where_several_calls_are_asked_for_is_timed_without_the_gate(most_calls):
    class Waiting(Card):
        """Its calls are too short for their launches to fill the queue."""

        def burst(self, draws, *, gated, **options):
            return super().burst(draws, gated=gated and len(draws) <= most_calls, **options)

    made, samples = sampled(Card(20.0, 18.0), Waiting(20.0, 18.0))
    assert made.clock.name == "device_ungated"
    assert made.clock.bursts["candidate"].calls == made.clock.bursts["baseline"].calls == 32
    assert samples.taken_back == 0 < len(samples.candidate_us)


class DoneAhead(Card):
    """Slow in single calls until it is timed by them, and then most of one is hidden in a burst's own cost."""

    def burst(self, draws, **options):
        with mock.patch.multiple(self, first_us=4.0 if self.hides else self.first_us):
            return super().burst(draws, **options)

    hides = False


def test_who_is_quicker_alone_than_in_company_gains_nothing_by_that():
    made, samples = sampled(Card(20.0, 18.0), DoneAhead(40.0, 12.0))
    found, samples = suspicions.batching(made, samples)
    in_company = samples.speedup(systematic=made.clock.systematic).hi
    assert found
    made.one_call_a_burst()
    honest = made.sample(RULE)
    assert suspicions.quicker_alone(made, in_company, honest) is None
    made._links["candidate"].hides = True
    found = suspicions.quicker_alone(made, in_company, made.sample(RULE))
    assert found.evidence["factor"] * found.evidence["alone"] == pytest.approx(in_company)
    assert in_company < 2 < 4 < found.evidence["alone"]


def test_two_processes_are_not_told_apart_by_single_calls_of_a_short_kernel():
    made, _ = sampled(Card(3.4, 2.8), Card(6.0, 2.8))
    made.one_call_a_burst()
    interval = made.sample(RULE).speedup(systematic=made.clock.systematic)
    assert interval.value == pytest.approx(3.4 / 6.0, rel=0.2)
    assert interval.lo < 1 < interval.hi


def test_a_candidate_that_waits_for_the_device_does_not_slow_the_baseline():
    made, samples = sampled(Card(20.0, 18.0), Card(20.0, 18.0, waits=True))
    assert made.clock.name == "device_ungated"
    assert suspicions.slow_baseline(made, samples) is None


UNGATED_US = GATE_US + HOST_US + LAUNCH_US


@pytest.mark.parametrize(("waits", "factor"), [(False, 400 / 4000), (True, (400 + UNGATED_US) / (4000 + UNGATED_US))])
def test_a_baseline_that_is_slower_in_company_is_noticed(waits, factor):
    made, samples = sampled(Slowed(400.0, 400.0), Card(100.0, 100.0, waits=waits))
    assert suspicions.slow_baseline(made, samples).evidence["factor"] == pytest.approx(factor, rel=0.05)


class LoadedAtTimes(Card):
    """Twelve times as slow in more than half of its bursts, from the time on that a candidate is there."""

    slowed = False

    def burst(self, draws, **options):
        factor = 12 if self.slowed and self.rng.random() < 0.57 else 1
        with mock.patch.multiple(self, first_us=self.first_us * factor, later_us=self.later_us * factor):
            return super().burst(draws, **options)


@pytest.mark.parametrize("seed", range(12))
def test_who_loads_the_card_in_some_of_the_baseline_s_turns_gains_no_more_than_is_tolerated(seed):
    """The median is moved then, and the interval's lower end is not."""
    baseline = LoadedAtTimes(400.0, 400.0)
    baseline.rng = random.Random(seed)
    made, samples = sampled(baseline, Card(300.0, 300.0))
    slowed = suspicions.slow_baseline(made, samples)
    credited_us = suspicions.credited_us(made, samples)
    if slowed is None:
        said = appraisal.appraise(made, samples, credited_us, 1.0, 1.0, [])
        assert said.figures.speedup < 1.1 * 400 / 300
        assert said.figures.timing.baseline_held == sum(us > 1000 for us in samples.baseline_us)


def test_an_interval_allows_for_what_short_calls_may_gain_together():
    made, samples = sampled(Card(5.0, 3.6), Card(5.1, 2.6))
    assert suspicions.batching(made, samples)[0] is None
    gain = suspicions.unseen_gain(made, samples)
    said = appraisal.appraise(made, samples, samples.baseline_us, 1.0, gain, [])
    assert said.figures.speedup_lo < 1.0 < said.figures.speedup
    assert [warning for warning in said.warnings if warning.startswith("short_calls: a call takes ")]


def test_load_in_the_baseline_s_turns_excuses_no_calls_that_are_done_in_the_first_one():
    class Loaded(Card):
        slowed = False

        def burst(self, draws, **options):
            reading = super().burst(draws, **options)
            return msgspec.structs.replace(reading, judge_us=reading.judge_us + 300.0 * self.slowed)

    baseline = Loaded(16.0, 7.75)
    made = Bench(*given(baseline=baseline, candidate=Card(6.0, 0.43)), alone(baseline))
    made.warm_up()
    baseline.slowed = True
    assert suspicions.batching(made, made.sample(RULE))[0] is not None


def test_nor_does_a_baseline_without_single_calls():
    made, samples = sampled(Card(20.0, 18.0), Card(40.0, 0.1))
    with mock.patch.object(made, "more_singles", lambda samples, count: samples):
        assert suspicions.batching(made, dataclasses.replace(samples, baseline_single_us=[]))[0] is not None


def test_a_candidate_that_is_slow_in_the_warm_up_has_no_smaller_error():
    def systematic(warm_up_us):
        class Dawdler(Card):
            bursts = 0

            def burst(self, draws, **options):
                self.bursts += 1
                factor = warm_up_us / 5.0 if self.bursts < 9 else 1.0
                with mock.patch.multiple(self, first_us=5.0 * factor, later_us=5.0 * factor):
                    return super().burst(draws, **options)

        made, _ = sampled(Card(16.0, 16.0), Dawdler(5.0, 5.0))
        made.one_call_a_burst()
        made.sample(RULE)
        return made.clock.systematic

    assert systematic(66.0) == pytest.approx(systematic(5.0), rel=0.02)


def test_a_baseline_that_fails_beside_a_candidate_is_not_said_to_be_the_candidate():
    class Failing(Card):
        slowed = False

        def burst(self, draws, **options):
            if self.slowed:
                raise RunnerFailed(Failed(phase="call", exception="OutOfMemoryError", text="CUDA out of memory"))
            return super().burst(draws, **options)

    with pytest.raises(Refused) as refused:
        sampled(Failing(20.0, 18.0), Card(20.0, 18.0))
    assert not refused.value.ending.baseline_ok
    assert "the baseline failed: " in str(refused.value)


def test_nobody_is_blamed_where_other_programs_used_the_card():
    made, samples = sampled(Slowed(400.0, 400.0), Card(100.0, 100.0))
    taken_back = dataclasses.replace(samples, taken_back=len(samples.baseline_us))
    assert suspicions.slow_baseline(made, taken_back) is not None
    disturbed = dataclasses.replace(taken_back, dropped={"disturbed": 9})
    assert suspicions.slow_baseline(made, disturbed) is None
    assert suspicions.credited_us(made, disturbed) == disturbed.baseline_us
    # On a CPU the kernel's workers are among them, which a candidate can give work.
    made.on_card = False
    assert suspicions.slow_baseline(made, disturbed) is not None
    assert max(suspicions.credited_us(made, disturbed)) < min(disturbed.baseline_us)


def test_without_the_gate_bursts_of_both_sides_have_as_many_calls():
    # A longer burst has less of the way of the messages for each call.
    made, _ = sampled(Card(400.0, 400.0), Card(200.0, 200.0, waits=True))
    assert made.clock.bursts["candidate"] == made.clock.bursts["baseline"]
    made, _ = sampled(Card(400.0, 400.0), Leaving(200.0, 200.0))
    made._links["candidate"].bursts, made._links["candidate"].most_calls = 20, 99
    made.sample(RULE)
    assert made.clock.name == "device_ungated"
    assert made.clock.bursts["candidate"] == made.clock.bursts["baseline"]
    # Nor is it certain that all of an empty burst is the judge's own.
    assert made.clock.systematic > (GATE_US + HOST_US) / made.clock.burst_us["candidate"]


def test_nothing_is_taken_off_without_the_gate():
    made, samples = sampled(Card(20.0, 18.0), Card(20.0, 18.0, waits=True))
    assert made.clock.fixed_cost.us == 0
    assert min(samples.candidate_us) * made.clock.bursts["candidate"].calls > GATE_US + HOST_US


def test_dawdling_in_the_warm_up_does_not_shorten_the_bursts():
    class Dawdling(Card):
        bursts = 0

        def burst(self, draws, **options):
            reading = super().burst(draws, **options)
            self.bursts += 1
            late_us = 5000.0 if self.bursts < 20 else 0.0
            return BurstReading(judge_us=reading.judge_us + late_us, claimed_us=reading.claimed_us, gated=reading.gated)

    made, _ = sampled(Card(20.0, 18.0), Dawdling(20.0, 18.0))
    assert made.clock.bursts["candidate"].calls >= made.clock.bursts["baseline"].calls / 3


def test_a_burst_that_cannot_be_told_from_none_has_no_time():
    made, samples = sampled(Card(20.0, 18.0), Card(0.1, 0.1))
    assert made.clock.unresolved(samples) == "the candidate's"
    made, samples = sampled(Card(20.0, 18.0), Card(20.0, 18.0))
    assert made.clock.unresolved(samples) == ""


def met_by(rule, *, unusable=False, sets=12, seed=0):
    """Of each of the candidate's bursts in a sampling: its calls, whether one was hard, and how many of the baseline's
    came since its last one."""
    met, since, hard = [], [0], []

    class Told(Card):
        def burst(self, draws, **options):
            if self is baseline:
                since[0] += 1
            else:
                met.append((len(draws), any(draw in hard for draw in draws), since[0]))
                since[0] = 0
            return super().burst(draws, **options)

    def some(count):
        for number in range(count):
            hard.append(object())
            yield SimpleNamespace(name=str(number % 12), binding=True), hard[-1], lambda: None

    baseline = Told(20.0, 20.0)
    given_hard = HardInputs(some(sets), sets, 5.0, rounds=some(100_000), ahead=64)
    made = Bench(*given(baseline=baseline, candidate=Told(30.0, 30.0)), alone(baseline), given_hard)
    made.rng.seed(seed)
    made.warm_up()
    if unusable:
        made._watch = SimpleNamespace(look=lambda: "disturbed")
    del met[:]
    made.sample(rule)
    return met[1:]


def test_nothing_about_a_candidate_s_turn_tells_whether_it_is_a_hard_one():
    """Neither its length, nor the baseline's turns before it, nor what came last."""
    told = defaultdict(list)
    for seed in range(30):
        met = met_by(dataclasses.replace(RULE, min_pairs=40, max_pairs=40), sets=40, seed=seed)
        for before, (calls, is_hard, since) in itertools.pairwise(met):
            told["single" if calls == 1 else "several"].append(is_hard)
            told[f"{since} between"].append(is_hard)
            told[f"after {'hard' if before[1] else 'timed'}"].append(is_hard)
            told[f"{before[2]} and {since} between"].append(is_hard)
    assert {f"{count} between" for count in range(3)} <= set(told)
    for name, some in told.items():
        if len(some) > 50:
            assert 0.15 < sum(some) / len(some) < 0.85, name
    several = [sum(told[f"{count} between"]) / len(told[f"{count} between"]) for count in range(3)]
    assert max(several) - min(several) < 0.15


@pytest.mark.parametrize("seed", range(6))
def test_hard_inputs_go_on_where_no_pair_is_usable(seed):
    """Dropped pairs keep their order: nothing may hang on which it is."""
    met = met_by(dataclasses.replace(RULE, min_pairs=10, max_pairs=40), unusable=True, seed=seed)
    late = [is_hard for _, is_hard, _ in met[len(met) // 2 :]]
    assert 0.1 < sum(late) / len(late) < 0.9


def test_a_burst_is_repeated_on_other_inputs():
    class OneBuffer(Card):
        """Its calls return one buffer, which shows in the first burst of several."""

        def __init__(self, *args):
            super().__init__(*args)
            self.refused = []

        def burst(self, draws, **options):
            if len(draws) > 1 and not self.repeated:
                self.repeated, self.refused = True, draws
                raise RepeatAsked
            assert not {id(draw) for draw in draws} & {id(draw) for draw in self.refused}
            return super().burst(draws, **options)

    made, _ = sampled(Card(20.0, 18.0), OneBuffer(20.0, 18.0))
    assert made.warnings[0].startswith("one_buffer: the candidate keeps what it returns")


def test_single_calls_that_the_host_disturbs_do_not_make_a_baseline_slow():
    class Disturbed(Card):
        """Single calls with the host's delays in them, as on a busy machine."""

        def burst(self, draws, **options):
            reading = super().burst(draws, **options)
            late_us = self.rng.uniform(10, 60) if len(draws) == 1 else 0.0
            return BurstReading(judge_us=reading.judge_us + late_us, claimed_us=reading.claimed_us, gated=reading.gated)

    before = alone(Card(3.3, 2.8))
    made = Bench(*given(baseline=Disturbed(3.3, 2.8), candidate=Disturbed(3.3, 2.8)), before)
    made.warm_up()
    samples = made.sample(RULE)
    assert min(samples.baseline_single_us) > 10
    assert suspicions.slow_baseline(made, samples) is None


def test_the_baseline_alone_is_read_with_and_without_the_gate():
    before = alone(Card(20.0, 18.0)).alone
    assert before.gated.single_us == pytest.approx([20.0] * 9, abs=1.5)
    assert before.gated.burst_us == pytest.approx([18.1] * 9, abs=0.2)
    assert before.ungated.single_us == pytest.approx([20.0 + UNGATED_US] * 5, abs=1.5)
    assert alone(Card(20.0, 18.0, waits=True)).alone.gated == Usual([], [])


class Counted(Card):
    bursts = 0

    def burst(self, draws, **options):
        self.bursts += 1
        return super().burst(draws, **options)


@pytest.mark.parametrize(("call_us", "before_any", "before_pairs"), [(20.0, 39, (11, 14)), (5000.0, 15, (5,))])
def test_calls_that_fill_a_burst_are_made_fewer_times_before_they_are_timed(call_us, before_any, before_pairs):
    baseline, candidate = Counted(call_us, call_us), Counted(call_us, call_us)
    problem, examiners, links = given(baseline=baseline)
    problem = dataclasses.replace(problem, workload=msgspec.structs.replace(PLAN, call_s=call_us / 1e6))
    before = measurement.measure_before(problem, examiners["baseline"], links["baseline"])
    assert baseline.bursts == before_any
    made = Bench(*given(baseline=baseline, candidate=candidate), before)
    made.warm_up()
    made.time_latency()
    # Lengths are planned once more where the first plan was by single calls that were read a little longer.
    assert candidate.bursts in before_pairs
    assert made.clock.bursts["candidate"].calls == (1 if call_us > 500 else 25)


def test_without_times_alone_nothing_is_said():
    before = Before(fixed_cost.NONE)
    made = Bench(*given(baseline=Card(4000.0, 4000.0), candidate=Card(100.0, 100.0)), before)
    made.warm_up()
    assert suspicions.slow_baseline(made, made.sample(RULE)) is None


def test_nothing_is_told_of_a_candidate_that_always_begins_early():
    class Early(Card):
        def burst(self, draws, **options):
            return msgspec.structs.replace(super().burst(draws, **options), slow_start=True)

    with pytest.raises(Refused) as raised:
        sampled(Card(20.0, 18.0), Early(20.0, 18.0))
    assert (raised.value.ending.outcome.status, raised.value.ending.outcome.reason) == (Status.REJECTED, "slow_start")


class Host(Card):
    """A runner on the CPU, which takes a while to wake. `at_once`: all calls of a burst in the first one's time."""

    device = SimpleNamespace(type="cpu")
    wake_us = 200.0

    def __init__(self, call_us, *, at_once=False):
        super().__init__(call_us, 0.1 if at_once else call_us)

    def burst(self, draws, **options):
        us = self._fixed(False) + self.wake_us + self.first_us + (len(draws) - 1) * self.later_us
        return BurstReading(judge_us=us, claimed_us=us, gated=False)

    def _fixed(self, gated):
        return 80.0 + self.rng.uniform(0, 0.5)

    @contextlib.contextmanager
    def learning(self):
        yield


class SlowedHost(Host):
    """Takes `factor` times as long as at first, from the time on that a candidate is there."""

    def __init__(self, call_us, factor):
        super().__init__(call_us)
        self.factor = factor
        self.slowed = False

    def burst(self, draws, **options):
        factor = self.factor if self.slowed else 1.0
        with mock.patch.multiple(self, first_us=self.first_us * factor, later_us=self.later_us * factor):
            return super().burst(draws, **options)


def on_the_cpu(baseline, candidate):
    def made_of(**links):
        problem, *rest = given(**links)
        problem.reference.device = SimpleNamespace(type="cpu")
        return problem, *rest

    problem, examiners, links = made_of(baseline=baseline)
    before = measurement.measure_before(problem, examiners["baseline"], links["baseline"])
    baseline.slowed = True
    bench = Bench(*made_of(baseline=baseline, candidate=candidate), before)
    bench.warm_up()
    return before, bench, bench.sample(RULE)


@pytest.mark.parametrize("at_once", [False, True])
def test_short_calls_on_the_cpu_are_timed_alone_from_the_start(at_once):
    before, bench, samples = on_the_cpu(Host(60.0), Host(60.0, at_once=at_once))
    assert before.bursts_unreliable.word == "one_call_bursts"
    assert {plan.calls for plan in bench.clock.bursts.values()} == {1}
    interval = samples.speedup(systematic=bench.clock.systematic)
    assert interval.value == pytest.approx(1, rel=0.01)
    # What an empty burst takes may have been left out by the candidate's runner.
    assert 80 / 341 < interval.half_width < 0.06 + 80 / 339
    # Nothing is taken off: who answers more quickly than the baseline's runner would gain.
    assert min(samples.candidate_us) > 80 + Host.wake_us
    assert suspicions.batching(bench, samples)[0] is None


@pytest.mark.parametrize(("at_once", "word"), [(False, ""), (True, "batched_calls")])
def test_where_waking_is_soon_done_calls_on_the_cpu_are_timed_in_company(at_once, word):
    with mock.patch.object(Host, "wake_us", 4.0):
        before, bench, samples = on_the_cpu(Host(60.0), Host(50.0, at_once=at_once))
        assert before.bursts_unreliable is None
        assert bench.clock.bursts["baseline"].calls > 8
        found, samples = suspicions.batching(bench, samples)
    assert (found.word if found else "") == word
    assert at_once or samples.speedup().value == pytest.approx(60 / 50, rel=0.02)


@pytest.mark.parametrize("wake_us", [4.0, 200.0])
@pytest.mark.parametrize(("factor", "told"), [(1.0, False), (1.2, False), (2.0, True)])
def test_on_the_cpu_too_a_baseline_that_is_slow_beside_a_candidate_is_told(wake_us, factor, told):
    with mock.patch.object(Host, "wake_us", wake_us):
        _, bench, samples = on_the_cpu(SlowedHost(2000.0, factor), Host(2000.0))
        found = suspicions.slow_baseline(bench, samples)
        bench.one_call_a_burst()
        assert (suspicions.slow_baseline(bench, bench.sample(RULE)) is not None) == told
    assert (found is not None) == told
    assert not told or found.evidence["factor"] == pytest.approx(1 / factor, rel=0.1)


def test_who_is_timed_by_single_calls_on_the_cpu_has_nothing_taken_off():
    with mock.patch.object(Host, "wake_us", 4.0):
        _, bench, _ = on_the_cpu(Host(60.0), Host(50.0, at_once=True))
        assert bench.clock.fixed_cost.us > 0
        bench.one_call_a_burst()
        assert bench.clock.fixed_cost.us == 0


def test_a_slowed_baseline_is_compared_by_its_time_alone_and_kept_as_it_was_read():
    class Liar(Card):
        def burst(self, draws, **options):
            reading = super().burst(draws, **options)
            return msgspec.structs.replace(reading, claimed_us=reading.claimed_us / 20)

    made, samples = sampled(Slowed(400.0, 400.0), Liar(100.0, 100.0))
    slowed = suspicions.slow_baseline(made, samples)
    factor = slowed.evidence["factor"]
    said = appraisal.appraise(made, samples, [factor * us for us in samples.baseline_us], factor, 1.0, [slowed])
    assert said.figures.speedup == pytest.approx(4.0, rel=0.05)
    assert said.figures.baseline_ms == pytest.approx(0.4, rel=0.05)
    assert said.figures.timing.baseline_us == pytest.approx([4000.0] * len(samples.baseline_us), rel=0.05)
    assert said.figures.timing.baseline_factor == pytest.approx(0.1, rel=0.05)
    # The baseline's own claims are held against what was read of it, so they excuse no other's.
    assert set(said.outcome.evidence) == {"slow_baseline", "unaccounted_time"}
