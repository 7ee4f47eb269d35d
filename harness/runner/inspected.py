"""The process that is inspected: constructs a candidate, and calls it on the problem's own inputs.

    python -m harness.runner.inspected TASK.json

Nobody compares its answer, and so it draws its own inputs and weights, and has no others.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import msgspec
import torch

from harness.catalog import modules
from harness.compile import extensions
from harness.errors import door
from harness.wire import values, weights
from harness.wire.messages import CandidateSource

# Beside the task: why the call ended early.
FAULT = "fault.txt"
SEED = 1


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """`profiled`: only the second of two calls is for the profiler; the first one loads what is loaded once."""

    source: CandidateSource
    problem: str
    precision: str
    device: str
    profiled: bool


def main(place: Path) -> None:
    """Carry out the task in the file `place`; what the candidate raises is written beside it, and ends the process."""
    try:
        carry_out(msgspec.json.decode(place.read_bytes(), type=Task))
    except BaseException as error:
        (place.parent / FAULT).write_text(f"{type(error).__name__}: {error}", errors="replace")
        traceback.print_exc()
        raise SystemExit(1) from None


def carry_out(task: Task) -> None:
    """Construct and call."""
    device, dtype, source = torch.device(task.device), values.dtype_named(task.precision), task.source
    extensions.intercept(extensions.Prebuilt(source.libraries, source.failures, source.unconstructed))
    problem = modules.execute(Path(task.problem), source.overrides)
    module = modules.execute(Path(source.path), source.overrides)
    torch.manual_seed(SEED)
    model = weights.constructed(module, source.entries, problem.get_init_inputs())
    weights.cast(model, device, dtype)
    with torch.device(device):
        drawn = tuple(problem.get_inputs())
    inputs = _on(device, values.cast_floating(drawn, dtype))
    if task.profiled:
        _call(model, inputs, device)
    _profiler(device, starts=True)
    _call(model, inputs, device)
    _profiler(device, starts=False)


@door
def _call(model: Any, inputs: Any, device: torch.device) -> None:
    with torch.no_grad():
        model(*inputs)
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _on(device: torch.device, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device)
    if isinstance(value, list | tuple):
        return [_on(device, item) for item in value]
    return {key: _on(device, item) for key, item in value.items()} if isinstance(value, dict) else value


def _profiler(device: torch.device, *, starts: bool) -> None:
    """What `ncu --profile-from-start off` waits for."""
    if device.type == "cuda":
        (torch.cuda.profiler.start if starts else torch.cuda.profiler.stop)()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
