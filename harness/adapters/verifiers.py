"""Tasks and an environment of several turns for `verifiers` (its v1 interface, 0.4 and later).

A package of yours names the problems and exports what is here; docs/adapters.md has one.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Iterable
from typing import Any

import msgspec
import verifiers.v1 as vf

from harness.adapters.answers import Judged, judged, prompt
from harness.api import AssayError, Evaluator


class HarnessFailed(AssayError):
    """The harness failed at a candidate, twice: the rollout has no reward, and `retries` may repeat it."""


class KernelData(vf.TaskData):
    """A task: its prompt has the problem's source. `problem` is its id, or the text of its file."""

    problem: str


class KernelTaskConfig(vf.TaskConfig):
    """How answers are judged: `config` is a config of Assay, by path, `deadline_s` counts from an answer."""

    config: str = ""
    scheme: str = "speedup"
    deadline_s: float | None = None


class KernelState(vf.State):
    """The last answer of a rollout that was judged, and what it has earned."""

    answer: str = ""
    found: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it


class KernelTask(vf.Task[KernelData, KernelState, KernelTaskConfig]):
    """Judges a rollout's last answer."""

    @vf.reward
    async def kernel(self, trace: Any) -> float:
        """The reward of the last answer, by the config's scheme. Raises HarnessFailed."""
        found = await self.judged(trace)
        if found.reward is None:
            raise HarnessFailed(f"{found.reason}: {found.feedback[:300]}")
        return found.reward

    @vf.metric
    async def figures(self, trace: Any) -> dict[str, float]:
        """`compiled`, `correct` and `speedup` of the last answer."""
        return (await self.judged(trace)).figures

    async def judged(self, trace: Any) -> Judged:
        """What the last answer of a rollout has earned; each answer is evaluated once."""
        answer, state = trace.last_reply, trace.state
        if state.answer == answer and state.found:
            return msgspec.convert(state.found, Judged)
        evaluator = _evaluator(self.config.config)
        found = await judged(evaluator, self.data.problem, answer, self.config.scheme, self.config.deadline_s)
        if found.reward is not None:
            state.answer, state.found = answer, msgspec.to_builtins(found)
        return found


class KernelTasksetConfig(vf.TasksetConfig):
    """`problems` are ids, or texts of files."""

    problems: list[str] = []  # noqa: RUF012 - pydantic copies it
    task: KernelTaskConfig = KernelTaskConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """A task for each problem."""

    def load(self) -> Iterable[KernelTask]:
        """Raises UsageError for an unknown problem."""
        for problem in self.config.problems:
            yield KernelTask(KernelData(prompt=prompt(problem), problem=problem), self.config.task)


class KernelEnvConfig(vf.EnvConfig):
    """`turns` is the most answers that an episode has."""

    agent: vf.AgentConfig = vf.AgentConfig()
    turns: int = 3


class KernelEnv(vf.Env[KernelEnvConfig]):
    """An agent answers, reads the feedback, and answers again, until it is faster for sure or has no turn left."""

    async def run(self, task: KernelTask, agents: Any) -> None:
        """One episode."""
        async with agents.agent.interaction(task) as exchange:
            said = await exchange.turn()
            for _ in range(self.config.turns - 1):
                if said.terminated:
                    return
                found = await task.judged(exchange.trace)
                if found.sure:
                    return
                said = await exchange.turn(found.feedback)


@functools.cache
def _evaluator(config: str) -> Evaluator:
    """The one of this process for a config, which all rollouts share."""
    found = Evaluator(config or None)
    atexit.register(found.close, cancel=True)
    return found
