import dataclasses

import numpy
import pytest
import torch
from torch import nn

from harness.oracle import rule
from harness.oracle.formats import FLOAT32, TF32, round_to
from harness.oracle.oracle import Oracle
from harness.oracle.rule import Facts, limit, limit_allowed, serial_error, tensor_core_error
from harness.oracle.stress import SETS
from tests.oracle.references import Of

# The product of seeds.md on an H200: float32's own error and TF32's, which is 175 times that.
GEMM = Facts(
    own=3.2e-6, base=3.2e-6, lowered=5.7e-4, composed=0.0, permitted=0.0, sums=1e-7, size=1.0, axis=1.0, tight=False
)


def test_the_split_products_pass_and_tf32_does_not():
    assert 12 * GEMM.base < limit(GEMM) < GEMM.lowered / 3


def test_a_product_so_long_that_tf32_is_near():
    near = dataclasses.replace(GEMM, lowered=30 * GEMM.base)
    assert 12 * GEMM.base < limit(near) <= near.lowered / 2


def test_where_precision_does_not_show_only_gross_errors_are_refused():
    assert limit(dataclasses.replace(GEMM, lowered=2 * GEMM.base)) == pytest.approx(rule.BROAD * GEMM.base)


def test_sixteen_bits_are_tight_but_for_the_composed_form():
    half = Facts(
        own=2.8e-4, base=2.8e-4, lowered=None, composed=0.0, permitted=0.0, sums=0.0, size=1.0, axis=1.0, tight=True
    )
    assert 1.9 * half.base < limit(half) < 6 * half.base
    assert limit(dataclasses.replace(half, composed=5e-3)) == pytest.approx(rule.COMPOSED * 5e-3)


def test_noise_of_a_per_cent_is_never_right():
    wild = dataclasses.replace(GEMM, base=1e-3, lowered=0.5)
    assert limit(wild) < 0.01
    # Two layers in bf16, of which rounding the inputs moves more than the reference errs.
    layers = Facts(own=2.3e-3, base=3.5e-3, lowered=None, composed=0, permitted=0, sums=0, size=1, axis=1, tight=True)
    assert 2 * layers.base <= limit(layers) < 0.01


def test_an_answer_must_depend_on_every_dimension():
    flat = dataclasses.replace(GEMM, axis=1e-4)
    assert limit(flat) < 1e-4
    unresolved = dataclasses.replace(GEMM, axis=2 * GEMM.base)
    assert limit(unresolved) == limit(GEMM)


def test_a_running_sum_may_err_with_the_root_of_its_length():
    assert serial_error(8192, 1.0) > 2 * 20
    assert serial_error(10**12, 1.0) == serial_error(rule.LONGEST, 1.0)
    assert serial_error(1, 1.0) == rule.SERIAL


def test_an_allowed_precision_loosens_the_limit_to_its_own_error():
    assert GEMM.lowered < limit_allowed(GEMM, GEMM.lowered) < 4 * GEMM.lowered


def test_split_products_on_tensor_cores_pass_up_to_a_length():
    """8192 terms err by 425 roundoffs of float32, and 65536 by 3400, which is nearly TF32's error."""
    roundoff = 2.0**-24
    assert 425 * roundoff < tensor_core_error(8192, 1.0) < GEMM.lowered / 4
    assert tensor_core_error(65536, 1.0) < GEMM.lowered / 4


def test_a_running_sum_of_squares_is_allowed_what_it_drops():
    terms = 1 << 18
    squares = numpy.random.default_rng(0).standard_normal((20, terms), dtype=numpy.float32) ** 2
    # NumPy adds up a cumulative sum one by one.
    exact = squares.sum(1, dtype=numpy.float64)
    lost = numpy.sqrt(numpy.mean((squares.cumsum(1, dtype=numpy.float32)[:, -1] / exact - 1) ** 2))
    assert rule.SERIAL * terms**0.5 * FLOAT32.roundoff < lost < serial_error(terms, FLOAT32.roundoff)


def one_by_one(a, b):
    """A product of matrices with one float32 accumulator for each element."""
    found = [[numpy.cumsum(row * column, dtype=numpy.float32)[-1] for column in b.numpy().T] for row in a.numpy()]
    return torch.from_numpy(numpy.array(found))


@pytest.mark.parametrize("largest", [1.0, 64.0, 512.0])
def test_a_long_running_sum_may_drop_what_a_large_first_number_makes_small(largest):
    """Also beside a reference that hardly errs itself."""
    terms, generator = 1 << 19, torch.Generator().manual_seed(0)
    rows, columns = 1 + torch.randn(2, 16, generator=generator) / 32
    a = torch.rand(16, terms, generator=generator) * rows[:, None]
    b = torch.rand(terms, 16, generator=generator) * columns
    a[:, 0] = b[0] = largest
    oracle = Oracle(Of(lambda a, b: (a.double() @ b.double()).float()))
    assert oracle.check(oracle.expect([a, b]), one_by_one(a, b)).passed


@pytest.mark.parametrize("turn", [0, 1])
def test_a_long_running_sum_may_drop_what_a_large_element_in_each_short_row_makes_small(turn):
    """Of two inputs that are equally large the rows of one are as long as the sum, and those of the other are not."""
    terms = 1 << 19
    oracle = Oracle(Of(lambda a, b: (a.double() @ b.double()).float()))
    drawn = [torch.rand(8, terms), torch.rand(terms, 8)]
    oracle.expect(drawn)
    proposed = next(one for one in SETS if one.name == "spike_at_an_end")
    ((_, expected),) = oracle.stress(drawn, 0, [dataclasses.replace(proposed, turn=turn)])
    assert oracle.check(expected, one_by_one(*expected.inputs)).passed


def test_a_long_running_sum_that_drops_what_sums_differ_by_is_refused():
    a, b = torch.rand(8, 1 << 20), torch.rand(1 << 20, 8)
    oracle = Oracle(Of(lambda a, b: (a.double() @ b.double()).float()))
    assert not oracle.check(oracle.expect([a, b]), one_by_one(a, b)).passed


@pytest.mark.parametrize("shape", [(8, 1 << 20), (1 << 20,)])
def test_long_sums_that_do_not_drop_their_terms_are_held_to_more(shape):
    """Of numbers about zero, and one alone: to what rounding does, not to what sixteen bits do."""
    x = torch.randn(shape)
    oracle = Oracle(Of(lambda x: (x if x.dim() > 1 else x * x).sum(-1)))
    expected = oracle.expect([x])
    y = x.bfloat16().float() if x.dim() > 1 else x * 1.0003
    assert not oracle.check(expected, (y if x.dim() > 1 else y * y).sum(-1)).passed


def test_equal_numbers_lose_no_more_than_is_allowed():
    numbers = numpy.random.default_rng(0).uniform(1, 2, 200).astype(numpy.float32)
    terms = 1 << 15
    lost = [
        abs(float(numpy.full(terms, one).cumsum(dtype=numpy.float32)[-1]) / (terms * float(one)) - 1) for one in numbers
    ]
    assert rule.drift(terms, FLOAT32.roundoff) / 2 < max(lost) < rule.drift(terms, FLOAT32.roundoff)


@pytest.mark.parametrize("shift", [0.5, 3.0])
def test_a_variance_in_one_pass_may_lose_what_its_squares_exceed_it_by(shift):
    """Running sums, of numbers with a mean; the allowance is no larger than a quarter of what TF32 does."""
    length = 1 << 16
    draw = torch.rand(4, length) - 0.5 + shift
    oracle = Oracle(nn.LayerNorm(length))
    expected = oracle.expect([draw])

    def running(x):
        return torch.from_numpy(numpy.cumsum(x.numpy(), -1, dtype=numpy.float32)[:, -1:].copy())

    mean = running(draw) / length
    variance = running(draw * draw) / length - mean * mean
    assert oracle.check(expected, (draw - mean) * torch.rsqrt(variance + 1e-5)).passed
    yard = expected.yards["output"]
    assert rule.serial_error(length, FLOAT32.roundoff) < yard.limits.norm <= yard.lowered / rule.DOWNGRADE * (1 + 1e-6)
    assert not oracle.check(expected, nn.LayerNorm(length)(round_to(draw, TF32)).detach()).passed


@pytest.mark.parametrize("length", [1 << 10, 1 << 16])
def test_equal_terms_may_round_one_way(length):
    """The exponentials of tiny numbers are all one, but for their last digits."""
    oracle, draw = Oracle(nn.Softmax(-1)), [torch.rand(4, length)]
    oracle.expect(draw)
    for stress, expected in oracle.stress(draw):
        if stress.demands == "absolute":
            e = (expected.inputs[0] - expected.inputs[0].amax(-1, keepdim=True)).exp().numpy()
            total = numpy.cumsum(e, -1, dtype=numpy.float32)[:, -1:]
            assert oracle.check(expected, torch.from_numpy(e / total)).passed, stress.name
