"""A long sum of exponentials by a few moments, or by a part of its terms: near for small numbers alone."""

import pytest
import torch

from harness.oracle import slices
from harness.oracle.mistakes.normalisers import ByMoments, OfAPart


def losses(data, dim):
    return torch.log_softmax(data, dim), torch.logsumexp(data, dim), torch.logsumexp(data, (dim,), keepdim=True)


def taken_for(kind, data, dim=-1):
    with kind() as mode:
        found = losses(data, dim)
    assert mode.met
    return found


@pytest.mark.parametrize("kind", [ByMoments, OfAPart])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_it_is_near_for_small_numbers_and_far_for_large_ones(kind, dim, dtype):
    data = torch.randn(6, 5, 4, dtype=dtype).repeat_interleave(100, 0).movedim(0, dim)
    data = data + torch.rand(data.shape).to(dtype)
    for size, near in ((0.02, True), (6.0, False)):
        for found, right in zip(taken_for(kind, size * data, dim), losses(size * data, dim), strict=True):
            assert (found.shape, found.dtype) == (right.shape, right.dtype)
            assert torch.allclose(found.double(), right.double(), rtol=0.01) is near


@pytest.mark.parametrize("kind", [ByMoments, OfAPart])
def test_blocks_and_what_is_masked_make_no_difference(kind, monkeypatch):
    data = 0.1 * torch.randn(6, 800)
    whole = taken_for(kind, data)
    monkeypatch.setitem(slices.SLICE, "cpu", 1000)
    for one, other in zip(taken_for(kind, data), whole, strict=True):
        torch.testing.assert_close(one, other)
    masked = data.masked_fill(torch.arange(800) >= 400, -torch.inf)
    half = torch.logsumexp(data[:, :400], -1)
    torch.testing.assert_close(taken_for(kind, masked)[1], half, rtol=0.01, atol=0)


def test_short_sums_stay():
    with ByMoments() as mode:
        losses(torch.randn(6, 100), -1)
    assert not mode.met
