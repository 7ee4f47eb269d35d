import pytest
import torch

from harness.oracle.formats import BFLOAT16, FLOAT16, FLOAT32, TF32, format_of, jitter, next_lower, round_to, smallest


def test_rounding_agrees_with_the_cast():
    x = torch.randn(10_000)
    assert torch.equal(round_to(x, BFLOAT16), x.bfloat16().float())
    assert torch.equal(round_to(x.double(), FLOAT32), x.double().float().double())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_rounding_stays_within_the_roundoff(dtype):
    x = torch.randn(10_000, dtype=torch.float64).to(dtype)
    lower = next_lower(format_of(dtype))
    assert lower is not None
    off = (round_to(x, lower).double() - x.double()).abs()
    assert 0 < (off / x.double().abs()).max() <= lower.roundoff


def test_what_is_no_number_comes_through():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0])
    # The carry of this NaN would reach the sign.
    x[0] = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32)
    assert torch.equal(round_to(x, TF32).nan_to_num(7), x.nan_to_num(7))
    assert torch.equal(jitter(x, 1, torch.Generator().manual_seed(0)).nan_to_num(7), x.nan_to_num(7))


def test_jitter_moves_by_units_in_the_last_place():
    x = torch.randn(1000)
    moved = jitter(x, 1, torch.Generator().manual_seed(0))
    steps = moved.view(torch.int32) - x.view(torch.int32)
    assert set(steps.tolist()) == {-1, 0, 1}


def test_what_is_conjugated_lazily_is_rounded_like_what_is_not():
    numbers = torch.randn(5, dtype=torch.complex64)
    rounded = round_to(numbers.conj(), BFLOAT16)
    assert torch.equal(rounded, round_to(numbers.conj().resolve_conj(), BFLOAT16))


def test_half_complex_numbers_have_the_digits_of_float16():
    assert format_of(torch.complex32) is FLOAT16
    assert smallest(torch.complex32) == smallest(torch.float16)
