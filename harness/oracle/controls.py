"""Candidates of known worth, made from the reference itself: what an audit expects a problem to refuse and to accept.

A control is a function of an expectation, since it may use what no candidate has. It answers None where it does not
apply to the problem, or where it comes out as the reference's own output, bit for bit; and SAME where that is so of
inputs that were left out, which may decide on other inputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.exact import ExactReference
from harness.oracle.expectation import Expectation
from harness.oracle.formats import TF32, calculable, format_of, next_lower, round_to
from harness.oracle.mistakes.best_few import BestFew
from harness.oracle.mistakes.linear_activations import LinearActivations
from harness.oracle.mistakes.linear_softmax import LinearSoftmax
from harness.oracle.mistakes.lookups import Lookups
from harness.oracle.mistakes.normalisers import ByMoments, OfAPart
from harness.oracle.mistakes.simpler import Lines, Simpler
from harness.oracle.mistakes.unshifted import Unshifted
from harness.oracle.mistakes.without_relu import FrozenRelu, WithoutRelu
from harness.oracle.oracle import Oracle
from harness.oracle.reorder import Reordered
from harness.oracle.slices import matrix, real
from harness.oracle.structure import all_same, compare, convert, flatten, rebuild, tensors
from harness.oracle.verdict import Finding

NOISE = 0.01
SAME = object()
# Wrong answers that larger weights tell of (Judge._sharpen), and all that take functions for simpler ones.
LINEAR: dict[str, type[Simpler]] = {
    "linear_softmax": LinearSoftmax,
    "linear_activations": LinearActivations,
    "softmax_by_moments": ByMoments,
    "softmax_of_a_part": OfAPart,
    "frozen_relu": FrozenRelu,
}
SIMPLER: dict[str, type[Simpler]] = {**LINEAR, "without_relu": WithoutRelu}
# Of a reference's lines, so many of each kind are tried alone.
MOST_LINES = 8
# Of the slices along an axis; and of how many axes.
LEFT_OUT, AXES = 0.25, 4
TILE = 16


@dataclass(frozen=True)
class Control:
    """`refuse` says what the verdict should be; `make` gives the outputs for an expectation's inputs. `by_form`: what
    does not apply to some inputs of a problem applies to none."""

    name: str
    refuse: bool
    make: Callable[[Expectation], Any | None]
    by_form: bool = False


@dataclass(frozen=True)
class Tried:
    """A control's verdicts: the set that refused it (empty: none did) with the finding (None: it was SAME on all), and
    whether that was right."""

    control: Control
    refused_on: str
    finding: Finding | None

    @property
    def as_it_should(self) -> bool:
        return self.finding is None or bool(self.refused_on) == self.control.refuse


def try_all(oracle: Oracle, controls: list[Control], sets: list[tuple[str, Expectation]]) -> Iterator[Tried]:
    """Each control that applies, against drawn and stress expectations, up to the first refusal. One that has been the
    reference's own output wherever it applied has no finding."""
    for control in controls:
        applies, finding = False, None
        for name, expected in sets:
            output = _made(control, expected)
            applies |= output is not None
            if output is None or output is SAME:
                continue
            # That a wrong answer is refused needs no explanation; that a right one is, does.
            finding = oracle.check(expected, output, explained=not control.refuse)
            # Before the next one is made.
            del output
            if not finding.passed:
                yield Tried(control, name, finding)
                break
        else:
            if applies:
                yield Tried(control, "", finding)


def _made(control: Control, expected: Expectation) -> Any | None:
    """Its outputs, or SAME; None also where the reference, which is foreign code, does not take what it is given."""
    try:
        return control.make(expected)
    except torch.OutOfMemoryError:
        raise
    except Exception:
        return None


def negative(reference: ExactReference, other: Any) -> list[Control]:
    """What must be refused. `other` is the reference's output for other drawn inputs of the same shapes."""
    dimensions = max((t.dim() for _, t in flatten(other) if isinstance(t, torch.Tensor)), default=0)
    made: dict[str, Callable[[Expectation], Any]] = {
        "zeros": lambda e: convert(e.native, torch.zeros_like),
        "constant": lambda e: convert(e.native, _constant),
        **{f"mean_of_axis_{d}": _mean_of_axis(d) for d in range(dimensions)},
        "earlier_output": lambda e: other,
        "input": _input,
        "one_element": lambda e: _one_element(e),
        "tile_unwritten": lambda e: _tile(e, other),
        "noise": lambda e: convert(e.native, _noisy),
        "lower_precision": lambda e: _lower(reference, e),
        "lower_inputs": lambda e: _lower(reference, e, rounded=False),
    }
    found = [Control(name, True, _different(make), name.startswith(("input", "lower_"))) for name, make in made.items()]
    # These may be the reference's own output on nearly all inputs, which is what is to be known.
    made = {f"part_of_axis_{d}": functools.partial(_part_of_axis, reference, d) for d in range(AXES)}
    made["best_few_of_strands"] = functools.partial(_best_few, reference)
    return [*found, *(Control(name, True, make, by_form=True) for name, make in made.items())]


def simpler(reference: ExactReference, expected: Expectation) -> list[Control]:
    """What must be refused, too: functions taken for simpler ones, all of a kind, and those of each line alone, since
    another line's, as the softmax of a classifier behind attention, would tell of all. Named `linear_softmax`, and
    `linear_softmax:12` for those at line 12."""
    lines = Lines(SIMPLER)
    try:
        reference.composed(expected.inputs, expected.seed, lines)
    except Exception:
        # As in `_made`, foreign code may not take it; and a fused reference never has its scores in memory.
        return []
    made: dict[str, Callable[[Expectation], Any]] = {}
    for name, kind in SIMPLER.items():
        found = list(lines.found[name])
        ways = {name: ""} if found else {}
        if len(found) > 1:
            ways |= {f"{name}:{at.rpartition(':')[2]}": at for at in found[:MOST_LINES]}
        made |= {
            title: functools.partial(_taken_for, reference, functools.partial(kind, at)) for title, at in ways.items()
        }
    return [Control(name, True, make, by_form=True) for name, make in made.items()]


def is_linear(name: str) -> bool:
    """Whether a control is one that larger weights tell of."""
    return name.partition(":")[0] in LINEAR


def careless(reference: ExactReference) -> list[Control]:
    """What is wrong on some inputs alone, if such ones can occur at all."""
    unshifted = _different(lambda e: reference.native(e.inputs, e.seed, mode=Unshifted()))
    return [Control("unshifted", True, unshifted, by_form=True)]


def positive(reference: ExactReference, compiled: bool = False) -> list[Control]:
    """What must be accepted; `compiled` adds torch.compile, which takes its time."""
    made: dict[str, Callable[[Expectation], Any]] = {
        "reference": lambda e: reference.native(e.inputs, e.seed),
        "float64_rounded": _rounded,
        "reordered_sums": lambda e: reference.native(e.inputs, e.seed, mode=Reordered()),
        "other_threads": lambda e: _other_threads(reference, e),
    }
    if compiled:
        made["compiled"] = lambda e: reference.native(e.inputs, e.seed, wrap=torch.compile)
    return [Control(name, False, make) for name, make in made.items()]


def _different(make: Callable[[Expectation], Any | None]) -> Callable[[Expectation], Any | None]:
    """`make`, but None where it gives the reference's own output."""

    def checked(expected: Expectation) -> Any | None:
        output = make(expected)
        return None if output is None or all_same(output, expected.native) else output

    return checked


def _constant(leaf: torch.Tensor) -> torch.Tensor:
    """Its mean everywhere; of a boolean or integer one, what comes first."""
    if not (leaf.is_floating_point() or leaf.is_complex()):
        return leaf.reshape(-1)[:1].expand(leaf.numel()).reshape(leaf.shape).clone()
    return torch.full_like(leaf, calculable(leaf).mean(dtype=_wide(leaf)).item())


def _mean_of_axis(dimension: int) -> Callable[[Expectation], Any]:
    def mean(leaf: torch.Tensor) -> torch.Tensor:
        if leaf.dim() <= dimension or not (leaf.is_floating_point() or leaf.is_complex()):
            return leaf
        average = calculable(leaf).mean(dimension, keepdim=True, dtype=_wide(leaf)).to(leaf.dtype)
        return average.expand_as(leaf).clone()

    return lambda expected: convert(expected.native, mean)


def _input(expected: Expectation) -> Any | None:
    """The first input with the shape and dtype of the only output."""
    if not isinstance(expected.native, torch.Tensor):
        return None
    like = (expected.native.shape, expected.native.dtype)
    given = (x for x in expected.inputs if isinstance(x, torch.Tensor) and (x.shape, x.dtype) == like)
    return next(given, None)


def _one_element(expected: Expectation) -> Any | None:
    """The last element of the first tensor leaf moved by the output's standard deviation, one rank or one truth."""
    leaves = dict(flatten(expected.native))
    for path, leaf in leaves.items():
        if not isinstance(leaf, torch.Tensor) or not leaf.numel():
            continue
        moved = calculable(leaf).clone(memory_format=torch.contiguous_format)
        last = moved.reshape(-1)[-1:]
        if path in expected.yards:
            scale = expected.yards[path].scale
            last += scale.spread or scale.size or 1.0
        elif leaf.dtype is torch.bool:
            last.logical_not_()
        else:
            last += 1
        return rebuild(expected.native, list({**leaves, path: moved.to(leaf.dtype)}.values()))
    return None


def _tile(expected: Expectation, other: Any) -> Any:
    """The last tile of each leaf as an earlier call left it."""
    stale = dict(flatten(other))

    def unwritten(path: str, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or stale[path].shape != leaf.shape or leaf.dim() == 0:
            return leaf
        out = real(leaf).clone(memory_format=torch.contiguous_format)
        matrix(out)[-TILE:, -TILE:] = matrix(stale[path])[-TILE:, -TILE:]
        return torch.view_as_complex(out) if leaf.is_complex() else out

    return rebuild(expected.native, [unwritten(path, leaf) for path, leaf in flatten(expected.native)])


def _noisy(leaf: torch.Tensor) -> torch.Tensor:
    """Each element off by one per cent of itself, give or take."""
    if not leaf.is_floating_point():
        return leaf
    generator = torch.Generator(leaf.device).manual_seed(1)
    noise = torch.empty_like(leaf, dtype=torch.float32).normal_(0.0, NOISE, generator=generator).add_(1)
    if leaf.dtype is torch.float64:
        return noise.double().mul_(leaf)
    return noise.mul_(calculable(leaf)).to(leaf.dtype)


def _lower(reference: ExactReference, expected: Expectation, rounded: bool = True) -> Any | None:
    """Inputs, parameters and, if `rounded`, the result in the format below the one that the reference computes in.

    An average hides what each of its terms was rounded to, but not what it was rounded to itself. PyTorch's
    convolutions may use TF32 by default; there, TF32 is no downgrade, whether the reference takes it or not.
    """
    levels = [yard.level for yard in expected.yards.values()] + [TF32] * bool(reference.permits)
    own = max(levels, key=lambda level: level.roundoff, default=format_of(reference.precision(expected.inputs)))
    lower = next_lower(own)
    if lower is None:
        return None
    output = reference.coarsened(expected.inputs, lower, expected.seed)
    if not rounded:
        return output
    return convert(output, lambda t: round_to(t, lower) if t.is_floating_point() or t.is_complex() else t)


def _part_of_axis(reference: ExactReference, dimension: int, expected: Expectation) -> Any | None:
    """What comes of the inputs without the first of their slices along a dimension, where that has the same form: a
    mean over a part, a state that forgets how it began."""
    length = max((x.shape[dimension] for x in tensors(expected.inputs) if x.dim() > dimension), default=0)
    gone = int(LEFT_OUT * length)

    def part(tensor: torch.Tensor) -> torch.Tensor:
        has_it = tensor.dim() > dimension and tensor.shape[dimension] == length
        return tensor.narrow(dimension, gone, length - gone) if has_it else tensor

    output = reference.native(convert(expected.inputs, part), expected.seed, mode=Lookups())
    if not gone or compare(expected.native, output) is not None:
        return None
    return SAME if all_same(output, expected.native) else output


def _best_few(reference: ExactReference, expected: Expectation) -> Any | None:
    """What comes of choosing the best of the best few of each strand, where the reference chooses several."""
    mode = BestFew()
    output = reference.native(expected.inputs, expected.seed, mode=mode)
    return output if mode.met else None


def _taken_for(reference: ExactReference, of: Callable[[], Simpler], expected: Expectation) -> Any | None:
    """What comes of the reference with some functions taken for simpler ones, where it has any of these."""
    mode = of()
    try:
        output = reference.composed(expected.inputs, expected.seed, mode)
    except torch.OutOfMemoryError:
        # A fused reference never has its scores in memory.
        return None
    return output if mode.met else None


def _rounded(expected: Expectation) -> Any:
    """The float64 result in the native dtypes."""

    def rounded(path: str, leaf: Any) -> Any:
        exact = expected.exact[path]
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if path in expected.yards and expected.yards[path].fills:
            exact = torch.where(exact.isinf(), real(leaf).to(exact), exact)
        if leaf.is_complex():
            exact = torch.view_as_complex(exact.contiguous())
        return exact.to(leaf.device, leaf.dtype)

    return rebuild(expected.native, [rounded(path, leaf) for path, leaf in flatten(expected.native)])


def _other_threads(reference: ExactReference, expected: Expectation) -> Any | None:
    """On the host, with one thread where there were several and several where there was one."""
    if any(t.is_cuda for _, t in flatten(expected.inputs) if isinstance(t, torch.Tensor)):
        return None
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if threads > 1 else 2)
    try:
        return reference.native(expected.inputs, expected.seed)
    finally:
        torch.set_num_threads(threads)


def _wide(leaf: torch.Tensor) -> torch.dtype:
    return torch.complex128 if leaf.is_complex() else torch.float64
