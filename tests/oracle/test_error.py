import math

import pytest
import torch

from harness.oracle import slices
from harness.oracle.error import expected_errors, measure
from harness.oracle.scale import scale_of
from harness.oracle.slices import widened


def errors_of(got, exact, level=1e-6, native=None):
    scale = scale_of(exact)
    return measure(got, exact, scale, expected_errors(got.dtype, scale, level * scale.spread), native), scale


def test_a_constant_scores_one_whatever_the_offset():
    exact = torch.randn(100, 200, dtype=torch.float64) * 1e-3 + 5
    errors, scale = errors_of(torch.full((100, 200), float(exact.mean())), exact)
    assert errors.norm / scale.spread == pytest.approx(1, rel=1e-3)


def test_slices_make_no_difference(monkeypatch):
    exact = torch.randn(37, 123, dtype=torch.float64)
    got = (exact + 1e-5 * torch.randn_like(exact)).float()
    whole, scale = errors_of(got, exact)
    monkeypatch.setitem(slices.SLICE, "cpu", 50)
    cut, cut_scale = errors_of(got, exact)
    assert cut_scale.spread == pytest.approx(scale.spread, rel=1e-12)
    for name in ("norm", "scaled", "row", "worst"):
        assert getattr(cut, name) == pytest.approx(getattr(whole, name), rel=1e-9)


def test_a_large_row_does_not_hide_a_small_one():
    exact = torch.randn(200, 100, dtype=torch.float64) * torch.logspace(0, 6, 200, dtype=torch.float64)[:, None]
    got = exact.float()
    got[0] = 0
    errors, scale = errors_of(got, exact)
    assert errors.norm / scale.spread < 1e-6
    assert errors.row > 1e5


def test_a_large_column_or_outlier_does_not_hide_an_element():
    exact = torch.randn(200, 100, dtype=torch.float64)
    exact[:, 7] *= 1e6
    exact[11, 13] = 1e9
    got = exact.float()
    got[5, 5] *= 1.01
    errors, scale = errors_of(got, exact)
    assert errors.norm / scale.spread < 1e-6
    assert errors.worst > 100


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_wrong_unless_the_reference_has_it(bad):
    exact = torch.randn(10, 100, dtype=torch.float64)
    got, native = exact.float(), exact.float()
    got[3, 4] = bad
    assert errors_of(got, exact)[0].broken == 1
    native[3, 4] = bad
    assert errors_of(got, exact, native=native)[0].broken == 0
    exact[3, 4] = bad
    assert errors_of(got, exact)[0].broken == 0
    assert errors_of(exact.nan_to_num(0.0, 0.0, 0.0).float(), exact)[0].broken == 1


def test_an_overflow_of_the_dtype_may_be_infinite():
    exact = torch.randn(10, 100)
    exact[0, 0] = 1e6
    assert errors_of(exact.half(), exact)[0].broken == 0


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 1), (100_000,), (2, 3, 4, 5), (70, 70)])
def test_any_shape(shape):
    exact = torch.randn(shape, dtype=torch.float64)
    errors, scale = errors_of(exact.float(), exact)
    assert errors.norm <= 1e-7 * scale.size
    assert scale.constant == (exact.numel() == 1)


def test_a_constant_output_has_its_size_for_a_scale():
    scale = scale_of(torch.full((50, 50), 0.125, dtype=torch.float64))
    assert scale.constant
    assert scale.spread == pytest.approx(0.125)
    assert scale_of(torch.zeros(50, 50)).size == 0


def test_variation_along_the_flattest_dimension():
    exact = torch.randn(64, 1, 64, dtype=torch.float64) + 0.01 * torch.randn(64, 64, 64, dtype=torch.float64)
    assert scale_of(exact).axis == pytest.approx(0.01, rel=0.05)


def test_complex_numbers_are_pairs():
    exact = torch.randn(20, 20, dtype=torch.complex128)
    errors, _ = errors_of(exact.to(torch.complex64), widened(exact))
    assert errors.norm < 1e-7


@pytest.mark.parametrize("others", [1.0, 1e-15, 1e15])
@pytest.mark.parametrize("largest", [1e20, 1e25, 3e38, math.inf])
def test_float32_is_measured_as_float64_is_beside_one_number_whose_square_is_infinite(largest, others):
    exact = torch.randn(64, 4096, dtype=torch.float64) * others
    exact[3, 5] = largest
    exact = exact.float().double()
    scale, narrow = scale_of(exact), scale_of(exact.float())
    for name in ("spread", "size", "level"):
        assert getattr(narrow, name) == pytest.approx(getattr(scale, name), rel=1e-5)
    got = exact.float() * (1 + 1e-6)
    found = [
        measure(got, one, its, expected_errors(torch.float32, its, 1e-7 * its.spread))
        for one, its in ((exact, scale), (exact.float(), narrow))
    ]
    assert found[1].norm == pytest.approx(found[0].norm, rel=0.2)
    # Rows that are nothing beside float32's roundoff of the whole are something beside float64's.
    assert math.isfinite(found[1].worst)
