"""The HTTP interface of a Service: routes, who may use them, and how large a request may be."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from harness.api import SCHEMES, Config, feedback, reward
from harness.execution.workplace import Workplace
from harness.serve import openapi, prometheus, requests
from harness.serve.requests import BadRequest, Tasks, TaskView
from harness.serve.service import Service, Settings
from harness.serve.store import OPEN, Stored
from harness.version import VERSION

MOST_WAIT_S = 60.0
# For a client to send its whole request.
BODY_S = 30.0
# So many of the largest bodies may be on their way at a time: each connection's is kept until it is whole.
BODIES = 16
# How often a waiting client is looked for.
LOOK_S = 1.0
OPEN_ROUTES = ("/health", "/openapi.json")

Handler = Callable[[Request], Awaitable[Response]]


class Application:
    """Answers requests by a Service, which it starts and ends; `token` is what clients must send."""

    def __init__(
        self,
        config: Config,
        folder: Path,
        settings: Settings,
        token: str,
        most_body_bytes: int,
        workplace: Workplace | None = None,
    ) -> None:
        self._token = hashlib.sha256(token.encode()).digest()
        self._most_body_bytes = most_body_bytes
        # Of all bodies that are not whole yet.
        self._coming_bytes = 0
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self.service = Service(config, folder, settings, self._ended, workplace)
        routes: list[tuple[str, str, Handler]] = [
            ("POST", "/evaluate", self._evaluate),
            ("POST", "/evaluate/batch", self._batch),
            ("GET", "/tasks/{id}", self._task),
            ("DELETE", "/tasks/{id}", self._cancel),
            ("GET", "/health", self._health),
            ("GET", "/queue", self._queue),
            ("GET", "/metrics", self._metrics),
            ("GET", "/openapi.json", self._openapi),
        ]
        self.app = Starlette(
            routes=[Route(path, self._guarded(path, do), methods=[verb]) for verb, path, do in routes],
            exception_handlers={HTTPException: _no_route, Exception: _own_fault},
        )
        # A redirect would name the host that the request named, also to who has no token.
        self.app.router.redirect_slashes = False

    def _ended(self, identity: str) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, identity)

    def _wake(self, identity: str) -> None:
        for event in self._waiting.get(identity, ()):
            event.set()

    def _guarded(self, path: str, handler: Handler) -> Handler:
        """The handler, for those who know the token, with every refusal as JSON."""

        async def guarded(request: Request) -> Response:
            self._loop = asyncio.get_running_loop()
            request.state.arrived_s = time.time()
            try:
                if path not in OPEN_ROUTES:
                    self._check_token(request)
                return await handler(request)
            except BadRequest as error:
                headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else {}
                if error.status == 401:
                    headers["WWW-Authenticate"] = "Bearer"
                return _json({"error": str(error)}, error.status, headers)
            except sqlite3.Error as error:
                return _json({"error": f"tasks cannot be kept now: {error}"}, 503, {"Retry-After": "10"})

        return guarded

    def _check_token(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        digest = hashlib.sha256(given.strip().encode()).digest()
        # In constant time, whatever was given.
        if not hmac.compare_digest(digest, self._token) or scheme.lower() != "bearer":
            raise BadRequest(401, "send the service's token: Authorization: Bearer TOKEN")

    async def _body(self, request: Request) -> bytes:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise BadRequest(415, "send JSON: Content-Type: application/json")
        too_large = BadRequest(413, f"the body is larger than {self._most_body_bytes} bytes")
        told = request.headers.get("content-length", "")
        if told.isdigit() and len(told) < 20 and int(told) > self._most_body_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for part in request.stream():
                    body += part
                    self._coming_bytes += len(part)
                    if len(body) > self._most_body_bytes:
                        raise too_large
                    if self._coming_bytes > BODIES * self._most_body_bytes:
                        raise BadRequest(503, "too many large bodies are on their way; try again later")
        except TimeoutError:
            raise BadRequest(408, f"the body did not come within {BODY_S:g} s") from None
        except ClientDisconnect:
            raise BadRequest(400, "the client went away") from None
        finally:
            self._coming_bytes -= len(body)
        return bytes(body)

    async def _evaluate(self, request: Request) -> Response:
        wait_s = _wait_s(request)
        wanted = await asyncio.to_thread(requests.one, await self._body(request))
        (task,) = await asyncio.to_thread(self.service.submit, [wanted], request.state.arrived_s)
        if task.status == OPEN and wait_s:
            if not await self._waited(task.id, wait_s, request) and not wanted.task_id:
                # Nobody knows its id, and so nobody will ask for it.
                await asyncio.to_thread(self.service.cancel, task.id)
            task = await self._found(task.id)
        return _json(self._view(task), 202 if task.status == OPEN else 200)

    async def _batch(self, request: Request) -> Response:
        wanted = await asyncio.to_thread(requests.several, await self._body(request))
        names = [one.task_id for one in wanted if one.task_id]
        if len(set(names)) < len(names):
            raise BadRequest(400, "two requests of the batch have the same task_id")
        tasks = await asyncio.to_thread(self.service.submit, wanted, request.state.arrived_s)
        return _json(Tasks(tasks=[self._view(task) for task in tasks]), 202)

    async def _task(self, request: Request) -> Response:
        wait_s = _wait_s(request)
        task = await self._found(request.path_params["id"])
        if task.status == OPEN and wait_s:
            await self._waited(task.id, wait_s, request)
            task = await self._found(request.path_params["id"])
        return _json(self._view(task))

    async def _cancel(self, request: Request) -> Response:
        task = await self._found(request.path_params["id"])
        await asyncio.to_thread(self.service.cancel, task.id)
        return _json(self._view(await self._found(request.path_params["id"])))

    async def _found(self, identity: str) -> Stored:
        task = await asyncio.to_thread(self.service.task, identity)
        if task is None:
            raise BadRequest(404, "no such task; it may have ended so long ago that it is forgotten")
        return task

    async def _waited(self, identity: str, wait_s: float, request: Request) -> bool:
        """Wait until a task has ended, or for so long; False as soon as the client has gone away."""
        event = asyncio.Event()
        self._waiting.setdefault(identity, set()).add(event)
        try:
            # It may have ended before anybody listened.
            task = await asyncio.to_thread(self.service.task, identity)
            deadline = time.monotonic() + wait_s
            while task is not None and task.status == OPEN and (left_s := deadline - time.monotonic()) > 0:
                try:
                    await asyncio.wait_for(event.wait(), min(LOOK_S, left_s))
                    return True
                except TimeoutError:
                    if await request.is_disconnected():
                        return False
            return True
        finally:
            self._waiting[identity].discard(event)
            if not self._waiting[identity]:
                del self._waiting[identity]

    async def _health(self, request: Request) -> Response:
        alive = self.service.evaluator.alive
        held = any(use.held_since is not None for use in await asyncio.to_thread(self.service.fair_use.uses))
        trouble = self.service.trouble if alive else "no device is left"
        told = {"status": trouble or "ok", "held": held, "version": VERSION}
        return _json(told, 503 if trouble else 200)

    async def _queue(self, request: Request) -> Response:
        service = self.service
        known = {"tasks": service.length, "limit": service.settings.queue, "retry_after_s": service.retry_after_s()}
        devices = [device.spec for device in service.evaluator.devices]
        cards = await asyncio.to_thread(service.fair_use.uses)
        return _json(known | {"running": dict(service.running), "devices": devices, "cards": cards})

    async def _metrics(self, request: Request) -> Response:
        page = await asyncio.to_thread(prometheus.page, self.service)
        return PlainTextResponse(page, media_type=prometheus.MEDIA_TYPE)

    async def _openapi(self, request: Request) -> Response:
        return _json(openapi.document())

    def _view(self, task: Stored) -> TaskView:
        record = task.record
        running = task.status == OPEN and self.service.is_running(task.id)
        return TaskView(
            task_id=task.id,
            status="running" if running else task.status,  # type: ignore[arg-type]
            problem=record.problem if record else task.request.problem,
            accepted_at=task.accepted_at,
            ended_at=task.ended_at,
            cached=task.cached,
            error=task.error,
            record=msgspec.to_builtins(record) if record else None,
            feedback=feedback(record, source=task.request.candidate) if record else None,
            rewards={scheme: reward(record, scheme) for scheme in SCHEMES} if record else None,
        )


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path[:200]}"
    return _json(
        {"error": f"{what}: {error.detail}; GET /openapi.json has every route"}, error.status_code, error.headers
    )


async def _own_fault(request: Request, error: Exception) -> Response:
    return _json({"error": f"the service failed: {type(error).__name__}; its log says more"}, 500)


def _wait_s(request: Request) -> float:
    # KernelGYM has no such parameter; flashinfer-bench calls it timeout.
    text = request.query_params.get("wait", request.query_params.get("timeout", "0"))
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 1e9:
        raise BadRequest(400, f"wait={text[:40]}: seconds, 0 or more")
    return min(seconds, MOST_WAIT_S)


def _json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, "application/json")
