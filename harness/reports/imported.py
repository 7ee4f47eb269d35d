"""What an import took and left, for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.catalog.claims import Manifest
from harness.reports import text

# The others are in import.json.
MOST_LEFT = 200
OWN = (
    "The problems are the pack's own, which the judge runs as it runs yours: a model that wrote one may have made it "
    "easy. --kernelbench takes KernelBench's instead."
)


def lines(manifest: Manifest, command: str) -> list[str]:
    """What was imported, how to run it, what the sources claim, and what was left, each with its reason."""
    took = f"{_counted(manifest.candidates, 'candidate')} for {_counted(manifest.problems, 'problem')}"
    said = [f"Imported {took}. To run them: {command}", _claims(manifest)]
    if any(not problem.kernelbench for problem in manifest.problems):
        said.append(OWN)
    alone = manifest.alone()
    beside = len(manifest.left) - len(alone)
    said += [f"left {one.origin}: {one.reason}" for one in alone[:MOST_LEFT]]
    if len(alone) > MOST_LEFT:
        said.append(f"left more: import.json has {len(alone) - MOST_LEFT} other entries with their reasons")
    if beside:
        blocks = f"{beside} block{'' if beside == 1 else 's'}"
        said.append(f"left {blocks} of texts that gave a candidate: import.json has each with its reason")
    return [text.clean(line) for line in said]


def _counted(ones: Sequence[object], word: str) -> str:
    return f"{len(ones)} {word}{'' if len(ones) == 1 else 's'}"


def _claims(manifest: Manifest) -> str:
    counts = Counter(one.claim.status.replace("_", " ") or "nothing" for one in manifest.candidates)
    fast = sum(one.claim.speedup is not None for one in manifest.candidates)
    words = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    return f"Their sources claim: {words}; {fast} with a speedup."
