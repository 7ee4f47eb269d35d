"""`run_eval.py serve`: a Service behind uvicorn, until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from harness import config as configs
from harness.api import Config
from harness.errors import UsageError
from harness.execution.workplace import Workplace
from harness.serve.app import Application
from harness.serve.connections import BoundedConnection
from harness.serve.service import Settings

TOKEN_VARIABLE = "ASSAY_TOKEN"
SHORTEST_TOKEN, LARGEST_TOKEN_FILE = 16, 4 << 10
MOST_CONNECTIONS = 1024
# For answers under way when a signal comes.
GRACE_S = 5


def run(
    config: Config,
    folder: Path,
    settings: Settings,
    *,
    host: str,
    port: int,
    token: str,
    most_body_mb: float,
    tell: Callable[[], None] = lambda: None,
    workplace: Workplace | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `tell` is called once clients can connect.

    Raises UsageError where the service cannot start.
    """
    with contextlib.closing(_bound(host, port)) as listening:
        application = Application(config, folder, settings, token, int(most_body_mb * 1e6), workplace)
        options = uvicorn.Config(
            application.app,
            http=BoundedConnection,
            # Its warnings are of what clients send, one or two lines each, and anybody may be a client.
            log_level="error",
            # An upgraded connection would no longer be a bounded one.
            ws="none",
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
        try:
            # uvicorn ends tidily by a signal, and then raises it again.
            with contextlib.suppress(KeyboardInterrupt):
                _Server(options, tell).run([listening])
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        finally:
            application.service.close()


class _Server(uvicorn.Server):
    """Tells when it listens."""

    def __init__(self, options: uvicorn.Config, tell: Callable[[], None]) -> None:
        super().__init__(options)
        self._tell = tell

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()


def _bound(host: str, port: int) -> socket.socket:
    """A socket of that address, before anything is started for it. Raises UsageError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family)
        # Its last owner's connections may linger.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Not listening yet: a client would wait for one that is only starting.
        bound.bind(address)
        return bound
    except (OSError, UnicodeError) as error:
        raise _cannot_listen(host, port, error) from error


def _cannot_listen(host: str, port: int, error: Exception) -> UsageError:
    return UsageError(f"cannot listen on {host}:{port}: {error}; choose another with --host or --port")


def token(file: Path | None) -> str:
    """The clients' token, from `file` or else from the environment. Raises UsageError if there is none."""
    found = configs.text(file, "token in", LARGEST_TOKEN_FILE) if file else os.environ.get(TOKEN_VARIABLE, "")
    found, where = found.strip(), f"{file}" if file else f"${TOKEN_VARIABLE}"
    if len(found) < SHORTEST_TOKEN:
        raise UsageError(f"{where} has no token of {SHORTEST_TOKEN} characters or more; clients are known by it")
    if not (found.isascii() and found.isprintable()):
        raise UsageError(f"the token in {where} has characters that a header cannot hold; use ASCII letters and digits")
    return found
