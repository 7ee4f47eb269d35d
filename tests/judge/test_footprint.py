"""What a problem's code leaves behind in a judge keeps the next problem out of it."""

import os
import sys

import pytest
import torch

from harness.judge.footprint import KEPT_BYTES, Footprint
from harness.machine import procfs

HOST = torch.device("cpu")


def test_nothing_has_changed_after_ordinary_work():
    before = Footprint(HOST)
    layer = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU())
    layer(torch.randn(2, 3, 8, 8)).sum().backward()
    del layer
    torch.manual_seed(5)
    assert before.changed() == ""


@pytest.mark.parametrize(
    ("target", "name", "value", "named"),
    [
        (torch.backends.cudnn, "benchmark", True, "torch.backends.cudnn"),
        (torch.nn.Linear, "forward", lambda self, x: x, "Linear.forward"),
        (torch.nn.functional, "relu", abs, "torch.nn.functional.relu"),
        (torch.Tensor, "__add__", lambda self, other: self, "Tensor.__add__"),
        (sys, "path", [*sys.path, "elsewhere"], "sys.path"),
    ],
)
def test_what_has_changed_is_named(target, name, value, named):
    before = Footprint(HOST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, name, value)
        assert before.changed() == named
    assert before.changed() == ""


@pytest.mark.parametrize(
    ("change", "restore", "named"),
    [
        (
            lambda: torch.set_default_dtype(torch.float64),
            lambda: torch.set_default_dtype(torch.float32),
            "torch.get_default_dtype()",
        ),
        (lambda: torch.set_flush_denormal(True), lambda: torch.set_flush_denormal(False), "torch.set_flush_denormal"),
        (
            lambda: torch.set_float32_matmul_precision("high"),
            lambda: torch.set_float32_matmul_precision("highest"),
            "torch.get_float32_matmul_precision()",
        ),
        (
            lambda: torch.set_grad_enabled(False),
            lambda: torch.set_grad_enabled(True),
            "torch.is_grad_enabled()",
        ),
        (lambda: os.environ.update(LEFT="1"), lambda: os.environ.pop("LEFT"), "os.environ"),
    ],
)
def test_switches_are_among_it(change, restore, named):
    before = Footprint(HOST)
    change()
    try:
        assert before.changed() == named
    finally:
        restore()
    assert before.changed() == ""


def test_tensors_that_are_still_held_are_told():
    before = Footprint(HOST)
    kept = torch.ones(3)
    assert before.changed() == "1 tensor"
    del kept
    assert before.changed() == ""


def test_memory_that_is_still_held_is_told(monkeypatch):
    used = iter([5 << 30, (5 << 30) + KEPT_BYTES + 1, 5 << 30])
    monkeypatch.setattr(procfs, "rss_bytes", lambda pid: next(used))
    before = Footprint(HOST)
    assert before.changed() == f"{KEPT_BYTES + 1} bytes of memory"
    assert before.changed() == ""
