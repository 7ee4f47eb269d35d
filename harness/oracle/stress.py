"""Inputs beyond the drawn ones, made from them: what a kernel that is right for one kind of numbers gets wrong.

Only floating tensors change; indices, labels, masks, shapes and scalars stay, and so does what the inputs promise. Each
set is a proposal: whether the reference is defined and meaningful on it is for `Oracle.stress` to find out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from harness.oracle import copies, strands
from harness.oracle.choices import Chosen
from harness.oracle.promises import NOTHING, Promises


@dataclass(frozen=True)
class Stress:
    """A named set of inputs.

    `demands` is what a kernel is held to: the same `rounding` as on drawn inputs; `absolute`, rounding too where
    the reference's output scales with the inputs, elsewhere no larger errors than on drawn inputs; `sense`, an
    error below half of the output's variation, where even sound algorithms differ by far more than rounding;
    `wide`, rounding in float32 and wider and sense in 16 bits; `heaped`, the same but for what a running sum may
    lose where it meets several large elements on its way (`Oracle.stress`); `strewn`, rounding, but as `heaped` for a
    variance, in which all others of a row are the square of its mean; or `growth`, the same where the output
    grows as a power of the inputs, sense where it stays as it is, and nothing elsewhere; or `sense_in_rows`, sense
    and in float32 and wider an error below half of each row's size, too, since one row of thousands hides in the
    rest; or `equals`, rounding where it matters to the reference which numbers are equal, `sense_in_rows` elsewhere.
    `binding` sets refuse a candidate; the others, which honest kernels may well not handle, warn.
    `largest_only` leaves all floating tensors but the largest as they were drawn; `turn` tells one of several such.
    Sets are for references of the kind `only`, or not for those of the kind `never`: `lengths.Longest.kinds`; `few`
    numbers as outputs; `whole`, these or a sum over all of an input; `choosing`, several numbers chosen by their order.
    `finite` ones are for those that give finite numbers on them, and `half` ones for inputs in float16. A `narrow` set
    changes one row or one element of all, one `in_rows` those rows that numbers are chosen from. Of references of the
    kind `first` it tells what no other does, so that it comes among the first; `recurrent` ones have such a module,
    and to those that are `comparing` it matters which numbers are equal. One that goes `across` inputs puts rows of one
    into others.
    """

    name: str
    make: Callable[[torch.Tensor, torch.Generator], torch.Tensor]
    demands: Literal[
        "rounding", "absolute", "wide", "heaped", "strewn", "growth", "sense", "sense_in_rows", "equals"
    ] = "rounding"
    binding: bool = True
    largest_only: bool = False
    only: str = ""
    never: str = ""
    finite: bool = False
    half: bool = False
    narrow: bool = False
    in_rows: bool = False
    first: str = ""
    across: bool = False
    turn: int = 0

    @property
    def title(self) -> str:
        """The name, and of sets that change one input in its turn, which turn."""
        return f"{self.name}, turn {self.turn}" if self.largest_only else self.name

    def along(self, chosen: Collection[Chosen]) -> Stress:
        """The set for a reference of which this is chosen by order."""
        return replace(self, make=strands.together(chosen)) if self.in_rows else self

    def suits(self, kinds: frozenset[str]) -> bool:
        """Whether the set is for references of these kinds."""
        return (not self.only or self.only in kinds) and self.never not in kinds

    def inputs(self, drawn: list[Any], seed: int, promises: Promises = NOTHING) -> list[Any]:
        """New inputs from drawn ones, which stay as they are. Every tensor has its own draws from `seed`.

        Tensors without a change, because of the `promises` or the set, are the drawn ones themselves.
        """
        generators: dict[torch.device, torch.Generator] = {}
        earlier: list[torch.Tensor] = []

        def make(tensor: torch.Tensor) -> torch.Tensor:
            device = tensor.device
            generator = generators.setdefault(device, torch.Generator(device).manual_seed(seed))
            if not self.across:
                return self.make(tensor, generator)
            earlier.append(tensor)
            return copies.of_another(tensor, earlier[:-1], generator)

        return promises.changed(drawn, make, self.turn if self.largest_only else None)


# The kind of references that choose several numbers by their order.
CHOOSING = "choosing"
RECURRENT = "recurrent"
# The kind to which it matters which numbers are equal.
COMPARING = "comparing"
# The same numbers in another order.
ROLLED = "rolled"
# The same numbers, some of them below zero.
SIGNS = "signs"
# Elements that are put in order together.
AT_ONCE = 1 << 26
# Of the power of two that huge inputs are scaled by, and of those of many layers, each of which may take a quarter of
# their size or less: so far that a product of three is still within float32.
HUGE, HUGEST = 20, 40
# In a row that is dealt out, the largest so many numbers lie in one residue class of their places.
HAND = 64
# Of a sequence, so many at least.
FEW_STEPS = 8
# Elements of which each alone is far more than rounding of their sum, in tensors of many times as many.
MANY = 1024


def _scaled(power: int) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    # Powers of two: the digits stay, so a reference that is homogeneous errs the same.
    return lambda tensor, _: tensor * 2.0**power


def _far_up(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Scale one input only, so that a product of two does not leave float16's short range."""
    return tensor * (32.0 if tensor.dtype is torch.float16 else 128.0)


def _below(depth: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Below minus `depth`; in 16 bits below -128, where steps of one or less are left."""

    def make(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
        return -(tensor.abs() + (depth if torch.finfo(tensor.dtype).bits > 16 else min(depth, 128.0)))

    return make


def _in_one_row(
    change: Callable[[torch.Tensor, torch.Generator], torch.Tensor],
) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """`change` in one row of all, drawn anew: who looks at some rows to find out if a call is a hard one sees none."""

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() == 0:
            return tensor
        rows = tensor.numel() // tensor.shape[-1]
        drawn = torch.randint(rows, (), generator=generator, device=tensor.device)
        is_it = torch.arange(rows, device=tensor.device).view(*tensor.shape[:-1], 1) == drawn
        return torch.where(is_it, change(tensor, generator), tensor)

    return make


def _signs(power: int = 0) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """Random signs: sums of positive numbers, in which errors drown, become sums of mixed ones; and what holds on one
    side of zero has to hold on the other. Scaled by a power of two."""

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        coin = torch.randint(0, 2, tensor.shape, generator=generator, device=tensor.device, dtype=torch.int8)
        return torch.where(coin == 0, tensor, -tensor) * 2.0**power

    return make


def _constant_rows(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return tensor if tensor.dim() == 0 else tensor[..., :1].expand_as(tensor).contiguous()


def _dominant(ends: bool, times: float, short: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """One element in each row `times` its largest (in float16 `short` times), at a random place or one of its `ends`.

    A sum is then that element, so what it was rounded to shows, as does a tail that was cut off.
    """

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() == 0:
            return tensor
        length, shape = tensor.shape[-1], (*tensor.shape[:-1], 1)
        place = torch.randint(2 if ends else length, shape, generator=generator, device=tensor.device)
        if ends:
            place = place * (length - 1)
        value = tensor.gather(-1, place)
        largest = tensor.abs().amax(-1, keepdim=True)
        # The digits are the element's own: a power of two would survive any rounding.
        factor = short if tensor.dtype is torch.float16 else times
        value = torch.where(value < 0, -1.0, 1.0) * (largest + value.abs()) * factor
        return tensor.scatter(-1, place, value.to(tensor.dtype))

    return make


def _past_squares(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One element in each row between 512 and 1024, whose square float16 does not hold. Its digits are the element's
    own."""
    if tensor.dim() == 0:
        return tensor
    place = torch.randint(tensor.shape[-1], (*tensor.shape[:-1], 1), generator=generator, device=tensor.device)
    value, largest = tensor.gather(-1, place), tensor.abs().amax(-1, keepdim=True)
    share = torch.where(largest > 0, value.abs() / largest, 0.0)
    return tensor.scatter(-1, place, (torch.where(value < 0, -512.0, 512.0) * (1 + share)).to(tensor.dtype))


def _one_of_all(at_the_end: bool, larger: float = 32.0) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """One element of all so large that a sum over all of them is that element, in float16 at least the largest: the
    last one, or one anywhere.

    In a row's spike the end of all rows drowns, and a few of a million elements are less than a running sum loses. And
    who reads a part of the elements, since the mean or the largest of that is next to any other's, sees in his part of
    every other set that it is a hard one. `larger` by so many times than all others together.
    """

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() == 0 or (at_the_end and tensor.dtype is torch.float16):
            return tensor
        changed = tensor.clone(memory_format=torch.contiguous_format)
        drawn = torch.randint(tensor.numel(), (1,), generator=generator, device=tensor.device)
        place = torch.full_like(drawn, tensor.numel() - 1) if at_the_end else drawn
        value, largest = changed.view(-1)[place], tensor.abs().amax()
        times = 32.0 if tensor.dtype is torch.float16 else larger * tensor.numel()
        changed.view(-1)[place] = torch.where(value < 0, -1.0, 1.0).to(tensor.dtype) * (largest + value.abs()) * times
        return changed

    return make


def _many_of_all(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """A thousand elements of all, so large that a sum over all of them is theirs, and loses nothing by losing all
    others. Who takes a part of the elements for all, however it is chosen, meets another share of these."""
    if tensor.dim() == 0 or tensor.numel() < MANY * HAND:
        return tensor
    changed = tensor.clone(memory_format=torch.contiguous_format)
    places = torch.randint(tensor.numel(), (MANY,), generator=generator, device=tensor.device)
    value, largest = changed.view(-1)[places], tensor.abs().amax()
    times = 32.0 if tensor.dtype is torch.float16 else 2.0**22 * tensor.numel() / MANY
    changed.view(-1)[places] = torch.where(value < 0, -1.0, 1.0).to(tensor.dtype) * (largest + value.abs()) * times
    return changed


def _held(dimension: int) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    """After a quarter of the slices along a dimension all are the last one, and large. Gates are wide open or shut from
    there on, so that a state which forgets soon otherwise keeps what it was; who takes the last steps alone has none.
    In one entry of the batch: few numbers of an input do not tell who is careful with such.
    """

    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() < 3 or tensor.shape[dimension] < FEW_STEPS:
            return tensor
        changed, length = tensor.clone(memory_format=torch.contiguous_format), tensor.shape[dimension]
        entry = int(torch.randint(tensor.shape[1 - dimension], (1,), generator=generator, device=tensor.device))
        its = changed.narrow(1 - dimension, entry, 1)
        last = its.narrow(dimension, length - 1, 1) * 16
        rest = its.narrow(dimension, length // 4, length - length // 4)
        rest.copy_(last.expand_as(rest))
        return changed

    return make


def _zeros(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    return torch.zeros_like(tensor)


def _one_hot(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.dim() == 0:
        return tensor
    place = torch.randint(tensor.shape[-1], (*tensor.shape[:-1], 1), generator=generator, device=tensor.device)
    return torch.zeros_like(tensor).scatter(-1, place, tensor.gather(-1, place))


def _sorted(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """In ascending order; every other row is then dealt out: its largest numbers are no neighbours, but equally far
    apart, by a power of two. Who looks for the largest in parts of a row misses some in one or the other."""
    if tensor.dim() == 0:
        return tensor
    length = tensor.shape[-1]
    apart = math.gcd(length, 1 << 62)
    while apart > 1 and length // apart < HAND:
        apart //= 2
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    rows, made = tensor.reshape(-1, length), result.view(-1, length)
    # A few rows at once: where numbers come from is twice as large as they are. An even number, so that others stay
    # the other ones.
    step = 2 * max(1, AT_ONCE // (2 * max(1, length)))
    for some, into in zip(rows.split(step), made.split(step), strict=True):
        ordered = some.sort(-1).values
        into.copy_(ordered)
        into[1::2] = ordered[1::2].unflatten(-1, (apart, -1)).transpose(-1, -2).flatten(-2)
    return result


def _neighbours(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Numbers just above one, two units in the last place apart, in random order; no two of a row are equal, nor of a
    small tensor. Who orders them by most of their digits gets them in another order."""
    room = 1 / (2 * torch.finfo(tensor.dtype).eps)
    form = next((form for form in ((1, tensor.numel()), (-1, tensor.shape[-1])) if form[1] < room), None)
    if form is None or tensor.numel() == 0:
        return tensor
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device, dtype=torch.float64)
    steps = drawn.reshape(form).argsort(-1).double().mul_(2 * torch.finfo(tensor.dtype).eps).add_(1.0)
    return steps.to(tensor.dtype).reshape(tensor.shape)


def _about_one(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Near one, a sixteenth of a standard deviation of what was drawn: a product of thousands is still a number."""
    away = tensor.double() - tensor.double().mean()
    return (1 + away / (16 * away.square().mean().sqrt()).clamp_min(torch.finfo(torch.float64).tiny)).to(tensor.dtype)


def _unchanged(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """What a set that goes across inputs makes of one alone."""
    return tensor


def _rolled(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Batch entries in another order: what was right by position is not."""
    return tensor if tensor.dim() == 0 else tensor.roll(1, 0)


def _tiny(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Scaled by a power of two to where float16 has nothing left, or to the lower end of its own range.

    No further: what honest kernels add to a denominator for safety, 1e-12 as a rule, must not matter.
    """
    info = torch.finfo(tensor.dtype)
    power = {torch.float16: -9, torch.float64: -400}.get(tensor.dtype, -24)
    return tensor * 2.0**power if info.bits >= 16 else tensor


def _subnormal(tensor: torch.Tensor, _: torch.Generator) -> torch.Tensor:
    """Scaled to subnormal numbers, which fast-math flushes to zero."""
    power = {torch.float16: -16, torch.float64: -1030}.get(tensor.dtype, -130)
    return tensor * 2.0 ** (power / 2) * 2.0 ** (power / 2)


def _special(value: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    def make(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if tensor.dim() == 0:
            return tensor
        place = torch.randint(tensor.shape[-1], (*tensor.shape[:-1], 1), generator=generator, device=tensor.device)
        return tensor.scatter(-1, place, value)

    return make


# A 16-bit score of 100 is known to 0.06 (fp16) or 0.5 (bf16), and the exponential of it accordingly: honest kernels
# that store scores differ where numbers are large. Equal or sorted terms make a running sum's errors add up instead
# of cancelling, and a variance of zero shows nothing but rounding. Where a sum of squares goes over many rows with one
# large element each, the rest of a row is less than its last digit, and is lost.
SETS = (
    # Neither sign's moderate numbers are few: an exponential's tails are there, up to 8 and up to 16 of what was drawn.
    Stress("signs_up", _signs(3), "wide"),
    Stress("signs_far_up", _signs(4), "wide"),
    # Softmax through a logarithm rounds sums as large as its inputs, which no rounding of the inputs would show.
    Stress("scaled_far_up", _far_up, "sense", largest_only=True),
    # Past 65504, where float16 ends, and past what stands for infinity in a kernel. Leaves float16's range itself.
    Stress("huge_above", lambda tensor, _: tensor.abs() * 2.0**HUGE, "growth"),
    Stress("huge_below", lambda tensor, _: -tensor.abs() * 2.0**HUGE, "growth"),
    # Where each of many layers leaves less of its inputs, what the first ones made of them is nothing beside the biases
    # of the last.
    Stress("hugest", _scaled(HUGEST), "growth", largest_only=True, only="deep"),
    # Numbers below one have a product of zero, those above it one that is infinite.
    Stress("about_one", _about_one, "sense", largest_only=True, only="multiplied"),
    # The exponential less one of a small number is right to the one's last digit and no more.
    Stress("scaled_down", _scaled(-7), "absolute"),
    Stress(SIGNS, _signs()),
    # Every element on one side of zero, whatever was drawn: a maximum that starts from zero is wrong.
    Stress("negative", lambda tensor, _: -tensor.abs(), "wide"),
    # And far from it: where a maximum of zero, or of -1000, was subtracted, every exponential is zero. A variance in
    # one pass, which is the difference of two squares, has nothing left of it at -4096.
    Stress("far_below", _below(128.0), "sense", largest_only=True, only="centred"),
    Stress("furthest_below", _below(4096.0), "sense", largest_only=True, never="centred"),
    Stress("one_row_far_up", _in_one_row(_far_up), "sense_in_rows", largest_only=True, narrow=True),
    Stress(
        "one_row_far_below", _in_one_row(_below(128.0)), "sense_in_rows", largest_only=True, only="centred", narrow=True
    ),
    Stress(
        "one_row_furthest_below",
        _in_one_row(_below(4096.0)),
        "sense_in_rows",
        largest_only=True,
        never="centred",
        narrow=True,
    ),
    Stress("constant_rows", _constant_rows, "sense"),
    # A product of two such elements must stay within float16's short range.
    Stress("dominant", _dominant(False, 32, 8), "heaped"),
    # Of numbers in [0, 1), too, one that is further from the others than float32's exponential reaches, which is 88. Of
    # one input only: two rows with such an element at the same place have a difference that is far below either.
    Stress("spike", _dominant(False, 256, 32), "heaped", largest_only=True),
    Stress("spike_at_an_end", _dominant(True, 256, 32), "heaped", largest_only=True),
    # A kernel that squares before it widens has infinity there. What is stored in between, as scores are, still fits.
    Stress("past_squares", _past_squares, "heaped", largest_only=True, half=True),
    Stress("last_of_all", _one_of_all(True), "sense", largest_only=True, narrow=True),
    Stress("one_of_all", _one_of_all(False), "sense", largest_only=True, narrow=True),
    # So large that a running sum loses nothing by losing all others. An average over everything, as a loss is, hides
    # what each of its products was rounded to, but not what this number was.
    Stress(
        "one_huge",
        _one_of_all(False, 2.0**22),
        "growth",
        largest_only=True,
        only="few",
        never="transformed",
        narrow=True,
    ),
    Stress("many_of_all", _many_of_all, "strewn", largest_only=True, only="whole", never="transformed"),
    Stress("held", _held(1), "heaped", largest_only=True, first=RECURRENT),
    Stress("held_along_the_first_axis", _held(0), "heaped", largest_only=True, first=RECURRENT),
    # What divides by a row's length has an eps for it, or divides zero by zero, as the kernel then may.
    Stress("one_row_of_zeros", _in_one_row(_zeros), "sense_in_rows", largest_only=True, finite=True, narrow=True),
    Stress("one_hot", _one_hot, "sense"),
    Stress("sorted", _sorted, "sense"),
    # Some equal numbers among others, which drawn ones never are: a copy may be left out, masked, counted, or found.
    Stress("copies_of_rows", copies.of_slices(-2), "equals", first=COMPARING),
    Stress("copies_of_entries", copies.of_entries, "equals", first=COMPARING),
    Stress("some_equal", copies.within_rows, "equals", first=COMPARING),
    Stress("rows_of_another", _unchanged, "equals", only=COMPARING, first=COMPARING, across=True),
    # The same numbers in another order. In which strands a kernel deals its rows, a few rows may not tell.
    Stress("in_one_strand", strands.together(()), largest_only=True, only=CHOOSING, in_rows=True),
    Stress("neighbours", _neighbours, largest_only=True, only=CHOOSING),
    Stress(ROLLED, _rolled),
    Stress("tiny", _tiny, "absolute"),
    Stress("subnormal", _subnormal, "sense", binding=False),
    Stress("minus_infinity", _special(-float("inf")), "sense", binding=False, never="lapack"),
    Stress("infinity", _special(float("inf")), "sense", binding=False, never="lapack"),
    Stress("nan", _special(float("nan")), "sense", binding=False, never="lapack"),
)


def named(name: str) -> Stress:
    """The set of that name."""
    (found,) = (one for one in SETS if one.name == name)
    return found
