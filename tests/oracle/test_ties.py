"""Which of nearly equal numbers an index points to is for rounding to decide, and nothing else is."""

import pytest
import torch

from harness.oracle.exact import ExactReference
from harness.oracle.indices import DRAWS
from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
FILLS = {"least": None, "-inf": float("-inf"), "-1e30": -1e30, "-1e9": -1e9, "-1e4": -1e4, "-6e4": -6e4}


def drawn(dtype, keys=256, seed=1):
    generator = torch.Generator().manual_seed(seed)
    x, w = torch.randn(512, 128, generator=generator), torch.randn(128, keys, generator=generator) / 11
    return [x.to(dtype), w.to(dtype), torch.rand(512, keys, generator=generator) < 0.2]


def masked(x, w, mask, fill):
    scores = x @ w
    return scores.masked_fill(mask, torch.finfo(scores.dtype).min if fill is None else fill)


def last_of_equal(scores, count):
    """The same as topk, but of equal numbers those that come last."""
    length = scores.shape[-1]
    return length - 1 - scores.flip(-1).sort(dim=-1, descending=True, stable=True).indices[..., :count]


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
@pytest.mark.parametrize("fill", FILLS)
def test_a_mask_excuses_no_wrong_index(dtype, fill):
    fill = FILLS[fill]
    if dtype is F16 and fill in (-1e30, -1e9):
        pytest.skip("no number of float16")
    inputs = drawn(dtype)
    oracle = Oracle(Of(lambda x, w, m: masked(x, w, m, fill).topk(4, -1).indices))
    expected = oracle.expect(inputs)
    first_four = (~inputs[2]).long().topk(4, -1).indices
    assert not oracle.check(expected, first_four).passed
    assert not oracle.check(expected, torch.zeros_like(first_four)).passed
    scores = masked(*inputs, fill)
    assert oracle.check(expected, last_of_equal(scores, 4)).passed
    # As a kernel chooses that keeps its sums in float32.
    assert oracle.check(
        expected, masked(inputs[0].float(), inputs[1].float(), inputs[2], -1e30).topk(4, -1).indices
    ).passed


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_the_largest_of_equal_numbers_may_be_the_last(dtype, seed):
    x, w, _ = drawn(dtype, 1024, seed)
    oracle = Oracle(Of(lambda x, w: (8 * (x @ w)).argmax(-1)))
    expected = oracle.expect([x, w])
    assert oracle.check(expected, last_of_equal(8 * (x @ w), 1)[:, 0]).passed
    assert not oracle.check(expected, (x @ w)[:, :512].argmax(-1)).passed


def test_a_row_of_nothing_but_fill_values_points_anywhere():
    x, w, mask = drawn(F32)
    mask[3] = True
    oracle = Oracle(Of(lambda x, w, m: (x @ w).masked_fill(m, float("-inf")).argmax(-1)))
    expected = oracle.expect([x, w, mask])
    other = expected.native.clone()
    other[3] = 17
    assert oracle.check(expected, other).passed
    other[4] = (other[4] + 1) % 256
    assert not oracle.check(expected, other).passed


def test_of_exact_numbers_none_but_equal_ones_are_tied():
    x = torch.arange(4096.0).remainder(1000).reshape(4, 1024)
    oracle = Oracle(Of(lambda x: x.topk(3, -1).indices))
    expected = oracle.expect([x])
    beside = expected.native.clone()
    beside[:, 2] = x.topk(4, -1).indices[:, 3]
    assert not oracle.check(expected, beside).passed


def grouped(x, w, dtype):
    """The six best experts of the four best of eight groups, by scores in this dtype."""
    scores = torch.sigmoid(x.to(dtype) @ w.to(dtype)).unflatten(-1, (8, 8))
    groups = scores.topk(2, -1).values.sum(-1).topk(4, -1).indices
    closed = torch.ones(scores.shape[:2], dtype=torch.bool).scatter(1, groups, False)
    return scores.masked_fill(closed[..., None], float("-inf")).flatten(1).topk(6, -1).indices


def test_what_follows_a_choice_that_rounding_made_is_rounding_s_too():
    x, w, _ = drawn(BF16, 64)
    oracle = Oracle(Of(lambda x, w: grouped(x, w, BF16)))
    expected = oracle.expect([x, w])
    assert oracle.check(expected, grouped(x, w, F32)).passed
    assert not oracle.check(expected, grouped(x, w.roll(1, 1), F32)).passed
    for stress, hard in oracle.stress([x, w]):
        if stress.binding:
            assert oracle.check(hard, grouped(*hard.inputs, F32)).passed, stress.name


@pytest.mark.parametrize("dim", [1, 2])
def test_ties_of_a_large_input_are_looked_at_slice_by_slice(dim, monkeypatch):
    """A copy in float64 of all that is chosen from may be more than a card holds."""
    x = torch.randint(0, 50, (32, 64, 48)).float() / 7
    oracle, largest = Oracle(Of(lambda x: x.argmin(dim))), []
    monkeypatch.setattr("harness.oracle.exact.AT_ONCE", {"cpu": 200_000})
    monkeypatch.setattr("harness.oracle.indices.BLOCK", 1000)
    recorded = ExactReference.recorded

    def seen(self, inputs, *rest):
        largest.append(inputs[0].shape[0])
        return recorded(self, inputs, *rest)

    monkeypatch.setattr(ExactReference, "recorded", seen)
    expected = oracle.expect([x])
    assert expected.where == "chunked"
    length = x.shape[dim]
    last = length - 1 - x.flip(dim).argmin(dim)
    assert not torch.equal(last, x.argmin(dim))
    assert oracle.check(expected, last).passed
    assert max(largest) < 32
    wrong = last.clone()
    wrong[31, 5] = (last[31, 5] + 1) % length
    assert not oracle.check(expected, wrong).passed


def test_equal_numbers_that_are_known_exactly_keep_a_stable_order():
    """Floating ones, too: no rounding puts one before the other."""

    def last_first(x):
        length = x.shape[-1]
        order = (x.double() * length + torch.arange(length)).argsort(-1, descending=True)
        return x.gather(-1, order), order

    for x in (torch.randint(20, (30, 40)).float(), torch.randn(30, 400).bfloat16()):
        oracle = Oracle(Of(lambda x: tuple(torch.sort(x, dim=-1, descending=True, stable=True))))
        expected = oracle.expect([x])
        assert oracle.check(expected, tuple(torch.sort(x, dim=-1, descending=True, stable=True))).passed
        assert not oracle.check(expected, last_first(x)).passed


def test_jitter_is_run_once_for_all_answers_to_the_same_inputs(monkeypatch):
    """To run a loop so takes long, and the audit alone asks about dozens of wrong answers."""

    runs = []
    throughout = ExactReference.jittered_throughout
    monkeypatch.setattr(
        ExactReference, "jittered_throughout", lambda self, *of: runs.append(1) or throughout(self, *of)
    )
    oracle = Oracle(Of(lambda x: (torch.tanh(x).cumsum(-1) > 0.3).int()))
    expected = oracle.expect([torch.randn(64, 256)])
    wrong = 1 - expected.native
    before = len(runs)
    refused = [oracle.check(expected, wrong) for _ in range(3)]
    assert [one.passed for one in refused] == [False] * 3
    assert len(runs) - before == DRAWS
    assert oracle.check(expected, expected.native).passed
    other = oracle.expect([torch.randn(64, 256)])
    before = len(runs)
    assert not oracle.check(other, 1 - other.native).passed
    assert len(runs) - before == DRAWS
