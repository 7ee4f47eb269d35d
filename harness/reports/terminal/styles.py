"""The terminal's colours, as styles of rich's. No word is told by its colour alone, so that NO_COLOR hides nothing.

Red and green are the same to one man in twelve; blue, red, yellow and magenta differ for nearly everybody. They are the
terminal's own colours, so that a theme may change them.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from harness.records import Status

GOOD = "bright_blue"
BAD = "red"
DOUBT = "yellow"
# Nobody's fault who is being judged.
OURS = "magenta"

# Wrong or dishonest, failed or at a limit, or not its fault.
STATUSES = dict.fromkeys(Status, DOUBT) | {
    Status.PASSED: GOOD,
    Status.INCORRECT: BAD,
    Status.REJECTED: f"bold {BAD}",
    Status.UNSUPPORTED: "dim",
    Status.INVALID_REFERENCE: OURS,
    Status.HARNESS_ERROR: f"bold {OURS}",
}


def counts(statuses: Mapping[Status, int]) -> list[Text]:
    """`3 passed`, `1 incorrect`, in the order of every report."""
    return [Text(f"{statuses[one]} {one}", style=STATUSES[one]) for one in Status if statuses.get(one)]
