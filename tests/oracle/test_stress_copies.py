"""Hard inputs in which some numbers, rows or entries equal others."""

import pytest
import torch

from harness.oracle import chunks, copies
from harness.oracle.jitter import Mover
from harness.oracle.oracle import Oracle
from harness.oracle.stress import SETS
from tests.oracle.references import Of

BY_NAME = {stress.name: stress for stress in SETS if stress.demands == "equals"}


@pytest.mark.parametrize(("name", "dimension"), [("copies_of_rows", -2), ("copies_of_entries", 0)])
def test_one_slice_in_eight_is_a_copy(name, dimension):
    x = torch.randn(64, 40, 3)
    (made,) = BY_NAME[name].inputs([x], 0)
    length, count = x.shape[dimension], x.shape[dimension] // copies.SHARE
    assert made.unique(dim=dimension).shape[dimension] == length - count
    assert (made != x).movedim(dimension, 0).flatten(1).all(1).sum() == count


def test_what_belongs_to_an_entry_is_copied_with_it():
    x = torch.randn(64, 3)
    one, other = BY_NAME["copies_of_rows"].inputs([x, x + 1], 0)
    assert torch.equal(one + 1, other)


def test_some_numbers_of_a_row_are_equal():
    made = BY_NAME["some_equal"].inputs([torch.randn(8, 1024)], 0)[0]
    assert all(800 < row.unique().numel() < 950 for row in made)


@pytest.mark.parametrize(
    ("form", "changes"), [((128, 4), 8), ((64, 4), 8), ((64, 5), 0), ((64,), 0), ((2, 64, 4), 0)], ids=str
)
def test_rows_of_one_input_are_put_into_another(form, changes):
    x, y = torch.randn(form), torch.randn(64, 4)
    one, other = BY_NAME["rows_of_another"].inputs([x, y], 0)
    changed = (other != y).any(1)
    assert torch.equal(one, x)
    assert changed.sum() == changes
    assert all((row == x).all(-1).any() for row in other[changed])


def mask_again(x, y, fill=0.0):
    return y.masked_fill((x[:, None] == x[None]).all(-1).tril(-1).any(-1)[:, None], fill)


def shared_ranks(x):
    ordered = x.sort(-1).values
    return (torch.searchsorted(ordered, x) + torch.searchsorted(ordered, x, right=True)).float()


def found(queries, keys, values):
    return queries @ keys.T @ values + (queries[:, None] == keys[None]).all(-1).float() @ values


def nearest(x, y):
    return (x[:, None] - y[None]).square().sum(-1)


def lookup():
    return [torch.randn(64, 4), torch.randn(32, 4), torch.randn(32, 8)]


CARELESS = {
    "a set": (lambda x: mask_again(x, x.sin()), torch.sin, lambda: [torch.randn(256, 8)]),
    "a set in 16 bits": (lambda x: mask_again(x, x * 2), lambda x: x * 2, lambda: [torch.randn(256, 8).half()]),
    "a set in each entry": (
        lambda x: torch.stack([mask_again(one, one.sin()) for one in x]),
        torch.sin,
        lambda: [torch.randn(4, 64, 8)],
    ),
    "ranks": (shared_ranks, lambda x: 2.0 * x.argsort(-1).argsort(-1) + 1, lambda: [torch.randn(16, 512)]),
    "ranks by pairs": (
        lambda x: (x[..., None, :] <= x[..., None]).sum(-1),
        lambda x: x.argsort(-1).argsort(-1) + 1,
        lambda: [torch.randn(16, 64)],
    ),
    "the most common": (lambda x: x.mode(-1).values, lambda x: x.amin(-1), lambda: [torch.randn(64, 512)]),
    "a lookup": (found, lambda queries, keys, values: queries @ keys.T @ values, lookup),
    "false negatives": (
        lambda x, y: mask_again(y, x @ y.T, -1e9).logsumexp(1).mean(),
        lambda x, y: (x @ y.T).logsumexp(1).mean(),
        lambda: [torch.randn(128, 16), torch.randn(128, 16)],
    ),
}


@pytest.mark.parametrize("name", CARELESS)
def test_who_takes_all_for_different_is_wrong(name):
    reference, careless, draw = CARELESS[name]
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(reference)), draw()
    assert oracle.check(oracle.expect(drawn), careless(*drawn)).passed
    hard = [expected for _, expected in oracle.stress(drawn, sets=BY_NAME.values())]
    assert all(oracle.check(expected, reference(*expected.inputs)).passed for expected in hard)
    assert not all(oracle.check(expected, careless(*expected.inputs)).passed for expected in hard)
    assert all(oracle.comes_first(stress) for stress in BY_NAME.values())


def by_product(x, y):
    return x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.T


def flipped(x, choose):
    return x.shape[-1] - 1 - choose(x.flip(-1))


HONEST = {
    "distances by a product": (
        lambda x: nearest(x, x).sqrt(),
        lambda x: by_product(x, x).clamp_min(0).sqrt().fill_diagonal_(0),
        lambda: [torch.randn(128, 32)],
    ),
    "the nearest, marked": (
        lambda x, y: (nearest(x, y) == nearest(x, y).amin(-1, keepdim=True)).float(),
        lambda x, y: torch.zeros(128, 64).scatter(1, by_product(x, y).argmin(-1, keepdim=True), 1.0),
        lambda: [torch.randn(128, 32), torch.randn(64, 32)],
    ),
    "another of the nearest": (
        lambda x, y: nearest(x, y).argmin(-1),
        lambda x, y: flipped(by_product(x, y), lambda d: d.argmin(-1)),
        lambda: [torch.randn(128, 32), torch.randn(64, 32)],
    ),
    "another of the largest": (
        lambda x, y: y.gather(-1, x.topk(8, -1).indices),
        lambda x, y: y.gather(-1, flipped(x, lambda x: x.topk(8, -1).indices)),
        lambda: [torch.randn(64, 256), torch.randn(64, 256)],
    ),
    "another median": (
        lambda x, y: y.gather(-1, x.median(-1, keepdim=True).indices),
        lambda x, y: y.gather(-1, flipped(x, lambda x: x.median(-1, keepdim=True).indices)),
        lambda: [torch.randn(256, 65), torch.randn(256, 65)],
    ),
    "ranks in another order": (
        lambda x: x.argsort(-1).argsort(-1).float(),
        lambda x: x.flip(-1).sort(dim=-1, stable=True).indices.argsort(-1).flip(-1).float(),
        lambda: [torch.randn(32, 256)],
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_is_right_on_equal_numbers(name):
    reference, kernel, draw = HONEST[name]
    torch.manual_seed(1)
    oracle, drawn = Oracle(Of(reference)), draw()
    assert oracle.check(oracle.expect(drawn), kernel(*drawn)).passed
    for seed in range(4):
        for stress, expected in oracle.stress(drawn, seed, list(BY_NAME.values())):
            assert oracle.check(expected, kernel(*expected.inputs)).passed, stress.name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_numbers_that_are_equal_move_alike(dtype):
    x = torch.randn(4096).to(dtype)
    move = Mover(16, 3, alike=True)
    one, other = move(x.repeat(2)), move(x)
    assert torch.equal(one, other.repeat(2))
    assert ((other - x) / x).unique().numel() > 100


def test_a_batch_is_not_cut_where_one_of_two_equal_entries_is_left_out():
    def first_only(x):
        return mask_again(x, x.sin())

    x = torch.randn(64, 8)
    assert chunks.find_split(lambda some: first_only(*some), [x], first_only(x)) is not None
    x[37] = x[21]
    assert chunks.find_split(lambda some: first_only(*some), [x], first_only(x)) is None
