"""Both sides of a comparison on the judge's clock: warm-up, gate, calibration, bursts with every output checked."""

from __future__ import annotations

import dataclasses
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness.config import TimingConfig
from harness.errors import AssayError
from harness.integrity import provenance
from harness.integrity.provenance import Profile
from harness.judge.examiner import Examiner, HardCall, HardInputs
from harness.judge.link import BurstReading, Draw, Link, RepeatAsked, RunnerFailed
from harness.judge.planning import Workload
from harness.judge.reference import Reference
from harness.machine.card import DISTURBED, Card, Watch
from harness.records import Outcome, Status
from harness.roofline import light
from harness.roofline.ceilings import cache_bytes
from harness.roofline.light import Ceilings, Floor
from harness.roofline.work import uncached
from harness.timing import bursts, company, fixed_cost, statistics
from harness.timing.company import Alone, Usual
from harness.timing.fixed_cost import FixedCost
from harness.timing.sampling import AHEAD, LOST_GATE, Reading, Samples, Side, probe_both, sample
from harness.timing.stopping import StoppingRule
from harness.timing.suspicion import Suspicion
from harness.wire.channel import DeadlineExceeded, PeerGone

NULL_BURSTS = 30
# By how much a null burst may differ from one with work in it: behind the gate (seen: up to 3 us on an H200), and on a
# host, where runners have more or fewer threads to wake.
NULL_ERROR_US, HOST_NULL_ERROR_US = 3.0, 5.0
# Two processes running the same kernel differ by this for as long as they live, whatever the length of bursts: found
# with benchmarks/precision.py on an H200, as what the intervals needed in order to contain 1 when a candidate runs
# against itself. Their bursts differ by some more, independent of that (seen: 0.7 us around nothing, 1.3 us around a
# call).
PROCESS_US, PROCESS_SHARE, PROCESS_BURST_US = 0.18, 0.002, 1.5
# The same on a host, where memory lies luckily or not: two copies in one plain process differ by 1 to 2 % from process
# to process (precision.py).
HOST_PROCESS_SHARE = 0.02
# A process on a host goes on from its standstill with cold caches and more or fewer threads to wake (seen: 0.2 ms).
HOST_WAKE_US = 300.0
WARM_UP_BURSTS = 3
# Single calls of each side that settle what the first few say of batching, within so much time of both.
MORE_SINGLES, MORE_SINGLES_US = 30, 2e6
LATENCY_CALLS = 9
# A side's bursts are planned by its own time, but by no more than this many times the baseline's: who dawdles while
# that is measured would get bursts of one call, which tell little.
SLOWEST_PLANNED = 2.0
# A burst on the CPU lasts so much longer: what it costs a process to go on from a standstill with cold caches, some
# 0.2 ms beyond an empty burst's cost, is in its time.
HOST_FACTOR = 2.0


@dataclass(frozen=True)
class Surroundings:
    """The device's state, to be watched, and what it can do at best (None where that could not be measured)."""

    card: Card
    ceilings: Ceilings | None


@dataclass(frozen=True)
class Before:
    """What the trusted baseline showed before any candidate was there: nothing that one does can change it."""

    # Of a burst, by the clock that the fixed cost is taken off.
    fixed: FixedCost
    # Of a single call without the gate; only on a card.
    ungated_us: float = 0.0
    # Why bursts of several calls cannot be relied on; only on the CPU.
    no_company: Suspicion | None = None
    alone: Alone = field(default_factory=Alone)


class WrongAnswer(AssayError):
    """A timed call whose output is not right."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Bench:
    """Both sides of a comparison, warmed up and calibrated."""

    def __init__(
        self,
        reference: Reference,
        examiners: dict[Side, Examiner],
        links: dict[Side, Link],
        plan: Workload,
        surroundings: Surroundings,
        timing: TimingConfig,
        before: Before,
        hard: HardInputs | None = None,
    ) -> None:
        self.rng = random.Random()
        self._before = before
        self._hard = hard or HardInputs(iter(()), 0, 0.0)
        self._turns = 0
        # Of the way from the shortest burst to the longest; both bursts of a pair are as long, so that what a burst
        # costs beside its calls is in both alike.
        self._share = 1.0
        # Whether bursts of several calls have been given up.
        self._single_calls = False
        self._reference = reference
        self._examiners = examiners
        self._links = links
        self._plan = plan
        self._ceilings = surroundings.ceilings
        self._watch = Watch(surroundings.card)
        self._timing = timing
        # Behind a gate the calls are told before the clock starts, with their seeds.
        self._gated = reference.device.type == "cuda" and not plan.random
        self.bursts: dict[Side, bursts.BurstPlan] = {}
        self._single_us: dict[Side, float] = {}
        self._burst_us: dict[Side, float] = {}
        self.latency_us: dict[Side, float] = {}

    @property
    def warnings(self) -> list[str]:
        """What the record has to say of bursts that were had again, from the first call on."""
        return [
            f"one_buffer: the {side} keeps what it returns; each output has been copied since, in its time"
            for side, link in self._links.items()
            if link.repeated
        ]

    def warm_up(self) -> None:
        """Find out if the gate can be used, choose burst lengths, and run all on the shapes at hand once."""
        for side in self._links:
            self._burst(side, 1, gated=False)
        if self._gated:
            self._gated = all(self._fits(side, 1) for side in self._links)
        self._watch.look()
        for side in self._links:
            self._single_us[side] = min(self.singles(side, WARM_UP_BURSTS))
        if self._before.no_company:
            self.one_call_a_burst()
            return
        # A call alone may take longer than one in company, so lengths are planned again by the first ones' time.
        a_call_us = dict(self._single_us)
        for _ in range(2):
            self._plan_bursts(a_call_us)
            most_calls = min(self._rehearse(side) for side in self._links)
            for side, plan in self.bursts.items():
                self.bursts[side] = bursts.BurstPlan(min(plan.calls, most_calls), min(plan.shortest, most_calls))
                calls = self.bursts[side].calls
                a_call_us[side] = self._per_call(self._burst(side, calls), calls).judge_us
                self._burst_us[side] = calls * a_call_us[side]

    def _plan_bursts(self, a_call_us: dict[Side, float]) -> None:
        target_us = self._timing.burst_ms * 1e3 * (HOST_FACTOR if self._reference.device.type == "cpu" else 1.0)
        for side in self._links:
            self.bursts[side] = bursts.plan(
                min(a_call_us[side], SLOWEST_PLANNED * a_call_us["baseline"]),
                target_us=target_us,
                call_bytes=self._plan.call_bytes,
                memory_bytes=self._plan.memory_bytes,
                max_calls=self._plan.most_calls,
            )

    def time_latency(self) -> None:
        """On a card: single calls with the gate open, so that what the host does is in the reading."""
        if self._reference.device.type == "cpu":
            return
        sides: list[Side] = ["candidate", "baseline"]
        readings: dict[Side, list[float]] = {side: [] for side in sides}
        for _ in range(LATENCY_CALLS):
            self.rng.shuffle(sides)
            for side in sides:
                readings[side].append(self._burst(side, 1, gated=False).judge_us - self._before.ungated_us)
        self.latency_us = {side: max(statistics.median(values), 0.0) for side, values in readings.items()}

    def one_call_a_burst(self) -> None:
        """Give up bursts of several calls, on both sides."""
        taken_off_us = self.fixed_cost.us
        self._single_calls = True
        taken_off_us -= self.fixed_cost.us
        self.bursts = {side: bursts.BurstPlan(1, 1) for side in self._links}
        self._burst_us = {side: us + taken_off_us for side, us in self._single_us.items()}

    def sample(self, rule: StoppingRule) -> Samples:
        """Pairs until `rule` is content; raises WrongAnswer."""
        several = any(plan.calls > 1 for plan in self.bursts.values())
        probe = self._probe if several else None
        samples = sample(
            self._measure,
            rule,
            self.rng,
            probe=probe,
            between=self._before_a_pair,
            systematic=self.systematic,
            # Hard inputs have a budget of their own.
            clock=lambda: time.monotonic() - self._hard.spent_s,
        )
        while self._hard.left:
            self._hard_turn()
        if len(samples.candidate_us) < statistics.FEWEST and LOST_GATE in samples.dropped and self._gated:
            # It can be held, and will not be.
            self.give_up_gate()
            return self.sample(rule)
        if len(samples.candidate_us) < statistics.FEWEST:
            raise WrongAnswer(_begins_early(samples))
        # Enough single calls to judge by, however few pairs the sampling took.
        return self._more_singles(samples, bursts.FEWEST_SINGLES - len(samples.candidate_single_us) if several else 0)

    def batching(self, samples: Samples) -> tuple[Suspicion | None, Samples]:
        """Evidence that the candidate's calls gain by the company of others, and the samples that it is found in."""
        if self.bursts["candidate"].calls == 1:
            return None, samples
        found = self._batching(samples)
        if found is None:
            return None, samples
        # So do calls that were disturbed.
        both_us = max(1.0, self._single_us["candidate"] + self._single_us["baseline"])
        samples = self._more_singles(samples, min(MORE_SINGLES, int(MORE_SINGLES_US / both_us)))
        return self._batching(samples), samples

    def _no_company(self, samples: Samples) -> Suspicion | None:
        """Why no burst of several calls can be relied on after all, by the baseline beside this candidate."""
        if self._reference.device.type != "cpu" or not samples.baseline_single_us:
            return None
        return self.no_company(Usual(samples.baseline_single_us, samples.baseline_us))

    def no_company(self, baseline: Usual) -> Suspicion | None:
        """Why no burst of several calls can be relied on, by the baseline's times; None where these tell nothing."""
        if not self.fixed_cost.resolves(statistics.median(baseline.single_us)):
            return None
        return bursts.no_company(baseline.single_us, baseline.burst_us)

    def _batching(self, samples: Samples) -> Suspicion | None:
        if lone := self._no_company(samples):
            return lone
        if len(samples.candidate_single_us) < bursts.FEWEST_SINGLES:
            message = "hardly any of its calls alone could be timed; timed by single calls"
            return Suspicion("one_call_bursts", message, {"singles": len(samples.candidate_single_us)})
        return bursts.batching(
            samples.candidate_single_us,
            samples.candidate_us,
            baseline_single_us=samples.baseline_single_us,
            baseline_burst_us=samples.baseline_us,
            cache_us=self._first_touch_us(),
            # What a process takes to go on from its standstill is no measure of what a quick candidate gains.
            at_most=bursts.UNREMARKABLE_GAIN if self._reference.device.type == "cpu" else math.inf,
        )

    def _more_singles(self, samples: Samples, count: int) -> Samples:
        singles: dict[Side, list[float]] = {"candidate": [], "baseline": []}
        for _ in range(count):
            probe_both(self._probe, self.rng, singles)
        return dataclasses.replace(
            samples,
            candidate_single_us=samples.candidate_single_us + singles["candidate"],
            baseline_single_us=samples.baseline_single_us + singles["baseline"],
        )

    def give_up_gate(self) -> None:
        """Time both sides with the host's launch latency from now on."""
        self._gated = False

    def usual(self, side: Side, count: int) -> Usual:
        """So many bursts of one call, and of several where that is the plan; raises WrongAnswer."""
        several = count if self.bursts[side].calls > 1 else 0
        return Usual(self.singles(side, count), [self._measure(side).judge_us for _ in range(several)])

    def slow_baseline(self, samples: Samples) -> Suspicion | None:
        """Evidence that the candidate's company slows the baseline down; raises WrongAnswer.

        None where other programs used the device: they slow it down, too, and the candidate beside it.
        """
        alone = self._before.alone
        if samples.taken_back and DISTURBED in samples.dropped:
            return None
        calls = self.bursts["baseline"].shortest
        fixed = self.fixed_cost
        missing = company.FEWEST - len(samples.baseline_us)
        together = samples.baseline_us + [self._measure("baseline").judge_us for _ in range(missing)]
        usual = alone.gated if self._gated else alone.ungated
        return company.slow_baseline(usual.a_call(calls), together, slack_us=(fixed.error_us + fixed.jitter_us) / calls)

    def own_wait(self, samples: Samples) -> Suspicion | None:
        """What a candidate that waits for the device by itself gains by that alone."""
        if self.clock != "device_ungated" or self._plan.random:
            return None
        gated_us = self._before.alone.gated.a_call(self.bursts["baseline"].shortest)
        return company.own_wait(gated_us, samples.baseline_us, samples.candidate_us)

    def singles(self, side: Side, count: int) -> list[float]:
        """Microseconds of so many single-call bursts; raises WrongAnswer."""
        return [self._probe(side).judge_us for _ in range(count)]

    def profile(self, timed_us: float, deadline_s: float) -> tuple[Profile, list[str]]:
        """Of one more call of the candidate, with warnings; `timed_us` is what one takes. Raises WrongAnswer.

        Under a profiler a process may fail that does not otherwise: that is a profile's fault, and nobody's reason.
        """
        try:
            reading = self._burst("candidate", 1, deadline_s=deadline_s, profiled=True)
        except (RunnerFailed, PeerGone, DeadlineExceeded) as error:
            return Profile(fault=f"the profiled call failed: {error}"[: provenance.LONGEST_TOLD]), []
        profile = reading.profile or Profile(fault="the candidate's process told nothing of it")
        if profile.fault or not reading.gated:
            # Without the gate, loading the profiler is in the judge's reading.
            return profile, []
        doubt = provenance.doubt(profile.launched, self._per_call(reading, 1).judge_us, timed_us)
        return profile, [f"doubtful_profile: {doubt}"] if doubt else []

    @property
    def clock(self) -> str:
        """Whose clock the times are by, as records name it."""
        if self._reference.device.type == "cpu":
            return "host"
        return "device" if self._gated else "device_ungated"

    @property
    def fixed_cost(self) -> FixedCost:
        """What a burst costs that runs nothing, where that is taken off.

        Without a card's gate it is not, nor from single calls on the CPU: who sees to messages more quickly than the
        baseline's runner would gain. All that an empty burst takes may be left out there, and nothing shorter counts.
        """
        if self._single_calls and self._reference.device.type == "cpu":
            return FixedCost(0.0, 0.0, max(HOST_NULL_ERROR_US, self._before.fixed.us))
        ungated = self._reference.device.type == "cuda" and not self._gated
        return fixed_cost.NONE if ungated else self._before.fixed

    @property
    def systematic(self) -> float:
        """What no number of pairs averages away: the fixed cost's error, and what two processes differ by for good."""
        fixed = self.fixed_cost
        if self._reference.device.type == "cpu":
            # Each process goes on from its standstill in its own way, so the error is not one that both sides share;
            # and the baseline's runner is ours.
            own_us = HOST_NULL_ERROR_US if self._single_calls else fixed.error_us
            errors_us: dict[Side, float] = {"baseline": own_us, "candidate": fixed.error_us}
            return HOST_PROCESS_SHARE + math.hypot(*(errors_us[side] / us for side, us in self._burst_us.items()))
        systematic = fixed.systematic(self._burst_us["baseline"], self._burst_us["candidate"])
        unlike = [
            math.hypot(PROCESS_US * self.bursts[side].calls, PROCESS_BURST_US) / burst_us
            for side, burst_us in self._burst_us.items()
        ]
        return systematic + PROCESS_SHARE + max(unlike)

    @property
    def unclaimed_us(self) -> float:
        """What a runner's clock may miss of a call: the fixed cost's error, and a host's way out of a standstill."""
        fixed = self.fixed_cost
        wake_us = HOST_WAKE_US if self._reference.device.type == "cpu" else 0.0
        return (fixed.error_us + fixed.jitter_us + wake_us) / self.bursts["candidate"].shortest

    def unresolved(self, samples: Samples) -> str:
        """Of which sides the times are too short to be told from none; empty where both are times."""
        sides: dict[Side, list[float]] = {"candidate": samples.candidate_us, "baseline": samples.baseline_us}
        found = []
        for side, times_us in sides.items():
            calls = self.bursts[side].shortest
            if not self.fixed_cost.resolves(statistics.median(times_us) * calls):
                found.append(f"the {side}'s")
        return " and ".join(found)

    @property
    def why_ungated(self) -> str:
        """Empty where the times are not those of a card without the gate."""
        if self.clock != "device_ungated":
            return ""
        reason = (
            "the reference draws random numbers" if self._plan.random else "the candidate waits for the device itself"
        )
        return f"{reason}, so times include launch latency and the way of the messages"

    @property
    def floor(self) -> Floor | None:
        """What the reference's work takes at the device's best rates; None where these are not known."""
        return light.floor(self._plan.work.work, self._ceilings) if self._ceilings else None

    @property
    def floor_notes(self) -> list[str]:
        return list(self._plan.work.notes)

    @property
    def least(self) -> Floor | None:
        """The floor of what no program can leave out, by a clock that is sure enough to reject by; else None."""
        if self._ceilings is None or self._reference.device.type == "cpu":
            return None
        sure = uncached(self._plan.work.work, cache_bytes(self._reference.device), self.bursts["candidate"].shortest)
        return light.floor(sure, self._ceilings)

    def card(self) -> dict[str, Any]:
        """The device's state over the measurement."""
        return self._watch.summary()

    def _measure(self, side: Side) -> Reading:
        calls = self.bursts[side].at(self._share)
        return self._per_call(self._burst(side, calls), calls)

    def _probe(self, side: Side) -> Reading:
        return self._per_call(self._burst(side, 1), 1)

    def _first_touch_us(self) -> float:
        """What only the first call of a burst waits for: weights, which later calls may find in the cache."""
        if self._ceilings is None:
            return 0.0
        return self._plan.work.work.resident_bytes / self._ceilings.bytes_per_s * 1e6

    def _burst(
        self,
        side: Side,
        calls: int,
        *,
        gated: bool | None = None,
        deadline_s: float | None = None,
        profiled: bool = False,
    ) -> BurstReading:
        """One burst on fresh inputs, every output checked."""

        def draws() -> list[Draw]:
            return [self._reference.draw() for _ in range(calls)]

        return self._checked(side, draws, gated=gated, deadline_s=deadline_s, profiled=profiled)

    def _checked(
        self, side: Side, draw: Callable[[], list[Draw]], hard: HardCall | None = None, **options: Any
    ) -> BurstReading:
        """One burst, again on other draws where the runner may have that; raises WrongAnswer."""
        if options.get("gated") is None:
            options["gated"] = self._gated
        draws = draw()
        try:
            reading = self._links[side].burst(draws, **options)
        except RepeatAsked:
            draws = draw()
            reading = self._links[side].burst(draws, **options)
        refusal = self._examiners[side].burst(self._links[side], draws, hard)
        if refusal is not None and side == "baseline":
            message = (
                "the baseline disagrees with the same reference in the judge, whose every call starts from the same "
                f"state: {refusal.message}"
            )
            raise WrongAnswer(Outcome(status=Status.INVALID_REFERENCE, reason="unstable_reference", message=message))
        if refusal is not None:
            raise WrongAnswer(refusal.outcome())
        return reading

    def _before_a_pair(self, baseline_first: bool) -> None:
        """Draw the length of its bursts, and take hard inputs before some pairs.

        As many as leave few for each of the pairs that are sure to come, and before those that the baseline begins, so
        that its turn lies between a hard one's and a timed one's.
        """
        self._share = self.rng.random()
        self._turns += 1
        pairs_left = max(1, self._timing.min_pairs - self._turns + 1)
        if not baseline_first and pairs_left > 1:
            return
        share = 2 * self._hard.left / pairs_left
        for _ in range(math.floor(share + self.rng.random())):
            self._hard_turn()

    def _hard_turn(self) -> None:
        """A burst of the candidate's with one hard call in it: to the runner it is like any other."""
        with self._hard.counted():
            hard = self._hard.take()
            if hard is None:
                return
            # As before a timed burst.
            self._measure("baseline")
            calls = self.bursts["candidate"].at(self.rng.random())
            place = self.rng.randrange(calls)

            def draws() -> list[Draw]:
                return [hard.draw if call == place else self._reference.draw() for call in range(calls)]

            self._checked("candidate", draws, hard)

    def _rehearse(self, side: Side) -> int:
        """Run a burst as long as planned, and find how many calls can be enqueued behind the gate.

        A device queues about a thousand launches and then blocks, so one that launches many kernels a call gets fewer
        calls.
        """
        planned = self.bursts[side].calls
        if planned > 1:
            # Nothing may be met for the first time behind the gate.
            self._burst(side, planned, gated=False)
        if planned == 1 or not self._gated or self._fits(side, planned):
            return self._plan.most_calls
        return next((calls for calls in (planned // 4, planned // 16) if calls > 1 and self._fits(side, calls)), 1)

    def _fits(self, side: Side, calls: int) -> bool:
        """Whether a burst can be enqueued behind the closed gate: none can of a candidate that waits for the device.

        The second try counts: the first may have loaded kernels, which blocks, too.
        """
        return self._burst(side, calls).gated or self._burst(side, calls).gated

    def _per_call(self, reading: BurstReading, calls: int) -> Reading:
        lost_gate = LOST_GATE if self._gated and not reading.gated else ""
        return Reading(
            judge_us=self.fixed_cost.per_call(reading.judge_us, calls),
            claimed_us=reading.claimed_us / calls,
            unusable=lost_gate or (AHEAD if reading.slow_start else "") or self._watch.look(),
        )


def _begins_early(samples: Samples) -> Outcome:
    message = (
        "before nearly every clock started, its inputs lay there for longer than without it: something of it "
        "runs on the card then"
    )
    evidence = {"dropped": samples.dropped}
    return Outcome(status=Status.REJECTED, reason=AHEAD, message=message, evidence=evidence)


def calibrated(baseline: Link) -> FixedCost:
    """What a burst of the trusted baseline costs that runs nothing."""
    # The first one meets cold code and cold memory.
    readings = [baseline.null_us() for _ in range(NULL_BURSTS + 1)][1:]
    error_us = HOST_NULL_ERROR_US if baseline.device.type == "cpu" else NULL_ERROR_US
    return fixed_cost.calibrate(readings, model_error_us=error_us)


def ungated_us(baseline: Link) -> float:
    """What a burst without the gate takes that runs nothing, on a card."""
    return statistics.median([baseline.null_us(gated=False) for _ in range(LATENCY_CALLS)])
