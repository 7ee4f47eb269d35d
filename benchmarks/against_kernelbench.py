"""Seconds a candidate by KernelBench's evaluator and by Assay: the same files, one after the other, on one machine.

    python benchmarks/against_kernelbench.py ../KernelBench ../pack --out DIR
    python benchmarks/against_kernelbench.py ../KernelBench ../pack --out DIR --limit 40     spread over the pack
    python benchmarks/against_kernelbench.py ../KernelBench ../pack --out DIR --cards 2      theirs two at a time

../KernelBench is a checkout of KernelBench, with what its evaluator imports installed; that needs a GPU. ../pack is
what `run_eval.py import` reads without further words, or a folder that it has written. Theirs evaluates each candidate
in a fresh process with 5 correctness and 100 timing trials, as its scripts do; ours is one run. Both begin with nothing
compiled. With `--cards N` theirs evaluates N at a time, each with a GPU and an N-th of the cores, which are all that
ours has for its one GPU: their time is the sum of what each took. A row where the candidate's module sets a name that
the problem's inputs are made from says so: their evaluator reads both files into one module, and so times both on the
candidate's sizes, which is not the same work. DIR keeps the table, its rows as JSON, what theirs said, and our run. A
call that was ended goes on when it is made again with the same DIR: with theirs where it was, with ours anew.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.catalog import claims
from harness.config import PackConfig
from harness.errors import UsageError
from harness.packs import importing
from harness.reading.reading import Reader
from harness.records import Record
from harness.store import run_directory

ROOT = Path(__file__).resolve().parents[1]
# One candidate by their evaluator, its build included; their scripts wait 180 s.
THEIR_TIMEOUT_S = 180.0
ON_CORES = ("taskset", "-c")
MAKES_INPUTS = ("get_inputs", "get_init_inputs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="a checkout of KernelBench")
    parser.add_argument("pack", type=Path, help="a pack of candidates")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="an empty or new folder, or to go on in")
    parser.add_argument("--limit", type=int, metavar="N", help="so many candidates, spread over the pack")
    parser.add_argument("--cards", type=int, default=1, metavar="N", help="GPUs for theirs")
    parser.add_argument("--device", default="cuda:0", metavar="cpu|cuda:N", help="ours; theirs takes the first GPU")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for our run; may be repeated")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        chosen = imported(options.pack, options.out / "pack", options.checkout, options.limit)
    except UsageError as error:
        sys.exit(f"error: {error}")
    theirs = by_kernelbench(options.checkout, chosen, options.cards, options.out / "theirs.jsonl")
    their_s = sum(one["s"] for one in theirs.values())
    shutil.rmtree(options.out / "run", ignore_errors=True)
    ours, our_wall_s = by_assay(chosen, options.out / "run", options.device, options.set, shares(options.cards)[0])
    rows = [row(problem, candidate, theirs[candidate], ours.get(candidate)) for candidate, problem in chosen.items()]
    figures = {
        "candidates": len(rows),
        "kernelbench_s": their_s,
        "assay_s": our_wall_s,
        "ratio": their_s / our_wall_s,
        "other_sizes": sum(bool(one["other_sizes"]) for one in rows),
    }
    (options.out / "rows.json").write_text(json.dumps({"figures": figures, "rows": rows}, indent=1) + "\n")
    page = table(rows)
    (options.out / "table.md").write_text(page)
    print(page)
    for name, verdicts in (("KernelBench", "theirs"), ("Assay", "ours")):
        counts = Counter(str(one[verdicts]) for one in rows)
        print(f"{name}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    print(
        f"candidates={len(rows)} kernelbench_s={their_s:.1f} assay_s={our_wall_s:.1f}"
        f" ratio={figures['ratio']:.2f} other_sizes={figures['other_sizes']}"
    )


def imported(pack: Path, out: Path, checkout: Path, limit: int | None) -> dict[Path, Path]:
    """The problem's file of each candidate's, of at most `limit` candidates; a pack is first imported into `out`."""
    out = pack if (pack / claims.MANIFEST).exists() else out
    if not (out / claims.MANIFEST).exists():
        with Reader() as reader:
            importing.run(pack, out, PackConfig(), checkout, reader)
    manifest = claims.read(out / claims.MANIFEST)
    problems = {
        Path(one.file).with_suffix("").relative_to(importing.PROBLEMS).as_posix(): one.file for one in manifest.problems
    }
    every = [(out / one.file, out / problems[one.problem]) for one in manifest.candidates]
    count = min(limit or len(every), len(every))
    return dict(every[number * len(every) // count] for number in range(count))


def name_of(candidate: Path) -> str:
    """As it is called in the folder of solutions."""
    return "/".join(candidate.parts[-3:])


def shares(count: int) -> list[set[int]]:
    """The cores that this process may use, in so many equal parts."""
    cores = sorted(os.sched_getaffinity(0))
    each = len(cores) // count
    return [set(cores[number * each : (number + 1) * each]) for number in range(count)]


def by_kernelbench(checkout: Path, chosen: dict[Path, Path], cards: int, known: Path) -> dict[Path, dict[str, Any]]:
    """What their evaluator says of each candidate, and how long that took; on each card one after the other.

    Each is added to the lines of `known`, and is not asked again for what is there.
    """
    before = dict(map(json.loads, known.read_text().splitlines())) if known.exists() else {}
    found = {path: before[name_of(path)] for path in chosen if name_of(path) in before}
    waiting = [each for each in chosen.items() if each[0] not in found]

    def work(card: int, cores: set[int]) -> None:
        while waiting:
            candidate, problem = waiting.pop(0)
            since = time.monotonic()
            told = one_by_kernelbench(checkout, problem, candidate, card if cards > 1 else None, cores)
            found[candidate] = told | {"s": time.monotonic() - since}
            with known.open("a") as lines:
                lines.write(json.dumps([name_of(candidate), found[candidate]]) + "\n")
            print(
                f"[{len(found)}/{len(chosen)}] KernelBench {candidate.stem}: {told['verdict']},"
                f" {found[candidate]['s']:.1f} s",
                flush=True,
            )

    with ThreadPoolExecutor(cards) as pool:
        for done in [pool.submit(work, *each) for each in enumerate(shares(cards))]:
            done.result()
    return found


def one_by_kernelbench(
    checkout: Path, problem: Path, candidate: Path, card: int | None, cores: set[int]
) -> dict[str, Any]:
    """Its verdict; on the first card of all if none is given."""
    one_card = {} if card is None else {"CUDA_VISIBLE_DEVICES": str(card)}
    with tempfile.TemporaryDirectory() as scratch:
        result, said = Path(scratch) / "result.json", Path(scratch) / "said.txt"
        worker = [sys.executable, str(ROOT / "benchmarks/_kernelbench_worker.py")]
        command = [
            *worker,
            *(str(path.resolve()) for path in (checkout, problem, candidate)),
            f"{scratch}/build",
            str(result),
        ]
        with said.open("w") as output:
            try:
                subprocess.run(
                    [*ON_CORES, ",".join(map(str, sorted(cores))), *command],
                    env=os.environ | one_card,
                    stdout=output,
                    stderr=output,
                    check=False,
                    timeout=THEIR_TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                return {"verdict": "timeout"}
        if result.exists():
            return dict(json.loads(result.read_text()))
        lines = said.read_text(errors="replace").strip().splitlines()
        if lines and lines[-1].startswith(("ModuleNotFoundError", "ImportError: cannot import name 'eval")):
            sys.exit(f"KernelBench's evaluator does not start: {lines[-1]}")
        return {"verdict": "no_result", "said": lines[-1][:300] if lines else ""}


def by_assay(
    chosen: dict[Path, Path], out: Path, device: str, settings: list[str], cores: set[int]
) -> tuple[dict[Path, Record], float]:
    """Our records by candidate, and how long the whole command took on these cores."""
    problems = [word for path in dict.fromkeys(chosen.values()) for word in ("--problems", str(path))]
    solutions = [word for path in chosen for word in ("--solutions", str(path))]
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, str(ROOT / "run_eval.py"), "run", str(ROOT / "configs/quickstart.yaml")]
        command += ["--variant", "default", "--device", device, "--out", str(out), *problems, *solutions]
        command += [word for setting in (f"compile.cache_dir={cache}", *settings) for word in ("--set", setting)]
        began = time.monotonic()
        done = subprocess.run([*ON_CORES, ",".join(map(str, sorted(cores))), *command], check=False)
        wall_s = time.monotonic() - began
    if done.returncode not in (0, 1):
        sys.exit(done.returncode)
    by_name = {(record.problem, record.candidate): record for record in run_directory.read(out)[1]}
    names = {path: ("/".join(path.parts[-3:-1]), path.stem) for path in chosen}
    return {path: by_name[name] for path, name in names.items() if name in by_name}, wall_s


def other_sizes(problem: str, candidate: str) -> list[str]:
    """Names that the problem's inputs are made from, and that the candidate's module sets to another value."""
    theirs, its = ast.parse(problem), ast.parse(candidate)
    makers = [node for node in theirs.body if isinstance(node, ast.FunctionDef) and node.name in MAKES_INPUTS]
    used = {node.id for maker in makers for node in ast.walk(maker) if isinstance(node, ast.Name)}
    before, after = constants(theirs), constants(its)
    return sorted(name for name in used & before.keys() & after.keys() if before[name] != after[name])


def constants(module: ast.Module) -> dict[str, str]:
    """What the module's top level assigns to each name, as code; of several the last."""
    found = {}
    for node in module.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = ast.unparse(node.value)
    return found


def row(problem: Path, candidate: Path, theirs: dict[str, Any], ours: Record | None) -> dict[str, Any]:
    try:
        changed = other_sizes(problem.read_text(), candidate.read_text())
    except SyntaxError:
        changed = []
    return {
        "problem": problem.stem,
        "candidate": candidate.stem,
        "theirs": theirs["verdict"],
        "their_speedup": theirs.get("speedup"),
        "their_s": theirs["s"],
        "ours": "no record" if ours is None else str(ours.status),
        "our_speedup": None if ours is None else ours.speedup,
        "our_reason": "" if ours is None else ours.reason,
        "other_sizes": changed,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """As Markdown."""
    lines = [
        "| problem | candidate | KernelBench | speedup | s | Assay | speedup | other sizes in theirs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        speedups = ["" if one[name] is None else f"{one[name]:.3g}" for name in ("their_speedup", "our_speedup")]
        ours = " ".join(filter(None, (one["ours"], one["our_reason"])))
        cells = [
            one["problem"],
            one["candidate"],
            one["theirs"],
            speedups[0],
            f"{one['their_s']:.1f}",
            ours,
            speedups[1],
        ]
        lines.append("| " + " | ".join([*cells, ", ".join(one["other_sizes"])]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
