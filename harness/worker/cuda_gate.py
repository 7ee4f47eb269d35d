"""A gate on the device: the runner's stream stands still until the judge's stream lets it go.

Two words of shared device memory. The runner enqueues `wait_open(k)`, a burst of calls, `mark_done(k)`; then the judge
enqueues, between two of its own events, `open(k)` and `wait_done(k)`. Both are stream operations, so neither host
takes part in what the events measure. Bursts are numbered upwards from 1, and a wait for k is satisfied by k or more.

Both words are writable for the runner, so `done` is a claim like everything else it says: what holds it to the truth
is that the judge looks at the outputs right behind `wait_done`, on the same stream.

A stream is given as its raw handle (`torch.cuda.Stream.cuda_stream`); 0 is the legacy default stream, where kernels
launched without naming a stream run. A runner that waits there holds back its blocking streams as well, but no stream
that was made non-blocking, as torch's are.

While a stream of a process stands at a gate, whatever waits for that process's whole device waits with it:
`torch.cuda.synchronize`, freeing memory, closing imports, and the first use of a kernel, which loads its module.

What the judge enqueues from its first event to the last takes its host 20 us, more on a busy machine. For none of that
to be in the reading its stream stands at a second gate of its own meanwhile: `hold(k)`, everything
else, `open_now(k)`.
"""

from __future__ import annotations

import torch

from harness.worker.cuda_driver import driver_call, on_device

_DONE_OFFSET = 256  # bytes; the two words on cache lines of their own, since each side polls one and writes the other
_WAIT_GEQ = 0  # CU_STREAM_WAIT_VALUE_GEQ: goes on once int32(word - k) >= 0
_WRITE_DEFAULT = 0  # CU_STREAM_WRITE_VALUE_DEFAULT: all memory writes of the stream so far are visible before the word
_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING: no implicit order with the legacy default stream
_LAST_BURST = 2**31 - 1  # GEQ compares differences as int32, so every number between 0 and this stays ordered


class Gate:
    """One side's end of the gate over `words`: contiguous CUDA memory of at least `BYTES`, zero before the first burst.

    Judge: `open`, `wait_done`, `release`, `hold`, `open_now`. Runner: `wait_open`, `mark_done`. Every method only
    enqueues. They raise `CudaCallFailed` if the driver refuses, `ValueError` for a burst number outside 1 to 2**31 - 1.
    """

    BYTES = 512

    def __init__(self, words: torch.Tensor) -> None:
        if not words.is_cuda or not words.is_contiguous() or words.nbytes < self.BYTES or words.data_ptr() % 4:
            raise ValueError(f"a gate needs {self.BYTES} contiguous, aligned bytes of CUDA memory")
        self._words = words  # keeps the memory alive
        self._device = words.get_device()
        self._gate = words.data_ptr()
        self._done = words.data_ptr() + _DONE_OFFSET
        self._rescue: int | None = None

    def open(self, k: int, stream: int) -> None:
        """Judge: let burst k go, once `stream` gets here."""
        self._write(self._gate, k, stream)

    def wait_done(self, k: int, stream: int) -> None:
        """Judge: hold `stream` until burst k is done or released."""
        self._rescue_stream()  # made before anything waits, as making a stream may have to wait for the device
        self._wait(self._done, k, stream)

    def release(self, k: int) -> None:
        """Judge: count burst k as done, from outside of the waiting stream, because its runner is dead or given up.

        Works from any thread. Only after the runner is dead is it certain that nothing of burst k happens later.
        """
        self._write(self._done, k, self._rescue_stream())

    def hold(self, k: int, stream: int) -> None:
        """Judge: hold a stream of its own until `open_now(k)`."""
        self._rescue_stream()
        self._wait(self._gate, k, stream)

    def open_now(self, k: int) -> None:
        """Judge: let burst k go at once, whatever its streams wait for."""
        self._write(self._gate, k, self._rescue_stream())

    def wait_open(self, k: int, stream: int) -> None:
        """Runner: hold `stream` until the judge opens burst k."""
        self._wait(self._gate, k, stream)

    def mark_done(self, k: int, stream: int) -> None:
        """Runner: report burst k as done, once everything before it on `stream` is."""
        self._write(self._done, k, stream)

    def close(self) -> None:
        """Give back the stream behind `release` and `open_now`. The words belong to whoever made them. Idempotent."""
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

    def _wait(self, word: int, k: int, stream: int) -> None:
        _check_burst(k)
        with on_device(self._device):
            driver_call("cuStreamWaitValue32", stream, word, k, _WAIT_GEQ)

    def _write(self, word: int, k: int, stream: int) -> None:
        _check_burst(k)
        with on_device(self._device):
            driver_call("cuStreamWriteValue32", stream, word, k, _WRITE_DEFAULT)


def _check_burst(k: int) -> None:
    if not 1 <= k <= _LAST_BURST:
        raise ValueError(f"bursts are numbered from 1 to {_LAST_BURST}, not {k}")
