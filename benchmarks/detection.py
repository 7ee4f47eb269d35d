"""How much the harness catches, and whom it wrongs: the whole corpus (tests/corpus) through the harness itself.

    python benchmarks/detection.py [--device cpu|cuda|cuda:N] [--only GLOB]... [--lanes N] [--out DIR]
    python benchmarks/detection.py --judge results/detection-h200      what a finished run's records say, once more
    python benchmarks/detection.py --over-http      submitted to a service one by one (extra `serve`)

A cheat is caught if its record has the expected status, reason and warning, and shows no better speedup than its honest
twin's (the whole interval above); a fault is named if its record has the expected status and reason; an honest one has
to pass. Specimens that need a card count only on one, those that nothing but the sandbox stops only where one is in
force, and over HTTP those that are one text: the others are listed as set aside. Whatever is not as expected is in the
table of misses. A busy machine may be to blame for some of that, which gets a second run; a cheat that passed and
should not have gets none.
"""

from __future__ import annotations

import argparse
import fnmatch
import functools
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console

from harness import environment
from harness.errors import UsageError
from harness.store import journal
from tests import specimens
from tests.specimens import Specimen

LAST_LINE = """\
last line: cheats_caught=A/A faults_named=B/B honest_passed=C/C
The exit status is 0 where nothing was missed, 1 where something was, 2 for wrong arguments.
"""
COUNTS = {"cheat": "cheats_caught", "fault": "faults_named", "honest": "honest_passed"}


def main() -> int:
    arguments = parse()
    if arguments.judge:
        return judge(arguments)
    started = time.monotonic()
    try:
        kind = environment.choose_devices(arguments.device)[0].kind
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="assay-detection-", ignore_cleanup_errors=True) as temporary:
        folder = arguments.out or Path(temporary)
        confined = trial(folder / "trial", arguments.device)
        chosen, aside = choose(arguments, kind, confined)
        console = Console(stderr=True)
        run: specimens.Run = functools.partial(specimens.run, lanes=arguments.lanes)
        if arguments.over_http:
            from benchmarks import _over_http

            run = _over_http.run
            aside += [one for one in chosen if not _over_http.can_be_submitted(one)]
            chosen = [one for one in chosen if one not in aside]
        records = run(chosen, folder, console, arguments.device)
        texts = specimens.misses(chosen, records, folder, console, arguments.device, run)
    return tell(chosen, aside, texts, f"on {kind} in {time.monotonic() - started:.0f} s")


def judge(arguments: argparse.Namespace) -> int:
    """Hold the records that a run left in a folder against the corpus as it is now. Nothing is run."""
    runs = sorted(arguments.judge.glob("run*/records.jsonl"))
    if not runs:
        print(f"error: no run*/records.jsonl in {arguments.judge}", file=sys.stderr)
        return 2
    records = {record.candidate: record for run in runs for record in journal.parse(run.read_bytes())[0]}
    kind = specimens.environment(arguments.judge / "run")["device_kind"]
    chosen, aside = choose(arguments, kind, specimens.sandboxed(arguments.judge / "run"))
    found = ((one.name, specimens.miss(one.on(kind), records)) for one in chosen)
    return tell(chosen, aside, {name: text for name, text in found if text}, f"on {kind}, judged again")


def tell(chosen: list[Specimen], aside: list[Specimen], texts: Mapping[str, str], how: str) -> int:
    """Print what was not as expected (`texts`, by specimen) and the last line; the exit status."""
    missed = [(one, texts[one.name]) for one in chosen if one.name in texts]
    for one in aside:
        why = "needs a card" if one.needs_card else "needs a sandbox" if one.sandbox else "is more than a text"
        print(f"set aside: {one.problem} {one.name}: {why}")
    for one, text in missed:
        print(f"missed: {one.kind} {one.problem} {one.name} ({one.row}): {text}")
    print(f"{len(chosen)} specimens of {len({one.row for one in chosen})} rows {how}")
    print(summary(chosen, [one for one, _ in missed]))
    return 1 if missed else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=LAST_LINE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    parser.add_argument("--only", action="append", default=[], help="specimens by name, with * and ?; honest twins too")
    parser.add_argument("--lanes", type=int, default=1, help="candidates under way at a time on each GPU (1)")
    parser.add_argument("--row", action="append", default=[], help="specimens of such a row only, and honest twins")
    parser.add_argument("--without-builds", action="store_true", help="leave out what a compiler has to be run for")
    parser.add_argument("--judge", type=Path, metavar="DIR", help="judge the records of such a run again; run nothing")
    parser.add_argument(
        "--over-http", action="store_true", help="submit them to a service; no text, or with data: aside"
    )
    parser.add_argument("--out", type=Path, help="where to keep the run's records (default: nowhere)")
    return parser.parse_args()


def trial(folder: Path, device: str) -> bool:
    """One honest specimen, to see whether runs here are behind a sandbox."""
    known = specimens.load()
    specimens.run([known["honest"]], folder, Console(quiet=True), device)
    return specimens.sandboxed(folder / "run")


def choose(arguments: argparse.Namespace, kind: str, confined: bool) -> tuple[list[Specimen], list[Specimen]]:
    """The specimens to run, with the twins of those chosen, and those set aside."""
    known = specimens.load()
    rows = arguments.row or {one.row for one in known.values()}
    globs = arguments.only or ["*"]
    named = {name for name in known if known[name].row in rows and any(fnmatch.fnmatch(name, glob) for glob in globs)}
    named |= {known[name].twin for name in named if known[name].twin}
    wanted = [one for one in known.values() if one.name in named and not (arguments.without_builds and one.compiled)]
    aside = [one for one in wanted if (one.needs_card and kind == "cpu") or (one.sandbox and not confined)]
    return [one for one in wanted if one not in aside], aside


def summary(chosen: Sequence[Specimen], missed: Sequence[Specimen]) -> str:
    """The last line."""
    parts = []
    for kind, word in COUNTS.items():
        total = sum(one.kind == kind for one in chosen)
        parts.append(f"{word}={total - sum(one.kind == kind for one in missed)}/{total}")
    return " ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
