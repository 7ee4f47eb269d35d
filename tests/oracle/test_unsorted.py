"""`topk(sorted=False)` promises no order, and that is all that it leaves open."""

import pytest
import torch

from harness.oracle.oracle import Oracle
from tests.oracle.references import Of

K = 6
TABLE = torch.randn(64, 5, generator=torch.Generator().manual_seed(1))


def both(x):
    return tuple(x.topk(K, -1, sorted=False))


def indices(x):
    return x.topk(K, -1, sorted=False).indices


def values(x):
    return x.topk(K, -1, sorted=False).values


def first_dimension(x):
    return tuple(x.t().topk(K, 0, sorted=False))


def gate(x):
    """As of a mixture of experts: of groups, and then of the experts in them; weights that sum to one."""
    scores = x.sigmoid()
    groups = scores.unflatten(-1, (8, -1))
    chosen = groups.amax(-1).topk(4, -1, sorted=False).indices
    mask = torch.zeros(len(x), 8).scatter(1, chosen, 1.0).bool().unsqueeze(-1)
    weights, experts = groups.masked_fill(~mask, 0.0).flatten(1).topk(K, -1, sorted=False)
    return experts.to(torch.int32), weights / weights.sum(-1, keepdim=True)


def rows(x):
    found = x.topk(K, -1, sorted=False)
    return {"indices": found.indices, "rows": TABLE[found.indices], "sum": found.values.sum(-1)}


REFERENCES = [both, indices, values, first_dimension, gate, rows]


def of_each(output, change):
    """A change of every part that is in the order of the top-k."""
    if isinstance(output, dict):
        return {name: leaf if name == "sum" else change(leaf) for name, leaf in output.items()}
    return tuple(map(change, output)) if isinstance(output, tuple) else change(output)


def along(reference):
    return 0 if reference is first_dimension else 1


def checked(reference, kernel, x=None):
    x = torch.randn(40, 64) if x is None else x
    oracle = Oracle(Of(reference))
    found = [("drawn", oracle.expect([x])), *((one.name, expected) for one, expected in oracle.stress([x], 1))]
    assert len(found) > 5
    return {name: oracle.check(expected, kernel(*expected.inputs)).passed for name, expected in found}


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("order", ["reverse", "random", "ascending"])
def test_any_order_passes(reference, order):
    def kernel(x):
        dim = along(reference)
        to = torch.randperm(K) if order == "random" else torch.arange(K).flip(0)
        if order == "ascending" and reference is both:
            found = x.topk(K, -1)
            by = found.indices.argsort(-1)
            return found.values.gather(-1, by), found.indices.gather(-1, by)
        return of_each(reference(x), lambda leaf: leaf.index_select(dim, to))

    assert all(checked(reference, kernel).values())


@pytest.mark.parametrize("reference", [both, first_dimension, gate, rows])
def test_an_index_belongs_to_its_value(reference):
    first = True

    def kernel(x):
        nonlocal first
        first = True

        def only_the_first(leaf):
            nonlocal first
            turned, first = leaf.flip(along(reference)) if first else leaf, False
            return turned

        return of_each(reference(x), only_the_first)

    assert not checked(reference, kernel)["drawn"]


@pytest.mark.parametrize("reference", [both, indices, gate, rows])
def test_an_index_that_comes_twice_is_wrong(reference):
    def twice(x):
        def change(leaf):
            leaf = leaf.clone()
            leaf[:, 1] = leaf[:, 0]
            return leaf

        return of_each(reference(x), change)

    assert not checked(reference, twice)["drawn"]


@pytest.mark.parametrize("reference", [both, indices, values])
def test_others_than_the_largest_are_wrong(reference):
    def kernel(x):
        found = x.topk(K + 1, -1)
        worse = found.values[:, 1:], found.indices[:, 1:]
        return worse if reference is both else worse[reference is indices]

    assert not checked(reference, kernel)["drawn"]


def test_of_equal_numbers_any_may_be_among_them_in_any_order():
    x = torch.randint(0, 12, (40, 64)).bfloat16()

    def kernel(x):
        found = x.flip(-1).sort(dim=-1, descending=True, stable=True)
        return found.values[:, :K].flip(-1), (63 - found.indices)[:, :K].flip(-1)

    assert checked(both, kernel, x)["drawn"]


def test_a_sorted_one_is_sorted():
    assert not checked(lambda x: tuple(x.topk(K, -1)), lambda x: tuple(one.flip(-1) for one in x.topk(K, -1)))["drawn"]
