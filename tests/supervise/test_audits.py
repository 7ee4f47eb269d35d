"""An audit whose process cannot be had."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.catalog import problems as catalog
from harness.environment import choose_devices
from harness.processes.nursery import NoProcess, ZygoteLost
from harness.supervise.audits import audit
from tests.conftest import Here

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("error", [ZygoteLost("the forking parent died"), NoProcess("no room for another process")])
def test_a_process_that_cannot_be_had_is_the_machines_fault(error):
    def start(*_):
        raise error

    (problem,) = catalog.discover([str(ROOT / "tests/corpus/problems/toy/scale.py")], Here())
    nursery = SimpleNamespace(start=start)
    device = choose_devices("cpu")[0]
    answer = audit(problem, {}, "float32", device, nursery, seed=1, compiled=False, timeout_s=1.0)
    assert (answer.fault.status, answer.fault.reason) == ("harness_error", error.reason)
    assert answer.fault.message == str(error)
