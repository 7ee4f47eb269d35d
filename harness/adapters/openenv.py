"""An environment of OpenEnv: `reset` hands out a problem, each `step` is an answer and is told how good it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from starlette.exceptions import HTTPException

from harness import wording
from harness.adapters.answers import Evaluates, Judged, judged, judged_now, prompt
from harness.errors import UsageError

# Whose turn it is, of the problems of all environments over one evaluator: OpenEnv's server makes one for each request.
_TURNS = WeakKeyDictionary[Evaluates, dict[tuple[str, ...], Iterator[str]]]()


class Refused(UsageError, HTTPException):
    """A reset or step that cannot be meant. Over HTTP it is 400 with its sentence, and no failure of the server."""

    def __init__(self, sentence: str) -> None:
        HTTPException.__init__(self, 400, sentence)

    def __str__(self) -> str:
        return self.detail


class KernelAction(Action):
    """What the model answered: a text with a fenced block of Python that has a ModelNew.

    `problem` is the one that it answers, as the observation of `reset` said it; it is needed where a step has no
    episode, which is each step of `POST /step`.
    """

    answer: str
    problem: str = ""


class KernelObservation(Observation):
    """What the model should read: the task after `reset`, feedback after a `step`. `problem` is the episode's.

    `reward` is None where the harness failed, and the step does not count. `figures` have `compiled`, `correct` and
    `speedup`, `status` and `reason` are those of the record.
    """

    text: str
    problem: str = ""
    status: str = ""
    reason: str = ""
    figures: dict[str, float] = {}  # noqa: RUF012 - pydantic copies it


class KernelEnvironment(Environment[KernelAction, KernelObservation, State]):
    """Episodes of at most `turns` answers over problems, which are ids or texts of files: one after the other, unless
    `reset(problem=...)` names one of them. An episode ends before that with an answer that is faster for sure.

    Sessions share the evaluator, and whose turn it is of the problems: give `create_app` a function that makes one of
    these.
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
        if not problems:
            raise UsageError("an environment needs at least one problem")
        self._evaluator = evaluator
        self._problems = frozenset(problems)
        self._following = _TURNS.setdefault(evaluator, {}).setdefault(tuple(problems), itertools.cycle(problems))
        self._scheme = scheme
        self._turns = turns
        self._deadline_s = deadline_s
        self._problem = ""
        self._done = False
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, problem: str = "", **more: Any
    ) -> KernelObservation:
        """Begin an episode. Raises UsageError for a problem that is none of this environment's."""
        self._begin(problem or next(self._following), episode_id)
        return KernelObservation(text=prompt(self._problem), problem=self._problem)

    def step(self, action: KernelAction, timeout_s: float | None = None, **more: Any) -> KernelObservation:
        """Evaluate one answer; `timeout_s` counts the wait for a device, too.

        Raises UsageError after the episode's end, and where it is not sure which problem the answer is to.
        """
        return self._observed(judged_now(*self._asked(action, timeout_s)))

    async def step_async(self, action: KernelAction, timeout_s: float | None = None, **more: Any) -> KernelObservation:
        """As `step`."""
        return self._observed(await judged(*self._asked(action, timeout_s)))

    @property
    def state(self) -> State:
        """The episode's id, and how many of its answers counted."""
        return self._state

    def _asked(self, action: KernelAction, timeout_s: float | None) -> tuple[Any, ...]:
        if self._done:
            raise Refused("this episode is done: a step needs a reset before it")
        if not self._problem:
            self._begin(action.problem or self._only_problem())
        if action.problem not in ("", self._problem):
            raise Refused("the action names another problem than that of its episode")
        return self._evaluator, self._problem, action.answer, self._scheme, timeout_s or self._deadline_s

    def _only_problem(self) -> str:
        if len(self._problems) > 1:
            raise Refused(
                "there is no episode to take a step in: POST /step has none, so its action names its 'problem', as the "
                "observation of reset said it; a session over a websocket begins with a reset"
            )
        return next(iter(self._problems))

    def _begin(self, problem: str, episode_id: str | None = None) -> None:
        # Any client of OpenEnv's server says this, and a problem's text is run by the judge.
        if problem not in self._problems:
            raise Refused(f"there is no problem '{wording.plain(problem, 100)}' among those of this environment")
        self._problem, self._done = problem, False
        self._state = State(episode_id=episode_id, step_count=0)

    def _observed(self, found: Judged) -> KernelObservation:
        self._state.step_count += found.reward is not None
        self._done = found.sure or self._state.step_count >= self._turns
        return KernelObservation(
            text=found.feedback,
            problem=self._problem,
            reward=found.reward,
            done=self._done,
            status=found.status,
            reason=found.reason,
            figures=found.figures,
        )
