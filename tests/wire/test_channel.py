"""The channel against peers that talk nonsense, die, stay silent or send too much."""

import os
import socket
import struct
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.wire.channel import MAX_FRAME_BYTES, Channel, DeadlineExceeded, NotSendable, PeerGone, ProtocolError, pair
from harness.wire.messages import Failed, Finished, FromRunner, Hello, ToRunner


@pytest.fixture
def ends():
    ours, theirs = pair()
    with ours, theirs:
        yield Channel(ours, FromRunner), theirs


def test_a_message_arrives_with_its_descriptors():
    ours, theirs = pair()
    with ours, theirs, open(os.devnull) as file:
        Channel(theirs, ToRunner).send(Finished(number=3, claimed_us=1.5), (file.fileno(),))
        message, fds = Channel(ours, FromRunner).receive(1.0)
        assert message == Finished(number=3, claimed_us=1.5)
        assert os.fstat(fds[0]).st_rdev == os.fstat(file.fileno()).st_rdev
        os.close(fds[0])


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_frame_that_is_no_message_is_a_protocol_error(body):
    ours, theirs = pair()
    with ours, theirs:
        theirs.sendall(struct.pack("<I", len(body)) + body)
        with pytest.raises(ProtocolError):
            Channel(ours, FromRunner).receive(1.0)


@pytest.mark.parametrize(
    "body",
    [
        b'{"type": "Verdict", "outcome": {"status": "passed"}}',
        b'{"type": "Finished", "number": "3", "claimed_us": 1}',
        b'{"type": "Finished"}',
        b"[" * 100_000,
        b'{"type": "Enqueued", "number": 1, "outputs": [' + b'{"type":"sequence","kind":"list","items":[' * 5000,
    ],
)
def test_messages_of_other_roles_and_shapes_are_refused(ends, body):
    channel, theirs = ends
    sender = threading.Thread(target=theirs.sendall, args=(struct.pack("<I", len(body)) + body,))
    sender.start()
    with pytest.raises(ProtocolError):
        channel.receive(5.0)
    sender.join()


def test_a_frame_too_long_is_refused_before_it_is_read(ends):
    channel, theirs = ends
    theirs.sendall(struct.pack("<I", MAX_FRAME_BYTES + 1))
    with pytest.raises(ProtocolError, match="bytes; the maximum is"):
        channel.receive(1.0)


def test_silence_ends_with_the_deadline(ends):
    channel, theirs = ends
    with pytest.raises(DeadlineExceeded):
        channel.receive(0.05)
    theirs.sendall(b"\x10\x00")
    with pytest.raises(DeadlineExceeded):
        channel.receive(0.05)


def test_death_is_told_from_silence(ends):
    channel, theirs = ends
    theirs.sendall(b"\x10\x00\x00\x00half")
    theirs.close()
    with pytest.raises(PeerGone):
        channel.receive(1.0)


def test_too_many_descriptors_are_refused_and_closed(ends):
    channel, theirs = ends
    before = len(os.listdir("/proc/self/fd"))
    with open(os.devnull) as file:
        import socket

        socket.send_fds(theirs, [b"\x02\x00\x00\x00{}"], [file.fileno()] * 20)
    with pytest.raises(ProtocolError):
        channel.receive(1.0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_peer_that_answers_at_once_and_goes_is_heard(monkeypatch):
    ours, theirs = (Channel(end, Hello) for end in pair())
    send_fds = socket.send_fds

    def and_the_peer_is_quicker(*arguments):
        sent = send_fds(*arguments)
        theirs.message(1.0)
        theirs.send(Hello())
        theirs.close()
        return sent

    monkeypatch.setattr(socket, "send_fds", and_the_peer_is_quicker)
    ours.send(Hello(), (0,))
    assert ours.receive(1.0) == (Hello(), [])
    ours.close()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x" * MAX_FRAME_BYTES, "Failed is 8388.* bytes long; the maximum is 8388608"),
        ("\udcff", "Failed has a text in it"),
    ],
)
def test_what_cannot_be_told_is_not_sent_and_the_next_message_is(ends, text, why):
    channel, theirs = ends
    sender = Channel(theirs, ToRunner)
    with pytest.raises(NotSendable, match=why):
        sender.send(Failed(phase="call", exception="E", text=text))
    sender.send(Finished(number=3, claimed_us=1.5))
    assert channel.receive(1.0)[0].number == 3
