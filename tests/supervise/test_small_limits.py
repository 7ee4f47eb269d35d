"""A limit of the config's that is too small for the problem's own reference is named, not the problem blamed alone."""

import re

import pytest

from harness.config import Limits
from harness.records import Status
from tests.conftest import QUICK
from tests.runner.test_spawned import PROBLEM

CANDIDATE = PROBLEM.replace("class Model(", "class ModelNew(")


@pytest.mark.parametrize(
    ("limits", "key"),
    [(Limits(load_s=1e-6), "limits.load_s"), (Limits(host_memory_gb=1e-6), "limits.host_memory_gb")],
    ids=["load_s", "host_memory_gb"],
)
def test_the_limit_is_named(evaluate_made, limits, key):
    record = evaluate_made(PROBLEM, CANDIDATE, device="cpu", timing=QUICK, limits=limits)
    assert (record.status, record.limit) == (Status.INVALID_REFERENCE, {key: 1e-6})
    assert record.message.startswith(f"{key} = 1e-06 is too small for the problem's own reference")


def test_who_has_no_verdict_in_time_hears_where_the_time_went(evaluate_made):
    slow = CANDIDATE.replace("return ", "import time; time.sleep(0.3); return ", 1)
    assert "sleep" in slow
    record = evaluate_made(PROBLEM, slow, device="cpu", timing=QUICK, limits=Limits(total_s=2.5))
    assert (record.status, record.reason) == (Status.TIMEOUT, "total")
    assert re.match(r"no verdict within limits.total_s = 2.5 s, of which \d+ s went into: timing", record.message)
    assert record.phases_s["timing"] > 1.0
