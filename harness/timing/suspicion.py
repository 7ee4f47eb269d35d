"""What the times cannot explain. A suspicion is evidence, not a verdict: whoever rejects needs more than this."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A machine-readable word, one sentence for people, and the figures behind it (JSON numbers, units in the keys)."""

    word: str
    message: str
    evidence: dict[str, float] = field(default_factory=dict)
