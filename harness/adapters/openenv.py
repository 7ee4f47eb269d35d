"""An environment of OpenEnv: `reset` hands out a problem, each `step` is an answer and is told how good it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from harness import wording
from harness.adapters.answers import Evaluates, Judged, judged, judged_now, prompt
from harness.errors import UsageError


class KernelAction(Action):
    """What the model answered: a text with a fenced block of Python that has a ModelNew."""

    answer: str


class KernelObservation(Observation):
    """What the model should read: the task after `reset`, feedback after a `step`.

    `reward` is None where the harness failed, and the step does not count. `figures` have `compiled`, `correct` and
    `speedup`, `status` and `reason` are those of the record.
    """

    text: str
    status: str = ""
    reason: str = ""
    figures: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it


class KernelEnvironment(Environment[KernelAction, KernelObservation, State]):
    """Episodes of at most `turns` answers over problems, which are ids or texts of files: one after the other, unless
    `reset(problem=...)` names one of them. An episode ends before that with an answer that is faster for sure.

    Sessions share the evaluator and nothing else: give `create_app` a function that makes one of these.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        evaluator: Evaluates,
        problems: Sequence[str],
        *,
        scheme: str = "speedup",
        turns: int = 3,
        deadline_s: float | None = None,
    ) -> None:
        super().__init__()
        self._evaluator = evaluator
        self._problems = frozenset(problems)
        self._following = itertools.cycle(problems)
        self._scheme = scheme
        self._turns = turns
        self._deadline_s = deadline_s
        self._problem = ""
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, problem: str = "", **more: Any
    ) -> KernelObservation:
        """Begin an episode. Raises UsageError for a problem that is none of this environment's."""
        # Any client of OpenEnv's server says this, and a problem's text is run by the judge.
        if problem and problem not in self._problems:
            raise UsageError(f"there is no problem '{wording.plain(problem, 100)}' among those of this environment")
        self._problem = problem or next(self._following)
        self._state = State(episode_id=episode_id, step_count=0)
        return KernelObservation(text=prompt(self._problem))

    def step(self, action: KernelAction, timeout_s: float | None = None, **more: Any) -> KernelObservation:
        """Evaluate one answer; `timeout_s` counts the wait for a device, too."""
        return self._observed(judged_now(*self._asked(action, timeout_s)))

    async def step_async(self, action: KernelAction, timeout_s: float | None = None, **more: Any) -> KernelObservation:
        """As `step`."""
        return self._observed(await judged(*self._asked(action, timeout_s)))

    @property
    def state(self) -> State:
        """The episode's id, and how many of its answers counted."""
        return self._state

    def _asked(self, action: KernelAction, timeout_s: float | None) -> tuple[Any, ...]:
        if not self._problem:
            # OpenEnv's server makes an environment for a step of its own.
            self.reset()
        return self._evaluator, self._problem, action.answer, self._scheme, timeout_s or self._deadline_s

    def _observed(self, found: Judged) -> KernelObservation:
        self._state.step_count += found.reward is not None
        return KernelObservation(
            text=found.feedback,
            reward=found.reward,
            done=found.sure or self._state.step_count >= self._turns,
            status=found.status,
            reason=found.reason,
            figures=found.figures,
        )
