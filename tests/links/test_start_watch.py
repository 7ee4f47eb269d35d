"""What of a turn before the clock a trusted runner's turns explain."""

from harness.links.start_watch import StartWatch


def learnt(ways: dict[int, float]) -> StartWatch:
    watch = StartWatch()
    for calls, way_us in ways.items():
        for late in (0.0, 1.0, 2.0, 1.0, 0.0):
            watch.learn(calls, way_us + late)
    return watch


def test_who_needs_what_the_trusted_one_needs_is_charged_nothing():
    # One call needs far more than none, and 28 little more than one: as two cores of a server showed it.
    ways = {0: 274.0, 1: 780.0, 28: 1286.0}
    assert [learnt(ways).beyond_us(calls, way_us) for calls, way_us in ways.items()] == [0.0, 0.0, 0.0]
    assert learnt(ways).beyond_us(14, 1020.0) == 0.0


def test_work_before_the_clock_is_charged_all_of_it():
    assert learnt({0: 274.0, 1: 780.0, 28: 1286.0}).beyond_us(1, 831.0) == 50.0


def test_a_start_on_a_card_is_slow_only_beyond_what_such_starts_differ_by():
    watch = learnt({1: 780.0})
    assert not watch.slow(1, 831.0)
    assert watch.slow(1, 1500.0)


def test_one_disturbed_turn_of_a_length_excuses_nobody():
    watch = learnt({0: 274.0, 28: 1286.0})
    watch.learn(14, 50_000.0)
    assert watch.beyond_us(14, 10_000.0) > 5_000.0
