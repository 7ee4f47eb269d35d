"""`run_eval.py serve`: a Service behind uvicorn, until a signal ends it."""

from __future__ import annotations

import os
from pathlib import Path

import uvicorn

from harness.api import Config
from harness.errors import UsageError
from harness.serve.app import Application
from harness.serve.service import Settings

TOKEN_VARIABLE = "ASSAY_TOKEN"
SHORTEST_TOKEN = 16
MOST_CONNECTIONS = 1024
# For answers under way when a signal comes.
GRACE_S = 5


def run(
    config: Config, folder: Path, settings: Settings, *, host: str, port: int, token: str, most_body_mb: float
) -> None:
    """Serve until SIGINT or SIGTERM. Raises UsageError where the service cannot start."""
    application = Application(config, folder, settings, token, int(most_body_mb * 1e6))
    try:
        uvicorn.run(
            application.app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
    except SystemExit as error:
        raise UsageError(f"cannot listen on {host}:{port}; choose another port with --port") from error
    finally:
        application.service.close()


def token(file: Path | None) -> str:
    """The clients' token, from `file` or else from the environment. Raises UsageError if there is none."""
    try:
        found = (file.read_text() if file else os.environ.get(TOKEN_VARIABLE, "")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the token in {file}: {error}") from error
    if len(found) < SHORTEST_TOKEN:
        where = f"{file}" if file else f"${TOKEN_VARIABLE}"
        raise UsageError(f"{where} has no token of {SHORTEST_TOKEN} characters or more; clients are known by it")
    return found
