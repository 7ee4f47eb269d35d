"""A reference that chooses from the best few of each of many strands: right as long as no strand has more of these."""

from __future__ import annotations

from typing import Any

import torch

from harness.oracle.modes import Mode

# Of each strand so many are kept, of so many numbers at least.
KEPT, LEAST = 3, 16


class BestFew(Mode):
    """Within it, topk deals what it is given into strands, a power of two, and chooses from the best few of each.

    `met` tells whether that may have left out any of the best.
    """

    def __init__(self) -> None:
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = _of_strands(*args, **(kwargs or {})) if func is torch.ops.aten.topk.default else None
        self.met |= found is not None
        return func(*args, **(kwargs or {})) if found is None else found


def _of_strands(
    data: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor] | None:
    length = data.shape[dim] if data.dim() else 0
    strands = 1 << max(0, (length // LEAST).bit_length() - 1)
    if k <= KEPT or KEPT * strands < k or strands == 1 or not data.is_floating_point():
        return None
    worst = -torch.inf if largest else torch.inf
    rows = torch.nn.functional.pad(data.movedim(dim, -1), (0, -length % strands), value=worst)
    values, steps = rows.unflatten(-1, (-1, strands)).topk(KEPT, -2, largest)
    places = steps * strands + torch.arange(strands, device=data.device)
    best, at = values.flatten(-2).topk(k, -1, largest, sorted)
    # Where nothing is better than what was added, no place may be beyond the end.
    found = places.flatten(-2).gather(-1, at).clamp(max=length - 1)
    return best.movedim(-1, dim), found.movedim(-1, dim)
