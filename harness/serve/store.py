"""The tasks of a service on disk: accepted before a client hears of them, kept until their results are old.

SQLite keeps them through a kill at any moment; one service at a time has the file. What it takes on disk is bounded:
where there is no room, the oldest results go.
"""

from __future__ import annotations

import math
import os
import sqlite3
import sys
import threading
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from harness import records
from harness.drafts import kept
from harness.errors import AssayError, UsageError
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
CREATE INDEX IF NOT EXISTS by_end ON tasks (ended_at);
CREATE INDEX IF NOT EXISTS results_by_end ON results (ended_at);
"""
ENDS = "SELECT ended_at FROM tasks WHERE ended_at IS NOT NULL UNION ALL SELECT ended_at FROM results"
# The log of changes, which SQLite empties again and again, is cut to so much then.
LOG = "journal_size_limit = 16000000"
# What a damaged row raises as it is decoded.
UNREADABLE = (zlib.error, msgspec.MsgspecError, ValueError, TypeError)
COLUMNS = "id, content, request, accepted_at, expires_at, status, ended_at, cached, error, record"


class NoRoom(AssayError):
    """Tasks that have not ended would take more of the disk than they may."""


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

    They take `most_bytes` at most, beside SQLite's log: half of it is for tasks that have not ended, and what has ended
    is forgotten, the oldest first, to make room. Raises UsageError if the folder cannot be written or another service
    has it.
    """

    def __init__(self, folder: Path, most_bytes: int = 4_000_000_000) -> None:
        self._lock = threading.Lock()
        self._most_bytes = most_bytes
        self._file = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Candidates, and what tests expect, are nobody else's to read; SQLite gives its log the same mode.
            file = kept(folder / FILE, 0o600)
            os.fchmod(file, 0o600)
            os.close(file)
            self._base = sqlite3.connect(folder / FILE, check_same_thread=False, isolation_level=None, timeout=1.0)
            # Exclusive: a second service finds the file locked.
            for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL", LOG):
                self._base.execute(f"PRAGMA {pragma}")
            self._base.executescript(TABLES)
        except (OSError, sqlite3.Error) as error:
            why = "another service uses it" if "locked" in str(error) else str(error)
            raise UsageError(f"cannot keep tasks in {folder}: {why}; choose another folder with --dir") from error

    def close(self) -> None:
        with self._lock:
            self._base.close()

    def accept(self, tasks: Iterable[Stored]) -> None:
        """Keep new tasks, all or none. Raises NoRoom."""
        rows = [
            (
                *(task.id, task.content, zlib.compress(msgspec.json.encode(task.request)), task.accepted_at),
                *(task.expires_at, task.status, task.ended_at, task.cached, task.error, _packed(task.record)),
            )
            for task in tasks
        ]
        size = sum(map(_size, rows))
        with self._lock, self._base:
            self._base.execute("BEGIN")
            if any(row[5] == OPEN for row in rows) and self._open_bytes() + size > self._most_bytes // 2:
                raise NoRoom("tasks that have not ended fill the disk space that the service may use")
            self._make_room(size)
            self._base.executemany(f"INSERT INTO tasks ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def end(self, identity: str, status: str, record: Record | None = None, error: str = "") -> bool:
        """Note how a task ended; False if it had ended before."""
        row = (status, time.time(), error, _packed(record), identity)
        with self._lock, self._base:
            self._base.execute("BEGIN")
            self._make_room(_size(row))
            done = self._base.execute(
                f"UPDATE tasks SET status = ?, ended_at = ?, error = ?, record = ? WHERE id = ? AND status = '{OPEN}'",
                row,
            )
            return done.rowcount == 1

    def keep(self, content: str, record: Record) -> None:
        """Keep a result for later submissions of the same content."""
        row = (content, _packed(record), time.time())
        with self._lock, self._base:
            self._base.execute("BEGIN")
            self._make_room(_size(row))
            self._base.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", row)

    def result(self, content: str, since: float) -> Record | None:
        """The result of that content, unless it is older than `since`."""
        with self._lock:
            row = self._base.execute(
                "SELECT record FROM results WHERE content = ? AND ended_at >= ?", (content, since)
            ).fetchone()
            try:
                return records.decode(zlib.decompress(row[0])) if row else None
            except UNREADABLE as error:
                self._lose("results", "content", content, error)
                return None

    def task(self, identity: str) -> Stored | None:
        with self._lock:
            row = self._base.execute(f"SELECT {COLUMNS} FROM tasks WHERE id = ?", (identity,)).fetchone()
            try:
                return _stored(row) if row else None
            except UNREADABLE as error:
                self._lose("tasks", "id", identity, error)
                return None

    def _lose(self, table: str, column: str, value: str, error: Exception) -> None:
        """Delete a row that cannot be read any more."""
        print(f"{value!r} of {table} in {self._file} cannot be read, and is lost: {error}", file=sys.stderr)
        self._base.execute(f"DELETE FROM {table} WHERE {column} = ?", (value,))

    def unfinished(self) -> list[Stored]:
        """Tasks that were accepted and have not ended, the oldest first. Raises UsageError if they cannot be read."""
        found = []
        with self._lock:
            try:
                rows = self._base.execute(
                    f"SELECT {COLUMNS} FROM tasks WHERE status = '{OPEN}' ORDER BY accepted_at"
                ).fetchall()
                for row in rows:
                    try:
                        found.append(_stored(row))
                    except UNREADABLE as error:
                        self._lose("tasks", "id", row[0], error)
                # Whether that table can be read at all.
                self._base.execute("SELECT content FROM results LIMIT 1").fetchone()
            except sqlite3.Error as error:
                raise UsageError(
                    f"{self._file} is damaged: {error}; move it away, or choose another folder with --dir"
                ) from error
        return found

    def forget(self, before: float) -> None:
        """Delete what ended before that time."""
        with self._lock, self._base:
            self._base.execute("BEGIN")
            self._delete(before)

    def _open_bytes(self) -> int:
        found = self._base.execute(f"SELECT SUM(LENGTH(request)) FROM tasks WHERE status = '{OPEN}'").fetchone()
        return found[0] or 0

    def _make_room(self, wanted_bytes: int) -> None:
        """Forget the oldest of what has ended, a tenth at a time, until there is room for so much more."""
        while self._used_bytes() + wanted_bytes > self._most_bytes:
            (ended,) = self._base.execute(f"SELECT COUNT(*) FROM ({ENDS})").fetchone()
            if not ended:
                return
            oldest = f"{ENDS} ORDER BY ended_at LIMIT 1 OFFSET {ended // 10}"
            (last,) = self._base.execute(oldest).fetchone()
            self._delete(math.nextafter(last, math.inf))

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._base.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    def _delete(self, before: float) -> None:
        self._base.execute("DELETE FROM tasks WHERE ended_at < ?", (before,))
        self._base.execute("DELETE FROM results WHERE ended_at < ?", (before,))


def _size(row: tuple[Any, ...]) -> int:
    return sum(len(value) for value in row if isinstance(value, str | bytes))


def _packed(record: Record | None) -> bytes | None:
    """A record as it is kept; raw samples are most of it."""
    return zlib.compress(records.encode(record)) if record else None


def _stored(row: tuple[Any, ...]) -> Stored:
    fields = dict(zip(COLUMNS.split(", "), row, strict=True))
    fields["request"] = msgspec.json.decode(zlib.decompress(fields["request"]), type=EvaluateRequest)
    fields["cached"] = bool(fields["cached"])
    fields["record"] = records.decode(zlib.decompress(fields["record"])) if fields["record"] else None
    return Stored(**fields)
