"""Whether answers are right. One `Oracle` per problem: what to expect for some inputs, and whether an output is that.

The full check compares with the float64 reference, the fast one with the reference's own output. What the fast check
does not accept goes to the full one, so it only saves time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from harness.oracle import checks, expectation, formats, rule, strands
from harness.oracle.case import Earlier
from harness.oracle.choices import Chosen
from harness.oracle.chunks import Few
from harness.oracle.demands import Demands
from harness.oracle.error import Part
from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation, InvalidReference, broken_in, number, require_form
from harness.oracle.fast import Fast
from harness.oracle.fills import NONE, Fills
from harness.oracle.formats import all_finite, is_of_eight_bits
from harness.oracle.jitter import Calculated, Mover
from harness.oracle.promises import NOTHING, Promises, as_drawn
from harness.oracle.reorder import LastFirst
from harness.oracle.slices import real, rms, widened
from harness.oracle.stress import CHOOSING, COMPARING, RECURRENT, ROLLED, SETS, Stress, named
from harness.oracle.structure import all_same, compare, flatten, places, tensors
from harness.oracle.unsorted import Unsorted, unsorted
from harness.oracle.verdict import Finding
from harness.records import Status

# A reference that differs from itself, from the same generator state, by more than this many roundings of its output
# and this share of its variation is random; less may come of sums in no fixed order. Its error against float64 cannot
# be the measure, since it is made of the same randomness.
RANDOM_ROUNDINGS = 64.0
RANDOM_SHARE = 1e-4
# Whoever takes this set takes numbers of any usual size.
PROBE = "signs_up"


@dataclass(frozen=True)
class Glance:
    """The reference's output for `inputs`, all that the fast check needs; `inputs` as in `Expectation`."""

    inputs: list[Any]
    seed: int
    native: Any


@dataclass(frozen=True)
class Sampled:
    """What a call on hard inputs of a large problem is compared with: of a few entries of the batch all that is to be
    expected (`some`), of the rest the reference's own output, and where these do not do, what `whole` finds out.

    `whole` answers None where nothing can be expected.
    """

    inputs: list[Any]
    seed: int
    native: Any
    few: Few
    some: Expectation
    whole: Callable[[], Expectation | None]


# Of some tensors.
Shapes = tuple[torch.Size, ...]


class Oracle:
    """Knows one reference module, in the mode and precision it is in, and never changes it.

    `allow` names lower precisions that candidates may use (tf32, bf16, fp16). `memory_limit` in bytes replaces the
    device's free memory in the decision where and in what slices float64 runs. Hard inputs keep the `promises` of the
    drawn ones. Where PyTorch's switches allow TF32 to an operator of the reference, candidates may use it for that,
    unless `strict_float32`. Outputs are expected on the device of the inputs.
    """

    def __init__(
        self,
        module: nn.Module,
        allow: tuple[str, ...] = (),
        memory_limit: int | None = None,
        promises: Promises = NOTHING,
        strict_float32: bool = False,
    ) -> None:
        unknown = set(allow) - set(formats.ALLOWABLE)
        if unknown:
            raise ValueError(f"no such precision: {', '.join(sorted(unknown))}; valid: {', '.join(formats.ALLOWABLE)}")
        self.reference = ExactReference(module, memory_limit, strict_float32, promises)
        self.allow = allow
        # Of stress sets on which the reference raised, by name: what it said.
        self.undefined: dict[str, str] = {}
        # Names of stress sets that change nothing, as where the inputs keep what they promise.
        self.unchanged: set[str] = set()
        self._promises = promises
        self._fast: dict[str, Fast] = {}
        self._demands = Demands(self.reference, promises, self._fast)
        # Of the outputs for drawn inputs.
        self._fills: dict[str, Fills] = {}
        # Of those, which are nothing but zeros; None before the first.
        self._empty: frozenset[str] | None = None
        # Of the floating leaves, which are not rounded for drawn inputs; None before the first.
        self._unrounded: frozenset[str] | None = None
        # And which have jumped for some.
        self._jumping: frozenset[str] = frozenset()
        # The places of all leaves of the reference's output; None before the first.
        self._places: list[str] | None = None
        # Their shapes, by those of the inputs.
        self._shapes: dict[Shapes, Shapes] = {}
        self._infinite = False
        # Whether values decide where; None as long as nobody has asked.
        self._values_decide: bool | None = None
        # Positions of inputs that stay as they are drawn, because the reference takes no others; None before the first.
        self._held: frozenset[int] | None = None
        # What is odd for drawn inputs, too.
        self._odd: frozenset[str] = frozenset()
        self._earlier = Earlier()
        self._steady = False
        # What the reference is made of, which decides which hard inputs there are, and what it chooses by order.
        recurs = any(isinstance(one, (nn.RNNBase, nn.RNNCellBase)) for one in module.modules())
        self._kinds = frozenset({RECURRENT}) if recurs else frozenset[str]()
        self._chosen: frozenset[Chosen] = frozenset()
        # Whether no drawn number was below zero.
        self.never_negative = True
        # What of the output is in no promised order.
        self._unsorted: Unsorted | None = None
        # Whether drawn inputs are judged alike when it sees equal numbers the other way round; None before the first.
        self._turns_alike: bool | None = None

    def expect(self, inputs: list[Any], seed: int = 0) -> Expectation:
        """What the full check compares with, for drawn inputs; `seed` sets the generators before each run.

        Raises InvalidReference if the reference differs from call to call, in its form from inputs to inputs, gives no
        finite number, or an output that is not a plain tensor.
        """
        expected = expectation.expect(self.reference, inputs, seed, self.allow, native=self._native(inputs, seed))
        if not self._steady:
            self._require_steady(expected)
            self._steady = True
        if all(yard.numel < rule.SIGNATURE_LEAST for yard in expected.yards.values()):
            self._kinds |= {"few", "whole"}
        largest = max((tensor.numel() for tensor in tensors(inputs) if tensor.is_floating_point()), default=0)
        self.never_negative = self.never_negative and _least(inputs) >= 0
        if any(2 * yard.heaped >= largest > 0 for yard in expected.yards.values()):
            self._kinds |= {"whole"}
        unrounded = frozenset(path for path, yard in expected.yards.items() if yard.unrounded)
        self._unrounded = unrounded if self._unrounded is None else self._unrounded & unrounded
        self._jumping |= {path for path, yard in expected.yards.items() if yard.jumped is not None}
        self._chosen |= expected.chosen
        if any(one.unsorted for one in expected.chosen) and self._unsorted is None:
            self._unsorted = unsorted(self.reference, inputs, seed, expected.native)
        if self._chosen:
            self._kinds |= {CHOOSING}
        for path, yard in expected.yards.items():
            self._fast[path] = Fast.of(yard).stricter(self._fast.get(path))
            self._kinds |= yard.kinds
            self._fills[path] = yard.fills | self._fills.get(path, NONE)
        if expected.compares:
            self._kinds |= {COMPARING}
            self.reference.compares = True
        self._infinite = self._infinite or bool(broken_in(expected.native))
        self._odd |= expected.odd
        self._earlier.keep(expected.native)
        empty = frozenset(path for path, yard in expected.yards.items() if yard.scale.size == yard.own == 0)
        self._empty = empty if self._empty is None else self._empty & empty
        if self._held is None:
            self._held = self._not_to_be_changed(inputs, seed)
        if self._turns_alike is None:
            self._turns_alike = expected.chooses and self._turned_passes(expected)
        return replace(expected, empty=self._empty, nearest=True)

    @property
    def held(self) -> list[int]:
        """Positions of inputs that no hard input changes, because the reference raises for others."""
        return sorted(self._held or ())

    def glance(self, inputs: list[Any], seed: int = 0) -> Glance:
        """What the fast check compares with: one run of the reference. Useful after an `expect` on like inputs."""
        return Glance(inputs, seed, self._native(inputs, seed))

    def _native(self, inputs: list[Any], seed: int) -> Any:
        """The reference's own output. Raises InvalidReference where its form is another one than for other inputs."""
        output = self.reference.native(inputs, seed)
        if self._places is None:
            self._places = places(output)
        require_form(self._places, output)
        given, found = _shapes(inputs), _shapes(output)
        if self._shapes.setdefault(given, found) != found:
            raise InvalidReference("contract", "the output's shape depends on the inputs' values")
        return output

    def stress(
        self, drawn: list[Any], seed: int = 0, sets: Sequence[Stress] = SETS
    ) -> Iterator[tuple[Stress, Expectation]]:
        """Those of `sets` on which the reference is defined and meaningful, each with what to expect, one at a time.

        A set is left out if the reference raises (`undefined` says how), overflows, or has an error of a tenth of its
        output's variation; also if a plain running sum would not meet the limits. On inputs with a large element in
        each row, a sum over several rows may lose what a running sum loses: the small elements between the large ones.
        """
        for proposed, inputs in self.stress_inputs(drawn, seed, sets):
            expected = self.expect_stress(proposed, inputs, drawn, seed)
            if expected is not None:
                yield proposed, expected
            # Before the next ones are made.
            del inputs, expected

    def stress_inputs(self, drawn: list[Any], seed: int, sets: Sequence[Stress]) -> Iterator[tuple[Stress, list[Any]]]:
        """Each of `sets` with its inputs, whatever the reference returns.

        Without sets that are for other references, those whose inputs cannot be made, and those that promises leave as
        they were drawn (`unchanged`).
        """
        in_half = any(tensor.dtype is torch.float16 for tensor in tensors(drawn))
        for position, proposed in enumerate(sets):
            if not self.suits(proposed) or (proposed.half and not in_half):
                continue
            try:
                inputs = proposed.along(self._chosen).inputs(drawn, seed + position, self._promises)
            except torch.OutOfMemoryError:
                raise
            except Exception as error:
                self._leave_out(proposed, error)
                continue
            inputs = [drawn[i] if i in (self._held or ()) else changed for i, changed in enumerate(inputs)]
            if as_drawn(inputs, drawn):
                self.unchanged.add(proposed.name)
                continue
            yield proposed, inputs
            # Before the next ones are made.
            del inputs

    def suits(self, proposed: Stress) -> bool:
        """Whether a set is for references of this kind; known after an `expect`."""
        return proposed.suits(self._kinds)

    def comes_first(self, proposed: Stress) -> bool:
        """Whether a set tells of references of this kind what no other does."""
        return proposed.first in self._kinds

    def times(self, proposed: Stress, inputs: list[Any]) -> int:
        """How many draws of a set for inputs of this form do what one is for."""
        floating = [tensor.numel() for tensor in tensors(inputs) if tensor.is_floating_point()]
        return strands.times(self._chosen, max(floating, default=0)) if proposed.in_rows else 1

    def few(self, inputs: list[Any], seed: int) -> Few | None:
        """Entries that stand for the batch of a large problem; None where it is not large, or has no such entries."""
        return self.reference.few(inputs, seed, self.reference.native(inputs, seed))

    def sampled_stress(
        self, proposed: Stress, inputs: list[Any], drawn: list[Any], seed: int
    ) -> Sampled | Expectation | None:
        """What to expect for a set's inputs; of a large problem, for a few entries of the batch at first."""
        try:
            native = self._native(inputs, seed)
            # Where NaN and infinities are right at some places, all places are looked at.
            few = None if self._infinite else self.reference.few(inputs, seed, native)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self._leave_out(proposed, error)
            return None
        if few is None:
            return self.expect_stress(proposed, inputs, drawn, seed, native)
        numbers = {path: number(leaf, torch.float32) for path, leaf in flatten(native)}
        finite = {path: all_finite(real(leaf)) for path, leaf in numbers.items() if leaf is not None}
        if finite and not any(finite.values()):
            return None
        some = self.expect_stress(proposed, few.inputs(inputs), few.inputs(drawn) if drawn else [], seed)
        some = some and some.without({path for path in some.yards if not finite[path]})
        if some is None:
            return None
        whole = functools.partial(self.expect_stress, proposed, inputs, drawn, seed, native)
        return Sampled(inputs, seed, native, few, some, whole)

    def expect_stress(
        self, proposed: Stress, inputs: list[Any], drawn: list[Any], seed: int, native: Any = None
    ) -> Expectation | None:
        """What to expect for a set's inputs; None if `stress` would leave it out. `native` as for `expectation`.

        `drawn` are the inputs that they were made from, where the set `compares` with those.
        """
        try:
            broken = self._broken_for(drawn, seed)
            native = self._native(inputs, seed) if native is None else native
            expected = expectation.expect(
                self.reference,
                inputs,
                seed,
                self.allow,
                self._fills,
                broken,
                native,
                self._unrounded or frozenset(),
                self._jumping,
            )
            if proposed.binding and expected.odd - self._odd:
                return None
            yards = {path: yard.as_a_whole() for path, yard in expected.yards.items()}
            decided = replace(expected, yards=yards, empty=self._empty or frozenset()).as_far_as_decided()
            if decided is None:
                return None
            # Within, the reference is run on other inputs.
            found = self._demands.of(proposed, decided, drawn)
            if found is None or (proposed.demands == "equals" and self._hangs_on_rounding(found)):
                return None
            return None if self._hangs_on_ties(found) else found
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            self._leave_out(proposed, error)
            return None

    def _broken_for(self, drawn: list[Any], seed: int) -> dict[str, torch.Tensor] | None:
        """Where the reference's output is to be NaN or infinite on inputs made of the `drawn` ones: as it is on those,
        since what a mask leaves stays where it was. None where values decide that, as of who keeps the largest alone:
        then wherever it is."""
        if not self._infinite:
            return {}
        if self._values_decide:
            return None
        broken = broken_in(self.reference.native(drawn, seed))
        if self._values_decide is None:
            made = next(self.stress_inputs(drawn, seed, [named(ROLLED)]), None)
            other = broken if made is None else broken_in(self._native(made[1], seed))
            alike = other.keys() == broken.keys() and all(torch.equal(other[path], broken[path]) for path in other)
            self._values_decide = not alike
        return None if self._values_decide else broken

    def _hangs_on_ties(self, expected: Expectation) -> bool:
        """Whether the reference itself would be refused for hard inputs, and is not for drawn ones, had it taken equal
        numbers in another order, of which nobody has promised one."""
        return bool(self._turns_alike) and not self._turned_passes(expected)

    def _turned_passes(self, expected: Expectation) -> bool:
        other = self.reference.native(expected.inputs, expected.seed, mode=LastFirst())
        return self.check(expected, other, explained=False).passed

    def _hangs_on_rounding(self, expected: Expectation) -> bool:
        """Whether a reference that compares numbers would itself be refused, had what it calculates before been rounded
        otherwise: that equal inputs give equal results is nobody's promise."""
        if not self.reference.compares:
            return False
        other = self.reference.native(expected.inputs, expected.seed, mode=Calculated(Mover(1, expected.seed)))
        return not self.check(expected, other, explained=False).passed

    def compares(self, proposed: Stress) -> bool:
        """Whether what to expect for a set's inputs depends on the drawn ones, too."""
        return self._infinite or proposed.demands == "absolute"

    def _not_to_be_changed(self, drawn: list[Any], seed: int) -> frozenset[int]:
        """Positions of inputs that the reference raises for when they are of another size, as targets whose range it
        checks; none where it takes the others no better."""

        def is_taken(inputs: list[Any]) -> bool:
            try:
                self._native(inputs, seed)
            except torch.OutOfMemoryError:
                raise
            except Exception:
                # Foreign code, on inputs for which it was not written.
                return False
            return True

        probe = named(PROBE)
        _, changed = next(self.stress_inputs(drawn, seed, [probe]), (probe, drawn))
        if is_taken(changed):
            return frozenset()
        held = {i for i in range(len(drawn)) if not is_taken([*drawn[:i], changed[i], *drawn[i + 1 :]])}
        others = [drawn[i] if i in held else one for i, one in enumerate(changed)]
        return frozenset(held) if is_taken(others) else frozenset()

    def _leave_out(self, proposed: Stress, error: Exception) -> None:
        """Record that foreign code raised on inputs for which it was not written."""
        self.undefined[proposed.name] = f"{type(error).__name__}: {error}".partition("\n")[0][:100]

    def check(
        self,
        expected: Expectation | Glance | Sampled,
        outputs: Any,
        poison: float | None = None,
        explained: bool = True,
    ) -> Finding:
        """Whether `outputs` is right for the expectation's inputs; `poison` is what unwritten elements hold.

        Without `explained`, a refusal names no pattern, and costs no further runs of the reference.
        """
        fault = compare(expected.native, outputs)
        if fault is not None:
            return Finding(Status.INCORRECT, fault.reason, f"{fault.leaf}: {fault.message}", leaf=fault.leaf)
        if self._unsorted is not None:
            exact = expected.exact if isinstance(expected, Expectation) else dict(flatten(expected.native))
            outputs = self._unsorted.in_order(outputs, exact)
        if isinstance(expected, Sampled):
            finding = self._accepted(expected, outputs)
            if finding is not None:
                return finding
            whole = expected.whole()
            if whole is None:
                return Finding(Status.PASSED)
            expected = whole
        if isinstance(expected, Glance):
            finding = checks.fast(self.reference, expected.inputs, expected.native, outputs, self._fast)
            if finding is not None:
                return finding
            known = expectation.expect(
                self.reference, expected.inputs, expected.seed, self.allow, unrounded=self._unrounded
            )
            expected = replace(known, nearest=True)
        finding = checks.full(self.reference, expected, outputs, self._earlier if explained else None, poison)
        if finding.passed or not all_same(expected.native, outputs):
            return finding
        # Float64 may give another of several right answers, as of an eigenvector's two signs.
        return replace(finding, status=Status.PASSED, reason="", message="", leaf="")

    def check_together(self, expected: list[Glance], outputs: list[Any]) -> list[bool]:
        """Which outputs `check` would accept at a glance, told of all of them at once; the others are to be checked."""
        natives = [glance.native for glance in expected]
        return checks.fast_together(self.reference, expected[0].inputs, natives, outputs, self._fast)

    def _accepted(self, expected: Sampled, outputs: Any) -> Finding | None:
        """The finding of the few entries, if they pass and the whole is near enough to the reference's own output."""
        few, some = expected.few, expected.some
        finding = checks.full(self.reference, some, few.outputs(outputs), None, None)
        if not finding.passed:
            return None
        limits = {path: Fast.of(yard) for path, yard in some.yards.items()}
        near = checks.fast(self.reference, expected.inputs, expected.native, outputs, limits, some.left_out)
        return None if near is None else finding

    def _require_steady(self, expected: Expectation) -> None:
        """Require finite numbers, and the same ones again."""
        again = dict(flatten(self._native(expected.inputs, expected.seed)))
        dtype = self.reference.precision(expected.inputs)
        for path, native in flatten(expected.native):
            first, second = number(native, dtype), number(again[path], dtype)
            yard = expected.yards.get(path)
            if first is None or second is None or yard is None:
                if isinstance(native, torch.Tensor) and not torch.equal(native, again[path]):
                    raise InvalidReference("random", f"the reference's {path} differs from call to call")
                continue
            part = Part(first)
            difference = widened(part.of(second)) - widened(part.of(first))
            finite = torch.isfinite(difference)
            if not bool(finite.any()):
                raise InvalidReference("non_finite", f"the reference's {path} has no finite element")
            if rms(difference[finite]) > max(RANDOM_ROUNDINGS * yard.floor, RANDOM_SHARE * yard.scale.spread):
                raise InvalidReference(
                    "random", f"the reference's {path} differs from call to call by more than rounding"
                )


def _shapes(tree: Any) -> Shapes:
    """Of all tensors in it that have one."""
    return tuple(tensor.shape for tensor in tensors(tree) if not tensor.is_nested)


def _least(inputs: list[Any]) -> float:
    """The smallest of all floating numbers; less than all where there are none."""
    floating = [one for one in tensors(inputs) if one.is_floating_point() and one.numel() and not is_of_eight_bits(one)]
    return min((float(one.min()) for one in floating), default=-math.inf)
