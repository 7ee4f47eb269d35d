"""Rows and elements of the reference's own runs that jump: to another expert, another code, the other side of a
threshold.

Such an error is as large as the output itself, and says nothing about how exact the reference is. A few of them would
set what every other element is held to. So they are left out of what is measured of the reference's runs, where its
runs on moved inputs show that they jump: each gives the exact value there or that of the other way, and little between.
What rounding merely magnifies lies anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from harness.oracle.error import expected_errors, expected_of
from harness.oracle.formats import NUDGE
from harness.oracle.scale import Scale
from harness.oracle.slices import rms, sample

# How many times the median error an element is beyond that is suspected to have jumped; and what is left out once an
# output is known to jump: elements, and rows half of which is beyond. Errors of rounding alone are at 8 at the most, of
# 4 million.
SUSPECT = 16.0
LEFT_OUT, LEFT_OUT_ROW = 8.0, 4.0
# Elements from which the median is estimated.
TYPICAL = 1 << 16
# An output of which more jumps is no answer with a few exceptions.
FEW = 1 / 4
# Suspected only where without what is far off the error would be that much smaller, or where the furthest is so many
# times the median: below that it sets no limit that matters, and most outputs have some.
SETS, SETS_WORST = 2.0, 64.0
# A moved run has gone one of both ways if it is so near to one of them, as a share of the jump. Of jumps 0.85 to 1 are
# (0.6 where three ways are as good); of what rounding magnifies 0 to 0.45 (benchmarks/jumps.py, oracle_quality.py).
NEAR, MOST = 1 / 4, 1 / 2
# The reference as it is errs by a quarter as much as from inputs with two bits less, anyway. Where only the latter run
# jumps, nearly all of that is undone, and further than so.
NEARER, NEARLY_ALL = NEAR / NUDGE, 0.9
# So large a share of the jumps has to be met by a moved run, and as many have to be undone by one.
MET = 1 / 4
# Moved runs that are made to tell.
RUNS = 4


@dataclass(frozen=True)
class Outliers:
    """Finds what is far off in runs of one output, by `exact` values (a part) and the error of one rounding at each."""

    exact: torch.Tensor
    unit: torch.Tensor

    @classmethod
    def of(cls, exact: torch.Tensor, scale: Scale, floor: float, dtype: torch.dtype) -> Outliers:
        """`scale` is that of the part; `floor` the error of rounding the exact output to its `dtype`."""
        return cls(exact, expected_of(exact, scale, expected_errors(dtype, scale, floor)))

    def suspected(self, output: torch.Tensor) -> torch.Tensor | None:
        """A mask of the elements that are so far off that they may have jumped; None if there are none, or many."""
        times = self._times(output)
        mask = _beyond(times, SUSPECT)
        if not 0 < int(mask.sum()) <= FEW * mask.numel():
            return None
        with_it, without = rms(times), rms(times.masked_fill(mask, 0.0))
        matters = with_it >= SETS * without or bool(_beyond(times, SETS_WORST).any())
        return mask if matters else None

    def without(self, output: torch.Tensor) -> torch.Tensor:
        """An output that is known to jump, with the exact values where it does."""
        mask = self.left_out(output)
        return torch.where(mask, self.exact.to(output.dtype), output.to(mask.device))

    def left_out(self, output: torch.Tensor) -> torch.Tensor:
        times = self._times(output)
        return _beyond(times, LEFT_OUT) | _mostly(_beyond(times, LEFT_OUT_ROW))

    def gone(self, output: torch.Tensor, mask: torch.Tensor, moved: torch.Tensor, near: float = NEAR) -> float:
        """The share of what is far off in an output where a moved run gives the exact value, or the output's."""
        met, undone = self._ways(output, mask, moved, near)
        return float((met | undone).double().mean()) if met.numel() else 0.0

    def jumps(self, output: torch.Tensor, mask: torch.Tensor, moved: Iterator[torch.Tensor]) -> bool:
        """Whether what is far off in an output has jumped, by runs on moved inputs; no more of them than it takes."""
        every: list[tuple[torch.Tensor, torch.Tensor]] = []
        gone = 0.0
        for one in moved:
            every.append(self._ways(output, mask, one))
            gone += self.gone(output, mask, one)
            if gone < MOST * len(every):
                return False
        shares = [float(torch.stack(way).any(0).double().mean()) for way in zip(*every, strict=True)]
        return bool(shares) and min(shares) >= MET

    def _ways(
        self, output: torch.Tensor, mask: torch.Tensor, moved: torch.Tensor, near: float = NEAR
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of the elements that are far off in an output a moved run meets, and which it undoes."""
        exact, there, at = self.exact[mask], *(one.to(mask.device)[mask].to(self.exact) for one in (output, moved))
        most = near * (there - exact).abs()
        return (at - there).abs() <= most, (at - exact).abs() <= most

    def _times(self, output: torch.Tensor) -> torch.Tensor:
        off = (output.to(self.exact.device) - self.exact).abs_()
        return off.div_(self.unit).nan_to_num_(0.0, 0.0, 0.0)


def _beyond(times: torch.Tensor, many: float) -> torch.Tensor:
    some = times.reshape(-1)[sample(times.numel(), times.device, TYPICAL)]
    return times > many * max(1.0, float(some.median()))


def _mostly(mask: torch.Tensor) -> torch.Tensor:
    """The rows half of which is in a mask."""
    return 2 * mask.sum(1, keepdim=True) > mask.shape[1]
