"""An evaluator that has its records from the test, and answers that a model might give."""

import pytest

from harness.records import Status
from tests.rewards.test_rewards import failed, passed

ANSWER = """Here it is:
```python
class ModelNew: {}
```
"""
PROBLEM = "class Model: pass\n"


class Told:
    """Its records by what the source ends with; several of one word come one after the other."""

    def __init__(self, **found):
        self.found, self.seen = found, []

    async def aevaluate(self, problem, source, deadline_s=None):
        self.seen.append((problem, source.split()[-1], deadline_s))
        found = self.found[source.split()[-1]]
        return found.pop(0) if isinstance(found, list) else found


@pytest.fixture
def told():
    lost = failed(Status.HARNESS_ERROR, "judge_lost")
    return Told(
        slow=passed(0.5),
        fast=passed(2.0),
        wrong=failed(Status.INCORRECT),
        lost=lost,
        found_again=[lost, passed(2.0)],
    )
