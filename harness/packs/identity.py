"""Which problem a file solves, and which of its samples it is, from the names of the file and its folders."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness import wording
from harness.config import PackConfig
from harness.packs import values
from harness.packs.files import Unusable
from harness.packs.sample import Identity

LEVEL = re.compile(r"level[_-]?(\d{1,4})(?!\d)", re.ASCII | re.IGNORECASE)
PROBLEM = re.compile(r"(?:problem|task)[_-]?(\d{1,6})(?!\d)", re.ASCII | re.IGNORECASE)
NUMBERED = re.compile(r"(\d{1,6})(?:[_-].*)?\Z", re.ASCII | re.DOTALL)
A_NUMBER = "whole number from 0 to 999999"
SAMPLE = re.compile(r"sample[_-]?(\d{1,6})(?!\d)", re.ASCII | re.IGNORECASE)


def of_names(parts: Sequence[str], wishes: PackConfig) -> Identity:
    """From `level_1_problem_19_sample_0_kernel`, `level_1/task_19`, `level1/19_ReLU` or `level1/19_ReLU/anything`.

    `parts` are those of a files.File. The file's own name counts before its folder's; levels may be further above. What
    no name says is as the user wishes.
    """
    level = next((int(found[1]) for part in parts if (found := LEVEL.search(part))), wishes.level)
    problem = next((_number(found[1]) for part in parts[:2] if (found := PROBLEM.search(part))), "")
    # The source's own folder may be called after a year.
    problem = problem or next((part for part in parts[: min(2, len(parts) - 1)] if NUMBERED.match(part)), "")
    return Identity(level, problem or wishes.problem)


def of_values(level: object, problem: object, wishes: PackConfig) -> Identity:
    """From the values of a row: 1, 1.0, "1" or "level_1", and 19, "19", "task_19", "19_ReLU" or "19_ReLU.py".

    Where a row has none, it is as the user wishes. Raises Unusable for a value that says neither: guessed at, it would
    be judged against another problem.
    """
    stage, name = _level(level), _name(problem)
    number = PROBLEM.fullmatch(name)
    return Identity(wishes.level if stage is None else stage, _number(number[1]) if number else name or wishes.problem)


def of_sample(value: object) -> int | None:
    """The number of a sample, from a value of a row; None where it has none. Raises Unusable for what is no number."""
    number = values.whole(value)
    if number is None and not values.nothing(value):
        raise Unusable(f"its sample is no {A_NUMBER}")
    return number


def named(parts: Sequence[str]) -> tuple[str, int | None]:
    """The name of a file's sample, and its number if the file's name says one.

    The name is what the folders say besides, and the file's if that says no number: `model_a` and 3, of
    `model_a/level_1/sample_3.py` and of `model_level1_a/problem_1_sample_3.py` as well.
    """
    folders = [more for part in parts[1:-1] if not NUMBERED.match(part) and (more := _more(part))]
    found = SAMPLE.search(parts[0])
    return "-".join([*reversed(folders), *([] if found else [parts[0]])]), int(found[1]) if found else None


def _more(folder: str) -> str:
    """What a folder's name says besides level and problem."""
    left = PROBLEM.sub("", LEVEL.sub("", folder))
    return folder if left == folder else re.sub(r"[_-]{2,}", "_", left).strip("_-")


def _number(digits: str) -> str:
    return digits.lstrip("0") or "0"


def _level(level: object) -> int | None:
    stage = values.whole(level)
    if stage is None and isinstance(level, str) and (found := LEVEL.search(level[:200])):
        return int(found[1])
    if stage is None and not values.nothing(level):
        raise Unusable(f"its level is neither {wording.a(A_NUMBER)} nor like level_1")
    return stage


def _name(problem: object) -> str:
    number = values.whole(problem)
    if number is not None:
        return str(number)
    if values.nothing(problem):
        return ""
    if not isinstance(problem, str):
        raise Unusable(f"its problem is neither a name nor {wording.a(A_NUMBER)}")
    return problem.strip()[:200].removesuffix(".py")
