"""Small rows err as others do where a lower precision is permitted, and are no reason to refuse by themselves."""

import functools

import pytest
import torch
import torch.nn.functional as F

from harness.oracle import exact
from harness.oracle.formats import TF32, round_to
from harness.oracle.oracle import Oracle
from harness.oracle.switches import Permitted
from tests.oracle.references import Of


def convolved(x, weight, bias):
    return F.relu(F.conv2d(x, weight, bias))


@pytest.fixture
def made(monkeypatch):
    """Inputs, and what to expect of them on a card whose convolutions may use TF32; of most channels hardly anything is
    above zero, and one has small weights."""
    monkeypatch.setattr(exact, "Permitted", functools.partial(Permitted, "cpu"))
    generator = torch.Generator().manual_seed(1)
    x, weight = (
        torch.randn(16, 32, 32, 16, generator=generator),
        torch.randn(64, 32, 1, 1, generator=generator) / 32**0.5,
    )
    bias = torch.full((64,), -2.5)
    weight[5] *= 1e-3
    bias[5] = 0
    inputs = [x, weight, bias]
    oracle = Oracle(Of(convolved))
    return oracle, oracle.expect(inputs), inputs


def in_tf32(inputs, factor):
    """Rounded in another way for each factor, as by another algorithm."""
    x, weight, bias = inputs
    sums = F.conv2d(round_to(x * factor, TF32), round_to(weight * factor, TF32)) / factor**2
    return F.relu(sums + bias[:, None, None])


@pytest.mark.parametrize("factor", [1.0, 1.11, 1.3, 1.7, 1.9])
def test_what_a_permitted_precision_makes_of_rows_that_are_nearly_zero(made, factor):
    oracle, expected, inputs = made
    finding = oracle.check(expected, in_tf32(inputs, factor))
    assert finding.passed, finding.message
    # As large as it is, in place of made nothing of.
    assert finding.error_ratio > 100


def test_a_channel_with_small_weights_keeps_its_own_measure(made):
    oracle, expected, inputs = made
    wrong = in_tf32(inputs, 1.3)
    wrong[:, 5] = 0
    assert not oracle.check(expected, wrong).passed


def test_an_error_in_a_row_that_no_rounding_makes_is_refused(made):
    oracle, expected, inputs = made
    wrong = in_tf32(inputs, 1.3)
    wrong[3, 7, 4] += 0.01
    assert not oracle.check(expected, wrong).passed
