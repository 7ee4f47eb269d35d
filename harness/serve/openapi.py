"""The interface as an OpenAPI document, from the types that requests are checked by."""

from __future__ import annotations

from typing import Any

import msgspec

from harness.serve.requests import MOST_TASKS, EvaluateRequest, Tasks, TaskView
from harness.version import VERSION

ERRORS = {
    400: "not a valid request; `error` says why",
    401: "no token, or a wrong one",
    403: "the operator does not allow it",
    404: "no such problem or task",
    408: "the body did not come in time",
    409: "the task_id is that of another submission",
    413: "the body, or the batch, is too large",
    415: "not JSON",
    429: "the queue is full; Retry-After says when to come again",
    503: "nothing can be accepted now; Retry-After may say when",
}
WAIT = "Seconds to wait for the task's end, at most 60."


def document() -> dict[str, Any]:
    """The document, in OpenAPI 3.1."""
    (request, task, tasks), components = msgspec.json.schema_components(
        [EvaluateRequest, TaskView, Tasks], ref_template="#/components/schemas/{name}"
    )
    batch = {
        "type": "object",
        "required": ["tasks"],
        "properties": {"tasks": {"type": "array", "minItems": 1, "maxItems": MOST_TASKS, "items": request}},
    }
    wait = {"name": "wait", "in": "query", "schema": {"type": "number", "minimum": 0}, "description": WAIT}
    identity = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    posted = (400, 401, 403, 404, 408, 409, 413, 415, 429, 503)
    paths = {
        "/evaluate": {"post": _does("Submit one candidate.", posted, {200: task, 202: task}, [wait], request)},
        "/evaluate/batch": {"post": _does("Submit several candidates: all or none.", posted, {202: tasks}, [], batch)},
        "/tasks/{id}": {
            "get": _does("A task, and its result when it has ended.", (400, 401, 404), {200: task}, [identity, wait]),
            "delete": _does("Cancel a task that has not ended.", (401, 404), {200: task}, [identity]),
        },
        "/health": {"get": _does("Whether evaluations are possible; needs no token.", (503,), {200: {}})},
        "/queue": {"get": _does("How many tasks wait, what runs, and who else uses the cards.", (401,), {200: {}})},
        "/metrics": {"get": _does("Counters and gauges for Prometheus.", (401,), {200: {}})},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Assay", "version": VERSION},
        "security": [{"token": []}],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _does(
    summary: str,
    errors: tuple[int, ...],
    answers: dict[int, Any],
    parameters: list[dict[str, Any]] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    found: dict[str, Any] = {"summary": summary, "parameters": parameters or []}
    found["responses"] = {
        str(code): {"description": "the answer"} | ({"content": _content(schema)} if schema else {})
        for code, schema in answers.items()
    } | {str(code): {"description": ERRORS[code]} for code in errors}
    if body is not None:
        found["requestBody"] = {"required": True, "content": _content(body)}
    return found


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
