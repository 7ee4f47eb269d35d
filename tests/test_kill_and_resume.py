"""A run whose processes are killed at random ends with the records of an undisturbed one: none lost, none twice."""

import random

from tests.kills import Killer

KILLS = 6


def test_sigkill_at_random_moments(tmp_path):
    killer = Killer(tmp_path, random.Random())
    killer.run(KILLS)
    assert killer.faults == []
    assert killer.killed.total() == KILLS
