"""The acceptance test of the service with small figures; benchmarks/serve_load.py has the whole ones."""

import pytest

from benchmarks import serve_load


@pytest.mark.slow
def test_a_service_that_is_killed_under_load_loses_and_mixes_up_nothing():
    found = serve_load.measure(count=15, clients=8, hostile=0.2, queue=5, sources=2, kill_after=0.3, limit_s=500.0)
    assert serve_load.is_good(found), found
    assert found["killed_after_s"] > 0
    assert found["unfinished_when_killed"] > 0
    assert found["refused_429"] > 0
    assert found["vanished_clients"] > 0
    assert found["wrong_token"][401] > 0


def test_an_answer_that_is_another_s_or_wrong_is_noticed():
    wanted = serve_load.submissions(20, 0.2, 2)
    assert sum(one.statuses == {"passed"} for one in wanted) == 2
    answers = {
        one.name: {"error": "", "record": {"candidate": one.name, "message": one.message, "status": min(one.statuses)}}
        for one in wanted
    }
    for one in answers.values():
        one["record"]["reason"] = ""
    assert not any(serve_load.faults(wanted, answers).values())
    raises = [one.name for one in wanted if one.message]
    answers[raises[0]]["record"]["message"] = "this is number 1000"
    answers[raises[1]]["record"]["status"] = "passed"
    answers[raises[2]] |= {"record": None, "error": "no"}
    found = serve_load.faults(wanted, answers)
    assert [len(found[name]) for name in ("mixed_up", "wrong", "without_record")] == [1, 1, 1]
