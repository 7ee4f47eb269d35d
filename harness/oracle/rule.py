"""From errors to a verdict. Every constant of the oracle's justice is here, with the reason for its value.

All errors are root mean squares. A candidate's error is compared with `base`, the error that a sound algorithm at the
problem's precision has on this very problem (`yardstick.py` measures it), and with `lowered`, the error that the
reference gets with its products in the next coarser format, or from inputs rounded to it where it has none.
`benchmarks/oracle_quality.py` measures such figures as are quoted here; those of tensor cores are an H200's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from harness.oracle.formats import FLOAT32, TF32

# 16-bit outputs, and references that compute in TF32: rounding of the output dominates, so honest kernels lie within
# 1 to 2.2 of the base (1.9 for attention with scores and probabilities stored in fp16), and bf16 in place of fp16 at
# 6 to 8, fp8 in place of bf16 at 16.
TIGHT = 3.0

# The composed form of attention, where the reference is a fused kernel, is honest, and scales before or after rounding.
COMPOSED = 2.0

# Float32: honest kernels lie between 1 (another order of summation), 12 (three TF32 products with high and low parts)
# and 20 to 50 (one running sum against a blocked one), while TF32 and bf16 lie at `lowered` or half of it when only
# one operand or one layer is rounded. So the limit is a quarter of `lowered` ...
DOWNGRADE = 4.0
# ... but no more than this many times the base: what errs more has no float32 reason to, even if TF32 is far away;
BROAD = 64.0
# and no less than this many, unless that reaches half of `lowered`.
HONEST = 16.0

# What moves or selects numbers rounds nothing, and its base is that of one rounding. Other forms of it (roundf,
# 0.625 x + 0.375 |x|) take a few, and a square by fast-math's logarithm up to 30; six bits left out are 65.
UNROUNDED = 32.0

# A plain running sum of n float32 numbers errs by 0.22 to 0.34 sqrt(n) roundoffs (uniform, normal; n to 1e6), where
# torch's own sum stays below 2 whatever n is. Longer ones than `LONGEST` no sound kernel leaves to one accumulator.
SERIAL = 0.5
LONGEST = 1 << 20
# Of squares, as in a variance, many are small against the last digit of a long sum, and are dropped: of n squares of
# normal numbers a share of 0.03 (n roundoffs)^1.5 is lost (n from 1e5 to 1e6), by PyTorch's own batch norm of
# channels-last data on one thread, too; of 2^19 positive products whose first is as large as all others, 0.05. The most
# is that of tensor cores, below; or so much of what the output varies by, if that is more and a small part of its size.
# Sums about zero are as large as they vary, and their terms drop nothing.
SQUARES, SQUARES_MOST, SMALL_PART = 0.065, 0.1, 1 / 8

# Where rounding goes one way, its errors add up: of n equal float32 numbers a running sum loses 0.11 n roundoffs in the
# mean and up to n/4, as the number is (n to 1e6), of numbers all near -128 up to n/14. On inputs that ask for sense
# alone, nothing is asked of an output that such a loss could hide.
DRIFT = 1 / 4
# Where several elements of a sum are large, by up to 768 times as on hard inputs, its small terms are dropped when they
# are less than half a roundoff of it: of products as soon as there are more than this.
HEAPED_PRODUCTS = 1 << 15
# Beside one that is far larger than all others together, each equal number may lose half a roundoff, always the same.
BESIDE_HUGE = 1 / 2

# The same share of error on drawn inputs and on all hard ones is a factor, from this many roundoffs on: constants that
# are written with seven digits stay below. In units of the share itself: how far apart shares may be (beside four
# standard deviations), and how large the rest of the error (half of it where tensor cores cut off 4096 products in a
# second layer, on all kinds of inputs alike). And the fewest sets that must resolve it.
FACTOR = 32.0
FACTOR_APART = 1 / 4
FACTOR_REST = 1 / 8
FACTOR_SETS = 4

# These are root mean squares over many elements; one alone goes further, to four times the measured figure in all.
LUCK = 2.0

# Tensor cores truncate as they add up: n products err by n/24 roundoffs of the result's size (all positive) to n/19
# (mixed), which split products at float32 accuracy inherit. Up to an eighth of TF32's roundoff, past which it buys
# nothing over TF32 and sums have to be taken in parts.
TENSOR_CORE = 1 / 12
TENSOR_CORE_MOST = TF32.roundoff / 8

# Errors that rows or columns of a product share (shared_errors.py), in roundings of the result's size, simulated by
# benchmarks/shared_errors.py for 1024 to 16384 products: running sums show none, tensor cores that cut off to 24 bits
# and operands split for them 0 to 7, a hundredth of what they lose in all (to 23 bits 14, which is past the norm's
# limit). One operand with fp16's digits shows 32 to 189 where numbers do not cancel, the more the fewer products,
# whatever it was scaled by before. How exact the reference is does not matter: what it loses is not shared.
SHARED = 12.0

# One per cent of noise is never right, however ill-conditioned the problem: half of that is the most, unless the
# reference errs as much itself, or `LUCK` roundings of the inputs do (two layers in bf16: 0.23 and 0.35 per cent).
NOISE = 0.005

# The mean of the output along one dimension errs by the variation along it. An answer must be nearer than this share
# of it, or it has not been shown to depend on that dimension. Where the reference hardly resolves the variation, with
# this many times its base (the most that an honest kernel needs) above that share, nothing can be asked.
AXIS = 0.6
RESOLVED = {True: 2.0, False: HONEST}

# Rows and elements: how much further the worst of them may go than the norm does, against the reference's own worst.
# An honest kernel's worst element of 1e8 is at 6 of its own root mean squares, as is the reference's.
SPREAD = 2.0
# What the reference's figures count as at the least: what rounding alone shows (0.23, 0.23, 1.0), with some room. The
# most for the worst element: of 200 fp16 GELUs that round each of their operations, 1 + erf(x) near zero among them,
# two showed 1.51 and 1.53, the others 1.35 at the most (each over SPREAD and TIGHT).
LEAST_SCALED, LEAST_ROW, LEAST_WORST = 0.25, 0.5, 2.0

# The signature of a lower precision: the error goes along with the one that the reference gets from such products.
# 0.3 is 19 standard deviations from chance at the least number of elements, and below the 0.7 that rounding of one
# operand of two still shows. It counts only for errors above the reference's own, where `lowered` is well above them.
SIGNATURE = 0.3
SIGNATURE_LEAST = 4096
SIGNATURE_ABOVE = 2.0
# Along a running sum errors change slowly, and those of few rows agree by chance: of six float32 sums along 4 rows of
# 32768 numbers two went along with those of TF32 inputs. So it has to be so many standard deviations from chance, too.
SIGNATURE_CHANCE = 5.0

# Where numbers are rounded to a grid on the way, as by a quantiser, an answer must not be what comes of the same
# numbers unrounded. By how far on the way from the right one to that it is: who leaves the rounding out is at 1.0,
# PyTorch itself at 0 to 0.34 (8-bit floats of bfloat16; each number on the other side is rounded by twice as much) and
# 0.48 (bfloat16 to integers). The limit is half-way between the reference's own and 1, and no less than this; beyond
# the second figure nothing can be told. And the fewest elements.
GRID, GRID_BLURRED, GRID_LEAST = 2 / 3, 0.75, 64
# Of inputs that are half-way between two numbers of the grid, all may be rounded the other way, which is as far on that
# way. But that is on the grid (0 by `Grid.off_grid`, and the noise of a precision more), and unrounded numbers are not
# (-1). Between the two.
OFF_GRID = 1 / 2

# Rounding to 16 bits errs less the smaller a number is; operands with eight bits leave errors that are as large
# everywhere. So in 16 bits the smallest of a product's elements, this share of all, may err by so many times what the
# reference's own runs show there, or what rounding its inputs once more costs there, or by its base, whichever is most.
# Of 32 honest kernels of which every operation rounds to bf16 (of benchmarks/justice.py) the worst shows 2.9 times the
# first, or else 1.4 times the second; simulated, int8 in place of bf16 shows 2.9 to 4.9 times the first where the
# second is small, and 2.5 times the second in one product of positive numbers; fp8 shows 16. Where one product is all
# that is added up, there is nothing to round on the way but one operand by a factor that is folded into it (0.82 to
# 0.87 times the second, simulated); weights alone in int8, as large as modules draw them, show 1.8 to 2.0 times
# (tests/oracle/test_eight_bits.py judges both).
SMALL_SHARE, SMALL, SMALL_MOVED, SMALL_LEAST = 0.2, 3.2, 2.0, 1 << 12
SMALL_MOVED_ALONE = 1.4

# A reference that errs by this many times more than float32 would computes in a lower precision than its dtype.
COARSE = 8.0

# Inputs moved by one unit in the last place move an output by no more than this many of its errors. Where they do,
# inputs moved by FURTHER units must move it by so many times more: the largest of four draws each differs by chance by
# less than a factor of four.
JUMP = 64.0
FURTHER, GROWS = 16, 4.0

# A constant of this size, this many times as large as the rest of an output, is a fill value: what saturates (a
# sigmoid, a clamp) ends at smaller numbers.
FILL_LEAST, FILL_FAR = 1e3, 2.0**10

# Where the spread of an output is FAR times the distance from the center within which most of its elements are, limits
# of the whole see nothing but the few others. Those within WIDTH such distances are then held to a limit of their own:
# a share of that distance, well below the error of an answer that has not been computed, or HONEST times what the
# reference's own runs show.
BULK_MOST, BULK_FAR, BULK_WIDTH, BULK_SHARE = 0.9, 16.0, 4.0, 0.05

# Above this share of the output's variation, the reference's own error leaves nothing to judge by.
MEANINGFUL = 0.1

# What is still an answer, as a share of the output's variation, on inputs where rounding itself is magnified.
SENSE = 0.5


@dataclass(frozen=True)
class Facts:
    """What the limit is set from: absolute errors, `size` and `axis` of the output (see `error.Scale`).

    `own` is the reference's error, `base` that of any sound algorithm; `composed`, `permitted` and `sums` are errors of
    kernels known to be honest: fused attention taken apart, TF32 where PyTorch's switches allow it, and other ways of
    adding up. `lowered` is None where the reference could not be run that way. `unrounded`: it does not round at all.
    """

    own: float
    base: float
    lowered: float | None
    composed: float
    permitted: float
    sums: float
    size: float
    axis: float
    tight: bool
    unrounded: bool = False


def serial_error(terms: int, unit: float, variation: float = 0.0) -> float:
    """The error allowed to a running sum of `terms`, where one rounding of the result costs `unit`, and results vary by
    `variation`.

    A variance in one pass is the difference of two such sums, which are 1 + mean^2/variance times as large as it.
    """
    terms = min(terms, LONGEST)
    in_roundoffs = unit / FLOAT32.roundoff
    most = max(TENSOR_CORE_MOST * in_roundoffs, SQUARES_MOST * variation)
    squares = min(SQUARES * (terms * FLOAT32.roundoff) ** 1.5 * in_roundoffs, most)
    return max(SERIAL * math.sqrt(terms) * unit, squares)


def drift(terms: int, unit: float) -> float:
    """What a running sum of `terms` may lose to rounding that goes one way, where one rounding costs `unit`."""
    return DRIFT * min(terms, LONGEST) * unit


def tensor_core_error(terms: int, size: float) -> float:
    """The error allowed to sums of `terms` float32 products on tensor cores, for results of that size."""
    return min(TENSOR_CORE * terms * FLOAT32.roundoff, TENSOR_CORE_MOST) * size


def apart(terms: int, unit: float, size: float, spread: float) -> float:
    """The error allowed to each element of a product by itself, of `terms` float32 products whose sums are of that
    `size` and vary by `spread`: what a running sum loses, and of what tensor cores cut off the part that differs from
    element to element."""
    return max(SERIAL * math.sqrt(min(terms, LONGEST)) * unit, tensor_core_error(terms, min(size, spread)))


def limit(facts: Facts) -> float:
    """The largest error that counts as rounding at the problem's precision."""
    if facts.tight:
        allowed = TIGHT * facts.base
    elif facts.unrounded:
        allowed = UNROUNDED * facts.base
    elif facts.lowered is None:
        allowed = HONEST * facts.base
    elif facts.lowered < HONEST * facts.base:
        # Lower precision hardly hurts on these inputs, so errors cannot tell it. Others, or the signature, must.
        allowed = BROAD * facts.base
    else:
        quarter = min(facts.lowered / DOWNGRADE, BROAD * facts.base)
        allowed = max(quarter, min(HONEST * facts.base, facts.lowered / 2))
    allowed = max(allowed, facts.sums, COMPOSED * facts.composed, TIGHT * facts.permitted)
    return _capped(allowed, max(facts.base, facts.composed, facts.permitted), facts)


def limit_allowed(facts: Facts, error: float) -> float:
    """The same when a lower precision is allowed with which the reference errs by `error`."""
    base = max(facts.base, error)
    return _capped(TIGHT * base, base, replace(facts, own=max(facts.own, error)))


def bulk_limit(distance: float, shown: float) -> float:
    """The largest error of the bulk of an output, most of which is within `distance` of its center; the reference's own
    runs err by `shown` there."""
    return max(BULK_SHARE * distance, HONEST * shown)


def _capped(allowed: float, base: float, facts: Facts) -> float:
    if base > MEANINGFUL * facts.size:
        # The reference is nearly all error: whoever errs a little more is not to blame.
        return allowed
    shown = max(facts.own, facts.composed, facts.permitted)
    allowed = min(allowed, max(NOISE * facts.size, TIGHT * shown, LUCK * base))
    along = AXIS * facts.axis
    return min(allowed, along) if along >= RESOLVED[facts.tight] * base else allowed
