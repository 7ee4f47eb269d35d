"""What a model is asked and what it answers, for all adapters: prompts, candidates in answers, and their judgement."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness import wording
from harness.api import Record, Status, feedback, reward
from harness.catalog import problems, sources
from harness.errors import UsageError
from harness.packs.fences import blocks

Completion = str | Sequence[dict[str, Any]]
"""A text, or the messages of a conversation."""

NO_CANDIDATE = "There is no fenced block of Python with a ModelNew in the answer."
# Of one candidate, where the harness failed at the first.
TRIES = 2
TASK = """Write a faster version of this PyTorch module, as a class ModelNew with the same constructor and forward.
You may write C++ or CUDA by torch.utils.cpp_extension.load_inline, or Triton. What it computes must be as exact
as PyTorch's. Answer with the whole file in one fenced block of Python.

```python
{source}
```
"""


class Evaluates(Protocol):
    """What adapters need of an Evaluator."""

    async def aevaluate(self, problem: str | Path, candidate: str | Path, **options: Any) -> Record:
        """The record of one candidate."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer has earned.

    `reward` is None where the harness failed: the answer is neither good nor bad. `source` is the candidate, empty
    where there is none. `feedback` is for the model. `figures` are for a logbook: `compiled` and `correct` are 0 or 1,
    `speedup` 0 where there is none. `sure`: the whole interval of the speedup is above 1.
    """

    reward: float | None
    source: str
    feedback: str
    status: str
    reason: str = ""
    figures: dict[str, float]
    sure: bool = False


def prompt(problem: str) -> str:
    """What a model is asked for a problem: its id, its path, or the text of its file. Raises UsageError."""
    text = problem if "\n" in problem else sources.load(problems.by_name(problem)).decode()
    return TASK.format(source=text.strip())


async def judged(
    evaluator: Evaluates, problem: str, answer: Completion, scheme: str, deadline_s: float | None = None
) -> Judged:
    """Evaluate what a model answered; once more where the harness failed. Raises UsageError for an unknown problem."""
    source = candidate(answer)
    if not source:
        figures = {"compiled": 0.0, "correct": 0.0, "speedup": 0.0}
        return Judged(reward=0.0, source="", feedback=NO_CANDIDATE, status="no_candidate", figures=figures)
    for _ in range(TRIES):
        record = await evaluator.aevaluate(problem, f"{source}\n", deadline_s=deadline_s)
        if reward(record, scheme) is not None:
            break
    return _judged(record, source, scheme)


def judged_now(
    evaluator: Evaluates, problem: str, answer: Completion, scheme: str, deadline_s: float | None = None
) -> Judged:
    """As `judged`, for callers without an event loop."""
    return asyncio.run(judged(evaluator, problem, answer, scheme, deadline_s))


def candidate(completion: Completion) -> str:
    """The source in a completion: its last fenced block with a ModelNew, or empty. Raises UsageError for none."""
    found = [block.text for block in blocks(_said(completion)) if "ModelNew" in block.text and not block.fault]
    return found[-1] if found else ""


def _said(completion: Completion | None) -> str:
    """The text of a completion's last message, whose content may be in parts; empty where a model said nothing."""
    if completion is None or isinstance(completion, str):
        return completion or ""
    messages = _must_be(Sequence, completion, "a completion", "a text or a list of messages")
    last = _must_be(Mapping, messages[-1], "the last message of a completion", "a mapping") if messages else {}
    content = last.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = [
        _must_be(Mapping, part, "a part of a message's content", "a mapping")
        for part in _must_be(Sequence, content, "the content of a message", "a text or a list of parts")
    ]
    texts = [part.get("text") for part in parts if part.get("type", "text") == "text"]
    return "".join(_must_be(str, text, "the text of a message's part", "a text") for text in texts if text is not None)


def _must_be(kind: type, value: Any, what: str, wanted: str) -> Any:
    """Raises UsageError: a framework gives what its user's dataset or model holds."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} is {wording.a(type(value).__name__)}, not {wanted}")
    return value


def _judged(record: Record, source: str, scheme: str) -> Judged:
    figures = {
        "compiled": float((reward(record, "stages") or 0.0) > 0.0),
        "correct": float(record.status is Status.PASSED),
        "speedup": record.speedup or 0.0,
    }
    return Judged(
        reward=reward(record, scheme),
        source=source,
        feedback=feedback(record, source=source),
        status=str(record.status),
        reason=record.reason,
        figures=figures,
        sure=(record.speedup_lo or 0.0) > 1.0,
    )
