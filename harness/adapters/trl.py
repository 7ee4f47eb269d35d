"""A reward function as GRPOTrainer of TRL calls it: lists in, a list out. Needs no package of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harness.adapters.answers import Completion, candidate
from harness.api import Evaluator, reward
from harness.errors import UsageError, nearest


class RewardFunction(Protocol):
    """What GRPOTrainer takes; it logs the reward by the function's `__name__`."""

    __name__: str

    def __call__(self, prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float | None]:
        """One reward a completion; None leaves a sample out. `columns` has the dataset's, one value a completion."""


def reward_function(
    evaluator: Evaluator,
    scheme: str = "speedup",
    *,
    problem_column: str = "problem",
    own_kernels: bool = False,
    deadline_s: float | None = None,
) -> RewardFunction:
    """A reward function that has completions evaluated, all of a batch side by side.

    The dataset's `problem_column` has each prompt's problem, as Evaluator.submit takes it. The candidate is the last
    fenced block with a ModelNew in a completion's last message; one without such a block earns 0.
    """

    def kernel_reward(prompts: Sequence[Any], completions: Sequence[Completion], **columns: Any) -> list[float | None]:
        if problem_column not in columns:
            valid = nearest(problem_column, columns)
            raise UsageError(f"the dataset has no column '{problem_column}' with the problems; {valid}")
        futures = []
        texts = [candidate(completion) for completion in completions]
        for problem, text in zip(columns[problem_column], texts, strict=True):
            futures.append(evaluator.submit(problem, f"{text}\n", deadline_s=deadline_s) if text else None)
        return [reward(future.result(), scheme, own_kernels=own_kernels) if future else 0.0 for future in futures]

    kernel_reward.__name__ = f"assay_{scheme}"
    return kernel_reward
