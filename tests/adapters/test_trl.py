"""Completions of a batch become rewards in their order."""

from concurrent.futures import Future

import pytest

from harness.adapters.trl import candidate, reward_function
from harness.records import Status
from tests.rewards.test_rewards import failed, passed

ANSWER = """First try:
```python
class ModelNew: first
```
Better:
```python
class ModelNew: {}
```
```
print()
```
"""


class Told:
    """An evaluator that has its records from the test, by what the source ends with."""

    def __init__(self, **found):
        self.found, self.seen = found, []

    def submit(self, problem, source, deadline_s=None):
        self.seen.append((problem, deadline_s))
        future = Future()
        future.set_result(self.found[source.split()[-1]])
        return future


def test_each_completion_has_its_reward_and_none_is_passed_on():
    evaluator = Told(fast=passed(2.0), wrong=failed(Status.INCORRECT), lost=failed(Status.HARNESS_ERROR))
    function = reward_function(evaluator, deadline_s=9.0)
    completions = [ANSWER.format(word) for word in ("fast", "wrong", "lost")]
    conversation = [{"role": "assistant", "content": ANSWER.format("fast")}]
    found = function(
        prompts=["p"] * 5,
        completions=[*completions, "I give up", conversation],
        problem=["a/1", "a/2", "a/3", "a/4", "a/5"],
        trainer_state=None,
    )
    assert found == [2.0, 0.0, None, 0.0, 2.0]
    assert evaluator.seen == [("a/1", 9.0), ("a/2", 9.0), ("a/3", 9.0), ("a/5", 9.0)]
    assert function.__name__ == "assay_speedup"


@pytest.mark.parametrize("completion", ["", [], [{"role": "assistant", "content": None}], "```python\nclass ModelNew"])
def test_a_completion_without_a_whole_block_has_no_candidate(completion):
    assert candidate(completion) == ""
