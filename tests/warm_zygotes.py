"""Zygotes in milliseconds instead of three seconds, for tests that are not about how one begins.

A process that has loaded what a zygote loads forks them; from there on each is like any other, its keeper included.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading

from harness.processes import keeper, zygote

MOST_BYTES = 1 << 16
# What a process has to have from its start; where a zygote is to have another one, it starts as usual.
FROM_THE_START = ("LD_LIBRARY_PATH", "OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "PYTHONPATH")


class Forked:
    """A keeper that is no child of this process, with what `subprocess.Popen` has and a nursery uses."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd

    def wait(self, timeout: float | None = None) -> None:
        if not select.select([self._pidfd], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a zygote", timeout or 0.0)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def __del__(self) -> None:
        os.close(self._pidfd)


class WarmZygotes:
    """Within it, `zygote.start` begins them so; `usual` is what it was."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.usual = zygote.start
        self._environment: dict[str, str] = {}
        # An answer belongs to the request before it.
        self._lock = threading.Lock()

    def start(self, control: socket.socket, environment: dict[str, str]) -> Forked | subprocess.Popen[bytes]:
        with self._lock:
            if self._process is None:
                self._begin(environment)
            if any(environment.get(name) != self._environment.get(name) for name in FROM_THE_START):
                return self.usual(control, environment)
            socket.send_fds(self._ours, [json.dumps(environment).encode()], [control.fileno()])
            said, fds, _, _ = socket.recv_fds(self._ours, MOST_BYTES, 1)
        return Forked(int(said), fds[0])

    def __enter__(self) -> None:
        zygote.start = self.start

    def __exit__(self, *_: object) -> None:
        zygote.start = self.usual
        if self._process is not None:
            self._ours.close()
            self._process.wait()

    def _begin(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tests.warm_zygotes", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )


def main() -> None:
    """Fork a zygote for each request, until nobody is there who could ask."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    zygote._have_no_main()
    modules = zygote.loaded()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        said, fds, _, _ = socket.recv_fds(asked, MOST_BYTES, 1)
        if not said:
            return
        pid = os.fork()
        if pid == 0:
            asked.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.environ.clear()
            os.environ.update(json.loads(said) | {"OPENBLAS_NUM_THREADS": "1"})
            keeper.stand_behind()
            zygote.serve_roles(socket.socket(fileno=fds[0]), modules)
        pidfd = os.pidfd_open(pid)
        socket.send_fds(asked, [str(pid).encode()], [pidfd])
        os.close(pidfd)
        os.close(fds[0])


if __name__ == "__main__":
    main()
