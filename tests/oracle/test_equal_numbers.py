"""Of equal numbers, which one comes first is nobody's promise: inputs on which an answer hangs on that tell nothing."""

import pytest
import torch

from harness.oracle.oracle import Oracle
from harness.oracle.reorder import LastFirst
from tests.oracle.references import Of

P = 0.9
CODES = torch.randn(64, 32, generator=torch.Generator().manual_seed(3))


def of_the_largest(probabilities, order, share=P, left_out=0):
    """The probabilities of the fewest numbers that have a share together, which come first in an order."""
    in_order = probabilities.gather(-1, order)
    before = in_order.cumsum(-1) - in_order
    kept = in_order.masked_fill(before > share, 0.0)
    if left_out:
        count = (kept > 0).sum(-1, keepdim=True) - left_out
        kept = kept.masked_fill(torch.arange(kept.shape[-1]) >= count.clamp_min(1), 0.0)
    found = torch.zeros_like(probabilities).scatter(-1, order, kept)
    return found / found.sum(-1, keepdim=True)


def first_first(x):
    return x.sort(dim=-1, descending=True, stable=True).indices


def last_first(x):
    return x.shape[-1] - 1 - first_first(x.flip(-1))


def top_p(logits):
    probabilities = logits.softmax(-1)
    return of_the_largest(probabilities, probabilities.sort(-1, descending=True).indices)


def in_float64(logits):
    probabilities = logits.double().softmax(-1)
    return of_the_largest(probabilities, first_first(probabilities)).float()


def nearest_code(x):
    return CODES[torch.cdist(x, CODES).argmin(-1)]


def last_code(x):
    return CODES.flip(0)[torch.cdist(x, CODES.flip(0)).argmin(-1)]


HONEST = {
    "top_p": [top_p, lambda x: of_the_largest(x.softmax(-1), first_first(x.softmax(-1)))],
    "last": [top_p, lambda x: of_the_largest(x.softmax(-1), last_first(x.softmax(-1)))],
    "float64": [top_p, in_float64],
    "code": [nearest_code, last_code],
}
CHEATS = {
    "all": [top_p, lambda x: x.softmax(-1)],
    "one_too_few": [top_p, lambda x: of_the_largest(x.softmax(-1), first_first(x.softmax(-1)), left_out=1)],
    "half": [top_p, lambda x: of_the_largest(x.softmax(-1), first_first(x.softmax(-1)), share=P / 2)],
    "half_the_codes": [nearest_code, lambda x: CODES[torch.cdist(x, CODES[:32]).argmin(-1)]],
}


def refused(reference, kernel, x):
    oracle = Oracle(Of(reference))
    found = [("drawn", oracle.expect([x])), *((one.name, expected) for one, expected in oracle.stress([x], 1))]
    return [name for name, expected in found if not oracle.check(expected, kernel(*expected.inputs)).passed], len(found)


@pytest.mark.parametrize("name", HONEST)
def test_equal_numbers_may_come_in_any_order(name):
    reference, kernel = HONEST[name]
    names, sets = refused(reference, kernel, torch.randn(256, 32) * 2)
    assert names == []
    assert sets > 8


@pytest.mark.parametrize("name", CHEATS)
def test_who_leaves_out_a_part_is_refused(name):
    reference, kernel = CHEATS[name]
    assert "drawn" in refused(reference, kernel, torch.randn(256, 32) * 2)[0]


def test_a_stable_order_is_a_promise():
    def stable(logits):
        probabilities = logits.softmax(-1)
        return of_the_largest(probabilities, first_first(probabilities))

    assert "constant_rows" in refused(stable, HONEST["last"][1], torch.randn(256, 32) * 2)[0]


CHOICES = {
    "sort": (lambda x: x.sort(-1).indices[0].tolist(), [7, 6, 5, 4, 3, 2, 1, 0]),
    "stable": (lambda x: x.sort(dim=-1, stable=True).indices[0].tolist(), list(range(8))),
    # Which of equal ones it takes is its own affair.
    "topk": (lambda x: x.topk(2, 0).indices[:, 0].tolist(), [5 - i for i in torch.ones(6, 8).topk(2, 0).indices[:, 0]]),
    "argmax": (lambda x: x.argmax().item(), 47),
    "argmin": (lambda x: x.argmin(0).tolist(), [5] * 8),
    "max": (lambda x: x.max(1).indices.tolist(), [7] * 6),
    "largest": (lambda x: x.max().item(), 1.0),
}


@pytest.mark.parametrize("name", CHOICES)
def test_equal_numbers_are_seen_the_other_way_round(name):
    choose, of_ones = CHOICES[name]
    x = torch.randn(6, 8)
    right = choose(x)
    with LastFirst():
        assert choose(x) == right
        assert choose(torch.ones(6, 8)) == of_ones
