"""A gate on the device: the runner's stream stands still until the judge's stream lets it go.

Three words of shared device memory: gate, secret and done. The runner enqueues `wait_open(k)`, a burst of calls,
`mark_done()`; the judge enqueues, between two of its own events, `open(k, secret)` and `wait_done(secret)`. All are
stream operations, so neither host takes part in what the events measure. Bursts are numbered upwards from 1, and a wait
for k is satisfied by k or more.

`done` cannot be told before the gate opens, nor one burst's for another: the judge draws a value for each burst, which
is nowhere on the card but in its own commands until it is written right before the gate opens; the runner's stream
copies it from there to `done`, and only that value counts. All words are writable for the runner, so that `done` stays
a claim like everything else it says: what holds it to the truth is that the judge looks at the outputs right behind
`wait_done`, on the same stream.

A stream is given as its raw handle (`torch.cuda.Stream.cuda_stream`); 0 is the legacy default stream, where kernels
launched without naming a stream run. A runner that waits there holds back its blocking streams as well, but no stream
that was made non-blocking, as torch's are.

While a stream of a process stands at a gate, whatever waits for that process's whole device waits with it:
`torch.cuda.synchronize`, freeing memory, closing imports, and the first use of a kernel, which loads its module.

What the judge enqueues from its first event to the last takes its host 20 us, more on a busy machine. For none of that
to be in the reading its stream stands at a `Hold` of its own meanwhile: `hold(k)`, everything else, `release(k)`.
"""

from __future__ import annotations

import secrets

import torch

from harness.wire.cuda_driver import driver_call, on_device

# Bytes; the words on cache lines of their own, since each side polls one and writes another.
_SECRET_OFFSET, _DONE_OFFSET = 256, 512
_WORD_BYTES = 4
_WAIT_GEQ = 0  # CU_STREAM_WAIT_VALUE_GEQ: goes on once int32(word - k) >= 0
_WAIT_EQ = 1  # CU_STREAM_WAIT_VALUE_EQ
_WRITE_DEFAULT = 0  # CU_STREAM_WRITE_VALUE_DEFAULT: all memory writes of the stream so far are visible before the word
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no implicit order with the legacy default stream
_LAST_BURST = 2**31 - 1  # GEQ compares differences as int32, so every number between 0 and this stays ordered


def fresh_secret() -> int:
    """A value for one burst's `done`: any of 32 bits but 0, which is what the words are before."""
    return 1 + secrets.randbelow(2**32 - 1)


class _Words:
    """Words of CUDA memory that streams wait for and write to. Every method only enqueues.

    They raise `CudaCallFailed` if the driver refuses, `ValueError` for a burst number outside 1 to 2**31 - 1.
    """

    BYTES = 1024

    def __init__(self, words: torch.Tensor) -> None:
        if not words.is_contiguous() or words.nbytes < self.BYTES or words.data_ptr() % _WORD_BYTES:
            raise ValueError(f"a gate needs {self.BYTES} contiguous, aligned bytes of CUDA memory")
        self._words = words  # keeps the memory alive
        self._device = words.device.index or 0
        self._gate = words.data_ptr()
        self._rescue: int | None = None

    def close(self) -> None:
        """Give back the stream behind `release`. The words belong to whoever made them. Idempotent."""
        rescue, self._rescue = self._rescue, None
        if rescue is not None:
            with on_device(self._device):
                driver_call("cuStreamDestroy", rescue)

    def _rescue_stream(self) -> int:
        """A stream of the gate's own: torch hands out its streams in turns, so one of them might be the waiting one."""
        if self._rescue is None:
            with on_device(self._device):
                self._rescue = int(driver_call("cuStreamCreate", _NON_BLOCKING))
        return self._rescue

    def _wait(self, word: int, value: int, stream: int, how: int) -> None:
        with on_device(self._device):
            driver_call("cuStreamWaitValue32", stream, word, value, how)

    def _write(self, word: int, value: int, stream: int) -> None:
        with on_device(self._device):
            driver_call("cuStreamWriteValue32", stream, word, value, _WRITE_DEFAULT)


class Hold(_Words):
    """The judge's own stop for a stream of its own, over memory that no runner can see, zero at first."""

    def hold(self, k: int, stream: int) -> None:
        """Hold `stream` until `release(k)`."""
        self._rescue_stream()  # as in Gate.reset
        self._wait(self._gate, _checked(k), stream, _WAIT_GEQ)

    def release(self, k: int) -> None:
        """Let the stream of burst k go at once. Works from any thread."""
        self._write(self._gate, _checked(k), self._rescue_stream())


class Gate(_Words):
    """One side's end of the gate over `words`: contiguous CUDA memory of at least `BYTES`, zero before the first burst.

    Judge: `reset`, `open`, `wait_done`, `release`. Runner: `rehearse`, `wait_open`, `mark_done`.
    """

    def __init__(self, words: torch.Tensor) -> None:
        super().__init__(words)
        self._secret = self._gate + _SECRET_OFFSET
        self._done = self._gate + _DONE_OFFSET

    def reset(self, stream: int) -> None:
        """Judge: forget whatever the last burst, or its runner, left in the words."""
        self._rescue_stream()  # made before anything waits, as making a stream may have to wait for the device
        for word in (self._gate, self._secret, self._done):
            self._write(word, 0, stream)

    def open(self, k: int, secret: int, stream: int) -> None:
        """Judge: let burst k go, once `stream` gets here, and tell it what its `done` has to be."""
        self._write(self._secret, secret, stream)
        self._write(self._gate, _checked(k), stream)

    def wait_done(self, secret: int, stream: int) -> None:
        """Judge: hold `stream` until the burst with this secret is done or released."""
        self._wait(self._done, secret, stream, _WAIT_EQ)

    def release(self, secret: int) -> None:
        """Judge: count a burst as done, from outside of the waiting stream, because its runner is dead or given up.

        Works from any thread. Only after the runner is dead is it certain that nothing of the burst happens later.
        """
        self._write(self._done, secret, self._rescue_stream())

    def rehearse(self, stream: int) -> None:
        """Runner: `mark_done` before any burst, because what is done for the first time may wait for the device."""
        self.mark_done(stream)
        with on_device(self._device):
            driver_call("cuStreamSynchronize", stream)

    def wait_open(self, k: int, stream: int) -> None:
        """Runner: hold `stream` until the judge opens burst k."""
        self._wait(self._gate, _checked(k), stream, _WAIT_GEQ)

    def mark_done(self, stream: int) -> None:
        """Runner: report the burst at hand as done, once everything before it on `stream` is."""
        with on_device(self._device):
            driver_call("cuMemcpyDtoDAsync", self._done, self._secret, _WORD_BYTES, stream)


def _checked(k: int) -> int:
    if not 1 <= k <= _LAST_BURST:
        raise ValueError(f"bursts are numbered from 1 to {_LAST_BURST}, not {k}")
    return k
