"""What clients send and get: typed, bounded, with the field names of others where they mean the same."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from harness import wording
from harness.catalog.sources import MOST_BYTES
from harness.errors import AssayError, nearest

MOST_TASKS = 256
MOST_DEADLINE_S = 86_400.0
PRIORITIES = {"low": -1, "normal": 0, "high": 1}

Identity = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$(?!\n)")]
Text = Annotated[str, msgspec.Meta(max_length=MOST_BYTES)]
# What the patterns of names say.
LETTERS = {
    name: f"letters, digits, '_', '-' and '.', at most {most}" for name, most in {"name": 80, "task_id": 100}.items()
}
Word = Annotated[str, msgspec.Meta(max_length=200)]

ALIASES = {"kernel_code": "candidate", "reference_code": "problem_source", "force_refresh": "force"}
"""Field names of KernelGYM, and ours of the same meaning (docs/serve.md)."""


class BadRequest(AssayError):
    """A request that cannot be carried out; `status` is that of the answer, `retry_after_s` may say when it can be."""

    def __init__(self, status: int, message: str, retry_after_s: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class EvaluateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One candidate to evaluate: its source, and its problem by id or, where the operator allows it, by source.

    `deadline_s` counts from the arrival of the request to the begin of its evaluation; 0 means the service's own.
    `force` measures anew what has a result. A `task_id` of the client's makes it safe to send a request twice.
    """

    candidate: Text
    problem: Word = ""
    problem_source: Text = ""
    variant: Word = "default"
    precision: Word = "default"
    name: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]{0,79})?$(?!\n)")] = ""
    priority: Literal["low", "normal", "high"] = "normal"
    deadline_s: Annotated[float, msgspec.Meta(ge=0, le=MOST_DEADLINE_S)] = 0.0
    force: bool = False
    task_id: Identity | None = None


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a task.

    `status` is pending, running, completed (there is a `record`), failed (`error` says why it could not be evaluated as
    asked for) or cancelled. `cached`: the record is that of an earlier submission of the same content. `feedback` is
    for the model that wrote the candidate; `record` is not, since its evidence quotes expected outputs. `rewards` has
    each scheme's, null where the evaluation says nothing about the candidate. Times are seconds since 1970.
    """

    task_id: str
    status: Literal["pending", "running", "completed", "failed", "cancelled"]
    problem: str
    accepted_at: float
    ended_at: float | None = None
    cached: bool = False
    error: str = ""
    record: dict[str, Any] | None = None
    feedback: str | None = None
    rewards: dict[str, float | None] | None = None


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """Several tasks, in the order of the request."""

    tasks: list[TaskView]


def one(body: bytes) -> EvaluateRequest:
    """The request in a body. Raises BadRequest."""
    return _request(_decoded(body), "")


def several(body: bytes) -> list[EvaluateRequest]:
    """The requests in a body like {"tasks": [...]}. Raises BadRequest."""
    found = _decoded(body)
    tasks = found.get("tasks")
    if not isinstance(tasks, list) or set(found) != {"tasks"} or not 0 < len(tasks) <= MOST_TASKS:
        raise BadRequest(400, f'a batch is {{"tasks": [...]}} with 1 to {MOST_TASKS} requests')
    return [_request(item, f"tasks[{number}]: ") for number, item in enumerate(tasks)]


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        # Not by msgspec, which takes the last of two fields of one name.
        found = json.loads(body.decode(), object_pairs_hook=_fields, parse_constant=_no_number)
        # JSON may name halves of surrogate pairs, which nothing can store or answer with.
        msgspec.json.encode(found)
    except UnicodeEncodeError as error:
        raise BadRequest(400, "half a surrogate pair in the body") from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise BadRequest(400, f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest(400, "the body is not a JSON object")
    return found


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        (name, times) = Counter(name for name, _ in pairs).most_common(1)[0]
        raise BadRequest(400, f"'{wording.plain(name, 100)}' is given {times} times in one object")
    return fields


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _request(found: Any, where: str) -> EvaluateRequest:
    if not isinstance(found, dict):
        raise BadRequest(400, f"{where}not a JSON object")
    fields = EvaluateRequest.__struct_fields__
    renamed: dict[str, Any] = {}
    for name, value in found.items():
        own = ALIASES.get(name, name)
        if own not in fields:
            raise BadRequest(400, f"{where}unknown field '{name[:100]}'; {nearest(name, (*fields, *ALIASES))}")
        if own in renamed:
            raise BadRequest(400, f"{where}'{own}' is given twice, once by another name")
        renamed[own] = value
    try:
        request = msgspec.convert(renamed, EvaluateRequest)
    except msgspec.ValidationError as error:
        message, _, at = str(error).partition(" - at `$.")
        field = at.rstrip("`")
        said = LETTERS.get(field, "") if "matching regex" in message else wording.without_types(message)
        if message.startswith("Invalid enum"):
            said += f"; one of {', '.join(get_args(get_type_hints(EvaluateRequest)[field]))}"
        raise BadRequest(400, f"{where}{field}: {said}") from error
    if bool(request.problem) == bool(request.problem_source):
        raise BadRequest(400, f"{where}give either 'problem' (an id) or 'problem_source'")
    return request
