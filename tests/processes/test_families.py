"""Whole families end, whatever they try to outlive their end by, and whoever is killed."""

import os
import select
import signal
import socket
import time

import msgspec
import pytest

from harness.processes import keeper, zygote
from harness.sandbox import probe, visible
from harness.sandbox.enforcement import Confinement
from tests import kills

# Where a family is not ended, it ends by itself, so that a broken test leaves nothing behind.
LONGEST_S = 20.0


def runs_away(deadline):
    """Somebody else every moment: fork, and let the child go on. Nobody who looks for it first can kill it."""
    while time.monotonic() < deadline:
        if os.fork():
            os._exit(0)
        os.setsid()


def stands_by_itself(deadline):
    """Two of them, each in a session of its own, each forking anew when the other ends."""
    while time.monotonic() < deadline:
        me = os.getpid()
        if os.fork():
            os.wait()
        else:
            os.setsid()
            while os.getppid() == me and time.monotonic() < deadline:
                time.sleep(0.001)


def starts(act, ends_itself):
    """A role whose child acts; it then says so on its output, and ends or waits to be killed."""

    def role(channel):
        if os.fork() == 0:
            os.setsid()
            act(time.monotonic() + LONGEST_S)
            os._exit(0)
        os.write(1, b"started")
        time.sleep(0 if ends_itself else LONGEST_S)

    return role


class Parent:
    """A forking parent behind its keeper, in processes of their own, and one family of theirs."""

    def __init__(self, role, layers):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        output, written = os.pipe()
        self.keeper = os.fork()
        if self.keeper == 0:
            os.setsid()
            self.control.close()
            os.close(output)
            os.close(written)
            keeper.stand_behind()
            zygote.serve(theirs, {"runner": role})
        theirs.close()
        # Open for as long as any member lives.
        self.output = output
        confinement = Confinement(
            layers=layers, readable=tuple(visible.common([])), essential=tuple(visible.essential())
        )
        request = zygote.Spawn(id=1, role="runner", confinement=confinement if layers else None)
        with open(os.devnull) as channel:
            socket.send_fds(self.control, [msgspec.json.encode(request)], [channel.fileno(), written])
        os.close(written)
        self.pid = msgspec.json.decode(self.control.recv(4096), type=zygote.Spawned).pid
        assert os.read(self.output, 7) == b"started"

    @property
    def zygote(self):
        (pid,) = kills.children(self.keeper)
        return pid

    def members_are_gone(self, timeout_s=10.0):
        return bool(select.select([self.output], [], [], timeout_s)[0]) and os.read(self.output, 1) == b""

    def close(self):
        self.control.close()
        os.close(self.output)
        os.waitpid(self.keeper, 0)


@pytest.fixture
def parent_of():
    made = []

    def make(act, layers, ends_itself=False):
        made.append(Parent(starts(act, ends_itself), layers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def layers_that(*wanted):
    """These layers; skips where the machine lacks one."""
    if lacking := set(wanted) - set(probe.probe().layers):
        pytest.skip(f"no {lacking} here")
    return wanted


ACTS = pytest.mark.parametrize("act", [runs_away, stands_by_itself])
# What a family cannot get around: one group, or one user.
HOLDS = pytest.mark.parametrize(
    "layers",
    [
        ("seccomp",),
        pytest.param(
            ("user", "namespaces"), marks=pytest.mark.skipif(os.geteuid() != 0, reason="a user of its own takes root")
        ),
    ],
)


@ACTS
@HOLDS
@pytest.mark.parametrize("ends_itself", [False, True])
def test_nothing_is_left_when_an_end_is_told(parent_of, act, layers, ends_itself):
    parent = parent_of(act, layers_that(*layers), ends_itself)
    if not ends_itself:
        parent.control.send(msgspec.json.encode(zygote.Kill(id=1)))
    told = msgspec.json.decode(parent.control.recv(4096), type=zygote.Exited)
    assert parent.members_are_gone(0.0)
    assert told.code == (0 if ends_itself else -signal.SIGKILL)


def test_where_nothing_holds_it_what_is_adopted_is_killed_until_none_is_left(parent_of):
    parent = parent_of(stands_by_itself, ())
    parent.control.send(msgspec.json.encode(zygote.Kill(id=1)))
    msgspec.json.decode(parent.control.recv(4096), type=zygote.Exited)
    assert parent.members_are_gone(0.0)


@ACTS
@pytest.mark.parametrize("victim", ["session", "zygote", "keeper"])
def test_nothing_outlives_whoever_is_killed(parent_of, act, victim):
    parent = parent_of(act, layers_that("seccomp"))
    if victim == "session":
        # All that the others see of it.
        parent.control.shutdown(socket.SHUT_RDWR)
    else:
        os.kill(getattr(parent, victim), signal.SIGKILL)
    assert parent.members_are_gone()


def test_a_family_of_another_is_left_alone(parent_of):
    """An orphan that stays in its group goes when its own family does."""

    def leaves_an_orphan(deadline):
        if os.fork():
            os._exit(0)
        time.sleep(LONGEST_S)

    parent = parent_of(leaves_an_orphan, layers_that("seccomp"))
    request = zygote.Spawn(id=2, role="runner")
    with open(os.devnull, "w") as nothing:
        socket.send_fds(parent.control, [msgspec.json.encode(request)], [nothing.fileno(), nothing.fileno()])
    msgspec.json.decode(parent.control.recv(4096), type=zygote.Spawned)
    parent.control.send(msgspec.json.encode(zygote.Kill(id=2)))
    assert msgspec.json.decode(parent.control.recv(4096), type=zygote.Exited).id == 2
    assert not parent.members_are_gone(0.0)
