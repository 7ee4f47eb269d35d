"""Inputs that are there when a burst asks for them: on a card they are drawn while a runner enqueues."""

from __future__ import annotations

from harness.judge.planning import Workload
from harness.judge.reference import Reference
from harness.links.link import Draw
from harness.machine.pauses import pause

# Of calls' inputs and outputs, the most that may be there beside what a burst holds.
AHEAD_BYTES = 1 << 26


class DrawnAhead:
    """A problem's draws, of which up to `most` may wait.

    A candidate's are `fresh`. The baseline is ours and remembers nothing, so on a card it has the same ones `again` in
    every burst: that they differ from each other is what counts for a cache.
    """

    def __init__(self, reference: Reference, most: int) -> None:
        self._reference = reference
        self.most = most
        self._waiting: list[Draw] = []
        self._baselines: list[Draw] = []

    def fresh(self) -> Draw:
        """One that nobody has had."""
        return self._waiting.pop() if self._waiting else self._draw()

    def again(self, calls: int) -> list[Draw]:
        """The baseline's, all fresh where these are too large to be kept."""
        while len(self._baselines) < min(calls, self.most):
            self._baselines.append(self._draw())
        return self._baselines[:calls] + [self._draw() for _ in range(calls - self.most)]

    def refill(self, calls: int) -> None:
        """Draw until a burst of so many `fresh` ones finds all of them."""
        while len(self._waiting) < min(calls, self.most):
            self._waiting.append(self._draw())

    def _draw(self) -> Draw:
        pause()
        return self._reference.draw()


def most_ahead(reference: Reference, plan: Workload) -> int:
    """How many draws may wait. On the CPU none: what the judge does before a burst has to be alike on both sides."""
    if reference.device.type == "cpu":
        return 0
    return min(plan.most_calls, AHEAD_BYTES // max(1, plan.call_bytes))
