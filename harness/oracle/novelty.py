"""What hard inputs have that no drawn ones had, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.oracle.formats import calculable
from harness.oracle.slices import rms
from harness.oracle.structure import flatten

# Numbers are far larger or smaller than the drawn ones from this factor on.
FAR = 4.0
# Most of a tensor is zero, and hardly anything of the drawn one.
MOST_ZERO, HARDLY = 0.5, 0.01


def beyond(drawn: Sequence[Any], inputs: Sequence[Any]) -> str:
    """A clause about the first floating tensors that are of another kind than the drawn ones; empty if none is."""
    clauses = list[str]()
    for before, after in zip(_floating(drawn), _floating(inputs), strict=True):
        clauses += [clause for clause in _tensor(before, after) if clause not in clauses]
    return "; ".join(clauses[:2])


def _floating(values: Sequence[Any]) -> list[torch.Tensor]:
    tensors = [leaf for _, leaf in flatten(list(values)) if isinstance(leaf, torch.Tensor)]
    return [calculable(tensor) for tensor in tensors if tensor.is_floating_point() and tensor.numel()]


def _tensor(before: torch.Tensor, after: torch.Tensor) -> list[str]:
    if after is before:
        return []
    special = ~torch.isfinite(after)
    if bool(special.any()):
        return [f"with {float(after[special][0])}, which no drawn input has"]
    (old_least, old_most), (least, most) = ([float(x) for x in t.aminmax()] for t in (before, after))
    old, new = max(-old_least, old_most), max(-least, most)
    said = list[str]()
    if old_least >= 0 > least:
        said.append("with negative numbers, which no drawn input has")
    if new > FAR * old:
        said.append(f"with numbers as large as {new:.3g}, where drawn ones reach {old:.3g}")
    elif FAR * new < old:
        said.append(f"with no number above {new:.3g}, where drawn ones reach {old:.3g}")
    if float((after == 0).double().mean()) > MOST_ZERO and float((before == 0).double().mean()) < HARDLY:
        said.append("mostly zeros, as no drawn input is")
    elif after.dim() and rms(after[..., 1:] - after[..., :-1]) == 0 < rms(before[..., 1:] - before[..., :-1]):
        said.append("equal numbers in each row, as in no drawn input")
    return said
