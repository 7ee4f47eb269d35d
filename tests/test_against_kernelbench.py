"""benchmarks/against_kernelbench.py, with a made-up evaluator in place of KernelBench's, which needs a GPU."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.against_kernelbench import imported, other_sizes
from tests.packs.conftest import NEW

ROOT = Path(__file__).resolve().parents[1]
PROBLEM = """\
import torch
from torch import nn

batch_size = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(batch_size, 1024)]


def get_init_inputs():
    return []
"""
EVALUATOR = """\
import types


def eval_kernel_against_ref(original, custom, *, num_correct_trials, num_perf_trials, measure_performance, build_dir):
    assert (num_correct_trials, num_perf_trials, measure_performance) == (5, 100, True)
    if "min=0" not in custom:
        return types.SimpleNamespace(compiled=True, correctness=False)
    return types.SimpleNamespace(compiled=True, correctness=True, runtime=2.0, ref_runtime=3.0)
"""


def test_both_evaluate_the_same_files(tmp_path):
    levels, package, pack = (
        tmp_path / "checkout/KernelBench/level1",
        tmp_path / "checkout/src/kernelbench",
        tmp_path / "pack",
    )
    for folder in (levels, package, pack):
        folder.mkdir(parents=True)
    (levels / "19_ReLU.py").write_text(PROBLEM)
    (package / "__init__.py").touch()
    (package / "eval.py").write_text(EVALUATOR)
    (pack / "level_1_problem_19_sample_0_kernel.py").write_text(NEW)
    (pack / "level_1_problem_19_sample_1_kernel.py").write_text("batch_size = 16\n" + NEW.replace("min=0", "min=1"))
    program = [sys.executable, str(ROOT / "benchmarks/against_kernelbench.py"), str(tmp_path / "checkout"), str(pack)]
    quick = ["--set", "timing.budget_s=0.5", "--set", "timing.min_pairs=4"]
    command = [*program, "--out", str(tmp_path / "out"), "--device", "cpu", "--cards", "2", *quick]
    stopped = subprocess.run([*command, "--set", "no.such=1"], capture_output=True, text=True)
    assert stopped.returncode == 2, stopped.stdout + stopped.stderr
    assert "KernelBench sample_" in stopped.stdout
    (package / "eval.py").write_text("raise SystemExit")
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "KernelBench sample_" not in done.stdout, "what theirs said before is not asked again"
    found = json.loads((tmp_path / "out/rows.json").read_text())
    right, wrong = found["rows"]
    assert (right["theirs"], right["their_speedup"], right["ours"]) == ("correct", 1.5, "passed")
    assert (wrong["theirs"], wrong["their_speedup"], wrong["ours"]) == ("incorrect", None, "incorrect")
    assert (right["other_sizes"], wrong["other_sizes"]) == ([], ["batch_size"])
    assert found["figures"]["ratio"] == found["figures"]["kernelbench_s"] / found["figures"]["assay_s"]
    assert "KernelBench: 1 correct, 1 incorrect" in done.stdout
    again = imported(tmp_path / "out/pack", tmp_path / "unused", tmp_path / "checkout", 1)
    assert [path.stem for path in again] == ["sample_0"]


def test_other_sizes_are_those_that_inputs_are_made_from():
    assert other_sizes(PROBLEM, "batch_size = 32 * 2\nother = 1\n") == ["batch_size"]
    assert other_sizes(PROBLEM, "batch_size = 64\n") == []
    assert other_sizes(PROBLEM.replace("batch_size, 1024", "64, 1024"), "batch_size = 16\n") == []
