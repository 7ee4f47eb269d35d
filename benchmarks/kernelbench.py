"""Every problem of a KernelBench checkout at its own size: does it open, and does its reference pass as a candidate?

    python benchmarks/kernelbench.py ../KernelBench --out DIR              all levels; takes hours, and can be resumed
    python benchmarks/kernelbench.py ../KernelBench --out DIR --level 1 --only '*ReLU*'
    python benchmarks/kernelbench.py --page docs/kernelbench.md --of results/kernelbench-h200 results/kernelbench-h100

The candidate of a problem is the problem's file with its `Model` as `ModelNew`; DIR keeps these files and one run for
each level. --set is for `run_eval.py run`. The last line counts problems by status. Problems whose reference did not
pass are named with the reason. --page writes a table of what lies in folders like DIR, and runs nothing: of a problem
that several have evaluated, the last one's record.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.errors import UsageError
from harness.packs import checkout as packs
from harness.records import Record, Status
from harness.store import run_directory

ROOT = Path(__file__).resolve().parents[1]
LEVELS = (1, 2, 3, 4)
AS_CANDIDATE = "\n\nclass ModelNew(Model):\n    pass\n"
PAGE = """\
# KernelBench's problems

`python benchmarks/kernelbench.py` opens each problem of a checkout of
[KernelBench](https://github.com/ScalingIntelligence/KernelBench) at its own size, and evaluates
its own reference as a candidate. Of the problems that were evaluated so far:

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", help="a checkout of KernelBench")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--level", type=int, choices=LEVELS, action="append", help="may be repeated (all)")
    parser.add_argument("--only", default="*", metavar="GLOB", help="problems whose file name matches, without .py")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda|cuda:N")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    parser.add_argument("--page", type=Path, help="write the table of all that is --of these folders, as Markdown")
    parser.add_argument("--of", type=Path, nargs="+", default=[], metavar="DIR")
    options = parser.parse_args()
    if options.page:
        run_directory.replace(options.page, PAGE + table(latest(options.of)))
        return
    if not (options.checkout and options.out):
        parser.error("a checkout and --out are needed")
    root = levels_in(options.checkout)
    for level in options.level or LEVELS:
        problems = [path for path in sorted((root / f"level{level}").glob("*.py")) if fnmatch(path.stem, options.only)]
        if problems:
            evaluate(problems, options.out / f"level{level}", options.device, options.set)
    records = [record for level in LEVELS for record in records_in(options.out / f"level{level}")]
    if not records:
        sys.exit(f"no problem matches '{options.only}'")
    for record in records:
        if record.status is not Status.PASSED:
            print(f"{record.problem}: {record.status}, {record.reason}: {record.message}")
    counts = Counter(str(record.status) for record in records)
    print(f"{len(records)} problems: " + ", ".join(f"{count} {status}" for status, count in counts.most_common()))


def levels_in(checkout: Path) -> Path:
    """The folder of a KernelBench checkout that holds level1 and the others; ends the program where there is none."""
    try:
        return packs.levels_in(checkout)
    except UsageError as error:
        sys.exit(str(error))


def evaluate(problems: list[Path], out: Path, device: str, settings: list[str]) -> None:
    """Run, or go on with, the evaluation of each problem's own reference."""
    for problem in problems:
        file = out / "candidates" / problem.parent.name / problem.stem / "reference.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(problem.read_text() + AS_CANDIDATE)
    command = [
        sys.executable,
        str(ROOT / "run_eval.py"),
        "run",
        str(ROOT / "configs/quickstart.yaml"),
        "--device",
        device,
    ]
    command += ["--variant", "default", "--solutions", str(out / "candidates"), "--out", str(out)]
    command += [word for problem in problems for word in ("--problems", str(problem))]
    command += [word for setting in settings for word in ("--set", setting)]
    if status := subprocess.run(command, check=False).returncode:
        sys.exit(status)


def records_in(run: Path) -> list[Record]:
    """In the order of KernelBench's numbers; nothing where there is no run."""
    if not (run / run_directory.JOURNAL).exists():
        return []
    found = run_directory.read(run)[1]
    return sorted(found, key=_number)


def latest(folders: list[Path]) -> list[Record]:
    """Each problem's last record in the runs of these folders, by level."""
    found: dict[str, Record] = {}
    for level in LEVELS:
        for folder in folders:
            runs = [*sorted(folder.glob(f"level{level}-*")), folder / f"level{level}"]
            found |= {record.problem: record for run in runs for record in records_in(run)}
    return sorted(found.values(), key=lambda record: (record.problem.partition("/")[0], _number(record)))


def _number(record: Record) -> int:
    return int(record.problem.rpartition("/")[2].partition("_")[0])


def table(records: list[Record]) -> str:
    """A row for each problem, as Markdown."""
    rows = [
        "| problem | status | card | a call of the reference, ms | all but timing, s | what it says |",
        "|---|---|---|---|---|---|",
    ]
    for record in records:
        call = "" if record.baseline_ms is None else f"{record.baseline_ms:.3g}"
        phases = record.phases_s
        opening_s = sum(seconds for phase, seconds in phases.items() if phase.startswith("open: "))
        beside = opening_s + phases.get("judge", 0.0) - phases.get("timing", 0.0)
        said = record.message.replace("|", "\\|").replace("\n", " ")
        card = record.device.removeprefix("NVIDIA ")
        rows.append(f"| {record.problem} | `{record.status}` | {card} | {call} | {beside:.1f} | {said} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
