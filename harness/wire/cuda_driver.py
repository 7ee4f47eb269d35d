"""Calls of the CUDA driver, in torch's own context, and what its refusals mean.

Nothing here touches CUDA, or needs cuda-bindings, before the first call.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.errors import AssayError

# What the driver answers to memory of the wrong kind or to a handle that leads nowhere. Every other code (out of
# memory, a context broken by an illegal address) is no statement about the memory in question and passes through.
_REFUSALS = frozenset(
    {
        "CUDA_ERROR_INVALID_VALUE",
        "CUDA_ERROR_INVALID_CONTEXT",  # the memory is this process's own
        "CUDA_ERROR_INVALID_DEVICE",
        "CUDA_ERROR_INVALID_HANDLE",  # its owner is dead
        "CUDA_ERROR_MAP_FAILED",
        "CUDA_ERROR_ALREADY_MAPPED",  # it overlaps with an allocation that is still open
        "CUDA_ERROR_NOT_FOUND",
        "CUDA_ERROR_NOT_PERMITTED",  # its owner never exported it
        "CUDA_ERROR_NOT_SUPPORTED",
    }
)


class CudaCallFailed(AssayError, RuntimeError):
    """A CUDA driver call failed: `call` is its name, `code` the name of the driver's error."""

    def __init__(self, call: str, code: str) -> None:
        super().__init__(f"{call} failed with {code}")
        self.call = call
        self.code = code


def driver_call(name: str, *arguments: object) -> Any:
    """Call the CUDA driver function `name` and return its value (a tuple of several, None for none).

    Raises `CudaCallFailed` for every return code but success.
    """
    # Imported here so that these modules load where cuda-bindings is not installed; a dictionary look-up ever after.
    from cuda.bindings import driver

    status, *values = getattr(driver, name)(*arguments)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise CudaCallFailed(name, driver.CUresult(status).name)
    if len(values) > 1:
        return tuple(values)
    return values[0] if values else None


@functools.cache
def _primary_context(device: int) -> Any:
    """The context that torch uses on `device`, retained for the life of the process."""
    driver_call("cuInit", 0)
    return driver_call("cuDevicePrimaryCtxRetain", driver_call("cuDeviceGet", device))


@contextmanager
def on_device(device: int) -> Iterator[None]:
    """Make torch's context on `device` current for driver calls in this thread, whatever it was before."""
    driver_call("cuCtxPushCurrent", _primary_context(device))
    try:
        yield
    finally:
        driver_call("cuCtxPopCurrent")


def reset_persisting_l2(device: int) -> None:
    """Give up what some kernel has marked to stay in the L2, where the card knows of such marks."""
    with on_device(device):
        try:
            driver_call("cuCtxResetPersistingL2Cache")
        except CudaCallFailed as failure:
            if failure.code != "CUDA_ERROR_NOT_SUPPORTED":
                raise


@contextmanager
def refusals_as(exception: type[ValueError], sentence: str) -> Iterator[None]:
    """Turn the driver's refusal of the memory in question into `exception`; let its other errors through."""
    try:
        yield
    except CudaCallFailed as failure:
        if failure.code not in _REFUSALS:
            raise
        raise exception(f"{sentence} ({failure})") from failure
