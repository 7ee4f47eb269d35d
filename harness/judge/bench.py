"""Both sides of a comparison on the judge's clock: warm-up, lengths of bursts, pairs, every output checked."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.config import TimingConfig
from harness.judge.drawn_ahead import DrawnAhead
from harness.judge.endings import Refused
from harness.judge.examiner import Answers, Examiner, Wrong
from harness.judge.hard_turns import HardCall, HardInputs, HardTurns
from harness.judge.planning import Workload
from harness.judge.reference import Reference
from harness.links.link import BurstReading, Draw, Link, RepeatAsked, RunnerFailed
from harness.machine.card import Card, Watch
from harness.machine.card_turns import CardTurns
from harness.oracle.verdict import Finding
from harness.records import Outcome, Status
from harness.roofline.floors import Floors
from harness.roofline.light import Ceilings
from harness.timing import bursts, statistics
from harness.timing.burst_clock import KERNELS_AN_OPERATOR, BurstClock
from harness.timing.company import Alone, Usual
from harness.timing.fixed_cost import FixedCost
from harness.timing.sampling import LOST_GATE, SLOW_START, Reading, Samples, Side, both_singly, sample
from harness.timing.stopping import StoppingRule
from harness.timing.suspicion import Suspicion
from harness.wire.messages import Checks

WARM_UP_BURSTS = 3
LATENCY_CALLS = 3
# Of calls that fill a burst by themselves one says as much as several of others: each is drawn, checked and timed for
# many milliseconds, of which the host's part is little.
LONG_WARM_UP_BURSTS, LONG_LATENCY_CALLS = 1, 2
# A side's bursts are planned by its own time, but by at most this many times the baseline's: a candidate that is
# slow on purpose in the warm-up would get bursts of one call, which say little.
SLOWEST_PLANNED = 2.0
# A burst on the CPU lasts so much longer: what it costs a process to go on from a standstill with cold caches, some
# 0.2 ms beyond an empty burst's cost, is in its time.
HOST_FACTOR = 2.0
# And on a card without the gate, where each burst takes the way of the messages besides, some 1 ms.
UNGATED_FACTOR = 4.0
# A device queues so many launches at least, and takes so long for each: whose bursts cannot be enqueued has long calls.
QUEUED, LAUNCH_US = 1000, 1.0


@dataclass(frozen=True)
class Surroundings:
    """The device's state, to be watched, and what it can do at best (None where that could not be measured)."""

    card: Card
    ceilings: Ceilings | None
    # This judge's among others on the card.
    turns: CardTurns = field(default_factory=CardTurns)


@dataclass(frozen=True)
class OpenProblem:
    """A problem that candidates are timed on, on one device."""

    reference: Reference
    workload: Workload
    surroundings: Surroundings
    timing: TimingConfig
    ahead: DrawnAhead


@dataclass(frozen=True)
class Before:
    """Measurements of the trusted baseline before any candidate was there, so that no candidate can change them."""

    # Of a burst, by the clock that the fixed cost is taken off.
    fixed: FixedCost
    # Of a single call without the gate; only on a card.
    ungated_us: float = 0.0
    # Why bursts of several calls cannot be relied on; only on the CPU.
    bursts_unreliable: Suspicion | None = None
    alone: Alone = field(default_factory=Alone)


class Bench:
    """Both sides of a comparison, warmed up and calibrated."""

    def __init__(
        self,
        problem: OpenProblem,
        examiners: dict[Side, Examiner],
        links: dict[Side, Link],
        before: Before,
        hard: HardInputs | None = None,
    ) -> None:
        self.on_card = problem.reference.device.type == "cuda"
        self.rng = random.Random()
        self.clock = BurstClock(before.fixed, before.ungated_us, on_card=self.on_card, late=problem.workload.late)
        self.clock.kernels["baseline"] = KERNELS_AN_OPERATOR * problem.workload.work.operators
        self.floors = Floors(problem.workload.work, problem.surroundings.ceilings, problem.reference.device)
        self.latency_us: dict[Side, float] = {}
        self._hard = HardTurns(hard or HardInputs(iter(()), 0, 0.0), problem.timing.min_pairs, self.rng)
        # Of the way from the shortest burst to the longest; both bursts of a pair are as long, so that what a burst
        # costs beside its calls is in both alike.
        self._share = 1.0
        # So many calls of the candidate could not be enqueued; 0 if all could that were planned.
        self._too_many = 0
        self.single_us: dict[Side, float] = {}
        self.problem = problem
        self.before = before
        self._examiners = examiners
        self._links = links
        self._watch = Watch(problem.surroundings.card)
        # The last burst's answers are compared while the next one's calls are enqueued; what came of that.
        self._behind = False
        self._waiting: list[tuple[Side, Answers]] = []
        self._wrong: tuple[Side, Wrong] | None = None
        self._failed: Exception | None = None

    @property
    def warnings(self) -> list[str]:
        """Warnings about bursts that were repeated, from the first call on."""
        return [
            f"one_buffer: the {side} keeps what it returns; since then each output is copied, on its time"
            for side, link in self._links.items()
            if link.repeated
        ]

    def warm_up(self) -> None:
        """Find out whether the gate can be used, choose burst lengths, and run everything once on these shapes."""
        single = dict.fromkeys(self._links, 1)
        self._each(single, gated=False, timed=False)
        unfit = self._unfit(single) if self.clock.gated else []
        if unfit:
            self.clock.gated, self.clock.unfit = False, unfit[0]
        self._watch.look()
        readings = [self._each(single) for _ in range(LONG_WARM_UP_BURSTS if self._is_long else WARM_UP_BURSTS)]
        self.single_us = {side: min(self.one_call_us(its[side]) for its in readings) for side in self._links}
        if self.before.bursts_unreliable:
            self.one_call_a_burst()
            return
        # A call alone may take longer than one in company, so lengths are planned again by the first ones' time.
        a_call_us = dict(self.single_us)
        planned: dict[Side, bursts.BurstPlan] = {}
        for _ in range(2):
            before, planned = planned, self._planned(a_call_us)
            if planned == before:
                break
            if all(plan.calls == 1 for plan in planned.values()):
                # Nothing to rehearse.
                self.clock.bursts, self.clock.burst_us = planned, dict(a_call_us)
                break
            self.clock.bursts = dict(planned)
            most = self._most_enqueued()
            for side, plan in self.clock.bursts.items():
                self.clock.bursts[side] = bursts.BurstPlan(min(plan.calls, most), min(plan.shortest, most))
            for side, reading in self._each({side: plan.calls for side, plan in self.clock.bursts.items()}).items():
                calls = self.clock.bursts[side].calls
                a_call_us[side] = self._per_call(reading, calls).judge_us
                self.clock.burst_us[side] = calls * a_call_us[side]

    @property
    def _is_long(self) -> bool:
        """Whether a call of the baseline fills a burst, by what it took on a card before any candidate was there."""
        alone_us = self.before.alone.gated.single_us
        return bool(alone_us) and statistics.median(alone_us) >= self.problem.timing.burst_ms * 1e3

    def _planned(self, a_call_us: dict[Side, float]) -> dict[Side, bursts.BurstPlan]:
        """Each side's lengths of bursts."""
        factor = {"host": HOST_FACTOR, "device_ungated": UNGATED_FACTOR}.get(self.clock.name, 1.0)
        planned: dict[Side, bursts.BurstPlan] = {}
        for side in self._links:
            # The way of the messages is divided among a burst's calls: a longer one would win by that alone.
            planned_by: Side = "baseline" if self.clock.name == "device_ungated" else side
            planned[side] = bursts.plan(
                min(a_call_us[planned_by], SLOWEST_PLANNED * a_call_us["baseline"]),
                target_us=factor * self.problem.timing.burst_ms * 1e3,
                call_bytes=self.problem.workload.call_bytes,
                memory_bytes=self.problem.workload.memory_bytes,
                max_calls=self.problem.workload.most_calls,
            )
        return planned

    def time_latency(self) -> None:
        """On a GPU: single calls with the gate open, so that the reading includes the host's work."""
        if self.problem.reference.device.type == "cpu":
            return
        sides: list[Side] = ["candidate", "baseline"]
        readings: dict[Side, list[float]] = {side: [] for side in sides}
        long = max(self.single_us.values()) >= self.problem.timing.burst_ms * 1e3
        for _ in range(LONG_LATENCY_CALLS if long else LATENCY_CALLS):
            self.rng.shuffle(sides)
            for side in sides:
                readings[side].append(self._burst(side, 1, gated=False).judge_us - self.before.ungated_us)
        self.latency_us = {side: max(statistics.median(values), 0.0) for side, values in readings.items()}

    def one_call_a_burst(self) -> None:
        """Give up bursts of several calls, on both sides."""
        taken_off_us = self.clock.fixed_cost.us
        self.clock.bursts = {side: bursts.BurstPlan(1, 1) for side in self._links}
        taken_off_us -= self.clock.fixed_cost.us
        self.clock.burst_us = {side: us + taken_off_us for side, us in self.single_us.items()}

    def sample(self, rule: StoppingRule, tell: Callable[[float], None] | None = None) -> Samples:
        """Measure pairs until `rule` says stop, and `tell` how precise they are so far; raises Refused."""
        # Whose bursts have one call each gains nothing by several.
        several = self.clock.bursts["candidate"].calls > 1
        single = self._pair_of_singles if several else None
        with self._one_burst_behind():
            samples = sample(
                self._pair_of_readings,
                rule,
                self.rng,
                single=single,
                between=self._before_a_pair,
                between_singles=self._before_singles,
                systematic=self.clock.systematic,
                # Hard inputs have a budget of their own.
                clock=lambda: self.problem.surroundings.turns.clock() - self._hard.spent_s,
                tell=tell,
            )
            self._meet(self._hard.remaining(self._most_hard))
        if self.clock.gated and (self._leaves_the_gate(samples) or self._leaves_it_in_company(samples)):
            # It can be held, and will not be.
            self.give_up_gate()
            return self.sample(rule, tell)
        if len(samples.candidate_us) < statistics.FEWEST:
            raise Refused(_slow_start(samples))
        # Until now by the warm-up, in which a candidate may be slow on purpose: a longer burst has a smaller error.
        timed_us: dict[Side, list[float]] = {"candidate": samples.candidate_us, "baseline": samples.baseline_us}
        self.clock.burst_us = {
            side: statistics.median(us) * self.clock.bursts[side].calls for side, us in timed_us.items()
        }
        # Enough single calls to judge by, however few pairs the sampling took.
        return self.more_singles(samples, bursts.FEWEST_SINGLES - len(samples.candidate_single_us) if several else 0)

    def more_singles(self, samples: Samples, count: int) -> Samples:
        """The samples with so many more single calls of each side; raises Refused."""
        singles: dict[Side, list[float]] = {"candidate": [], "baseline": []}
        with self._one_burst_behind():
            for _ in range(count):
                self._meet(self._hard.before_a_pair(1), singly=True)
                both_singly(self._pair_of_singles, self.rng, singles)
        return dataclasses.replace(
            samples,
            candidate_single_us=samples.candidate_single_us + singles["candidate"],
            baseline_single_us=samples.baseline_single_us + singles["baseline"],
        )

    def _leaves_the_gate(self, samples: Samples) -> bool:
        return len(samples.candidate_us) < statistics.FEWEST and LOST_GATE in samples.dropped

    def _leaves_it_in_company(self, samples: Samples) -> bool:
        """Whether the candidate's calls are too short for it to have launched more than can be queued, where bursts
        have fewer calls for that: it waits for the device where it is asked for several.

        The shorter a burst, the more of each call can be hidden in what a burst costs beside its calls.
        """
        if not (self._too_many and samples.candidate_us):
            return False
        return statistics.median(samples.candidate_us) * self._too_many < QUEUED * LAUNCH_US

    def give_up_gate(self) -> None:
        """Time both sides with the host's launch latency from now on."""
        self.clock.gated = False
        if self._too_many or any(plan.calls > 1 for plan in self.clock.bursts.values()):
            a_call_us = {side: us / self.clock.bursts[side].calls for side, us in self.clock.burst_us.items()}
            self.clock.bursts = self._planned(a_call_us)
            self.clock.burst_us = {side: us * self.clock.bursts[side].calls for side, us in a_call_us.items()}

    def usual(self, side: Side, count: int) -> Usual:
        """Times of `count` bursts of one call, and of several calls if those are planned; raises Refused."""
        several = count if self.clock.bursts[side].calls > 1 else 0
        return Usual(self.singles(side, count), self.burst_times(side, several))

    def burst_times(self, side: Side, count: int) -> list[float]:
        """Microseconds a call in so many bursts; raises Refused."""
        return [self._reading(side).judge_us for _ in range(count)]

    def singles(self, side: Side, count: int) -> list[float]:
        """Microseconds of so many single-call bursts; raises Refused."""
        return [self._single(side).judge_us for _ in range(count)]

    def profiled(self, side: Side, deadline_s: float) -> BurstReading:
        """One more call, with a profiler watching. Raises Refused."""
        return self._burst(side, 1, deadline_s=deadline_s, profiled=True)

    def one_call_us(self, reading: BurstReading) -> float:
        """Microseconds of a burst of one call, fixed cost removed."""
        return self._per_call(reading, 1).judge_us

    def card(self) -> dict[str, Any]:
        """The device's state over the measurement."""
        return self._watch.summary()

    def _reading(self, side: Side) -> Reading:
        calls = self.clock.bursts[side].at(self._share)
        return self._per_call(self._burst(side, calls), calls)

    def _single(self, side: Side) -> Reading:
        return self._per_call(self._burst(side, 1), 1)

    def _pair_of_readings(self, first: Side) -> dict[Side, Reading]:
        calls = {side: self.clock.bursts[side].at(self._share) for side in _in_order(first)}
        readings = self._each(calls)
        return {side: self._per_call(reading, calls[side]) for side, reading in readings.items()}

    def _pair_of_singles(self, first: Side) -> dict[Side, Reading]:
        readings = self._each(dict.fromkeys(_in_order(first), 1))
        return {side: self._per_call(reading, 1) for side, reading in readings.items()}

    def _asked(self, side: Side, calls: int, hard: Sequence[HardCall] = ()) -> _Asked:
        """A burst of so many calls, a candidate's on fresh inputs, but for `hard` ones at places that are drawn."""
        if side == "baseline" and self.on_card:
            return _Asked(side, functools.partial(self.problem.ahead.again, calls))
        places = dict(zip(self.rng.sample(range(calls), len(hard)), hard, strict=True))
        return _Asked(side, functools.partial(self._draws_with, places, calls), hard)

    def _burst(self, side: Side, calls: int, **options: Any) -> BurstReading:
        """One burst, checked; raises Refused."""
        return self._one(self._asked(side, calls), **options)

    def _each(self, calls: Mapping[Side, int], **options: bool) -> dict[Side, BurstReading]:
        """A burst of so many calls of each side, one after the other; raises Refused.

        While one runs nothing of the other side is enqueued: on an H200 a second runner's burst that waits at its gate
        makes the card change processes otherwise, by some 7 us of a burst, more for one side than for the other.
        """
        return {side: self._burst(side, its, **options) for side, its in calls.items()}

    def _one(self, asked: _Asked, **options: Any) -> BurstReading:
        how: dict[str, Any] = {"gated": self.clock.gated} | options
        how["meanwhile"] = functools.partial(self._meanwhile, asked.calls)
        link = self._links[asked.side]
        try:
            reading = link.burst(asked.draws, **how)
        except RepeatAsked:
            asked.draw_anew()
            reading = link.burst(asked.draws, **how)
        except RunnerFailed as error:
            if asked.side == "baseline" and "candidate" in self._links:
                # It has run all of this before any candidate was there.
                raise _of_baseline(f"the baseline failed: {error}") from error
            if not asked.hard:
                raise
            raise _on_hard_inputs(error, asked.hard, self._examiners[asked.side].unasked(asked.hard)) from error
        self._conclude()
        self._look_at(asked, reading)
        return reading

    def _look_at(self, asked: _Asked, reading: BurstReading) -> None:
        """Compare a burst's answers, or have them wait for the next one's; raises Refused."""
        side, draws, planned = asked.side, asked.draws, self.clock.bursts.get("candidate")
        if side == "candidate" and not reading.gated and planned and len(draws) >= planned.shortest:
            self.clock.opening_us.append(reading.opening_us)
        examiner, link, only = self._examiners[side], self._links[side], self._drawn_call(side, len(draws))
        answers = examiner.answers(link, draws, only) if self._behind and not asked.hard else None
        if answers is not None:
            self._waiting.append((side, answers))
        else:
            self._require_right(side, examiner.burst(link, draws, asked.hard, only))

    def _meanwhile(self, calls: int) -> None:
        """What needs no runner, while one enqueues so many calls. Raises nothing: the burst has to come to its end."""
        try:
            self._compare()
            self.problem.ahead.refill(calls)
        except Exception as error:
            self._failed = error

    def _compare(self) -> None:
        """Compare the answers that wait."""
        waiting, self._waiting = self._waiting, []
        for side, answers in waiting:
            wrong = self._examiners[side].wrong(answers)
            if wrong is not None:
                self._wrong = side, wrong
                break

    def _conclude(self) -> None:
        """Raise what has come of the answers before the last burst, which is over; raises Refused."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        self._compare()
        if self._wrong is not None:
            (side, wrong), self._wrong = self._wrong, None
            self._require_right(side, self._examiners[side].asked_again(self._links[side], wrong))

    @contextlib.contextmanager
    def _one_burst_behind(self) -> Iterator[None]:
        """Within this a burst's answers are compared during the next one, on a card; all are at its end. Raises
        Refused, also in place of what a later burst raises."""
        self._behind = self.on_card
        try:
            yield
        except Exception:
            self._behind = False
            self._conclude()
            raise
        self._behind = False
        self._conclude()

    def _require_right(self, side: Side, refusal: Finding | None) -> None:
        if refusal is not None and side == "baseline":
            raise _of_baseline(
                "the baseline disagrees with the judge's own run of the reference, each call of which starts from the "
                f"same state: {refusal.message}"
            )
        if refusal is not None:
            raise Refused(refusal.outcome(), Checks(error_ratio=refusal.error_ratio))

    def _drawn_call(self, side: Side, calls: int) -> int | None:
        """The one call of a burst that is looked at; None where all are.

        Every call of a candidate is. The baseline is ours, and nobody gains by a single wrong answer of it, but to
        check one takes a card as long as many a candidate's burst. On the CPU all are: what the judge does after a
        burst is felt in the next one, and has to be alike on both sides.
        """
        return self.rng.randrange(calls) if side == "baseline" and self.on_card else None

    def _before_a_pair(self, baseline_first: bool, singles_come: bool) -> None:
        """Take hard inputs before some pairs, and draw the length of the next one's bursts."""
        self._meet(self._hard.before_a_pair(self._most_hard, 0.5 if singles_come else 1.0), baseline_first)
        self._share = self.rng.random()

    def _before_singles(self) -> None:
        self._meet(self._hard.before_singles(), singly=True)

    @property
    def _most_hard(self) -> int:
        """How many of a burst's calls may be on hard inputs: few enough for it to be like any other."""
        return max(1, self.clock.bursts["candidate"].shortest // 2)

    def _meet(self, due: Iterator[list[HardCall]], baseline_first: bool | None = None, *, singly: bool = False) -> None:
        """A pair for each of these lists of calls, in random order if none is given, or one of single calls. To the
        runner it is like any other."""
        for hard in due:
            self._share = self.rng.random()
            first = self.rng.random() < 0.5 if baseline_first is None else baseline_first
            sides = _in_order("baseline" if first else "candidate")
            calls = {side: 1 if singly else self.clock.bursts[side].at(self._share) for side in sides}
            for side in sides:
                self._one(self._asked(side, calls[side], hard if side == "candidate" else ()))
            # Before the next one is made.
            del hard

    def _draws_with(self, hard: Mapping[int, HardCall], calls: int) -> list[Draw]:
        draws = []
        for call in range(calls):
            if call not in hard or self._hard.ahead:
                # Of a hard one that was made before, too: the time before a burst tells nothing.
                drawn = self.problem.ahead.fresh()
            draws.append(hard[call].draw if call in hard else drawn)
        return draws

    def _most_enqueued(self) -> int:
        """Run bursts as long as planned, and find how many calls can be enqueued behind the gate on both sides.

        A device queues about a thousand launches and then blocks, so one that launches many kernels a call gets fewer
        calls.
        """
        planned = {side: plan.calls for side, plan in self.clock.bursts.items()}
        # Nothing may happen for the first time behind the gate.
        self._each(_of_several(planned), gated=False, timed=False)
        fitting = dict(planned)
        unfit = self._unfit(_of_several(fitting)) if self.clock.gated else []
        while unfit:
            if "candidate" in unfit:
                self._too_many = fitting["candidate"]
            fitting |= {side: max(1, fitting[side] // 4) for side in unfit}
            unfit = self._unfit(_of_several({side: fitting[side] for side in unfit}))
        fewer = (calls for side, calls in fitting.items() if calls < planned[side])
        return min(fewer, default=self.problem.workload.most_calls)

    def _unfit(self, calls: Mapping[Side, int]) -> list[Side]:
        """The sides whose burst of so many calls cannot be enqueued behind the closed gate: none can of a candidate
        that waits for the device.

        The second try counts: the first may have loaded kernels, which blocks, too.
        """
        for _ in range(2):
            readings = self._each(calls, timed=False)
            calls = {side: its for side, its in calls.items() if not readings[side].gated}
        return list(calls)

    def _per_call(self, reading: BurstReading, calls: int) -> Reading:
        lost_gate = LOST_GATE if self.clock.gated and not reading.gated else ""
        return Reading(
            judge_us=self.clock.fixed_cost.per_call(reading.judge_us, calls),
            claimed_us=reading.claimed_us / calls,
            unusable=lost_gate or (SLOW_START if reading.slow_start else "") or self._watch.look(),
        )


class _Asked:
    """A burst that a side is asked for; `draw` makes the inputs of one."""

    def __init__(self, side: Side, draw: Callable[[], list[Draw]], hard: Sequence[HardCall] = ()) -> None:
        self.side = side
        self.hard = hard
        self.draws = draw()
        self._draw = draw

    @property
    def calls(self) -> int:
        return len(self.draws)

    def draw_anew(self) -> None:
        """Other inputs, if it is repeated."""
        self.draws = self._draw()


def _of_several(calls: Mapping[Side, int]) -> dict[Side, int]:
    return {side: its for side, its in calls.items() if its > 1}


def _in_order(first: Side) -> tuple[Side, Side]:
    return (first, "candidate" if first == "baseline" else "baseline")


def _of_baseline(message: str) -> Refused:
    return Refused(Outcome(status=Status.INVALID_REFERENCE, reason="unstable_reference", message=message))


def _on_hard_inputs(error: RunnerFailed, hard: Sequence[HardCall], unasked: tuple[str, ...]) -> RunnerFailed:
    """What a candidate raised, with the hard inputs that were among its calls: drawn ones alone may not repeat it."""
    names = ", ".join(sorted({f"'{one.stress.name}'" for one in hard}))
    first, line_end, rest = error.failure.text.partition("\n")
    text = f"{first} (on inputs {names}, or a drawn one in the same burst){line_end}{rest}"
    return RunnerFailed(msgspec.structs.replace(error.failure, text=text), unasked)


def _slow_start(samples: Samples) -> Outcome:
    message = (
        "in nearly every burst its inputs were ready longer before the clock started than without it: part of it "
        "runs on the GPU at that time"
    )
    evidence = {"dropped": samples.dropped}
    return Outcome(status=Status.REJECTED, reason=SLOW_START, message=message, evidence=evidence)
