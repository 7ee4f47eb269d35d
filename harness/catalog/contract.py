"""Whether a candidate's file meets its problem's contract, from what was read in both. Nothing is parsed or run."""

from __future__ import annotations

import msgspec

from harness.catalog.facts import Signature
from harness.catalog.problems import Problem
from harness.catalog.solutions import Candidate

ENTRIES = ("ModelNew", "Model")
METHODS = ("__init__", "forward")


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """One deviation. `fatal`: the candidate cannot be evaluated; `line` is 0 for the file as a whole."""

    text: str
    line: int = 0
    fatal: bool = False


def remarks(candidate: Candidate, problem: Problem | None) -> list[Remark]:
    """All deviations from the contract; none for a file that cannot be parsed, because loading it reports that."""
    facts = candidate.facts
    if not facts.parsed:
        return []
    found = []
    if not candidate.caption:
        found.append(Remark(text="no docstring: its first line is the candidate's caption in reports"))
    if not facts.entry:
        found.append(Remark(text="defines no ModelNew or Model that can be called", fatal=True))
    if problem is None or problem.fault:
        if facts.compiles_later:
            text = "may compile in its constructor, and its problem was not found, so its class cannot be constructed"
            found.append(Remark(text=f"{text}: name the problem with --problems"))
        return found
    for method, mine in facts.methods.items():
        if theirs := problem.methods.get(method):
            found += _difference(method, mine, theirs)
    if problem.precision in ("float16", "bfloat16"):
        found += [
            Remark(
                text=f"the problem is {problem.precision}, which {macro} does not cover: "
                "use AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, ...)",
                line=line,
            )
            for line, macro in facts.without_half
        ]
    return found


def _difference(method: str, mine: Signature, theirs: Signature) -> list[Remark]:
    if mine.most is None or (mine.names, mine.least, mine.most) == (theirs.names, theirs.least, theirs.most):
        return []
    text = f"{method} takes {_shown(mine)}; the problem's takes {_shown(theirs)}"
    too_few = theirs.least > mine.most
    too_many = theirs.most is not None and mine.least > theirs.most
    return [Remark(text=text, line=mine.line, fatal=too_few or too_many)]


def _shown(signature: Signature) -> str:
    return f"({', '.join(signature.names)})"
