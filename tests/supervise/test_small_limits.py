"""A limit of the config's that is too small for the problem's own reference is named, not the problem blamed alone."""

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
