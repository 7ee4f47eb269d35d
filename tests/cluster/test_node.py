"""A node beside Ray's own watch over memory, which would end it for what a candidate takes."""

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'kernel-assay[cluster]'")

from harness.cluster import node
from harness.config import Config
from harness.processes import memory_floor, memory_watch


@pytest.mark.parametrize(
    ("environment", "share"),
    [
        ({}, 0.1),
        ({"RAY_memory_usage_threshold": "0.8"}, 0.25),
        ({"RAY_memory_usage_threshold": "much"}, 0.1),
        ({"RAY_memory_monitor_refresh_ms": "0"}, 0.03),
        ({"ASSAY_MEMORY_FLOOR": "0.2"}, 0.2),
    ],
)
def test_candidates_are_ended_before_ray_ends_the_node(environment, share, monkeypatch):
    for name in (node.REFRESH, node.THRESHOLD):
        monkeypatch.delenv(name, raising=False)
    # So that what the node sets goes with the test.
    monkeypatch.setenv(memory_floor.VARIABLE, "")
    monkeypatch.delenv(memory_floor.VARIABLE)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    node.Node(Config(device="cpu"), None)
    assert memory_watch.floor_share() == pytest.approx(share)
