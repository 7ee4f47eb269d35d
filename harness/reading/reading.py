"""The session's side of reading: one process for all files, a deadline for each, replaced where one ends it. No torch.

What comes back is typed and bounded (catalog.facts); the bytes themselves are looked at by that process only.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Annotated, TypeVar

import msgspec

from harness import places, wording
from harness.catalog.facts import LONGEST_TEXT, MOST_NAMES, CandidateFacts, ProblemFacts, TextFacts
from harness.errors import AssayError
from harness.machine.turns import Turns
from harness.records import Outcome, Status
from harness.wire.channel import Channel, DeadlineExceeded, NotSendable, PeerGone, ProtocolError, pair

# Of the process's own time on a processor, for one file; most take two milliseconds, and none that catalog.effort lets
# through more than a few seconds.
DEADLINE_S = 20.0
# On the clock of the wall, so much longer: who gets no processor for that long is held up by others.
PATIENCE = 10.0
LOOK_S = 0.5
START_S = 60.0
# For a process that has hung up to be gone.
ENDING_S = 1.0
# Of all libraries of one candidate.
LIBRARY_DEADLINE_S = 60.0
# Descriptors that travel beside one request.
LIBRARIES_AT_ONCE = 8


# A record's word for a text that nobody could read, since the machine was too busy.
HELD_UP = "reader_held_up"


class ReadCandidate(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    source: bytes
    file: str


class ReadProblem(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    source: bytes
    file: str


class ReadText(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A piece of a text that may be a problem, a candidate or neither."""

    source: bytes


class FindKernels(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Which of `names` are written in the candidate's file, or in a library whose descriptor travels beside this?"""

    names: list[str]
    written: list[str]


class Listening(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The process is ready for files."""


class Found(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Places in the list of names."""

    places: Annotated[list[int], msgspec.Meta(max_length=MOST_NAMES)]


ToReader = ReadCandidate | ReadProblem | ReadText | FindKernels
FromReader = Listening | CandidateFacts | ProblemFacts | TextFacts | Found

Answer = TypeVar("Answer", CandidateFacts, ProblemFacts, TextFacts, Found)


# Readings of all threads: side by side, and alone after one was held up.
_TURNS = Turns()


class ReaderFailed(AssayError, RuntimeError):
    """The process that reads files does not start, or gets no processor to read with."""


class ReaderHeldUp(ReaderFailed):
    """The machine was too busy to read something, twice, the second time with no other reader beside it."""


class ReaderLost(AssayError):
    """The process died of what it read, or went on for too long; `reason` is the record's word. `killed`: somebody may
    have killed it."""

    def __init__(self, reason: str, message: str, *, killed: bool = False) -> None:
        super().__init__(message)
        self.reason = reason
        self.killed = killed


class _Overdue(AssayError):
    """No answer came in a time in which the process could have read most of it."""


class Reader:
    """A process that reads files, as a context manager. For one thread: it ends with the thread that began it.

    It comes up beside whatever is done between entering and the first file.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._is_up = False
        # On a processor, for the last request.
        self._spent_s = 0.0

    def __enter__(self) -> Reader:
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def candidate(self, source: bytes, file: str) -> CandidateFacts | Outcome:
        return self._read(ReadCandidate(source=source, file=wording.plain(file, 300)), CandidateFacts, file)

    def problem(self, source: bytes, file: str) -> ProblemFacts | Outcome:
        return self._read(ReadProblem(source=source, file=wording.plain(file, 300)), ProblemFacts, file)

    def text(self, source: bytes) -> TextFacts:
        try:
            return self._ask(ReadText(source=source), TextFacts, DEADLINE_S)
        except ReaderLost as error:
            return TextFacts(fault=wording.plain(str(error), LONGEST_TEXT))

    def own_kernels(self, names: Sequence[str], written: Sequence[str], libraries: Iterable[str]) -> set[str]:
        """Those of `names` that are kernels in the candidate's file or in these libraries. Raises ReaderLost."""
        paths = list(libraries)
        found: set[str] = set()
        left_s = LIBRARY_DEADLINE_S
        for start in range(0, max(len(paths), 1), LIBRARIES_AT_ONCE):
            some = [_opened(path) for path in paths[start : start + LIBRARIES_AT_ONCE]]
            descriptors = tuple(descriptor for descriptor in some if descriptor is not None)
            try:
                request = FindKernels(names=list(names), written=list(written))
                answer = self._ask(request, Found, LIBRARY_DEADLINE_S, descriptors, left_s)
                left_s -= self._spent_s
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            found |= {names[place] for place in answer.places if 0 <= place < len(names)}
        return found

    def _read(self, request: ToReader, wanted: type[Answer], file: str) -> Answer | Outcome:
        try:
            return self._ask(request, wanted, DEADLINE_S)
        except ReaderLost as error:
            message = f"{wording.plain(file, 200)}: {error}"
            return Outcome(status=Status.LOAD_ERROR, reason=error.reason, message=message)
        except ReaderHeldUp as error:
            if wanted is not CandidateFacts:
                raise
            return Outcome(status=Status.HARNESS_ERROR, reason=HELD_UP, message=f"{wording.plain(file, 200)}: {error}")

    def _ask(
        self,
        request: ToReader,
        wanted: type[Answer],
        deadline_s: float,
        descriptors: tuple[int, ...] = (),
        left_s: float | None = None,
    ) -> Answer:
        """`left_s` is what earlier requests have left of the deadline. A process that was killed is replaced, and asked
        once more: a text is to blame where that happens again. So is one that was held up, and then alone."""
        turn = _TURNS.together
        try:
            with turn():
                return self._asked(request, wanted, deadline_s, descriptors, left_s)
        except ReaderLost as lost:
            if not lost.killed:
                raise
        except _Overdue:
            turn = _TURNS.alone
        try:
            with turn():
                return self._asked(request, wanted, deadline_s, descriptors, left_s)
        except _Overdue as error:
            raise ReaderHeldUp(f"{error}, twice; try again when less else is running") from error

    def _asked(
        self,
        request: ToReader,
        wanted: type[Answer],
        deadline_s: float,
        descriptors: tuple[int, ...],
        left_s: float | None,
    ) -> Answer:
        killed = False
        channel = self._channel or self._begin()
        self._wait_for(channel)
        try:
            channel.send(request, descriptors)
            self._await(channel, deadline_s if left_s is None else left_s, PATIENCE * deadline_s)
            # It has begun to answer.
            answer = channel.receive(deadline_s)[0]
            if isinstance(answer, wanted):
                return answer
            why = ("parser_died", f"the reading process answered with {type(answer).__name__}")
        except _Overdue:
            self._end()
            raise
        except DeadlineExceeded:
            why = ("parser_timeout", f"reading it took more than {deadline_s:g} s of a processor's time")
        except (PeerGone, ProtocolError):
            why = ("parser_died", "the process that read it died; the text is too difficult for a parser")
            killed = self._was_killed()
        except NotSendable as error:
            why = ("unsendable", str(error))
        self._end()
        raise ReaderLost(*why, killed=killed)

    def _await(self, channel: Channel, left_s: float, patience_s: float) -> None:
        """Until there is an answer. Raises DeadlineExceeded where the process itself takes too long, and _Overdue where
        it is the machine."""
        begun_s, waited_until = self._processor_s(), time.monotonic() + patience_s
        is_there = False
        while not is_there:
            is_there = channel.has_news(min(LOOK_S, patience_s))
            self._spent_s = self._processor_s() - begun_s
            if self._spent_s > left_s:
                raise DeadlineExceeded("it has taken too long")
            if not is_there and time.monotonic() > waited_until:
                raise _Overdue(f"the machine gave the process that reads files no time to read it in {patience_s:g} s")

    def _processor_s(self) -> float:
        """How long the process has had a processor since its start; 0 where it is gone."""
        try:
            # The kernel's number for the clock of a process (MAKE_PROCESS_CPUCLOCK).
            return time.clock_gettime(~self._process.pid << 3 | 2) if self._process else 0.0
        except OSError:
            return 0.0

    def _was_killed(self) -> bool:
        """Whether the process has ended by SIGKILL, which comes from outside; one that goes on has not."""
        try:
            return self._process is not None and self._process.wait(ENDING_S) == -signal.SIGKILL
        except subprocess.TimeoutExpired:
            return False

    def _begin(self) -> Channel:
        """Start the process."""
        ours, theirs = pair()
        # It says nothing: what it would say is made of the files' words.
        silent = subprocess.DEVNULL
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "harness.reading.reader", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
            | {"PYTHONPATH": places.python_path()},
            stdin=silent,
            stdout=silent,
            stderr=silent,
        )
        theirs.close()
        self._channel, self._is_up = Channel(ours, FromReader), False
        return self._channel

    def _wait_for(self, channel: Channel) -> None:
        """Raises ReaderFailed where not even the start works, which is no file's doing."""
        if self._is_up:
            return
        try:
            channel.receive(START_S)
        except (DeadlineExceeded, PeerGone, ProtocolError) as error:
            self._end()
            raise ReaderFailed(
                f"the process that reads files could not be started ({sys.executable}): {error}"
            ) from error
        self._is_up = True

    def _end(self) -> None:
        channel, process = self._channel, self._process
        self._channel = self._process = None
        if channel:
            channel.close()
        if process:
            process.kill()
            process.wait()


def _opened(path: str) -> int | None:
    """A descriptor of a library; None where there is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None
