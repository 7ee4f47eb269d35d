"""How long a connection may go on that asks for nothing, or does not take its answer."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the head of a request to come, from the connection or the last answer on.
HEAD_S = 10.0
# For a client to take an answer, or the part of it that fills all buffers.
TAKE_S = 30.0


class BoundedConnection(H11Protocol):
    """uvicorn's connection, ended when its client is idle.

    uvicorn itself ends only those that have had an answer: one that sends nothing, or its head letter by letter, would
    hold its place among the connections for ever.
    """

    _idle: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._head_is_here()
        self.resume_writing()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._head_is_here()

    def on_response_complete(self) -> None:
        self._wait_for_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self._stuck or self.loop.call_later(TAKE_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _wait_for_head(self) -> None:
        self._head_is_here()
        # Not closed but cut: closing waits until what was written is taken.
        self._idle = self.loop.call_later(HEAD_S, self.transport.abort)

    def _head_is_here(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
