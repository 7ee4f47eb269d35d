"""The judge's use of the oracle: every timed call is a checked call, and a few calls are on inputs made to be hard."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from harness.config import CheckConfig
from harness.judge import handed_over
from harness.judge.endings import FAILURES
from harness.judge.hard_turns import HardCall, HardInputs
from harness.judge.planning import Workload
from harness.judge.reference import Reference
from harness.judge.tried_inputs import TriedInputs
from harness.links.link import Draw, LateOutput, Link, RepeatAsked
from harness.machine.card_turns import CardTurns
from harness.machine.pauses import pause
from harness.oracle import auditing, novelty
from harness.oracle.chunks import Few
from harness.oracle.controls import Tried
from harness.oracle.exact import cached_bytes
from harness.oracle.expectation import Expectation, InvalidReference
from harness.oracle.oracle import Oracle, Sampled
from harness.oracle.stress import SETS, Stress
from harness.oracle.verdict import Finding
from harness.records import Status
from harness.wire import values

POISON_READS = float("nan")
# By what share of its error a wrong answer differs from another one.
OTHERWISE = 1e-3
# Of the time for a candidate's hard inputs, what the known wrong answers get when a problem is opened.
AUDIT_SHARE = 0.5
# Expectations are kept for the next candidate if all of a problem's take up less than this, or than this share of a
# card's memory.
KEPT_BYTES = 1 << 30
KEPT_SHARE = 0.05
# A hard call is made ahead where so many would fit in what a burst may take.
AHEAD_CALLS = 4
# Of outputs that are looked at together; they, the reference's own and what comparing them takes are there at once.
TOGETHER_BYTES = 1 << 26
# Of a card's memory, what the judge may keep from one expectation to the next.
IDLE_SHARE = 0.02
# So many calls' inputs and outputs are left free on a card, if it is not needed: a runner has temporaries, too.
CALLS_FREE = 3
# Bytes of an expectation over those of a call's inputs and outputs: the exact output and, of a small one, the
# yardsticks' samples beside them.
EXPECTATION_FACTOR = 8
UNDETERMINED = (
    "the output has what a singular value, eigenvalue or QR decomposition finds, whose signs or order is anybody's "
    "choice: float64 gives others, so that nothing could be asked of an answer; return what does not depend on them, "
    "such as singular values, or products in which they cancel"
)


@dataclass(frozen=True)
class Answers:
    """Copies of what calls of one burst returned. None of them came late, and none had changed its inputs."""

    draws: list[Draw]
    outputs: list[Any]


@dataclass(frozen=True)
class Wrong:
    """A wrong answer to drawn inputs."""

    draw: Draw
    finding: Finding


class Examiner:
    """Judges outputs of one problem's candidates. Raises InvalidReference where the problem can judge nobody."""

    def __init__(
        self, reference: Reference, allow: tuple[str, ...], options: CheckConfig, plan: Workload, turns: CardTurns
    ) -> None:
        self._reference = reference
        # Why candidates have some weights as modules begin, of which they may make use unseen; empty where they do not.
        self.why_plain = reference.why_plain
        self._is_larger = reference.construction.larger != 1.0
        # Whether a refusal says why, for the candidate that is under way.
        self.explained = True
        self._options = options
        self._keep = plan.call_bytes * EXPECTATION_FACTOR * len(SETS) < _room_to_keep(reference.device, plan)
        # Of hard calls, so many are made before they come: as many as a burst may have, or one, or of the largest none.
        fits = plan.call_bytes * AHEAD_CALLS <= plan.memory_bytes
        self._ahead = plan.most_calls if self._keep else int(fits)
        self._turns = turns
        self._call_bytes = plan.call_bytes
        draw = reference.draw()
        begun = turns.clock()
        oracle_of = functools.partial(
            Oracle,
            allow=allow,
            memory_limit=plan.oracle_bytes,
            promises=reference.promises,
            strict_float32=options.strict_float32,
        )
        self._oracle = oracle_of(reference.model)
        few, expected = self._opening(draw)
        # Where even the reference hardly gets an answer, next to any answer passes.
        self.meaningful = expected.meaningful
        if not self.meaningful and expected.signed:
            raise InvalidReference("undetermined", UNDETERMINED)
        self._in_place = bool(self._oracle.reference.writes_inputs)
        # Of the output alone: that inputs become part of an answer allows no view of another.
        self._returned = frozenset(self._oracle.reference.returned)
        if self._in_place:
            # What becomes of the inputs is then part of the answer, and is held to the same rule.
            del few, expected
            begun = turns.clock()
            self._oracle = oracle_of(_WithInputs(reference.model))
            few, expected = self._opening(draw)
        # What a set will take that is not kept, at the first guess.
        self._set_s = 0.0 if self._keep else turns.clock() - begun
        self.tried = TriedInputs(reference, self._oracle, draw, expected, keep=self._keep)
        drawn = [expected]
        del draw, expected
        # What no candidate could be told from here. A permitted precision is no wrong answer.
        permitted = ("lower_precision", "lower_inputs") if allow else ()
        tried, decisive = self._audit(drawn, few)
        passed = [one.control.name for one in tried if not one.refused_on]
        self.lets_through = [name for name in passed if name not in permitted]
        # Those that drawn inputs do not tell: who sees to it that others are hard may give them for these.
        self.hidden = frozenset(one.control.name for one in tried if one.refused_on != auditing.DRAWN)
        self.tried.open(decisive)
        give_back(self._reference.device)

    def _opening(self, draw: Draw) -> tuple[Few | None, Expectation]:
        """What to expect of a draw; of a large problem, of a few entries of the batch, which stand for it."""
        inputs = list(draw.inputs)
        few = None if self._keep else self._oracle.few(inputs, draw.seed)
        return few, self._oracle.expect(few.inputs(inputs) if few else inputs, draw.seed)

    def notes(self) -> list[str]:
        """What hard inputs keep, and which stress sets no candidate is tried on, each in a line."""
        raised = ", ".join(f"{name} ({said})" for name, said in sorted(self._oracle.undefined.items()))
        unchanged = ", ".join(sorted(self._oracle.unchanged))
        held = ", ".join(f"input {position}" for position in self._oracle.held)
        lines = {
            "left as drawn by hard inputs, because the reference raises for others": held,
            "promised by get_inputs and kept by hard inputs": "; ".join(self._reference.promises.words),
            "stress sets left out, because the reference raised": raised,
            "stress sets left out, because they are no different from what is drawn, or promised": unchanged,
            "matrices drawn larger than the problem asks for": "else a softmax, or an activation, is all but linear"
            * self._is_larger,
        }
        return [f"{title}: {text}" for title, text in lines.items() if text]

    def weakness(self) -> str:
        """Why a candidate of this problem that passes may be wrong all the same, in a sentence; or nothing."""
        if not self.meaningful:
            return "the reference's own rounding errors are as large as what its output varies by"
        names = ", ".join(self.lets_through)
        return f"known wrong answers pass on this problem: {names}" if names else ""

    def _audit(self, drawn: list[Expectation], few: Few | None) -> tuple[list[Tried], frozenset[str]]:
        """What became of the audit's wrong answers on drawn and, as far as the time goes, on hard inputs, and names of
        the sets that are decisive; of a large problem, on a `few` entries of its batch.

        Takes what to expect of drawn inputs out of its list, so that it goes before hard inputs are made.
        """
        if not self.meaningful:
            return [], frozenset()
        other = self._reference.draw()
        inputs = list(other.inputs)
        output = self._oracle.glance(few.inputs(inputs) if few else inputs, other.seed).native
        del other, inputs
        return auditing.decisive(self._oracle, output, self._audited(drawn, few))

    def _audited(self, drawn: list[Expectation], few: Few | None) -> auditing.Sets:
        yield auditing.DRAWN, drawn.pop()
        if self._options.stress:
            budget_s, clock = AUDIT_SHARE * self._options.stress_budget_s, self._turns.clock
            yield from auditing.binding(self._known_sets(few), budget_s, self._set_s, clock)

    def _known_sets(self, few: Few | None) -> Iterator[tuple[Stress, Expectation]]:
        for stress, _, expect in self.tried.stress_sets(few):
            expected = expect()
            if expected is not None:
                yield stress, expected.some if isinstance(expected, Sampled) else expected
            # Before the next one is made.
            del expect, expected

    def _make_room(self) -> None:
        """What a runner may need for a call is no memory that the judge only keeps."""
        device = self._reference.device
        if device.type == "cuda" and torch.cuda.mem_get_info(device)[0] < CALLS_FREE * self._call_bytes:
            torch.cuda.empty_cache()

    def first_call(self, link: Link, deadline_s: float) -> Finding:
        """One call against the float64 reference. Raises what the runner makes Link raise.

        On the CPU a wrong one is called once more, and that counts: a process's first vectorised call on several
        threads is off by 1e-5 once in some hundred times on a busy machine, in plain PyTorch as well. Nobody gains by
        it, since every later call is checked.
        """
        finding = self._one_call(link, deadline_s)
        if finding.passed or link.device.type != "cpu":
            return finding
        again = self._one_call(link, deadline_s)
        return again if again.passed or not self._keep else _as_it_was_before(finding, again)

    def _one_call(self, link: Link, deadline_s: float) -> Finding:
        draw, expected = self.tried.first()
        link.inputs_change = self._in_place
        try:
            reading = link.burst([draw], gated=False, timed=False, deadline_s=deadline_s)
        except RepeatAsked:
            draw, expected = self._reference.draw(), None
            reading = link.burst([draw], gated=False, timed=False, deadline_s=deadline_s)
        expected = expected or self._oracle.expect(list(draw.inputs), draw.seed)
        give_back(self._reference.device)
        finding = self._finding(link, 0, draw, expected)
        if not finding.passed:
            self.tried.refused_on(draw)
            return finding
        returned = {position for _, position in self._returned}
        found = {position for _, position in link.shared_inputs(0) - self._returned}
        aliased = sorted(found | (set(reading.aliased) - returned))
        if aliased:
            message = (
                f"the output shares memory with input {aliased[0]}, and the reference's does not: "
                "whoever writes to one changes the other"
            )
            return Finding(Status.INCORRECT, "aliases_input", message, evidence={"aliased": aliased})
        link.may_return = self._returned
        return finding

    def native(self, draw: Draw) -> Any:
        """The reference's own output."""
        output = self._oracle.glance(list(draw.inputs), draw.seed).native
        return output[0] if self._in_place else output

    def burst(
        self, link: Link, draws: list[Draw], hard: Sequence[HardCall] = (), only: int | None = None
    ) -> Finding | None:
        """The first refusal among the last burst's calls, each compared with the reference's own output, but for the
        `hard` ones with what is known of those; or what is said of the call number `only`, if that is given."""
        try:
            return self._first_refusal(link, draws, hard, only)
        finally:
            self._make_room()

    def answers(self, link: Link, draws: list[Draw], only: int | None = None) -> Answers | None:
        """What the last burst's calls, or its call number `only`, returned, if nothing is left to do but to compare it;
        None where one came late or changed its inputs, or where they take too much room, which `burst` looks into."""
        calls = list(range(len(draws))) if only is None else [only]
        if self._in_place or len(calls) * self._call_bytes > TOGETHER_BYTES:
            return None
        outputs = link.outputs(calls)
        if outputs is None or self._changed_inputs(link, draws, calls):
            return None
        return Answers([draws[call] for call in calls], outputs)

    def wrong(self, answers: Answers) -> Wrong | None:
        """The first of these that is wrong. Needs no runner."""
        glances = [self._glance(draw) for draw in answers.draws]
        right = self._oracle.check_together(glances, answers.outputs)
        for draw, output, glance, it_is in zip(answers.draws, answers.outputs, glances, right, strict=True):
            if not it_is:
                finding = self._judged(draw, glance, output, values.tensors(draw.inputs), self.explained)
                if not finding.passed:
                    return Wrong(draw, finding)
        return None

    def _first_refusal(
        self, link: Link, draws: list[Draw], hard: Sequence[HardCall], only: int | None
    ) -> Finding | None:
        ordinary = [call for call, draw in enumerate(draws) if not any(one.draw is draw for one in hard)]
        right = self._right_together(link, draws, ordinary) if only is None else set()
        for call, draw in enumerate(draws):
            if only not in (None, call) or call in right:
                continue
            its = next((one for one in hard if one.draw is draw), None)
            if its is not None:
                finding = self._hard_finding(link, call, its)
            else:
                finding = self._finding(link, call, draw, self._glance(draw))
            if not finding.passed:
                return finding if its else self.asked_again(link, Wrong(draw, finding))
        return None

    def _glance(self, draw: Draw) -> Any:
        return self._oracle.glance(list(draw.inputs), draw.seed)

    def _right_together(self, link: Link, draws: list[Draw], calls: list[int]) -> set[int]:
        """Those of the last burst's `calls` that are seen to be right when they are looked at together: a card waits
        for the host whenever one is looked at by itself. The others are for that to decide."""
        most = max(1, TOGETHER_BYTES // max(1, link.output_bytes))
        if self._in_place or most == 1:
            return set()
        right: set[int] = set()
        for some in (calls[first : first + most] for first in range(0, len(calls), most)):
            outputs = link.outputs(some)
            if outputs is not None:
                glances = [self._glance(draws[call]) for call in some]
                pause()
                judged = zip(some, self._oracle.check_together(glances, outputs), strict=True)
                right |= {call for call, it_is in judged if it_is} - self._changed_inputs(link, draws, some)
            # Before the next ones are there.
            del outputs
        return right

    def _changed_inputs(self, link: Link, draws: list[Draw], calls: list[int]) -> set[int]:
        """Those of the calls whose inputs are not as they were drawn any more."""
        pause()
        found = []
        for call in calls:
            pairs = zip(values.tensors(draws[call].inputs), link.seen_inputs(call), strict=True)
            found += [(call, values.differ(own, now)) for own, now in pairs if own.numel()]
        if not found:
            return set()
        differ = torch.stack([it_does for _, it_does in found]).tolist()
        return {call for (call, _), it_does in zip(found, differ, strict=True) if it_does}

    def asked_again(self, link: Link, wrong: Wrong) -> Finding:
        """A wrong answer of who was right on other draws, with what comes of the same inputs once more."""
        draw, finding = wrong.draw, wrong.finding
        if finding.error is None:
            return finding
        said = f"{finding.message}; on other draws it was right"
        try:
            link.burst([draw], gated=False, timed=False, deadline_s=link.limits.call_s)
            again = self._finding(link, 0, draw, self._glance(draw))
        except (RepeatAsked, *FAILURES):
            # The wrong answer stands, whatever became of this one.
            return replace(finding, message=said)
        if _differs(finding, again):
            said += ", and called again on the same inputs it gave another answer: does it depend on earlier calls?"
        return replace(finding, message=said)

    def hard_inputs(self, without: tuple[str, ...] = ()) -> HardInputs:
        """The stress sets for one candidate, but for those of some titles."""
        if not self._options.stress:
            return HardInputs(iter(()), 0, 0.0)
        budget_s = self._options.stress_budget_s
        return HardInputs(
            (one for one in self.tried.stress_sets() if one[0].title not in without),
            self.tried.count,
            budget_s,
            self._set_s,
            self._turns.clock,
            ahead=self._ahead,
            decisive=sum(one.name in self.tried.among_the_first for one in self.tried.in_order()),
            rounds=self.tried.rounds(without),
        )

    def unasked(self, hard: Sequence[HardCall]) -> tuple[str, ...]:
        """Titles of those hard inputs to which no answer is owed, nor would be to other draws of their sets: who raises
        on them is not asked again, and must not get rid so of what others are refused on."""
        return tuple(sorted({one.stress.title for one in hard if not (one.refuses() or self.tried.asks(one.stress))}))

    def _hard_finding(self, link: Link, call: int, hard: HardCall) -> Finding:
        with hard.charged():
            expected = hard.expected()
            give_back(self._reference.device)
            if expected is None:
                return Finding(Status.PASSED)
            explained = self.explained or not hard.stress.binding
            finding = self._finding(link, call, hard.draw, expected, explained=explained)
        if finding.passed:
            if hard.stress.binding:
                hard.factors.add(hard.stress.name, finding)
            return finding
        new = novelty.beyond(self.tried.drawn().inputs, hard.draw.inputs)
        message = f"on inputs '{hard.stress.name}'{f' ({new})' if new else ''}: {finding.message}"
        if not hard.stress.binding:
            hard.warnings.append(f"stress: {message}"[:300])
            return Finding(Status.PASSED)
        self.tried.refused_on(hard.draw)
        evidence = finding.evidence | {"stress": hard.stress.name, "without_stress": "right"}
        reason = f"{finding.reason}:{hard.stress.name}"
        return replace(finding, reason=reason, message=message, evidence=evidence)

    def _finding(self, link: Link, call: int, draw: Draw, expected: Any, *, explained: bool | None = None) -> Finding:
        explained = self.explained if explained is None else explained
        try:
            output, seen = link.output(call), link.seen_inputs(call)
        except LateOutput as late:
            return Finding(Status.REJECTED, "late_output", str(late), evidence={"late_share": late.share})
        return self._judged(draw, expected, output, seen, explained)

    def _judged(self, draw: Draw, expected: Any, output: Any, seen: list[torch.Tensor], explained: bool) -> Finding:
        """Of a call's output, and of its inputs as they were seen behind it."""
        fault = handed_over.fault_of(expected.native[0] if self._in_place else expected.native, output)
        if fault is not None:
            return fault
        # On the CPU outputs are not spoilt before a call.
        poison = POISON_READS if self._reference.device.type == "cuda" else None
        if self._in_place:
            finding = self._oracle.check(expected, (output, *seen), poison, explained)
            return _of_inputs(finding, values.tensors(draw.inputs), seen)
        finding = self._oracle.check(expected, output, poison, explained)
        if finding.passed:
            for index, (own, now) in enumerate(zip(values.tensors(draw.inputs), seen, strict=True)):
                if not values.same_bytes(own, now):
                    message = f"input {index} was written to, which the reference does not do"
                    return Finding(Status.INCORRECT, "input_changed", message)
        return finding


def give_back(device: torch.device) -> None:
    """What large expectations took on a card is free for the runners. Small ones' memory is used again: to ask the
    driver for it takes longer than to compute them."""
    if device.type == "cpu":
        return
    if cached_bytes(device) > IDLE_SHARE * torch.cuda.get_device_properties(device).total_memory:
        torch.cuda.empty_cache()


def _room_to_keep(device: torch.device, plan: Workload) -> int:
    """Bytes for what is expected on all sets of a problem; of a limited device's memory a third of what is left."""
    room = KEPT_BYTES
    if device.type == "cuda":
        room = max(room, int(KEPT_SHARE * torch.cuda.get_device_properties(device).total_memory))
    return room if plan.oracle_bytes is None else min(room, plan.oracle_bytes // 3)


def _as_it_was_before(first: Finding, again: Finding) -> Finding:
    """The second of two wrong calls on the same inputs, which says so where it is wrong in another way."""
    if again.error is None or not _differs(first, again):
        return again
    message = f"{again.message}; called twice on the same inputs it gave two answers: does it depend on earlier calls?"
    return replace(again, message=message)


def _differs(first: Finding, again: Finding) -> bool:
    """Whether the same inputs, of which the first answer was wrong, got another one."""
    if again.passed or first.error is None or again.error is None:
        return again.passed
    return abs(first.error - again.error) > OTHERWISE * first.error


def _of_inputs(finding: Finding, given: list[torch.Tensor], seen: list[torch.Tensor]) -> Finding:
    """The finding of a call that changes its inputs, which stand behind its output: by the names that they have."""
    if finding.passed:
        return finding
    said = finding.message.removeprefix(finding.leaf)
    index = {f"output[{1 + index}]": index for index in range(len(given))}.get(finding.leaf)
    if index is None:
        return replace(finding, message=f"output{finding.leaf.removeprefix('output[0]')}{said}")
    if values.same_bytes(given[index], seen[index]):
        message = f"input {index}, which the reference changes, was left as it was"
        return replace(finding, reason="input_unchanged", message=message)
    return replace(finding, message=f"input {index}, as the call left it{said}")


class _WithInputs(nn.Module):
    """A reference that works in place, with its inputs as they are afterwards beside its output."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: Any) -> Any:
        output = self.model(*inputs)
        return (output, *values.tensors(inputs))


__all__ = ["Answers", "Examiner", "InvalidReference", "Wrong"]
