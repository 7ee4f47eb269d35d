"""A cast to 8-bit floats and back is rounding to a grid: part of the function, which no kernel may leave out."""

import pytest
import torch

from harness.oracle.exact import ExactReference
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
W = torch.randn(256, 128, generator=torch.Generator().manual_seed(2)) / 16


def plain(x, grid):
    return x.to(grid).to(x.dtype)


def per_tensor(x, grid):
    scale = x.abs().amax() / torch.finfo(grid).max
    return (x / scale).to(grid).to(x.dtype) * scale


def per_row(x, grid):
    scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / torch.finfo(grid).max
    return (x / scale).to(grid).to(x.dtype) * scale


def by_the_reciprocal(x, grid):
    """As `per_row`, with one division for each row."""
    most = torch.finfo(grid).max
    scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / most
    return (x * (1 / scale)).clamp(-most, most).to(grid).to(x.dtype) * scale


def by_hand(x, grid):
    """As `plain`, with the rounding by arithmetic."""
    bits, info = (3 if grid is E4M3 else 2), torch.finfo(grid)
    wide = x.float()
    _, exponent = torch.frexp(wide)
    step = torch.ldexp(torch.ones_like(wide), (exponent - 1).clamp_min(-6 if grid is E4M3 else -14) - bits)
    return ((wide / step).round() * step).clamp(info.min, info.max).to(x.dtype)


def in_float32(quantise):
    return lambda x, grid: quantise(x.float(), grid).to(x.dtype)


def left_out(x, grid):
    return x


def drawn(dtype, rows=128, seed=1):
    return torch.randn(rows, 256, generator=torch.Generator().manual_seed(seed)).to(dtype)


def judged(reference, x, kernels):
    """Whether each kernel passes on drawn inputs, and on all sets of hard ones that bind."""
    oracle = Oracle(Of(reference))
    sets = [oracle.expect([x]), *(expected for stress, expected in oracle.stress([x]) if stress.binding)]
    return [all(oracle.check(expected, kernel(*expected.inputs)).passed for expected in sets) for kernel in kernels]


TWINS = {
    plain: [by_hand, in_float32(plain)],
    per_tensor: [in_float32(per_tensor)],
    per_row: [by_the_reciprocal, in_float32(per_row), in_float32(by_the_reciprocal)],
}


def honest(quantise, dtype):
    # What a small number of float16 is divided by has no reciprocal there.
    return [twin for twin in TWINS[quantise] if twin is not by_the_reciprocal or dtype is not F16]


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
@pytest.mark.parametrize("grid", [E4M3, E5M2], ids=str)
@pytest.mark.parametrize("quantise", TWINS, ids=lambda f: f.__name__)
def test_a_quantiser_may_not_be_left_out(quantise, grid, dtype):
    x = drawn(dtype)
    twins = [lambda x, twin=twin: twin(x, grid) for twin in [quantise, *honest(quantise, dtype), left_out]]
    assert judged(lambda x: quantise(x, grid), x, twins) == [True] * (len(twins) - 1) + [False]


@pytest.mark.parametrize("dtype", [F32, BF16, F16], ids=str)
@pytest.mark.parametrize("grid", [E4M3, E5M2], ids=str)
@pytest.mark.parametrize("quantise", TWINS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("rows", [8, 128])
def test_nor_before_a_product(quantise, grid, dtype, rows):
    def multiplied(quantise):
        return lambda x: quantise(x, grid) @ W.to(x.dtype)

    def folded(x):
        """The scale behind the product."""
        scale = x.float().abs().amax(-1, keepdim=True).clamp_min(1e-12) / torch.finfo(grid).max
        return (((x / scale).to(grid).float() @ W.to(x.dtype).float()) * scale).to(x.dtype)

    twins = [multiplied(twin) for twin in [quantise, *honest(quantise, dtype)]] + [folded] * (quantise is per_row)
    found = judged(multiplied(quantise), drawn(dtype, rows), [*twins, multiplied(left_out)])
    assert found == [True] * len(twins) + [False]


@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_a_refusal_says_that_nothing_was_rounded(dtype):
    oracle, x = Oracle(Of(lambda x: per_row(x, E4M3) @ W.to(x.dtype))), drawn(dtype)
    assert oracle.check(oracle.expect([x]), x @ W.to(dtype)).reason == "mismatch:not_quantised"


def test_integers_are_a_grid_too():
    def quantised(x):
        scale = x.abs().amax(-1, keepdim=True) / 127
        return (x / scale).round() * scale

    for dtype in (F16, BF16):
        oracle, x = Oracle(Of(quantised)), drawn(dtype)
        expected = oracle.expect([x])
        assert oracle.check(expected, quantised(x)).passed
        assert oracle.check(expected, quantised(x.float()).to(dtype)).passed
        assert not oracle.check(expected, x).passed


@pytest.mark.parametrize("seed", range(6))
def test_a_number_on_the_other_side_is_right_in_a_whole_row(seed):
    """Of few rows behind a product, one number that is rounded the other way is in many elements."""
    generator = torch.Generator().manual_seed(seed)
    w = torch.randn(4096, 64, generator=generator)
    for _ in range(1000):
        x = torch.randn(4, 4096, generator=generator)
        right, other = per_row(x, E4M3), by_the_reciprocal(x, E4M3)
        if ((right - other).abs() > 1e-3).any():
            break
    oracle = Oracle(Of(lambda x: per_row(x, E4M3) @ w))
    expected = oracle.expect([x])
    assert oracle.check(expected, other @ w).passed
    assert not oracle.check(expected, x @ w).passed


def test_what_is_kept_in_eight_bits_runs_in_float64():
    weight = W.to(E4M3)
    reference = ExactReference(Of(lambda x, w: x @ w.to(x.dtype)))
    inputs = [drawn(F32), weight]
    exact = reference.exact(inputs, 0, reference.native(inputs, 0))
    assert exact.precision == "float64"
    assert torch.equal(exact.output, inputs[0].double() @ weight.double())


def test_bits_of_eight_bit_floats_are_the_same_in_float64():
    reference = ExactReference(Of(lambda x: x.to(E4M3).view(torch.uint8).float() @ W))
    exact = reference.exact([drawn(F32)], 0, reference.native([drawn(F32)], 0))
    assert exact.precision == "float64"


def test_a_cast_to_sixteen_bits_is_internal_precision():
    oracle, x = Oracle(Of(lambda x: (x.bfloat16().float() @ W).tanh())), drawn(F32)
    assert oracle.check(oracle.expect([x]), (x @ W).tanh()).passed
