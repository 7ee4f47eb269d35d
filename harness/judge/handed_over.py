"""Why an output of a runner is no tensors that could be compared with the reference's."""

from __future__ import annotations

from typing import Any

import torch

from harness import wording
from harness.oracle.verdict import Finding
from harness.records import Status
from harness.wire import values
from harness.wire.nodes import Opaque, TensorRef


def fault_of(native: Any, got: Any, place: str = "output") -> Finding | None:
    """Why a leaf that never reached shared memory did not; None where every leaf did."""
    if isinstance(got, Opaque):
        return Finding(Status.INCORRECT, "wrong_type", not_sendable(place, got))
    if isinstance(got, TensorRef):
        return _wrong_metadata(native, got, place)
    items: list[tuple[Any, Any, str]] = []
    if isinstance(got, list | tuple):
        known = native if isinstance(native, list | tuple) else ()
        padded = [*known, *[None] * (len(got) - len(known))]
        items = [(one, other, f"{place}[{index}]") for index, (one, other) in enumerate(zip(padded, got, strict=False))]
    elif isinstance(got, dict):
        known_keys = native if isinstance(native, dict) else {}
        items = [(known_keys.get(key), value, f"{place}[{key!r}]") for key, value in got.items()]
    return next((fault for item in items if (fault := fault_of(*item))), None)


def not_sendable(place: str, got: Opaque) -> str:
    """A sentence about what may not cross, and what may."""
    return f"{place} is {wording.a(got.python_type)}; an output may have {values.SENDABLE}"


def _wrong_metadata(native: Any, got: TensorRef, place: str) -> Finding:
    if not isinstance(native, torch.Tensor):
        said = "None" if native is None else wording.a(type(native).__name__)
        return Finding(Status.INCORRECT, "wrong_type", f"{place} is a tensor, not {said}")
    wanted = {"kind": "Tensor", "shape": tuple(native.shape), "dtype": values.dtype_name(native.dtype)}
    wanted["device"] = native.device.type
    for name, reason in (("kind", "type"), ("shape", "shape"), ("dtype", "dtype"), ("device", "device")):
        found = getattr(got, name)
        if found != wanted[name]:
            return Finding(Status.INCORRECT, f"wrong_{reason}", f"{place}: expected {name} {wanted[name]}, got {found}")
    return Finding(Status.INCORRECT, "wrong_structure", f"{place} has more tensors than the reference's output")
