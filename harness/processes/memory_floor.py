"""How much of the machine's memory is to stay free, whatever candidates take."""

from __future__ import annotations

import os

from harness import wording
from harness.errors import UsageError

# With less than this left on the machine, the largest untrusted family goes, whatever its own limit.
USUAL, MOST = 0.03, 0.9
# Another share, where somebody else watches this machine and ends whoever it likes before that.
VARIABLE = "ASSAY_MEMORY_FLOOR"


def share() -> float:
    """The share of the machine's memory that is to stay free. Raises UsageError for a variable that says none."""
    said = os.environ.get(VARIABLE) or str(USUAL)
    try:
        found = float(said)
    except ValueError:
        found = 0.0
    if not USUAL <= found <= MOST:
        raise UsageError(f"{VARIABLE} is '{wording.plain(said, 50)}': no share of the memory from {USUAL} to {MOST}")
    return found
