import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from harness.roofline.light import Work
from tests.roofline.calls import Call, randn


def test_a_mask_may_hide_keys(of):
    q = [randn(2, 4, 8, 16) for _ in range(3)]
    found = of(Call(F.scaled_dot_product_attention), *q, torch.ones(8, 8, dtype=torch.bool))
    assert found.streamed_bytes == 2 * q[0].nbytes + 64
    assert found.resident_bytes == 2 * q[0].nbytes


def test_masks_by_several_names(of):
    x, mask = randn(8, 32), torch.ones(8, 32, dtype=torch.bool)
    for function in (
        lambda x, mask: torch.where(mask, x, 0.0),
        lambda x, mask: x.masked_fill(mask, 0.0),
        lambda x, mask: x * mask,
    ):
        assert of(Call(function), x, mask) == Work({}, mask.nbytes + x.nbytes, pytest.approx(x.nbytes, abs=8))


def test_a_table_counts_what_is_gathered(of):
    indices = torch.tensor([[1, 2, 2], [5, 1, 7]])
    found = of(nn.Embedding(1000, 16), indices)
    assert found.streamed_bytes == indices.nbytes + 4 * 6 * 16
    assert found.resident_bytes == 4 * 6 * 16
    table = randn(1000, 16)
    for function in (lambda table, i: table[i], lambda table, i: torch.index_select(table, 0, i)):
        found = of(Call(function), table, indices[0])
        # Of an input two distinct rows are read for certain, and a third may be.
        assert found.streamed_bytes == 24 + 4 * (2 + 3) * 16
        assert found.resident_bytes == 4 * 16
    found = of(Call(lambda x, i: torch.gather(x, 1, i)), table, torch.zeros(1000, 1, dtype=torch.int64))
    assert found.streamed_bytes == 1000 * (8 + 4 + 4)


def test_strides_leave_gaps(of):
    assert of(nn.Conv2d(4, 8, 1, stride=2, bias=False), randn(2, 4, 16, 16)).streamed_bytes == 4 * 2 * 64 * (4 + 8)
    assert of(nn.MaxPool2d(2), randn(1, 1, 7, 7)).streamed_bytes == 4 * (36 + 9)
    assert of(nn.AvgPool2d(3, stride=1, padding=1), randn(1, 1, 7, 7)).streamed_bytes == 4 * (49 + 49)


def test_triangles_count_by_their_share(of):
    found = of(Call(lambda a, b: torch.tril(a @ b)), randn(4, 4), randn(4, 4))
    assert found.flops == {"float32": pytest.approx(128 * 10 / 16)}
    assert found.streamed_bytes == 64
