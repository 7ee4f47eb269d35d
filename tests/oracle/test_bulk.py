"""A few far larger elements do not hide the others."""

import math

import pytest
import torch

from harness.oracle.oracle import Oracle
from harness.oracle.scale import scale_of
from tests.oracle.references import Of


def beside(factor, rest):
    """One element in 22, at random places, is `factor` times its input; the others are `rest` of theirs."""
    return lambda x: torch.where(x.abs() > 2, factor * x, rest(x))


def found(kernel, factor, dtype=torch.float32):
    """The findings of both checks on drawn inputs, where each row and column has elements that are far larger."""
    oracle, inputs = Oracle(Of(beside(factor, torch.sigmoid))), [torch.randn(512, 512, dtype=dtype)]
    output = beside(factor, kernel)(*inputs)
    return [oracle.check(expected, output) for expected in (oracle.expect(inputs), oracle.glance(inputs))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e12])
@pytest.mark.parametrize(
    "kernel", [lambda x: torch.full_like(x, 0.5), lambda x: 0.5 + 0.2 * x, lambda x: torch.sigmoid(x) + 0.02]
)
def test_what_is_wrong_beside_far_larger_elements_is_refused(kernel, factor, dtype):
    assert not any(finding.passed for finding in found(kernel, factor, dtype))


@pytest.mark.parametrize("factor", [1e3, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_way_to_the_same_numbers_passes(factor, dtype):
    full, fast = found(lambda x: torch.tanh(x / 2) / 2 + 0.5, factor, dtype)
    assert full.passed
    assert fast.passed


def test_the_refusal_says_which_elements():
    full, _ = found(lambda x: torch.sigmoid(x) + 0.02, 1e9)
    assert full.reason == "mismatch:bulk"
    assert "right at a few far larger elements, wrong at the others" in full.message
    assert full.evidence["share_wrong"] > 0.9


@pytest.mark.parametrize("output", [torch.randn(512, 512), torch.rand(512, 512), torch.randn(512, 512).relu()])
def test_usual_outputs_have_no_bulk(output):
    assert scale_of(output.double()).bulk == math.inf
