"""What an instrument told of a candidate, as it is kept beside a run's records. No torch."""

from __future__ import annotations

import msgspec

from harness.instruments import sanitizer
from harness.instruments.nsight import Launch
from harness.instruments.sanitizer import Finding
from harness.instruments.tools import NSIGHT

# Below a run directory: `<job>.<instrument>.json` for each.
FOLDER = "profile"


class Insight(msgspec.Struct, frozen=True, kw_only=True):
    """What an instrument told of a candidate. `fault` is why it told nothing, `failed` why the call ended early; `said`
    is the end of what was printed, `report` the tool's own file. `missing`: layers of the sandbox that were not in
    force, and why."""

    candidate: str
    instrument: str
    launches: list[Launch] = []
    findings: list[Finding] = []
    fault: str = ""
    failed: str = ""
    said: str = ""
    report: str = ""
    log: str = ""
    missing: dict[str, str] = {}

    @property
    def has_looked(self) -> bool:
        """Whether it told of kernels or findings, or has looked at a whole call and found nothing wrong."""
        if self.instrument == NSIGHT:
            return bool(self.launches)
        looked = not self.fault and not self.failed and sanitizer.is_complete(self.said)
        return bool(self.findings) or looked
