"""KernelBench's generations: `level_L_problem_P_sample_S_kernel.py`, with verdicts in `eval_results.json` beside."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import wording
from harness.catalog.claims import CORRECT, INCORRECT, NOT_COMPILED, Claim, Left
from harness.catalog.facts import ReadsTexts
from harness.config import PackConfig
from harness.packs import files, identity, json_rows, values
from harness.packs.files import File, Unusable
from harness.packs.sample import Identity, Sample

KERNEL = re.compile(r"level_(\d{1,4})_problem_(\d{1,6})_sample_(\d{1,6})(?:_kernel)?\.py", re.ASCII)
VERDICTS = "eval_results.json"
FOLDERS_KEPT = 64
# Of a file of verdicts: those of 100 samples of each problem that KernelBench has, and to spare.
MOST_PIECES = 4_000_000
# What KernelBench's evaluator writes about a failure, the surest first; and so many characters of it are kept.
GROUNDS = ("compilation_error", "runtime_error", "correctness_issue")
MOST_SAID = 200

# By problem and sample.
Verdicts = dict[tuple[int, int], Claim]


def kernel(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """The file as it is: KernelBench has run it unchanged, too."""
    found = KERNEL.fullmatch(file.path.name)
    level, problem, sample = map(int, found.groups()) if found else (0, 0, 0)
    # If the verdicts cannot be used, `verdicts` says so, once.
    claims, _ = _verdicts(file.path.parent)
    yield Sample(
        origin=file.origin(),
        identity=Identity(level, str(problem)),
        name=identity.named(file.parts)[0],
        number=sample,
        code=files.contents(file),
        claim=claims.get((problem, sample), Claim()),
    )


def verdicts(file: File, wishes: PackConfig, reader: ReadsTexts) -> Iterator[Sample | Left]:
    """No samples; what of the verdicts cannot be used, and those of samples that are not there."""
    claims, fault = _verdicts(file.path.parent)
    if fault:
        raise Unusable(fault)
    there = {(int(found[2]), int(found[3])) for found in _kernels(file.path.parent)}
    for problem, sample in sorted(claims.keys() - there):
        yield file.left("there is a verdict, but no kernel", row=f"problem {problem}, sample {sample}")


@functools.lru_cache(FOLDERS_KEPT)
def _verdicts(folder: Path) -> tuple[Verdicts, str]:
    """What `eval_results.json` in this folder says, and why it cannot be used, if so; nothing without one."""
    try:
        return _read(folder), ""
    except Unusable as error:
        return {}, str(error)


def _read(folder: Path) -> Verdicts:
    path = folder / VERDICTS
    if not os.path.lexists(path):
        return {}
    levels = sorted({int(found[1]) for found in _kernels(folder)})
    if len(levels) > 1:
        raise Unusable(f"it does not say for which of the levels {', '.join(map(str, levels))} its verdicts are")
    file = File(path=path, below=path.name, parts=[path.stem])
    data = files.contents(file, files.MOST_TABLE_BYTES)
    found = json_rows.parsed(files.decoded(data), MOST_PIECES)
    if not isinstance(found, dict):
        raise Unusable("it does not map problems to verdicts")
    return {
        (int(problem), sample): _claim(one)
        for problem, entry in found.items()
        if problem.isdecimal() and problem.isascii() and len(problem) <= 6
        for sample, one in _samples(entry)
    }


def _samples(entry: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The verdicts of one problem, by sample: a list, one alone, or a mapping by sample. Raises Unusable."""
    ones = entry if isinstance(entry, list) else [entry]
    if isinstance(entry, dict) and not {"compiled", "correctness"} & entry.keys():
        ones = [{"sample_id": name} | one for name, one in entry.items() if isinstance(one, dict)]
    if len(ones) > 1 and any(isinstance(one, dict) and "sample_id" not in one for one in ones):
        raise Unusable("one of several verdicts of a problem has no sample_id, so whose they are is not known")
    for one in ones:
        if isinstance(one, dict) and (number := values.whole(one.get("sample_id", 0))) is not None:
            yield number, one


def _claim(verdict: dict[str, Any]) -> Claim:
    said = _said(verdict.get("metadata"))
    runtime, theirs = values.positive(verdict.get("runtime")), values.positive(verdict.get("ref_runtime"))
    if verdict.get("correctness") is not True:
        return Claim(status=NOT_COMPILED if verdict.get("compiled") is False else INCORRECT, said=said)
    return Claim(status=CORRECT, time=runtime, speedup=values.ratio(theirs, runtime))


def _said(metadata: Any) -> str:
    """Why a candidate failed there, by its `metadata`: out of memory on their card is no wrong answer."""
    told = [metadata[name] for name in GROUNDS if metadata.get(name)] if isinstance(metadata, dict) else []
    first = str(told[0])[:MOST_SAID] if told else ""
    return wording.plain(first.strip().partition("\n")[0], MOST_SAID, kept="")


def _kernels(folder: Path) -> list[re.Match[str]]:
    return [found for name in os.listdir(folder) if (found := KERNEL.fullmatch(name))]
