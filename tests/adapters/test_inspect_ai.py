"""Inspect's own evaluation of scripted answers, offline."""

import math

import pytest

from tests.adapters.conftest import ANSWER, PROBLEM

inspect_ai = pytest.importorskip("inspect_ai", reason="Inspect is not installed: pip install 'kernel-assay[inspect]'")

from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput  # noqa: E402
from inspect_ai.solver import solver  # noqa: E402

from harness.adapters.inspect_ai import kernel_scorer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@solver
def scripted(texts):
    """In place of a model: Inspect counts tokens by a file that it would have to fetch."""

    async def solve(state, generate):
        state.output = ModelOutput.from_content("scripted", texts[state.sample_id - 1])
        return state

    return solve


def test_each_sample_has_the_reward_of_its_answer(told, tmp_path):
    words = ("fast", "wrong", "lost", "found_again")
    texts = [*(ANSWER.format(word) for word in words), "I give up"]
    samples = [Sample(input="x", target="toy/a")]
    samples += [Sample(input="x", metadata={"problem": PROBLEM}) for _ in texts[1:]]
    task = inspect_ai.Task(dataset=samples, solver=scripted(texts), scorer=kernel_scorer(told, deadline_s=9.0))
    (log,) = inspect_ai.eval(task, model="none", log_dir=str(tmp_path), max_samples=1, display="none")
    assert log.status == "success", log.error
    scores = [sample.scores["assay_speedup"] for sample in log.samples]
    assert [score.value for score in scores[:2]] == [2.0, 0.0]
    assert math.isnan(scores[2].value)
    assert scores[2].reason == "harness_failed"
    assert [score.value for score in scores[3:]] == [2.0, 0.0]
    assert scores[0].metadata == {"status": "passed", "reason": "", "compiled": 1.0, "correct": 1.0, "speedup": 2.0}
    assert "ModelNew" in scores[4].explanation
    assert [seen[0] for seen in told.seen] == ["toy/a", *[PROBLEM] * 5]
    # What the harness failed at counts for nothing.
    assert log.results.scores[0].metrics["mean"].value == pytest.approx(1.0)
