"""A private stream socket between two of our processes, with typed messages and file descriptors beside them.

A frame is four bytes of length and a JSON object. Nothing is ever unpickled, and a frame that is too long, torn or of
an unknown shape is a `ProtocolError`, which costs the sender its result and nobody else's.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from harness.errors import AssayError

MAX_FRAME_BYTES = 8 << 20
MAX_FDS = 8


class ProtocolError(AssayError):
    """The peer sent something that is no message."""


class NotSendable(AssayError):
    """A message of ours is none: too long, or with a text in it that is no Unicode. Nothing of it was sent.

    What it was about is at fault, and not the peer.
    """


class PeerGone(AssayError):
    """The peer closed its end: its process is dead or dying."""


class DeadlineExceeded(AssayError):
    """The peer said nothing in time."""


class Channel:
    """One end of a private stream socket; sends and receives frames with file descriptors beside them."""

    def __init__(self, sock: socket.socket, inbound: Any) -> None:
        self._socket = sock
        self._decoder = msgspec.json.Decoder(inbound)

    @classmethod
    def from_fd(cls, fd: int, inbound: Any) -> Channel:
        return cls(socket.socket(fileno=fd), inbound)

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def detach(self) -> socket.socket:
        """The socket, which is the caller's from now on."""
        return socket.socket(fileno=self._socket.detach())

    def send(self, message: msgspec.Struct, fds: tuple[int, ...] = (), timeout_s: float = 30.0) -> None:
        """Raises NotSendable, PeerGone, or DeadlineExceeded where the peer does not read."""
        frame = encoded(message, MAX_FRAME_BYTES)
        self._socket.settimeout(timeout_s)
        frame = struct.pack("<I", len(frame)) + frame
        try:
            sent = socket.send_fds(self._socket, [frame], list(fds)) if fds else 0
            # Nothing more to send is not asked for: a peer that has answered and gone by now would be an error.
            if sent < len(frame):
                self._socket.sendall(frame[sent:])
        except TimeoutError:
            raise DeadlineExceeded(f"{type(message).__name__} was not received within {timeout_s:g} s") from None
        except OSError as error:
            raise PeerGone(str(error)) from error

    def has_news(self, within_s: float = 0.0) -> bool:
        """Whether there is something to receive, or the peer is gone, now or within that time."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(within_s * 1e3))

    def receive(self, timeout_s: float | None) -> tuple[Any, list[int]]:
        """The next message and the descriptors beside it (the caller owns them).

        Raises DeadlineExceeded, PeerGone or ProtocolError.
        """
        return self.decode(*self.receive_frame(timeout_s))

    def receive_frame(self, timeout_s: float | None) -> tuple[bytes, list[int]]:
        """The next message as it came, for `decode`, and the descriptors beside it. Raises as `receive` does."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        header, fds = self._header(deadline)
        with _closed_on_failure(fds):
            header += self._exactly(4 - len(header), deadline)
            (length,) = struct.unpack("<I", header)
            if length > MAX_FRAME_BYTES:
                raise ProtocolError(f"a frame of {length} bytes; the maximum is {MAX_FRAME_BYTES}")
            return self._exactly(length, deadline), fds

    def decode(self, frame: bytes, fds: list[int]) -> tuple[Any, list[int]]:
        """What `receive_frame` brought. Raises ProtocolError."""
        with _closed_on_failure(fds):
            try:
                return self._decoder.decode(frame), fds
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ProtocolError(f"not a message: {str(error)[:200]}") from error

    def message(self, timeout_s: float | None) -> Any:
        """The next message, where none comes with descriptors: those that do are closed. Raises as `receive` does."""
        message, fds = self.receive(timeout_s)
        _close(fds)
        return message

    def _header(self, deadline: float | None) -> tuple[bytes, list[int]]:
        """The first bytes of a frame, at most four, and the descriptors beside them."""
        with self._timed(deadline):
            data, ancillary, flags, _ = self._socket.recvmsg(4, socket.CMSG_SPACE(MAX_FDS * 4), socket.MSG_CMSG_CLOEXEC)
        fds = array.array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % 4])
        if not data:
            raise PeerGone("the channel was closed")
        if flags & socket.MSG_CTRUNC:
            _close(fds)
            raise ProtocolError(f"more than {MAX_FDS} file descriptors with a message")
        return data, list(fds)

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < count:
            with self._timed(deadline):
                chunk = self._socket.recv(count - len(parts))
            if not chunk:
                raise PeerGone("the channel was closed in the middle of a message")
            parts += chunk
        return bytes(parts)

    @contextlib.contextmanager
    def _timed(self, deadline: float | None) -> Any:
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            raise DeadlineExceeded("no message in time")
        self._socket.settimeout(left)
        try:
            yield
        except TimeoutError:
            raise DeadlineExceeded("no message in time") from None
        except OSError as error:
            raise PeerGone(str(error)) from error


@contextlib.contextmanager
def _closed_on_failure(fds: list[int]) -> Iterator[None]:
    try:
        yield
    except Exception:
        _close(fds)
        raise


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)


def encoded(message: msgspec.Struct, most_bytes: int) -> bytes:
    """A message as JSON. Raises NotSendable."""
    name = type(message).__name__
    try:
        frame = msgspec.json.encode(message)
    except UnicodeEncodeError as error:
        raise NotSendable(f"{name} has a text in it that is not valid Unicode: {error}") from error
    if len(frame) > most_bytes:
        raise NotSendable(f"{name} is {len(frame)} bytes long; the maximum is {most_bytes}")
    return frame


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends, to be handed to two processes."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
