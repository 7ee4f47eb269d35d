"""What KernelBench's rule says of a candidate: five more calls, after everything that our verdict rests on."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from harness.judge.examiner import Examiner
from harness.judge.reference import Reference
from harness.links.link import Link
from harness.oracle import kernelbench

# Of an evaluation's time; what is over by then has not run into the supervisor's deadline.
TIME_SHARE = 0.9


def kernelbench_correct(
    reference: Reference, examiner: Examiner, runner: Link, until: float, clock: Callable[[], float]
) -> bool | None:
    """Whether the rule takes five answers to drawn inputs for right.

    None where it says nothing of such outputs, the candidate does not answer, or the time is up: `until`, on the
    `clock` in seconds.
    """
    try:
        return _correct(reference, examiner, runner, until, clock)
    except Exception:
        # The verdict is there already, and whatever happens here is no part of it.
        traceback.print_exc()
        return None


def _correct(
    reference: Reference, examiner: Examiner, runner: Link, until: float, clock: Callable[[], float]
) -> bool | None:
    longest_s = 0.0
    for _ in range(kernelbench.TRIALS):
        begun = clock()
        if begun + 2 * longest_s >= until:
            return None
        draw = reference.draw()
        native = examiner.native(draw)
        if not kernelbench.applies(native, reference.dtype):
            return None
        runner.burst([draw], gated=False, timed=False, deadline_s=min(until - begun, runner.limits.call_s))
        if not kernelbench.close(native, runner.output(0), reference.dtype):
            return False
        longest_s = max(longest_s, clock() - begun)
    return True
