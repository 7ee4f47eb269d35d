"""What to expect of some inputs: the exact output, the reference's own, and a yardstick for each floating leaf."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from harness.errors import AssayError
from harness.oracle.exact import ExactReference
from harness.oracle.formats import Format, calculable
from harness.oracle.slices import SHORTEST_ROW, real, wide_dtype
from harness.oracle.structure import flatten, unsupported
from harness.oracle.yardstick import Runs, Yardstick, yardstick

# Runs with inputs moved by a unit in the last place, for outputs whose own error may be small by luck.
JITTERED = 4


class InvalidReference(AssayError):
    """The problem cannot be used for judging: `reason` is a word, `str()` a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Expectation:
    """What to expect of `inputs`, which must stay as they are until the last check. Leaves by path.

    native: the reference's output at the problem's precision. exact: float64 results, the floating ones as
    `error.widened` gives them. yards: the yardstick of each floating leaf. where: device, chunked or host;
    precision: float64, or the most exact that was possible.
    """

    inputs: list[Any]
    seed: int
    native: Any
    exact: dict[str, Any]
    yards: dict[str, Yardstick]
    where: str
    precision: str

    @property
    def meaningful(self) -> bool:
        """Whether the reference itself gets an answer on these inputs: finite, and well apart from its error."""
        return all(yard.meaningful for yard in self.yards.values())


def number(leaf: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """A floating or complex leaf as a tensor to calculate with, a Python float as a 0-d one of `dtype`; None for any
    other leaf."""
    if isinstance(leaf, float):
        return torch.tensor(leaf, dtype=dtype)
    if isinstance(leaf, torch.Tensor) and (leaf.is_floating_point() or leaf.is_complex()):
        return calculable(leaf)
    return None


def expect(reference: ExactReference, inputs: list[Any], seed: int, allow: tuple[str, ...]) -> Expectation:
    """Runs the reference: as it is, in float64, on coarser inputs, and in what other ways the output calls for."""
    native = reference.native(inputs, seed)
    if fault := unsupported(native):
        raise InvalidReference("unsupported_output", f"the reference's {fault}")
    result = reference.exact(inputs, seed, native)
    exact, where, precision = dict(flatten(result.output)), result.where, result.precision
    dtype = reference.precision(inputs)
    leaves = {path: tensor for path, leaf in flatten(native) if (tensor := number(leaf, dtype)) is not None}
    dtypes = {path: getattr(leaf, "dtype", dtype) for path, leaf in flatten(native) if path in leaves}
    for path in leaves:
        # Replaced one by one, so that two precisions of the whole output are never held at once.
        exact[path] = _widened(number(exact[path], torch.float64), dtypes[path])
    composed = _tried(lambda: reference.composed(inputs, seed)) if result.attention else None
    longest = result.longest
    del result

    # Where little is seen of the reference's own error: a few elements, or none known better than by itself.
    few = precision != "float64" or any(leaf.numel() < SHORTEST_ROW for leaf in leaves.values())
    jittered = [
        run
        for draw in range(JITTERED if few else 0)
        if (run := _tried(functools.partial(reference.jittered, inputs, 1, seed, draw))) is not None
    ]
    lowered = functools.cache(lambda format: _tried(lambda: reference.lowered(inputs, format, seed)))
    strict = functools.cache(lambda: _tried(lambda: reference.strict(inputs, seed)))

    def leaf_of(run: dict[str, Any] | None, path: str) -> torch.Tensor | None:
        return None if run is None else number(run[path], dtype)

    def runs(path: str) -> Runs:
        def lower(format: Format) -> torch.Tensor | None:
            return leaf_of(lowered(format), path)

        return Runs(
            exact=exact[path],
            native=leaves[path],
            dtype=dtypes[path],
            lowered=lower,
            strict=lambda: leaf_of(strict(), path),
            composed=leaf_of(composed, path),
            jittered=tuple(tensor for run in jittered if (tensor := leaf_of(run, path)) is not None),
        )

    yards = {path: yardstick(runs(path), longest, allow) for path, leaf in leaves.items() if leaf.numel()}
    return Expectation(inputs, seed, native, exact, yards, where, precision)


def _widened(exact: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    """As exact as an output of `dtype` is compared."""
    if exact is None:
        raise TypeError("the reference gives another kind of output in float64")
    return real(exact).to(wide_dtype(dtype))


def _tried(run: Callable[[], Any]) -> dict[str, Any] | None:
    """The leaves of an optional run; None where the reference cannot do it. Foreign code may raise anything."""
    try:
        return dict(flatten(run()))
    except Exception:
        return None
