"""The same draws in every run."""

from collections.abc import Generator, Iterator

import pytest
import torch


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """What a module draws as it is imported does not depend on which modules were imported before it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return (yield)


@pytest.fixture(autouse=True)
def same_draws() -> Iterator[None]:
    torch.manual_seed(0)
    with torch.no_grad():
        yield
