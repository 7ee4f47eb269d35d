"""The supervisor's use of a profile: whose kernels they are, and what the run's rules say to that. No torch."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.catalog.solutions import Candidate
from harness.config import ProvenanceConfig
from harness.integrity import provenance
from harness.integrity.provenance import Profile
from harness.reading.reading import HELD_UP, Reader, ReaderHeldUp, ReaderLost
from harness.records import HIDES, Outcome, Provenance, Status
from harness.supervise.builds import BuildResult
from harness.wire.messages import Ending


@dataclass(frozen=True)
class Profiled:
    """What a record keeps of a profile, with warnings; `refusal` where the run's rules do not let it pass."""

    provenance: Provenance | None = None
    refusal: Outcome | None = None
    warnings: list[str] = field(default_factory=list)


def told(
    ending: Ending, candidate: Candidate, build: BuildResult, rules: ProvenanceConfig, device_kind: str
) -> Profiled:
    """What the profile of a candidate that has passed tells, and what the rules say to that."""
    profile = ending.profile
    if profile is None or ending.outcome.status is not Status.PASSED:
        return Profiled()
    found = None
    why = message = ""
    if profile.fault:
        why = profile.fault
        message = f"its profile failed, and the baseline's did not: {why}" if profile.its_own_fault else ""
    else:
        try:
            found = _sorted(profile, candidate, build, device_kind)
        except ReaderLost as error:
            # They are its own, as its file is.
            message = f"its extensions could not be searched for its kernels: {error}"
        except ReaderHeldUp as error:
            return Profiled(refusal=Outcome(status=Status.HARNESS_ERROR, reason=HELD_UP, message=str(error)))
    if found is not None:
        return Profiled(provenance=provenance.short(found), refusal=provenance.violation(found, rules))
    if message:
        refusal = Outcome(status=Status.REJECTED, reason=HIDES, message=message) if rules.has_rules else None
        return Profiled(refusal=refusal, warnings=[f"{HIDES}: {message}"])
    if not rules.has_rules:
        return Profiled(warnings=[f"not_profiled: {why}"])
    message = f"this run has rules about whose kernels do the work, but the profile failed: {why}"
    return Profiled(refusal=Outcome(status=Status.UNSUPPORTED, reason="no_profile", message=message))


def _sorted(profile: Profile, candidate: Candidate, build: BuildResult, device_kind: str) -> Provenance | None:
    """Raises ReaderLost where the candidate's libraries cannot be searched."""
    if device_kind == "cpu":
        return provenance.of_host(profile.launched, profile.wall_us)
    names = sorted({one.name for one in profile.launched})
    with Reader() as reader:
        own = reader.own_kernels(names, candidate.facts.kernels, build.libraries.values())
    return provenance.of_device(profile.launched, own)
