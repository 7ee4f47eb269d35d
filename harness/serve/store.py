"""The tasks of a service on disk: accepted before a client hears of them, kept until their results are old.

SQLite keeps them through a kill at any moment; one service at a time has the file.
"""

from __future__ import annotations

import sqlite3
import threading
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness import records
from harness.errors import UsageError
from harness.records import Record
from harness.serve.requests import EvaluateRequest

FILE = "tasks.sqlite"
OPEN = "pending"
TABLES = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, request BLOB NOT NULL, accepted_at REAL NOT NULL,
    expires_at REAL NOT NULL, status TEXT NOT NULL, ended_at REAL, cached INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '', record BLOB
) STRICT;
CREATE INDEX IF NOT EXISTS by_status ON tasks (status, accepted_at);
CREATE TABLE IF NOT EXISTS results (content TEXT PRIMARY KEY, record BLOB NOT NULL, ended_at REAL NOT NULL) STRICT;
"""
COLUMNS = "id, content, request, accepted_at, expires_at, status, ended_at, cached, error, record"


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it is kept; times are seconds since 1970, `content` is a digest of all that its result depends on."""

    id: str
    content: str
    request: EvaluateRequest
    accepted_at: float
    expires_at: float
    status: str = OPEN
    ended_at: float | None = None
    cached: bool = False
    error: str = ""
    record: Record | None = None


class Store:
    """Tasks and results in `folder`. Thread-safe. What a method has written is on disk when it returns.

    Raises UsageError if the folder cannot be written or another service has it.
    """

    def __init__(self, folder: Path) -> None:
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._base = sqlite3.connect(folder / FILE, check_same_thread=False, isolation_level=None, timeout=1.0)
            # Exclusive: a second service finds the file locked.
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                self._base.execute(f"PRAGMA {pragma}")
            self._base.executescript(TABLES)
        except (OSError, sqlite3.Error) as error:
            why = "another service uses it" if "locked" in str(error) else str(error)
            raise UsageError(f"cannot keep tasks in {folder}: {why}; choose another folder with --dir") from error

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def accept(self, tasks: Iterable[Stored]) -> None:
        """Keep new tasks, all or none."""
        rows = [
            (
                *(task.id, task.content, zlib.compress(msgspec.json.encode(task.request)), task.accepted_at),
                *(task.expires_at, task.status, task.ended_at, task.cached, task.error, _packed(task.record)),
            )
            for task in tasks
        ]
        with self._lock, self._base:
            self._base.execute("BEGIN")
            self._base.executemany(f"INSERT INTO tasks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def end(self, identity: str, status: str, record: Record | None = None, error: str = "") -> bool:
        """Note how a task ended; False if it had ended before."""
        row = (status, time.time(), error, _packed(record), identity)
        with self._lock:
            done = self._base.execute(
                f"UPDATE tasks SET status = ?, ended_at = ?, error = ?, record = ? WHERE id = ? AND status = '{OPEN}'",
                row,
            )
            return done.rowcount == 1

    def keep(self, content: str, record: Record) -> None:
        """Keep a result for later submissions of the same content."""
        row = (content, _packed(record), time.time())
        with self._lock:
            self._base.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", row)

    def result(self, content: str, since: float) -> Record | None:
        """The result of that content, unless it is older than `since`."""
        with self._lock:
            row = self._base.execute(
                "SELECT record FROM results WHERE content = ? AND ended_at >= ?", (content, since)
            ).fetchone()
        return records.decode(zlib.decompress(row[0])) if row else None

    def task(self, identity: str) -> Stored | None:
        with self._lock:
            row = self._base.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (identity,)).fetchone()
        return _stored(row) if row else None

    def unfinished(self) -> list[Stored]:
        """Tasks that were accepted and have not ended, the oldest first."""
        with self._lock:
            rows = self._base.execute(
                f"SELECT {COLUMNS} FROM tasks WHERE status = '{OPEN}' ORDER BY accepted_at"
            ).fetchall()
        return [_stored(row) for row in rows]

    def forget(self, before: float) -> None:
        """Delete what ended before that time."""
        with self._lock, self._base:
            self._base.execute("BEGIN")
            self._base.execute("DELETE FROM tasks WHERE ended_at < ?", (before,))
            self._base.execute("DELETE FROM results WHERE ended_at < ?", (before,))


def _packed(record: Record | None) -> bytes | None:
    """A record as it is kept; raw samples are most of it."""
    return zlib.compress(records.encode(record)) if record else None


def _stored(row: tuple[Any, ...]) -> Stored:
    fields = dict(zip(COLUMNS.split(", "), row, strict=True))
    fields["request"] = msgspec.json.decode(zlib.decompress(fields["request"]), type=EvaluateRequest)
    fields["cached"] = bool(fields["cached"])
    fields["record"] = records.decode(zlib.decompress(fields["record"])) if fields["record"] else None
    return Stored(**fields)
