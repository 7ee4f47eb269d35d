"""The supervisor's use of a profile: whose kernels they are, and what the run's rules say to that. No torch."""

from __future__ import annotations

import msgspec

from harness.catalog.solutions import Candidate
from harness.config import ProvenanceConfig
from harness.integrity import provenance
from harness.integrity.provenance import Profile
from harness.reading.reading import Reader, ReaderLost
from harness.records import Outcome, Provenance, Status
from harness.supervise.builds import BuildResult
from harness.wire.messages import Verdict


def told(
    verdict: Verdict, candidate: Candidate, build: BuildResult, rules: ProvenanceConfig, device_kind: str
) -> tuple[Verdict, Provenance | None]:
    """The verdict as the rules leave it, and what the record keeps of the profile; None where there is none."""
    profile = verdict.profile
    if profile is None or verdict.outcome.status is not Status.PASSED:
        return verdict, None
    why = profile.fault or "nothing took any time"
    found = None
    if not profile.fault:
        try:
            found = _sorted(profile, candidate, build, device_kind)
        except ReaderLost as error:
            why = f"its extensions could not be searched for its kernels: {error}"
    if found is None:
        if not rules.has_rules:
            return msgspec.structs.replace(verdict, warnings=[*verdict.warnings, f"not_profiled: {why}"]), None
        message = f"this run has rules on whose kernels do the work, and there is no profile to judge by: {why}"
        return _refused(verdict, Outcome(status=Status.UNSUPPORTED, reason="no_profile", message=message)), None
    outcome = provenance.violation(found, rules)
    return (_refused(verdict, outcome) if outcome else verdict), provenance.short(found)


def _sorted(profile: Profile, candidate: Candidate, build: BuildResult, device_kind: str) -> Provenance | None:
    """Raises ReaderLost where the candidate's libraries cannot be searched."""
    if device_kind == "cpu":
        return provenance.of_host(profile.launched, profile.wall_us)
    names = sorted({one.name for one in profile.launched})
    with Reader() as reader:
        own = reader.own_kernels(names, candidate.facts.kernels, build.libraries.values())
    return provenance.of_device(profile.launched, own)


def _refused(verdict: Verdict, outcome: Outcome) -> Verdict:
    """Times stay as evidence; a speedup is for those who passed."""
    evidence = verdict.outcome.evidence | outcome.evidence
    return msgspec.structs.replace(
        verdict,
        outcome=msgspec.structs.replace(outcome, evidence=evidence),
        speedup=None,
        speedup_lo=None,
        speedup_hi=None,
    )
