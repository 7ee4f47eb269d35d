"""Whether an error grows along a dimension, step after step, as what is carried along does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

# The dimension is looked at in as many parts; it must be that long.
PARTS = 8
# From the first part to the last the error grows by this factor, against the true output; no step alone makes up more
# than this share of that (in logarithms), and hardly any goes back.
GROWN, JUMP, BACK = 4.0, 0.5, 0.1
# Elements looked at.
MOST = 1 << 22


@dataclass(frozen=True)
class Growth:
    """Along which dimension; the error in its first and last eighth, as shares of the true output there."""

    dimension: int
    length: int
    first: float
    last: float

    @property
    def sentence(self) -> str:
        shares = f"{self.first:.2g} of the values in the first eighth, {self.last:.2g} in the last"
        return f"the error grows along dimension {self.dimension} (of {self.length}): {shares}"

    @property
    def evidence(self) -> dict[str, Any]:
        return {"grows_along": self.dimension, "error_in_first_eighth": self.first, "error_in_last_eighth": self.last}


def growth(got: torch.Tensor, exact: torch.Tensor) -> Growth | None:
    """The dimension along which the error grows most, if it does; `got` and `exact` of one shape."""
    found = [grown for d in range(got.dim()) if (grown := _along(got, exact, d)) is not None]
    return max(found, key=lambda grown: grown.last / grown.first, default=None)


def _along(got: torch.Tensor, exact: torch.Tensor, dimension: int) -> Growth | None:
    length = got.shape[dimension]
    if length < 2 * PARTS:
        return None
    step = max(1, got.numel() // (length * max(1, MOST // length)))
    one, other = (t.movedim(dimension, 0).reshape(length, -1)[:, ::step].double() for t in (got, exact))
    square, size = (one - other.to(one.device)).square().mean(1), other.to(one.device).square().mean(1)
    if not bool(torch.isfinite(square).all()):
        return None
    parts = [(float(e.mean()), float(s.mean())) for e, s in zip(square.chunk(PARTS), size.chunk(PARTS), strict=True)]
    if any(not e or not s for e, s in parts):
        return None
    logs = torch.tensor([e / s for e, s in parts], dtype=torch.float64).sqrt().log()
    steps, whole = logs.diff(), float(logs[-1] - logs[0])
    if float(logs.exp()[-1] / logs.exp()[0]) < GROWN:
        return None
    if float(steps.max()) > JUMP * whole or float(steps.min()) < -BACK * whole:
        return None
    return Growth(dimension, length, float(logs[0].exp()), float(logs[-1].exp()))
