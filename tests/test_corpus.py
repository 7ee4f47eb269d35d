"""Every specimen gets its own status and reason, the honest ones around it pass, and nothing is left behind."""

import hashlib
import os
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from harness.places import CHECKOUT
from harness.processes import families
from harness.records import Record, Status
from harness.sandbox.syscalls import PR_SET_CHILD_SUBREAPER, prctl
from harness.store import journal
from tests import specimens
from tests.specimens import CORPUS

pytestmark = [pytest.mark.alone, pytest.mark.timeout(1800), pytest.mark.usefixtures("cold_zygotes")]

KNOWN = specimens.load()
ON_CPU = [one for one in KNOWN.values() if not one.needs_card]
# Made by tools that run beside the tests, and by importing modules.
UNWATCHED = {".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__"}


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder with the digest of its contents, every link with its target."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in UNWATCHED]
        for name in [*files, *folders]:
            path = Path(root, name)
            if path.is_symlink():
                found[str(path)] = str(path.readlink())
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


class CarriedOut:
    """One run over specimens, with what lay around before and after."""

    def __init__(self, chosen, folder, device="cpu"):
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        before, tempfile.tempdir = tempfile.tempdir, str(self.temporary)
        # Whatever outlives the run becomes a child of this process.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        own = families.children()
        trees = tree(CHECKOUT)
        try:
            with open(folder / "console", "w") as file:
                console = Console(file=file, width=200)
                self.records = specimens.run(chosen, folder, console, device)
                seen = [one for one in chosen if not one.hole]
                self.missed = specimens.misses(seen, self.records, folder, console, device)
        finally:
            tempfile.tempdir = before
        self.left = set(families.children()) - set(own)
        self.changed = set(trees.items()) ^ set(tree(CHECKOUT).items())
        self.corpus_changed = set(relative(tree(CORPUS), CORPUS)) ^ set(
            relative(tree(folder / "corpus"), folder / "corpus")
        )
        self.folder = folder


def relative(files: dict[str, str], root: Path) -> list[tuple[str, str]]:
    return [(os.path.relpath(path, root), digest) for path, digest in files.items()]


@pytest.fixture(scope="module")
def carried_out(tmp_path_factory):
    """The CPU's specimens, but for those that a compiler is needed for and those that only a sandbox can hold."""
    folder = tmp_path_factory.mktemp("trial")
    specimens.run([KNOWN["honest"]], folder, Console(quiet=True))
    confined = specimens.sandboxed(folder / "run")
    chosen = [one for one in ON_CPU if not one.compiled and (confined or not one.sandbox)]
    return CarriedOut(chosen, tmp_path_factory.mktemp("corpus"))


def test_every_row_has_a_specimen_and_a_twin_and_there_are_enough_of_both():
    kinds = {row: {one.kind for one in KNOWN.values() if one.row == row} for row in {one.row for one in KNOWN.values()}}
    assert [row for row, found in kinds.items() if not {"honest"} < found] == []
    counts = Counter(one.kind for one in ON_CPU)
    assert counts["cheat"] + counts["fault"] >= 60
    assert counts["honest"] >= 30


def test_each_has_its_own_status_and_no_cheat_is_faster_than_its_twin(carried_out):
    assert carried_out.missed == {}


def test_nothing_takes_much_longer_than_what_it_waits_for(carried_out):
    slow = {name: record.wall_s for name, record in carried_out.records.items() if record.wall_s > 60}
    assert slow == {}
    assert all(record.message or record.status is Status.PASSED for record in carried_out.records.values())


def test_a_log_is_bounded(carried_out):
    noisy = carried_out.folder / "run" / carried_out.records["prints_without_end"].log
    assert noisy.stat().st_size < 1.1 * (1 << 20)


def test_every_record_is_there_once_and_nobody_adds_one(carried_out):
    written = (carried_out.folder / "run/records.jsonl").read_bytes()
    records, readable = journal.parse(written)
    assert readable == len(written)
    assert [name for name, count in Counter(record.candidate for record in records).items() if count > 1] == []


def test_no_file_changes_outside_the_specimens_own_folders(carried_out):
    assert carried_out.changed == set()
    assert carried_out.corpus_changed == set()
    assert list(carried_out.temporary.iterdir()) == []


def test_nothing_is_left_running(carried_out):
    assert [Path(f"/proc/{pid}/stat").read_text() for pid in carried_out.left] == []


def test_builds_have_their_own_statuses(tmp_path):
    """Of those that need a card one is built: `make candidates` builds them all, and each takes most of a minute."""
    done = CarriedOut([one for one in [*ON_CPU, KNOWN["cuda_honest"]] if one.compiled], tmp_path)
    assert done.missed == {}
    assert done.left == set()
    broken = done.records["does_not_compile"]
    assert broken.message.startswith("does_not_compile.py:10: ")
    assert "undeclared_name" in broken.evidence["source_line"]
    assert "undeclared_name" in (tmp_path / "run" / broken.log).read_text()
    assert re.search("no NVIDIA driver|without CUDA", done.records["cuda_honest"].message)
    assert done.records["honest_cpp"].compile_s > 0


@pytest.mark.gpu
def test_the_whole_corpus_on_a_card(tmp_path):
    done = CarriedOut(list(KNOWN.values()), tmp_path, "cuda:0")
    assert done.missed == {}
    assert all(record.wall_s < 90 for record in done.records.values())
    assert done.records["cuda_sleeps_on_the_host"].timing.candidate_latency_us > 1000


def passed(name, speedup):
    fixed = {
        "key": name,
        "problem": "toy/scale",
        "variant": "default",
        "precision": "float32",
        "device": "",
        "baseline": "",
    }
    times = {
        "speedup": speedup,
        "speedup_lo": speedup,
        "speedup_hi": speedup,
        "candidate_ms": 1.0,
        "baseline_ms": speedup,
    }
    return Record(candidate=name, status=Status.PASSED, **fixed, **times)


@pytest.mark.parametrize(("second", "missed"), [(1.0, set()), (2.0, {"sets_variables_for_others"})])
def test_what_seems_faster_is_timed_again_and_what_got_through_is_missed_at_once(tmp_path, second, missed):
    chosen = [KNOWN["honest"], KNOWN["zeros"], KNOWN["sets_variables_for_others"]]
    faster = "sets_variables_for_others"
    honest = passed("honest", 1.0)
    first = {"honest": honest, "zeros": passed("zeros", 1.0), faster: passed(faster, 2.0)}
    ran = []

    def run(again, *_):
        ran.extend(one.name for one in again)
        return {"honest": honest, faster: passed(faster, second)}

    missing = specimens.misses(chosen, first, tmp_path, Console(quiet=True), run=run)
    assert missing.keys() == {"zeros"} | missed
    assert sorted(ran) == ["honest", faster]
