"""Every timed call is a checked call: its output against the reference's, its inputs against what they should be."""

from __future__ import annotations

from typing import Any

import torch

from harness.records import Outcome, Status
from harness.worker import values
from harness.worker.link import Draw, Link, Reading
from harness.worker.nodes import Opaque, TensorRef
from harness.worker.reference import Reference

# Largest error, in units of the true output's standard deviation, by dtype: some hundred roundings of each.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def check(reference: Reference, link: Link, draws: list[Draw], reading: Reading) -> tuple[Outcome | None, float]:
    """What is wrong with the first wrong call of a burst (None if nothing is), and the largest error."""
    worst = 0.0
    for call, (draw, output) in enumerate(zip(draws, reading.outputs, strict=True)):
        expected = reference.expected(draw)
        fault, error = compare(expected, output)
        worst = max(worst, error)
        fault = fault or _inputs_changed(link, call, draw)
        if fault:
            return fault, worst
    return None, worst


def compare(expected: Any, got: Any, place: str = "output") -> tuple[Outcome | None, float]:
    if isinstance(got, TensorRef | Opaque):
        return _kind_fault(expected, got, place), 0.0
    if isinstance(expected, torch.Tensor) != isinstance(got, torch.Tensor):
        return _incorrect("wrong_type", f"{place} is a {type(got).__name__}, not a {type(expected).__name__}"), 0.0
    if isinstance(expected, torch.Tensor):
        return _compare_tensors(expected, got, place)
    if isinstance(expected, list | tuple):
        if type(expected) is not type(got) or len(expected) != len(got):
            return _incorrect(
                "wrong_structure", f"{place} is not the {type(expected).__name__} of {len(expected)} wanted"
            ), 0.0
        worst = 0.0
        for index, (one, other) in enumerate(zip(expected, got, strict=True)):
            fault, error = compare(one, other, f"{place}[{index}]")
            worst = max(worst, error)
            if fault:
                return fault, worst
        return None, worst
    if expected != got:
        return _incorrect("mismatch", f"{place} is {got!r}, expected {expected!r}"), 0.0
    return None, 0.0


def _compare_tensors(expected: torch.Tensor, got: torch.Tensor, place: str) -> tuple[Outcome | None, float]:
    if not expected.is_floating_point():
        wrong = int((expected != got).sum())
        return (_incorrect("mismatch", f"{place}: {wrong} elements differ") if wrong else None), float(wrong)
    spread = float(expected.float().std()) if expected.numel() > 1 else float(expected.abs().max())
    error = float((got.float() - expected.float()).abs().max()) / (spread or 1.0)
    if not error <= TOLERANCE[expected.dtype]:
        return _incorrect(
            "mismatch", f"{place}: the largest error is {error:.3g} standard deviations of the true output"
        ), error
    return None, error


def _kind_fault(expected: Any, got: TensorRef | Opaque, place: str) -> Outcome:
    if isinstance(got, Opaque):
        return _incorrect("wrong_type", f"{place} is a {got.python_type}")
    if not isinstance(expected, torch.Tensor):
        return _incorrect("wrong_type", f"{place} is a tensor, not a {type(expected).__name__}")
    if got.kind != "Tensor":
        return _incorrect("wrong_type", f"{place} is a {got.kind}, not a plain tensor")
    if got.shape != tuple(expected.shape):
        return _incorrect("wrong_shape", f"{place} has shape {got.shape}, expected {tuple(expected.shape)}")
    if got.dtype != values.dtype_name(expected.dtype):
        return _incorrect("wrong_dtype", f"{place} has dtype {got.dtype}, expected {values.dtype_name(expected.dtype)}")
    return _incorrect("wrong_device", f"{place} is on {got.device}, expected {expected.device.type}")


def _inputs_changed(link: Link, call: int, draw: Draw) -> Outcome | None:
    for index, (own, seen) in enumerate(zip(values.tensors(draw.inputs), link.seen_inputs(call), strict=True)):
        if not torch.equal(own.view(torch.uint8) if own.dim() else own, seen.view(torch.uint8) if seen.dim() else seen):
            return _incorrect("input_changed", f"input {index} was written to, which the reference does not do")
    return None


def _incorrect(reason: str, message: str) -> Outcome:
    return Outcome(status=Status.INCORRECT, reason=reason, message=message)
