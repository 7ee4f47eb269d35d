"""Who takes the best few of each of many strands meets rows whose best are in one of them."""

import functools

import pytest
import torch
import torch.nn.functional as F

from harness.oracle import strands
from harness.oracle.choices import Chosen
from harness.oracle.oracle import Oracle
from harness.oracle.promises import find
from harness.oracle.stress import SETS
from tests.oracle.references import Of

(TOGETHER,) = (one for one in SETS if one.name == "in_one_strand")
ROWS, LENGTH = 512, 1024


def moved(x, *chosen, seed=1):
    return strands.together(chosen)(x, torch.Generator().manual_seed(seed))


def of_strands(x, kept, width, neighbours=False, k=8):
    """The values and places of the largest `k` of the `kept` largest of each strand: of `width` neighbours, or of all
    numbers that are so far apart."""
    padded = F.pad(x, (0, -x.shape[1] % width), value=-torch.inf)
    values, steps = padded.unflatten(1, (-1, width)).topk(kept, 2 if neighbours else 1)
    each = torch.arange(steps.shape[1 if neighbours else 2])
    places = steps + width * each[:, None] if neighbours else width * steps + each
    best, at = values.flatten(1).topk(k)
    return best, places.flatten(1).gather(1, at)


def test_rows_keep_their_numbers():
    x = torch.randn(40, 100)
    made = moved(x, Chosen(100, 1, 8))
    assert not torch.equal(made, x)
    assert torch.equal(made.sort(1).values, x.sort(1).values)


def test_the_largest_and_the_smallest_are_equally_far_apart():
    made = moved(torch.randn(400, 4000), Chosen(4000, 1, 8))
    apart = made.topk(8).indices.diff()
    assert (apart == apart[:, :1]).all()
    assert apart.min() == 1
    assert apart.max() > 500
    # The largest came last, and may have taken a place.
    among = made.topk(8, largest=False).indices.diff()
    assert (among == among[:, :1]).all(1).float().mean() > 0.9


def test_they_are_moved_along_the_dimension_that_is_chosen_along():
    x = torch.randn(3, 50, 7)
    made = moved(x, Chosen(50, 7, 5))
    assert torch.equal(made.sort(1).values, x.sort(1).values)
    apart = made.topk(5, 1).indices.diff(dim=1)
    assert (apart == apart[:, :1]).all()


def test_what_has_no_such_rows_stays():
    x = torch.randn(40, 100)
    assert moved(x) is x
    assert moved(x, Chosen(64, 1, 8)) is x


@pytest.mark.parametrize(("rows", "times"), [(1, 8), (64, 8), (300, 6), (1024, 2), (100000, 1)])
def test_where_rows_are_few_they_are_drawn_more_often(rows, times):
    oracle, drawn = Oracle(Of(lambda x: x.topk(4).values)), [torch.randn(rows, 32)]
    oracle.expect(drawn)
    assert oracle.times(TOGETHER, drawn) == times
    assert oracle.times(SETS[0], drawn) == 1


CHOOSING = {
    "topk": (lambda x: x.topk(8), lambda best: best),
    "values": (lambda x: x.topk(8, 1).values, lambda best: best[0]),
    "places": (lambda x: x.topk(8, 1).indices, lambda best: best[1]),
    "weights": (lambda x: x.topk(8, dim=1).values.softmax(-1), lambda best: best[0].softmax(-1)),
    "smallest": (lambda x: -(-x).topk(8, largest=False).values, lambda best: best[0]),
    "k-th": (lambda x: -(-x).kthvalue(8).values, lambda best: best[0][:, 7]),
    "first of the sorted": (lambda x: x.sort(1, descending=True).values[:, :8], lambda best: best[0]),
    "places of the sorted": (lambda x: x.argsort(dim=1, descending=True)[:, :8], lambda best: best[1]),
    "of each column": (lambda x: x.T.topk(8, 0).values, lambda best: best[0].T),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    # Equal numbers are in the reference's own order where places are sliced off: 16-bit ones are no question here.
    [(name, torch.float32) for name in CHOOSING] + [(name, torch.bfloat16) for name in ("topk", "values", "weights")],
)
def test_the_best_few_of_each_strand_are_not_the_best(name, dtype):
    torch.manual_seed(1)
    reference, made_of = CHOOSING[name]
    oracle, drawn = Oracle(Of(reference)), [torch.randn(ROWS, LENGTH).to(dtype)]
    usual = oracle.expect(drawn)
    lacking = {
        "far apart": functools.partial(of_strands, kept=3, width=64),
        "neighbours": functools.partial(of_strands, kept=3, width=16, neighbours=True),
        "an odd number": functools.partial(of_strands, kept=4, width=63),
    }
    honest = functools.partial(of_strands, kept=8, width=64)
    found = dict.fromkeys(lacking, False)
    for seed in range(4):
        # Of another draw, and with another place for the largest one alone.
        [(_, expected)] = oracle.stress(drawn, 100 * seed, [TOGETHER])
        (x,) = expected.inputs
        assert oracle.check(expected, made_of(honest(x))).passed
        assert oracle.check(expected, reference(x.clone())).passed
        for strand, wrong in lacking.items():
            found[strand] |= not oracle.check(expected, made_of(wrong(x)), explained=False).passed
    assert oracle.check(usual, made_of(honest(*drawn))).passed
    assert all(found.values())


@pytest.mark.parametrize("function", [lambda x: x.argmax(-1), lambda x: x.amax(-1), torch.relu, lambda x: x.sum(-1)])
def test_who_chooses_one_or_none_is_not_asked(function):
    oracle = Oracle(Of(function))
    oracle.expect([torch.randn(8, 64)])
    assert not oracle.suits(TOGETHER)


def test_an_order_that_is_promised_stays():
    def draw():
        return [torch.randn(64, 256).sort().values]

    first = draw()
    oracle = Oracle(Of(lambda x: x.topk(4).values), promises=find(first, draw))
    oracle.expect(first)
    assert list(oracle.stress(first, 0, [TOGETHER])) == []
    assert oracle.unchanged == {"in_one_strand"}


# The figures of docs/threat-model.md: for rows of 8192 numbers, of which eight are chosen and three of a strand kept.
@pytest.mark.parametrize(
    ("width", "of_few", "of_many"), [(1024, 1.0, 1.0), (1008, 0.64, 1.0), (1009, 0.27, 0.99), (509, 0.46, 1.0)]
)
def test_how_often_strands_are_met(width, of_few, of_many):
    rows = torch.empty(1).expand(200000, 8192)
    strand = strands._places(rows, 8, torch.Generator().manual_seed(3)) % width
    most = torch.stack([(strand == strand[:, j : j + 1]).sum(1) for j in range(8)], 1).amax(1)
    missed = 1 - (most > 3).double().mean().item()
    assert 1 - missed ** (64 * strands.MOST) == pytest.approx(of_few, abs=0.08)
    assert 1 - missed**8192 == pytest.approx(of_many, abs=0.02)
