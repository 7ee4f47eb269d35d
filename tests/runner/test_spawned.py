"""What a candidate has multiprocessing spawn: new interpreters, in which nothing of ours is the main module."""

from harness.config import CheckConfig, Limits, TimingConfig
from harness.records import Status

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.randn(64)]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import math, multiprocessing, torch
def own(x):
    return x
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map({function}, [4]) == [2.0]
    def forward(self, x):
        return x + 1
"""


def evaluated(evaluate_made, function, load_s):
    return evaluate_made(
        PROBLEM,
        CANDIDATE.format(function=function),
        device="cpu",
        check=CheckConfig(stress=False),
        timing=TimingConfig(precision=0.5, budget_s=0.3, min_pairs=4, max_pairs=4),
        limits=Limits(load_s=load_s),
    )


def test_a_spawned_pool_works(evaluate_made):
    record = evaluated(evaluate_made, "math.sqrt", 120.0)
    assert (record.status, record.message) == (Status.PASSED, "")


def test_a_pool_whose_workers_die_is_a_timeout_that_says_of_what(evaluate_made):
    record = evaluated(evaluate_made, "own", 10.0)
    assert (record.status, record.reason) == (Status.TIMEOUT, "load")
    assert "; the last error in its log: ModuleNotFoundError: No module named 'assay_candidate_" in record.message
    assert "SpawnPoolWorker" in record.evidence["log_tail"]
