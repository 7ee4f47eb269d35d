"""How long a connection may go on that asks for nothing, or does not take its answer."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

# For the head of a request to come, from the connection or the last answer on.
HEAD_S = 10.0
# For a client to take so much of an answer that has filled all buffers, or all that is left of it.
TAKE_S = 30.0
TAKEN_BYTES = 1 << 20


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
        self.resume_writing()
        self._head_is_here()

    def handle_events(self) -> None:
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._head_is_here()

    def on_response_complete(self) -> None:
        self._wait_for_head()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
            if self.cycle is None or self.cycle.response_complete:
                self._wait_for_head()

    def _look_again(self) -> None:
        if self._stuck is None:
            left_bytes = self.transport.get_write_buffer_size()
            self._stuck = self.loop.call_later(TAKE_S, self._look, left_bytes)

    def _look(self, left_bytes: int) -> None:
        """Cut a client that has taken next to nothing since so much was left."""
        self._stuck = None
        if left_bytes - self.transport.get_write_buffer_size() < TAKEN_BYTES:
            self.transport.abort()
        else:
            self._look_again()

    def _wait_for_head(self) -> None:
        self._head_is_here()
        # An answer is complete as soon as it is written, and a client may take long for it: _look sees to that.
        if self._stuck is None:
            # Not closed but cut: closing waits until what was written is taken.
            self._idle = self.loop.call_later(HEAD_S, self.transport.abort)

    def _head_is_here(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
