"""Who did the work: the kernels of one profiled call by owner, and a run's rules about that. Pure.

The process that runs the candidate makes the profile. It shows what an honest candidate consists of, and is no defence
against one that lies (docs/threat-model.md).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Annotated

import msgspec

from harness.config import ProvenanceConfig
from harness.integrity import kernel_names
from harness.records import OUTSIDE, KernelUse, Outcome, Provenance, Status

# Kernels in a record, and in a message.
MOST_KERNELS, NAMED = 20, 3
LONGEST_NAME = 200
# What a runner may send at most.
MOST_LAUNCHED, LONGEST_TOLD = 512, 1000
# How much a profiled call may differ from the timed ones: CUPTI adds time to each kernel, and a cold device adds more.
DOUBT_FACTOR = 2.0
SLACK_US, SLACK_PER_KERNEL_US = 50.0, 5.0
# A rule of the config -> the kinds that it refuses. What PyTorch's operators launch counts as PyTorch's.
FORBIDDEN = {"torch_fallback": ("torch", "triton"), "cublas": ("cublas",), "third_party": ("third_party", "cudnn")}


# Up to eleven days: sums of them stay finite.
Microseconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a profile: a kernel or transfer, or on the CPU an operator, with an empty `name`.

    `op` is the innermost operator around it, `device_us` the time of all calls.
    """

    name: Annotated[str, msgspec.Meta(max_length=LONGEST_TOLD)]
    op: Annotated[str, msgspec.Meta(max_length=LONGEST_TOLD)]
    calls: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
    device_us: Microseconds


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A profiled call as its process reports it, or in `fault` why there is none.

    `wall_us` is the time of `forward` on the host. `its_own_fault`: the baseline, profiled
    after it, had none.
    """

    launched: Annotated[list[Launched], msgspec.Meta(max_length=MOST_LAUNCHED)] = []
    wall_us: Microseconds = 0.0
    fault: Annotated[str, msgspec.Meta(max_length=LONGEST_TOLD)] = ""
    its_own_fault: bool = False


def lists_time(profile: Profile, *, on_card: bool) -> bool:
    """Whether there is something to take shares of."""
    return any(one.device_us > 0 for one in profile.launched) or (not on_card and profile.wall_us > 0)


def of_device(launched: Iterable[Launched], own: Container[str]) -> Provenance | None:
    """The share of each kind in the kernels' time; None if that is zero."""
    uses = [_use(one, kernel_names.kind(one.name, one.op, own), one.name) for one in launched]
    return _shared(uses, sum(use.device_us for use in uses))


def of_host(operators: Iterable[Launched], wall_us: float) -> Provenance | None:
    """The same for a call of `wall_us` on the CPU: time outside PyTorch's operators is the candidate's own."""
    uses = [_use(one, kernel_names.kind_of_operator(one.op), one.op) for one in operators]
    told = sum(use.device_us for use in uses)
    if wall_us > told:
        # Time in the candidate's own operators is already counted with them.
        uses.append(KernelUse(name=OUTSIDE, kind="own", device_us=wall_us - told))
    return _shared(uses, max(wall_us, told))


def violation(found: Provenance, rules: ProvenanceConfig) -> Outcome | None:
    """The rejection by a rule, naming the kernels; None if all rules are met."""
    for rule in rules.forbid:
        offenders = [use for use in found.kernels if _offends(use, rule)]
        if offenders:
            message = f"this run forbids {rule}, but a profiled call ran {_named(offenders)}"
            return _rejected(f"forbidden:{rule}", message, found)
    if found.own_share < rules.min_own_share:
        others = [use for use in found.kernels if use.kind != "own"]
        message = (
            f"own kernels took {found.own_share:.1%} of the device time, but this run requires "
            f"{rules.min_own_share:.1%}; the rest is {_named(others)}"
        )
        return _rejected("own_share", message, found)
    return None


def short(found: Provenance) -> Provenance:
    """As a record keeps it: only the kernels with the most time."""
    kept = found.kernels[:MOST_KERNELS]
    return msgspec.structs.replace(found, kernels=kept, omitted=found.omitted + len(found.kernels) - len(kept))


def doubt(launched: Iterable[Launched], profiled_us: float, timed_us: float) -> str:
    """Why a profile on a GPU may differ from what was timed, as a sentence; empty if there is no sign of it.

    `profiled_us` is the judge's own time of the profiled call, and `timed_us` that of a timed one.
    """
    listed = list(launched)
    listed_us = sum(one.device_us for one in listed)
    slack_us = SLACK_US + SLACK_PER_KERNEL_US * sum(one.calls for one in listed)
    if abs(profiled_us - timed_us) > slack_us and not 1 / DOUBT_FACTOR < profiled_us / timed_us < DOUBT_FACTOR:
        return f"the profiled call took {profiled_us:.0f} us by the judge's clock, a timed call {timed_us:.0f} us"
    if listed_us < profiled_us / DOUBT_FACTOR - slack_us:
        return f"the profile lists {listed_us:.0f} us of work in a call of {profiled_us:.0f} us by the judge's clock"
    return ""


def _use(one: Launched, kind: str, name: str) -> KernelUse:
    return KernelUse(
        name=name[:LONGEST_NAME], kind=kind, op=one.op[:LONGEST_NAME], calls=one.calls, device_us=one.device_us
    )


def _shared(uses: list[KernelUse], total_us: float) -> Provenance | None:
    if total_us <= 0:
        return None
    ordered = sorted(uses, key=lambda use: -use.device_us)
    sums = {kind: sum(use.device_us for use in uses if use.kind == kind) for kind in kernel_names.KINDS}
    shares = {kind: round(us / total_us, 4) for kind, us in sums.items() if us > 0}
    rounded = [msgspec.structs.replace(use, device_us=round(use.device_us, 3)) for use in ordered]
    return Provenance(own_share=shares.get("own", 0.0), device_us=round(total_us, 3), shares=shares, kernels=rounded)


def _offends(use: KernelUse, rule: str) -> bool:
    if use.kind in FORBIDDEN[rule]:
        return True
    operators = kernel_names.is_operator(use.op) and not kernel_names.is_plumbing(use.op)
    return rule == "torch_fallback" and operators and use.kind in ("cublas", "cudnn", "third_party")


def _named(uses: list[KernelUse]) -> str:
    """`aten::mm (nvjet_hsh_...), 41 us`, ... and how many more."""
    words = []
    for use in uses[:NAMED]:
        what = f"{use.op} ({use.name[:80]})" if use.op and use.op != use.name else use.name[:80]
        words.append(f"{what}, {use.device_us:.3g} us")
    more = f"; and {len(uses) - NAMED} more" if len(uses) > NAMED else ""
    return "; ".join(words) + more


def _rejected(reason: str, message: str, found: Provenance) -> Outcome:
    return Outcome(status=Status.REJECTED, reason=reason, message=message, evidence={"shares": found.shares})
