"""A runner's first word: its memory, for the judge to read."""

import os
import resource
import socket

from harness.runner import runner
from harness.sandbox import enforcement
from harness.wire.channel import Channel, PeerGone, pair
from harness.wire.messages import FromRunner, Hello
from tests.sandbox.test_sandbox import ORDINARY_USER, in_child


def put_under_way():
    """As many descriptors as the kernel lets this process pass on, all in sockets that it keeps."""
    kept = []
    while True:
        ours, theirs = socket.socketpair()
        kept += [ours, theirs]
        ours.setblocking(False)
        try:
            while True:
                socket.send_fds(ours, [b"x"], [0] * 250)
        except BlockingIOError:
            continue
        except OSError:
            return kept


def test_it_is_said_whatever_others_of_its_user_have_under_way():
    def attempt():
        # The candidate's, and then what a runner of ours does.
        (told, ready), (until, held) = os.pipe(), os.pipe()
        if os.fork() == 0:
            resource.setrlimit(resource.RLIMIT_NOFILE, (enforcement.open_files(),) * 2)
            kept = put_under_way()
            os.write(ready, b"x")
            os.close(held)
            os.read(until, 1)
            os._exit(len(kept) % 2)
        os.read(told, 1)
        enforcement.have_more_descriptors()
        judge, its = pair()
        runner.greet(its.fileno())
        message, descriptors = Channel(judge, FromRunner).receive(10.0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (enforcement.open_files(),) * 2)
        try:
            Channel(its, FromRunner).send(Hello(), (0,))
            refused = False
        except PeerGone:
            refused = True
        return [type(message).__name__, len(descriptors), refused]

    user = None if os.geteuid() else ORDINARY_USER
    assert in_child(attempt, user=user) == ["Hello", 3, True]
