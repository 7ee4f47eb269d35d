import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import metrics

speedups = st.floats(min_value=1e-3, max_value=1e3)
bests = st.lists(st.none() | speedups, min_size=1)


@st.composite
def intervals(draw: st.DrawFn) -> list[tuple[float, float, float]]:
    # A coarse grid, so that touching, equal and nested intervals all turn up.
    grid = st.integers(min_value=1, max_value=12).map(lambda step: step / 4)
    triples = st.lists(grid, min_size=3, max_size=3).map(sorted)
    return [(middle, lo, hi) for lo, middle, hi in draw(st.lists(triples, max_size=8))]


def test_geomean_lets_a_speedup_and_its_inverse_cancel():
    assert metrics.geomean([2.0, 0.5]) == pytest.approx(1.0)


@given(st.lists(speedups, min_size=1), st.floats(min_value=1e-3, max_value=1e3))
def test_geomean_scales_with_its_values(values, scale):
    scaled = metrics.geomean([value * scale for value in values])
    assert scaled == pytest.approx(metrics.geomean(values) * scale)


@given(st.lists(speedups, min_size=1))
def test_geomean_lies_among_its_values_and_inverts(values):
    mean = metrics.geomean(values)
    assert min(values) * (1 - 1e-9) <= mean <= max(values) * (1 + 1e-9)
    assert metrics.geomean([1 / value for value in values]) == pytest.approx(1 / mean)


@pytest.mark.parametrize("values", [[], [0.0], [1.0, -1.0], [math.nan], [math.inf]])
def test_geomean_refuses(values):
    with pytest.raises(ValueError, match=r"undefined|finite and above 0"):
        metrics.geomean(values)


def test_fast_p_counts_wrong_and_slow_alike_and_is_strict():
    assert metrics.fast_p([None, 0.9, 1.0, 1.5]) == 0.25
    assert metrics.fast_p([None, 0.9, 1.0, 1.5], p=0.0) == 0.75
    assert metrics.fast_p([None]) == 0.0


@given(bests, speedups, speedups)
def test_fast_p_never_rises_with_p(best, p, q):
    low, high = sorted((p, q))
    assert 0.0 <= metrics.fast_p(best, high) <= metrics.fast_p(best, low) <= 1.0


@pytest.mark.parametrize(("best", "p"), [([], 1.0), ([1.0], -0.1), ([1.0], math.nan), ([0.0], 1.0), ([math.inf], 1.0)])
def test_fast_p_refuses(best, p):
    with pytest.raises(ValueError, match=r"at least one problem|finite"):
        metrics.fast_p(best, p)


def test_ranks_share_with_the_ranks_first_and_skip_as_in_competitions():
    # The third overlaps the second but not the first.
    assert metrics.ranks([(3.0, 2.8, 3.2), (2.7, 2.5, 2.9), (2.4, 2.2, 2.6)]) == [1, 1, 3]
    assert metrics.ranks([(1.0, 0.9, 1.1), (3.0, 2.9, 3.1)]) == [2, 1]
    assert metrics.ranks([(2.0, 1.9, 2.0), (2.1, 2.0, 2.2)]) == [1, 1]
    assert metrics.ranks([]) == []


@given(intervals())
def test_ranks_follow_the_speedups_and_every_rank_starts_at_its_place(entries):
    ranks = metrics.ranks(entries)
    for (one, first), (other, second) in itertools.product(zip(entries, ranks, strict=True), repeat=2):
        if one[0] > other[0]:
            assert first <= second
    assert all(rank == 1 + sum(other < rank for other in ranks) for rank in ranks)


@given(intervals())
def test_members_of_a_rank_overlap_its_first_and_the_next_rank_does_not(entries):
    order = sorted(zip(metrics.ranks(entries), entries, strict=True), key=lambda pair: (pair[0], [-v for v in pair[1]]))
    ranks = [[entry for _, entry in members] for _, members in itertools.groupby(order, key=lambda pair: pair[0])]
    for members in ranks:
        assert all(hi >= members[0][1] for _, _, hi in members)
    for upper, lower in itertools.pairwise(ranks):
        assert lower[0][2] < upper[0][1]


@given(intervals().flatmap(lambda entries: st.tuples(st.just(entries), st.permutations(range(len(entries))))))
def test_ranks_do_not_depend_on_the_order_given(case):
    entries, order = case
    ranks = metrics.ranks(entries)
    assert metrics.ranks([entries[index] for index in order]) == [ranks[index] for index in order]


@pytest.mark.parametrize("entry", [(1.0, 1.1, 0.9), (0.0, 0.0, 1.0), (math.nan, 1.0, 1.0), (1.0, 1.0, math.inf)])
def test_ranks_refuse(entry):
    with pytest.raises(ValueError, match=r"lower end|finite"):
        metrics.ranks([entry])
