"""An answer that lacks a part of what each element is by itself, where 16-bit rounding would hide that."""

import pytest
import torch
from torch import nn

from harness.oracle import left_out
from harness.oracle.oracle import Oracle

TERMS, SIZE = 2048, 320


class Product(nn.Module):
    def forward(self, a, b):
        return a @ b


def operands():
    return [torch.rand(SIZE, TERMS).bfloat16(), torch.rand(TERMS, SIZE).bfloat16()]


def of_a_part(a, b, share):
    """Rows', columns' and the whole's sums of all terms, and of the rest a share of the terms."""
    a, b = a.double() - 0.5, b.double() - 0.5
    some = int(share * TERMS)
    rest = a[:, :some] @ b[:some] + a.sum(1, keepdim=True) / 2 + b.sum(0) / 2 + TERMS / 4
    return rest.bfloat16()


def verdicts(share):
    """Of the full check, the fast one, and that of several outputs together."""
    oracle = Oracle(Product())
    oracle.expect(operands())
    given = operands()
    got, expected, glance = of_a_part(*given, share), oracle.expect(given), oracle.glance(given)
    full = oracle.check(expected, got)
    return full, oracle.check(glance, got, explained=False).passed, oracle.check_together([glance] * 2, [got, got])


def test_a_third_of_the_terms_is_missed_though_three_roundings_are_more():
    full, fast, together = verdicts(2 / 3)
    assert (full.reason, fast, together) == ("mismatch:part_left_out", False, [False, False])
    assert "is missing; rounding takes no part of it" in full.message


def test_whoever_adds_up_all_of_them_is_right():
    for _ in range(5):
        full, fast, together = verdicts(1.0)
        assert full.passed, full.message
        assert fast
        assert together == [True, True]


@pytest.mark.parametrize("noise", [0.1, 1.0, 5.0, 100.0])
def test_noise_is_no_part_however_large(noise):
    true = torch.randn(4, 200, 300)
    found = left_out.share(true + noise * torch.randn(4, 200, 300), true, true)
    assert not found.beyond(0.0).any()
    lacking = left_out.share(0.5 * true + noise * torch.randn(4, 200, 300), true, true)
    assert lacking.beyond(0.0).all() == (noise < 100.0)


def test_a_few_elements_far_larger_than_all_others_tell_nothing():
    true = torch.randn(1, 100, 100)
    true[0, 3, 5] = 1e6
    got = true.clone()
    got[0, 3, 5] = 8e5
    assert not left_out.share(got, true, true).beyond(0.0).any()


def test_neither_do_rows_and_columns_alone():
    true = torch.randn(1, 100, 100)
    got = true + torch.randn(1, 100, 1) + torch.randn(1, 1, 100)
    assert not left_out.share(got, true, true).beyond(0.0).any()
    assert not left_out.tells(torch.zeros(100))
    assert not left_out.tells(torch.zeros(100, 8))
