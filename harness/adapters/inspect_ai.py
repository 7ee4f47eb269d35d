"""A scorer for Inspect (`inspect_ai`): a candidate's reward as the score of a sample."""

from __future__ import annotations

from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from harness.adapters.answers import Evaluates, judged


def kernel_scorer(evaluator: Evaluates, scheme: str = "speedup", *, deadline_s: float | None = None) -> Scorer:
    """A scorer of answers by this evaluator, as a Task of Inspect takes it.

    A sample's problem is `problem` of its metadata, or else its target: an id, or the text of a problem's file. The
    score is the reward of `scheme`; its explanation is the feedback, its metadata have `status`, `reason`, `compiled`,
    `correct` and `speedup`. A sample that the harness failed at twice stays without a score.
    """

    @scorer(metrics=[mean(), stderr()], name=f"assay_{scheme}")
    def assay() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            problem = str(state.metadata.get("problem") or target.text)
            found = await judged(evaluator, problem, state.output.completion, scheme, deadline_s)
            told: dict[str, Any] = {"answer": found.source, "explanation": found.feedback}
            told["metadata"] = {"status": found.status, "reason": found.reason} | found.figures
            if found.reward is None:
                return Score.unscored(reason="harness_failed", **told)
            return Score(value=found.reward, **told)

        return score

    return assay()
