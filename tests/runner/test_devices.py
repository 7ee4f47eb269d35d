"""Which outputs a runner hands over where they lie, and which it has to copy from then on."""

import os

import pytest
import torch

from harness.runner.host_runner import HostRunner
from harness.wire import host_memory, layout
from harness.wire.messages import SharedBlock
from harness.wire.nodes import OWN_MEMORY

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
        # What lies in its memory is not what it is worth, but the next call may change that, too.
        (turned, True),
    ],
)
@pytest.mark.parametrize("calls", [1, 3])
def test_what_a_candidate_keeps_is_copied_from_then_on(runner, forward, repeats, calls):
    def burst() -> bool:
        runner.begin(1, frozenset())
        for _ in range(calls):
            runner.publish(forward(runner))
        runner.end(1, whole_device=True)
        return runner.must_repeat()

    assert burst() is repeats
    runner.open([], [])
    assert burst() is False


def test_outputs_of_two_calls_that_overlap_are_copied_from_then_on(runner):
    memory = bytearray(4 * 100)

    def calls() -> bool:
        runner.begin(1, frozenset())
        for first in (0, 40):
            # Each has a storage of its own.
            runner.publish(torch.frombuffer(memory, dtype=torch.float32, count=50, offset=4 * first))
        runner.end(1, whole_device=True)
        return runner.must_repeat()

    assert calls()
    runner.open([], [])
    assert not calls()
    first, second = (node.offset for node in runner.outputs())
    assert abs(first - second) >= 4 * 50


def test_what_is_in_a_list_that_is_used_again_is_what_it_was_after_each_call(runner):
    used_again: list[torch.Tensor] = []
    runner.begin(1, frozenset())
    for _ in range(3):
        used_again[:] = [torch.ones(3)]
        runner.publish(used_again)
    used_again.clear()
    runner.end(1, whole_device=True)
    assert not runner.must_repeat()
    assert len({node.items[0].offset for node in runner.outputs()}) == 3


@pytest.mark.parametrize("output", [torch.ones(4).expand(3, 4), torch.ones(64)[::8], torch.ones(3) + 2j])
def test_what_cannot_be_read_where_it_lies_is_copied_after_the_last_call(runner, output):
    runner.begin(1, frozenset())
    runner.publish(output.conj())
    runner.end(1, whole_device=True)
    (node,) = runner.outputs()
    assert (node.shape, node.kind, node.block) == (tuple(output.shape), "Tensor", OWN_MEMORY)
    assert node.offset != output.data_ptr()


def test_outputs_of_one_call_that_share_memory_are_copied_but_the_first(runner):
    whole = torch.arange(8.0)
    runner.begin(1, frozenset())
    runner.publish((whole[:6], whole[2:], whole[6:].clone()))
    runner.end(1, whole_device=True)
    first, second, third = runner.outputs()[0].items
    assert first.offset == whole.data_ptr()
    assert second.offset not in range(whole.data_ptr(), whole.data_ptr() + 32)
    layout.check_disjoint((ref.offset, ref.offset + layout.nbytes(ref)) for ref in (first, second, third))
