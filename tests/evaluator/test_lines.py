"""Long texts hold up no short one."""

import threading

import pytest

from harness.evaluator.lines import SHORT_BYTES, Lines
from harness.evaluator.planning import Submission


def submission(candidate, priority=0):
    return Submission("toy/scale", candidate, "default", "default", "", priority)


@pytest.mark.parametrize("as_files", [False, True])
def test_however_many_long_texts_wait_a_short_one_is_read(tmp_path, as_files):
    read, held = [], threading.Event()
    short = threading.Event()

    def one(submission):
        if submission.priority == 1:
            short.set()
        elif submission.priority == 0:
            held.wait(30.0)
        read.append(submission.priority)

    def text(size):
        if not as_files:
            return "x" * size
        (tmp_path / f"{size}.py").write_text("x" * size)
        return tmp_path / f"{size}.py"

    lines = Lines(one)
    for _ in range(16):
        lines.add(submission(text(2 * SHORT_BYTES)))
    lines.add(submission(text(10), priority=1))
    assert short.wait(30.0)
    # Of the long ones the most urgent is next.
    lines.add(submission(text(2 * SHORT_BYTES), priority=2))
    held.set()
    lines.close(wait=False)
    lines.close(wait=True)
    assert read[0] == 1
    assert len(read) < 18
