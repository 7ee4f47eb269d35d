"""PyTorch's own ways to run a reference. Each is a candidate, so that it runs by the same code as any other."""

from __future__ import annotations

from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate

CAPTIONS = {
    "eager": "The reference, unchanged.",
    "compile": "torch.compile of the reference.",
    "compile-max-autotune": "torch.compile of the reference, mode max-autotune without CUDA graphs.",
    "cuda-graph": "The reference captured in a CUDA graph for each call of a burst, replayed, and its output copied.",
    "tf32": "The reference with TF32 allowed in matrix products and convolutions.",
}
"""By their names in a config."""

ALLOWANCES = {"tf32": ("tf32",)}
"""Lower precisions that a baseline is allowed, whatever the run allows; the record says so."""


CAPTURED = frozenset({"cuda-graph"})
"""Those that read inputs where they lay when a call was captured: at one place for each call of a burst."""


def as_candidate(problem: Problem, baseline: str) -> Candidate:
    """The baseline as a candidate of `problem`, called `baseline:NAME`, which no file can be called."""
    return Candidate(
        problem=problem.id,
        name=f"baseline:{baseline}",
        path=problem.path,
        digest=problem.digest,
        caption=CAPTIONS[baseline],
        baseline=baseline,
    )
