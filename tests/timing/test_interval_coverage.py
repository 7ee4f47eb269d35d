"""The interval covers: the benchmark's own scenarios, fewer trials."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "interval_coverage.py"
Rows = dict[tuple[str, str], Any]
TRIALS = 600
# Three standard errors of a share of 0.95 in so many trials.
NOISE = 3 * (0.95 * 0.05 / TRIALS) ** 0.5


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interval_coverage", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rows(benchmark: ModuleType) -> Rows:
    return benchmark.table(TRIALS, 3, [method for method in benchmark.METHODS if method.name == "assay"])


def test_independent_pairs_are_covered_at_every_count_and_when_stopping(benchmark: ModuleType, rows: Rows) -> None:
    for name in benchmark.INDEPENDENT:
        row = rows["assay", name]
        assert min(row.coverage.values()) > 0.95 - NOISE, name
        assert row.stopped_coverage > 0.95 - NOISE, name


def test_mild_correlation_costs_little_and_strong_correlation_is_bounded(rows: Rows) -> None:
    assert rows["assay", "lag corr. 0.3"].stopped_coverage > 0.93 - NOISE
    assert rows["assay", "sticky modes"].stopped_coverage > 0.93 - NOISE
    assert rows["assay", "lag corr. 0.6"].stopped_coverage > 0.86 - NOISE


def test_the_interval_is_not_idle(rows: Rows) -> None:
    """Wider than the bootstrap's by no more than what coverage takes."""
    assert rows["assay", "normal"].half_width[40] < 0.0040
    assert rows["assay", "order effect"].half_width[40] < 0.0040
