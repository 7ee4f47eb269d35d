"""On the CPU outputs may lie in files, in shared memory and in the judge's own blocks; one page twice is refused."""

import pytest

from harness.records import Status
from tests.conftest import QUICK

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x): return x, torch.cat([x, x])
def get_inputs(): return [torch.randn(4096)]
def get_init_inputs(): return []
"""
CANDIDATE = """
import mmap, os, tempfile, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        {made}
        twice[:4096] = x
        twice[4096:] = x
        return {output}
"""
WAYS = {
    "shared": "twice = torch.empty(8192).share_memory_()",
    "a file": "twice = torch.from_file(tempfile.mkstemp()[1], shared=True, size=8192)",
    "a file's copy": "file = tempfile.mkstemp()[1]; os.truncate(file, 32768); twice = torch.from_file(file, size=8192)",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("output", ["x, twice", "x.clone(), twice"])
def test_an_output_may_lie_in(way, output, evaluate_made):
    source = CANDIDATE.format(made=WAYS[way], output=output)
    record = evaluate_made(PROBLEM, source, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, (record.reason, record.message)


def test_two_outputs_in_one_page_of_a_file_that_is_mapped_twice_are_refused(evaluate_made):
    made = (
        "file = os.memfd_create('x'); os.ftruncate(file, 32768);"
        "one, twice = (torch.frombuffer(mmap.mmap(file, 32768), dtype=torch.float32) for _ in range(2)); os.close(file)"
    )
    source = CANDIDATE.format(made=made, output="one[:4096], twice")
    record = evaluate_made(PROBLEM, source, device="cpu", timing=QUICK)
    assert (record.status, record.reason) == (Status.REJECTED, "protocol")
    assert "return a .clone()" in record.message
