"""Errors that whole rows or columns of a product of matrices share, as operands do that are kept with fewer digits.

Each element of a row of A @ B is made with the same row of A. Where that was rounded, and the numbers of B do not
cancel, the whole row errs by the same. What adding up loses is another thing: it differs from element to element, but
for what a tensor core cuts off, which grows with the result. So of an error without its mean and without its share of
the true output (least squares), means over rows and columns should be no larger than those of independent numbers.

Who takes the means out of operands before they are rounded, and puts them back behind the product, leaves nothing that
rows share. What is then left, each element's own error, should be no larger than what adding up leaves there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch

from harness.oracle.slices import real, tiles

# What means of independent errors come to is an estimate; this many of its standard deviations are room enough.
CHANCE = 5.0


def lines(output: torch.Tensor) -> tuple[int, int]:
    """Rows and columns of a real output: of its last dimension, and of all others together."""
    columns = output.shape[-1] if output.dim() > 1 else 1
    return output.numel() // max(1, columns), columns


class Sizes(NamedTuple):
    """Root mean squares of the errors that rows share, and columns, and of those that each element has `apart`, in the
    output's unit; numbers, or one for each matrix of a stack."""

    shared: Any
    apart: Any


def sizes(got: torch.Tensor, exact: torch.Tensor, center: float) -> Sizes:
    """Of the errors of `got`; `exact` is widened."""
    given, true = (real(one).contiguous().reshape(lines(exact)) for one in (got, exact))
    found = SharedErrors(given.shape[0], given.shape[1], given.device)
    for rows, columns in tiles(given):
        y = true[rows, columns].to(given.device)
        found.add(rows, columns, given[rows, columns] - y, y - center)
    return Sizes(*(float(size) for size in found.sizes()))


class SharedErrors:
    """Sums over a matrix, or a `stack` of matrices, taken block by block."""

    def __init__(self, rows: int, columns: int, device: torch.device, stack: tuple[int, ...] = ()) -> None:
        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros((*stack, *shape), dtype=torch.float64, device=device)

        self._error_rows, self._error_columns = zeros(rows), zeros(columns)
        self._true_rows, self._true_columns = zeros(rows), zeros(columns)
        self._errors, self._true, self._both = zeros(), zeros(), zeros()

    def add(self, rows: slice, columns: slice, error: torch.Tensor, away: torch.Tensor) -> None:
        """Another block: its error, and how far the true output is from its center there."""
        self._error_rows[..., rows] += error.sum(-1)
        self._error_columns[..., columns] += error.sum(-2)
        self._true_rows[..., rows] += away.sum(-1)
        self._true_columns[..., columns] += away.sum(-2)
        both = (-2, -1)
        self._errors += torch.linalg.vector_norm(error, dim=both).double() ** 2
        self._true += torch.linalg.vector_norm(away, dim=both).double() ** 2
        self._both += (error * away).sum(both)

    def sizes(self) -> Sizes:
        """Of what was added."""
        rows, columns = self._error_rows.shape[-1], self._error_columns.shape[-1]
        count = rows * columns
        error, true = self._error_rows.sum(-1) / count, self._true_rows.sum(-1) / count
        variance = (self._true / count - true * true).clamp_min(0.0)
        together = self._both / count - error * true
        slope = torch.where(variance > 0, together / variance, 0.0)
        rest = (self._errors / count - error * error - slope * together).clamp_min(0.0)
        found, in_common = torch.zeros_like(rest), torch.zeros_like(rest)
        for own, its, length in (
            (self._error_rows, self._true_rows, columns),
            (self._error_columns, self._true_columns, rows),
        ):
            means = (own - slope[..., None] * its) / length - (error - slope * true)[..., None]
            square = means.square().mean(-1)
            in_common += square
            by_chance = rest / length * (1 + CHANCE * math.sqrt(2 / own.shape[-1]))
            found += (square - by_chance).clamp_min(0.0)
        return Sizes(found.sqrt(), (rest - in_common).clamp_min(0.0).sqrt())
