"""What a reference call needs, found by trying it: example inputs, its time, its memory; how long bursts can be, and
how long they may take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import torch

from harness.catalog import modules
from harness.config import TimingConfig
from harness.environment import available_memory_bytes
from harness.errors import AssayError
from harness.judge.reference import Reference
from harness.links.link import SPREAD_BYTES
from harness.oracle.structure import flatten
from harness.records import Outcome, Status
from harness.roofline.ceilings import cache_bytes
from harness.roofline.work import Estimate
from harness.timing import bursts
from harness.wire import faults, values
from harness.wire.channel import MAX_FRAME_BYTES
from harness.wire.layout import place
from harness.wire.nodes import NOWHERE, TensorRef

# A candidate this many times faster than the reference still gets bursts of the wanted duration.
HEADROOM = 8
# Share of the device's free memory that inputs, the judge's copies of them, and outputs may take up.
MEMORY_SHARE = 0.4
# Share of the last-level cache that inputs and outputs of a burst may take up, if they are to stay in it.
WARM_SHARE = 0.5
# Of each call: the runner's inputs, the judge's own, and as many outputs, for both sides.
COPIES = 4
HOST_MEMORY_BYTES = 2 << 30
# Of a burst: a card's queue holds about a thousand operations.
MOST_OUTPUTS = 512
# A candidate this many times slower than the reference is no candidate any more.
SLOWEST = 100.0
# Starting threads, loading kernels and a busy machine take their time, however short the work is.
SHORTEST_S = 10.0
# Bursts of an evaluation beside those of its pairs, at the least: warm-up, hard inputs; on a card latencies, too.
OTHER_BURSTS = {"cpu": 20, "cuda": 50}
# What a candidate takes of a card's memory is its own doing beyond so many times what the baseline does, and so much.
HOLDS_MORE, HOLDS_BYTES = 2, 1 << 31


class DoesNotFit(AssayError):
    """What judging a problem needs is more than the device has; `str()` says both and what to do."""


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """What one reference call needs, found by trying: what its inputs and outputs look like, its time, and the longest
    burst.

    `oracle_bytes` is what is left to the oracle where the config limits the device's memory.
    """

    inputs: list[TensorRef]
    # By path.
    outputs: dict[str, TensorRef]
    work: Estimate
    call_bytes: int
    memory_bytes: int
    most_calls: int
    call_s: float
    # Why nothing of a call may be told before the clock starts; empty where it may be.
    late: str = ""
    oracle_bytes: int | None = None


def workload(reference: Reference, timing: TimingConfig, total_s: float, limit_bytes: int = 0) -> Workload:
    """Try the reference: how large its values are, and how long it takes. `limit_bytes` stands for the device's free
    memory, if it is not 0.

    Raises what the problem's code raises, LoadFault where no candidate could be timed within `total_s`, however fast,
    and DoesNotFit.
    """
    trial = reference.try_out()
    bursts_of_one = OTHER_BURSTS[reference.device.type] + 2 * timing.min_pairs
    if bursts_of_one * (trial.draw_s + trial.seconds) > total_s:
        seen = f"get_inputs takes {trial.draw_s:.3g} s and a call of the reference {trial.seconds:.3g} s"
        needed = f"and an evaluation needs about {bursts_of_one} of each: more than limits.total_s = {total_s:g} s"
        raise modules.LoadFault("too_slow", f"{seen}, {needed}")
    input_refs = place(values.tensors(trial.draw.inputs), NOWHERE)[0]
    made = {path: leaf for path, leaf in flatten(trial.output) if isinstance(leaf, torch.Tensor)}
    output_refs = dict(zip(made, place(made.values(), NOWHERE)[0], strict=True))
    inputs, outputs = _nbytes(values.tensors(trial.draw.inputs)), _nbytes(made.values())
    calls_to_tell = _calls_to_tell(trial.draw.inputs, trial.output)
    work, seconds, draw_s, late = trial.work, trial.seconds, trial.draw_s, trial.late
    # Before it is asked how much is free.
    del trial, made
    call_bytes = inputs + outputs
    parameters = _nbytes(list(reference.state().values()))
    left = require_room(reference.device, inputs, outputs, parameters, limit_bytes)
    memory_bytes = int((limit_bytes or _burst_memory(reference.device)) * MEMORY_SHARE) // COPIES
    if timing.cache == "warm" and reference.device.type == "cuda":
        memory_bytes = min(memory_bytes, int(cache_bytes(reference.device) * WARM_SHARE))
    # What is done to each output, behind a stop that so much fits behind.
    most_calls = MOST_OUTPUTS // max(1, len(output_refs))
    # Inputs that are slow to make: the fewest pairs' ones take no longer than the sampling's budget.
    drawn_in_time = int(timing.budget_s / (2 * timing.min_pairs * draw_s))
    most_calls = min(timing.max_calls_per_burst, most_calls, drawn_in_time)
    longest = bursts.plan(
        seconds * 1e6 / HEADROOM,
        target_us=timing.burst_ms * 1e3,
        call_bytes=call_bytes,
        memory_bytes=memory_bytes,
        max_calls=max(1, min(most_calls, calls_to_tell)),
    )
    return Workload(
        inputs=input_refs,
        outputs=output_refs,
        work=work,
        call_bytes=call_bytes,
        memory_bytes=memory_bytes,
        most_calls=longest.calls,
        call_s=seconds,
        late=late,
        oracle_bytes=left if limit_bytes else None,
    )


def require_room(device: torch.device, inputs: int, outputs: int, parameters: int, limit_bytes: int = 0) -> int:
    """Raises DoesNotFit where an evaluation needs more memory than is free; given are bytes of one call.

    Returns what the oracle may have of it. Two runners hold the inputs, their outputs and parameters; the judge
    parameters and a copy of them, and then either a call's inputs, twice, with both outputs, or, of a call on hard
    inputs, inputs, both outputs and the float64 one.
    """
    runners = 2 * (inputs + outputs + parameters + SPREAD_BYTES)
    judge = 2 * parameters + max(2 * inputs + 2 * outputs, inputs + 4 * outputs)
    free = limit_bytes or _free_bytes(device)
    if runners + judge > free:
        raise DoesNotFit(
            f"a call has {inputs / 1e9:.3g} GB of inputs and {outputs / 1e9:.3g} GB of outputs, which to judge takes "
            f"about {(runners + judge) / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free on the {device.type}: choose a "
            "smaller variant, or a device with more memory"
        )
    return free - runners - 2 * parameters


def no_room(error: BaseException, doing: str) -> Outcome:
    """The outcome where memory ran out in the harness's own hands; no candidate's doing."""
    said = (
        str(error)
        if isinstance(error, DoesNotFit)
        else (
            f"memory ran out in the judge {doing}, and not in the candidate's process: "
            f"{str(error).strip().partition(chr(10))[0][:300]}; choose a smaller variant, or a device with more memory"
        )
    )
    return Outcome(status=Status.UNSUPPORTED, reason=faults.NEEDS_MEMORY, message=said)


def no_room_beside(error: BaseException, before: int, now: int) -> Outcome:
    """The outcome where memory ran out in the harness's own hands beside a candidate.

    `before` and `now` are the bytes of the card that other processes hold: the baseline's, and since then the
    candidate's. An honest one holds about as much as the baseline; who holds far more has left no room to judge it.
    """
    its_own = now - before
    if its_own <= HOLDS_MORE * before + HOLDS_BYTES:
        return no_room(error, "beside this candidate")
    message = (
        f"its process holds {its_own / 1e9:.1f} GB of the device's memory, the baseline's {before / 1e9:.1f}: there is "
        "no room left to judge it"
    )
    return Outcome(status=Status.OUT_OF_MEMORY, reason="out_of_memory", message=message)


def burst_s(reference_call_s: float, calls: int, limit_s: float) -> float:
    """Seconds for a burst of up to `calls` calls of which the reference needs `reference_call_s` each.

    Never more than `limit_s` (the config's `limits.call_s`).
    """
    return min(limit_s, max(SHORTEST_S, SLOWEST * reference_call_s * calls))


def _calls_to_tell(inputs: Any, output: Any) -> int:
    """How many calls fit in one message, with a margin: each call names all of its tensors and values."""
    longest = max(len(msgspec.json.encode(values.encode(value, _widest))) for value in (inputs, output))
    return max(1, MAX_FRAME_BYTES // (2 * longest))


def _widest(tensor: torch.Tensor) -> TensorRef:
    """A reference no shorter than any that tells of this tensor."""
    return TensorRef(
        block=1 << 20,
        offset=1 << 60,
        dtype=values.dtype_name(tensor.dtype),
        shape=tuple(tensor.shape),
        stride=(tensor.numel(),) * tensor.dim(),
        device=tensor.device.type,
    )


def _burst_memory(device: torch.device) -> int:
    return _free_bytes(device) if device.type == "cuda" else HOST_MEMORY_BYTES


def _free_bytes(device: torch.device) -> int:
    if device.type == "cpu":
        return available_memory_bytes()
    # What trying the reference took is free again, but kept.
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info(device)[0]


def _nbytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
