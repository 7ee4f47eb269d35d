"""Errors that a permitted precision makes anywhere, where an output is small by chance.

In TF32 a sum errs by its terms. Where these cancel, or a ReLU has cut off all of a row but for a few small numbers,
the row is small and its errors are not: of 300,000 rows the smallest may be a million times smaller than the others,
another one in each run. So such a row says nothing by what it errs beside its own size.
"""

from __future__ import annotations

import torch

from harness.oracle.slices import real

# Of so many root mean squares is no error of a hundred million that come of rounding.
FURTHEST = 6.0


def without(got: torch.Tensor, exact: torch.Tensor, permitted: torch.Tensor) -> torch.Tensor:
    """`got` with the exact numbers in place of those that err no more than `permitted`, a run of the reference in the
    permitted precision, does elsewhere: in all slices along each dimension in which an element lies. A slice that is
    smaller than others in that run as well, as a channel with small weights, keeps its own measure."""
    given, right = real(got), exact.to(got.device)
    error = (real(permitted) - right).nan_to_num_(0.0, 0.0, 0.0).square_()
    off = (given - right).abs_()
    within = off <= FURTHEST * _usual(error, list(range(off.dim())))
    for dim in range(off.dim()):
        within &= off <= FURTHEST * _usual(error, [one for one in range(off.dim()) if one != dim])
    return torch.where(within, right.to(given.dtype), given)


def _usual(error: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """The root mean square along `dims` of what errs at all: a ReLU leaves the others at zero."""
    if not dims:
        return torch.full((), torch.inf, device=error.device)
    return (error.sum(dims, keepdim=True) / (error > 0).sum(dims, keepdim=True).clamp(min=1)).sqrt_()
