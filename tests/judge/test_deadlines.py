"""A burst's deadline goes with the reference's own time, between a shortest one and the config's limit."""

from harness.judge.deadlines import SHORTEST_S, SLOWEST, burst_s


def test_short_work_has_the_shortest_deadline():
    assert burst_s(1e-5, 32, 120.0) == SHORTEST_S


def test_long_work_has_a_longer_one_up_to_the_limit():
    assert burst_s(0.05, 4, 120.0) == SLOWEST * 0.05 * 4
    assert burst_s(5.0, 1, 120.0) == 120.0


def test_the_limit_holds_where_it_is_below_the_shortest():
    assert burst_s(1e-5, 1, 2.0) == 2.0
