"""Where an output jumps, rounding decides about a few elements: either answer is right there, and nowhere else."""

import pytest
import torch

from harness.oracle.oracle import Oracle
from tests.oracle.references import Of


def in_two_parts(x):
    """The sums of rows in another order."""
    return x[:, ::2].sum(1) + x[:, 1::2].sum(1)


def expected_near_a_jump(jump, at=0.0):
    """The oracle, and what to expect of inputs for which two orders of summation jump differently, at one row, and none
    of the runs does by which limits are set."""
    oracle = Oracle(Of(lambda x: jump(x.sum(1))))
    for _ in range(1000):
        x = torch.randn(2048, 64)
        x[77, 0] -= x[77].sum() - at
        one, other = jump(x.sum(1)), jump(in_two_parts(x))
        # A sum of exactly zero is no side of it.
        if not torch.equal(one, other) and in_two_parts(x)[77] != at != x[77].sum():
            expected = oracle.expect([x])
            if expected.yards["output"].limits.norm < 1e-4 * expected.yards["output"].scale.spread:
                return oracle, expected
    raise AssertionError("no such inputs among so many")


def test_rounding_decides_about_a_sign():
    oracle, expected = expected_near_a_jump(torch.sign)
    x = expected.inputs[0]
    right = torch.sign(in_two_parts(x))
    finding = oracle.check(expected, right)
    assert finding.passed
    assert finding.evidence["decided_by_rounding"] == 1
    assert oracle.check(oracle.glance([x]), right).passed
    # A sum that rounds to zero has no sign.
    assert oracle.check(expected, torch.where(right == expected.native, right, 0.0)).passed
    # About no other element, nor for another value than those that it jumps between.
    wrong = right.clone()
    wrong[x.sum(1).argmax()] *= -1
    assert not oracle.check(expected, wrong).passed
    assert not oracle.check(expected, torch.where(right == expected.native, right, 0.5)).passed
    # And what a lower precision decides is no rounding.
    assert not oracle.check(expected, torch.sign(x.bfloat16().float().sum(1))).passed


@pytest.mark.parametrize("fill", [-torch.inf, -1e9])
def test_a_masked_element_may_be_a_fill_value_or_a_number(fill):
    def kept(y):
        return y.masked_fill(y < 0.5, fill)

    oracle, expected = expected_near_a_jump(kept, at=0.5)
    x = expected.inputs[0]
    one = kept(in_two_parts(x))
    assert oracle.check(expected, one).passed
    one[x.sum(1).argmin()] = 0.5
    assert not oracle.check(expected, one).passed
