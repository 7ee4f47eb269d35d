"""Which outputs of several calls are taken for one buffer."""

import os

import torch

from harness.worker import host_memory
from harness.worker.devices import HostRunner
from harness.worker.messages import SharedBlock


def runner_with_block(nbytes: int) -> tuple[HostRunner, torch.Tensor]:
    runner = HostRunner()
    fd, _ = host_memory.create(nbytes)
    runner.open([SharedBlock(id=2, nbytes=nbytes, fd=0)], [os.dup(fd)])
    os.close(fd)
    return runner, runner.block(2).view(torch.float32)


def test_views_of_each_call_s_own_input_are_no_buffer_shared_by_calls():
    runner, block = runner_with_block(4096)
    runner.begin(1, frozenset())
    for call in range(4):
        given = block[call * 128 :][:128]
        runner.publish((given.mul_(2), given.view(8, 16).t()))
    assert not runner.must_repeat()


def test_one_input_s_place_returned_by_two_calls_is():
    runner, block = runner_with_block(4096)
    runner.begin(1, frozenset())
    for _ in range(2):
        runner.publish(block[:128])
    assert runner.must_repeat()


def test_a_buffer_of_its_own_is():
    runner, _ = runner_with_block(4096)
    buffer = torch.zeros(256)
    runner.begin(1, frozenset())
    runner.publish(buffer[:128])
    runner.publish(buffer[128:])
    assert runner.must_repeat()
