"""How long a connection goes on: for those who take their answer, until they have it."""

import contextlib
import socket
import threading
import time

import pytest
import uvicorn

from harness.serve import connections
from harness.serve.connections import BoundedConnection

ANSWER_BYTES = 24_000_000


async def answers(scope, receive, send):
    if scope["type"] == "http":
        head = [(b"content-length", b"%d" % ANSWER_BYTES)]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"x" * ANSWER_BYTES})


@pytest.fixture
def port(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    monkeypatch.setattr(connections, "TAKE_S", 1.0)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(answers, http=BoundedConnection, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()
    listening.close()


def taken(port, rate):
    """How much of an answer, and of its head, a client gets that takes so many bytes a second, and for how long."""
    client = socket.socket()
    with contextlib.closing(client):
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.connect(("127.0.0.1", port))
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        got, begun = 0, time.monotonic()
        with contextlib.suppress(ConnectionError):
            while got < ANSWER_BYTES and (part := client.recv(65536)):
                got += len(part)
                time.sleep(max(got / rate - (time.monotonic() - begun), 0.0))
        return got, time.monotonic() - begun


def test_who_takes_an_answer_slowly_gets_all_of_it(port):
    got, seconds = taken(port, rate=8e6)
    assert got > ANSWER_BYTES
    assert seconds > 2 * connections.TAKE_S


def test_who_takes_next_to_nothing_is_cut_off(port):
    got, seconds = taken(port, rate=3e5)
    assert got < ANSWER_BYTES
    # What is on its way by then is taken at the same pace.
    assert seconds < 60
