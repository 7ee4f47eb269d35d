"""The floors of one reference's call on one device: what it takes there at the best rates that were seen."""

from __future__ import annotations

import torch

from harness.roofline import light
from harness.roofline.ceilings import cache_bytes
from harness.roofline.light import Ceilings, Floor
from harness.roofline.work import Estimate, uncached


class Floors:
    """None, or nothing, of each where the device's best rates could not be measured."""

    def __init__(self, estimate: Estimate, ceilings: Ceilings | None, device: torch.device) -> None:
        self.notes = list(estimate.notes)
        self._work = estimate.work
        self._ceilings = ceilings
        self._device = device

    @property
    def floor(self) -> Floor | None:
        """What the reference's work takes at the device's best rates."""
        return light.floor(self._work, self._ceilings) if self._ceilings else None

    def least(self, calls: int) -> Floor | None:
        """The floor of what no program can leave out of bursts of `calls`, by a clock that is sure enough to reject by.

        None on a CPU, whose clock is not.
        """
        if self._ceilings is None or self._device.type == "cpu":
            return None
        return light.floor(uncached(self._work, cache_bytes(self._device), calls), self._ceilings)
