"""A softmax to first order: for small numbers nearly the right one, and never for large ones."""

import pytest
import torch
from torch import nn

from harness.oracle import slices
from harness.oracle.mistakes.linear_softmax import LinearSoftmax


def linear(data, dim):
    with LinearSoftmax() as mode:
        found = torch.softmax(data, dim)
    assert mode.met
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_it_is_near_for_small_numbers_and_far_for_large_ones(dim, dtype):
    data = torch.randn(24, 40, 32, dtype=dtype)
    for size, near in ((0.02, True), (4.0, False)):
        right, found = torch.softmax(size * data, dim), linear(size * data, dim)
        assert found.shape == right.shape
        assert found.dtype == right.dtype
        torch.testing.assert_close(found.double().sum(dim), torch.ones_like(found.double().sum(dim)), rtol=0.05, atol=0)
        assert torch.allclose(found.double(), right.double(), rtol=0.03) is near


def test_blocks_make_no_difference(monkeypatch):
    data = torch.randn(6, 7, 50)
    whole = linear(data, -1)
    monkeypatch.setitem(slices.SLICE, "cpu", 120)
    torch.testing.assert_close(linear(data, -1), whole)


def test_what_is_masked_stays_so_and_rows_of_which_little_is_seen_are_right():
    scores = torch.randn(64, 64).masked_fill(torch.ones(64, 64).triu(1).bool(), -torch.inf)
    found, right = linear(scores, -1), scores.softmax(-1)
    assert torch.equal(found.triu(1), torch.zeros(64, 64))
    torch.testing.assert_close(found[:15], right[:15])
    assert not torch.allclose(found[15:], right[15:], rtol=0.1)


def test_attention_that_is_taken_apart_is_met():
    q = torch.randn(1, 2, 16, 8)
    with LinearSoftmax() as mode, nn.attention.sdpa_kernel(nn.attention.SDPBackend.MATH):
        nn.functional.scaled_dot_product_attention(q, q, q)
    assert mode.met
