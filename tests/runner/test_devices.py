"""Which outputs a runner hands over where they lie, and which it has to copy from then on."""

import os

import pytest
import torch

from harness.runner.devices import HostRunner
from harness.wire import host_memory
from harness.wire.messages import SharedBlock

KEPT: list[torch.Tensor] = []


@pytest.fixture
def runner():
    runner = HostRunner()
    fd, _ = host_memory.create(256)
    runner.open([SharedBlock(id=7, nbytes=256, fd=0)], [os.dup(fd)])
    os.close(fd)
    yield runner
    KEPT.clear()


def kept(_: HostRunner) -> torch.Tensor:
    KEPT.append(torch.ones(3))
    return KEPT[-1]


def view_of_what_is_kept(_: HostRunner) -> torch.Tensor:
    KEPT.append(torch.ones(3, 2))
    return KEPT[-1][1:]


def one_for_all(_: HostRunner) -> torch.Tensor:
    KEPT[:] = KEPT or [torch.ones(3)]
    return KEPT[0]


def kept_in_part(runner: HostRunner) -> list[torch.Tensor]:
    return [torch.zeros(3), kept(runner)]


def fresh(_: HostRunner) -> torch.Tensor:
    return torch.ones(3)


def fresh_views(_: HostRunner) -> dict[str, torch.Tensor]:
    both = torch.ones(2, 3)
    return {"first": both[0], "second": both[1], "both": both}


def its_input(runner: HostRunner) -> torch.Tensor:
    return runner.block(7)[:8]


def turned(_: HostRunner) -> torch.Tensor:
    KEPT.append(torch.ones(3, dtype=torch.complex64))
    return KEPT[-1].conj()


@pytest.mark.parametrize(
    ("forward", "repeats"),
    [
        (kept, True),
        (view_of_what_is_kept, True),
        (one_for_all, True),
        (kept_in_part, True),
        (fresh, False),
        (fresh_views, False),
        (its_input, False),
        # Copied anyway, because what lies in its memory is not what it is worth.
        (turned, False),
    ],
)
@pytest.mark.parametrize("calls", [1, 3])
def test_what_a_candidate_keeps_is_copied_from_then_on(runner, forward, repeats, calls):
    def burst() -> bool:
        runner.begin(1, frozenset())
        for _ in range(calls):
            runner.publish(forward(runner))
        return runner.must_repeat()

    assert burst() is repeats
    assert burst() is False
