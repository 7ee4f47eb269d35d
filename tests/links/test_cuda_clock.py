"""The judge's clock on a card, and the memory that it shares there."""

import os

import pytest

from harness.config import TimingConfig
from harness.records import Status
from harness.wire.cuda_memory import NotExportable, SharedMemory, export

QUICK = TimingConfig(budget_s=3.0, min_pairs=4, max_pairs=4)

PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x * 3.0

def get_inputs():
    return [torch.randn(1 << 16)]

def get_init_inputs():
    return []
"""
COPY = """
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return x * 3.0
"""


@pytest.mark.gpu
def test_outputs_of_a_long_burst_are_compared_with_a_look_that_is_over(evaluate_made):
    timing = TimingConfig(budget_s=5.0, min_pairs=4, max_pairs=4, max_calls_per_burst=256)
    record = evaluate_made(PROBLEM, COPY, device="cuda:0", timing=timing)
    assert record.status is Status.PASSED, record.message
    assert record.timing.calls_per_burst == 256
    assert record.speedup_lo < 1 < record.speedup_hi


MANY_INPUTS = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, *given):
        return torch.stack(given).sum(0)

def get_inputs():
    return [torch.randn(1 << 10) for _ in range(8)]

def get_init_inputs():
    return []
"""
SUMS = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, *given):
        return torch.stack(given).sum(0)
"""


@pytest.mark.gpu
def test_two_thousand_inputs_do_not_fill_the_queue_of_a_stream_that_stands(evaluate_made):
    timing = TimingConfig(budget_s=5.0, min_pairs=4, max_pairs=4, max_calls_per_burst=256)
    record = evaluate_made(MANY_INPUTS, SUMS, device="cuda:0", timing=timing)
    assert record.status is Status.PASSED, record.message
    assert record.timing.clock == "device"
    assert not record.timing.dropped


SAME_ROWS = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return x.mean(0, keepdim=True).expand(x.shape).contiguous()

def get_inputs():
    return [torch.randn(256, 1 << 10)]

def get_init_inputs():
    return []
"""


def returning(expression):
    return f"""
import torch
from torch import nn

class ModelNew(nn.Module):
    def forward(self, x):
        return {expression}
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    "expression",
    [
        "x.mean(0, keepdim=True).expand(x.shape)",
        "torch.empty(1 << 28, device=x.device).as_strided(x.shape, (1 << 20, 1023)).copy_(x.mean(0))",
    ],
)
def test_outputs_may_have_any_strides(evaluate_made, expression):
    record = evaluate_made(SAME_ROWS, returning(expression), device="cuda:0", timing=QUICK)
    assert record.status is Status.PASSED, record.message


@pytest.mark.gpu
def test_an_endless_output_has_the_wrong_shape(evaluate_made):
    candidate = returning("x.mean().expand(1 << 40)")
    record = evaluate_made(SAME_ROWS, candidate, device="cuda:0", timing=QUICK)
    assert (record.status, record.reason) == (Status.INCORRECT, "wrong_shape")


@pytest.mark.gpu
def test_what_the_judge_shares_cannot_be_named_by_a_handle():
    memory, fd = SharedMemory.create(1000)
    os.close(fd)
    assert not memory.tensor.any()
    with pytest.raises(NotExportable):
        export(memory.tensor)
    memory.close()
