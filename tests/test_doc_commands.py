"""What the pages tell their readers to type works: blocks of commands are carried out, each page's in order.

`run` only lists its jobs, but for the tutorial, whose runs are made. A block that cannot be carried out here says why
in a comment before it: `<!-- not run: needs a GPU -->`.
"""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import cli
from harness.options import options
from harness.records import Status
from harness.store import run_directory
from tests.doc_pages import PAGES, PROGRAMS, ROOT, SYNOPSIS, Block, blocks, mentioned
from tests.packs.conftest import MODEL, NEW

TUTORIAL = "docs/tutorial.md"
# Enough pairs for an interval, not for a precise one.
QUICK = [
    "timing.budget_s=1.0",
    "timing.min_pairs=4",
    "timing.max_pairs=4",
    "timing.burst_ms=1.0",
    "check.stress_budget_s=1.0",
]
BLOCKS = [block for page in PAGES for block in blocks(page)]
TO_RUN = {block.page for block in BLOCKS if block.language == "sh" and not block.not_run}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}:{block.line}")
def test_a_block_has_a_language_and_commands_are_sh(block: Block):
    assert block.language, "say what it is: sh for commands, text for what is neither code nor a command"
    if block.language != "sh":
        begins = [line.split() for line in block.text.splitlines()]
        assert (
            not [words for words in begins if words[1:] and words[0] in PROGRAMS]
            or block.file
            or block.not_run == SYNOPSIS
        )


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_that_a_page_names_exist(page):
    (commands,) = (action.choices for action in options.parser()._actions if isinstance(action.choices, dict))
    for command, *words in mentioned(page):
        if command.startswith("-") or command in ("COMMAND", "VERB"):
            continue
        assert command in commands, f"{command} {words}"
        known = commands[command]._option_string_actions
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= set(known), f"{command} {words}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A folder as a fresh checkout has it, with what the pages' examples speak of beside it."""
    place = tmp_path_factory.mktemp("pages") / "assay"
    for folder in ("configs", "problems", "solutions"):
        shutil.copytree(ROOT / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (place / "results").mkdir()
    # Not what this checkout's own commands have left there.
    first_cells = re.findall(r"^\| (`[^|]+) \|", (ROOT / "results/README.md").read_text(), re.MULTILINE)
    for published in re.findall(r"`([\w-]+)`", " ".join(first_cells)):
        (place / "results" / published).symlink_to(ROOT / "results" / published)
    (place / "results/before").symlink_to(ROOT / "results/precision-cpu/idle")
    (place / "results/after").symlink_to(ROOT / "results/precision-cpu/busy")
    for problem in ("level1/19_ReLU.py", "level1/1_Square.py"):
        path = place.parent / "KernelBench/KernelBench" / problem
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODEL)
    for candidate in ("my_kernels/level1/19_ReLU/mine.py", "runs/mine/level_1_problem_19_sample_0_kernel.py"):
        path = place / candidate
        path.parent.mkdir(parents=True)
        path.write_text(NEW)
    row = {"custom_code": NEW, "ref_code": MODEL, "level_id": 1, "task_id": 19, "score_default": 1.5}
    (place / "h100.json").write_text(json.dumps([row]))
    return place


@pytest.fixture(scope="module")
def done():
    """Commands that an earlier page has had carried out."""
    return set()


@pytest.mark.parametrize("page", sorted(TO_RUN - {TUTORIAL}))
def test_the_commands_of_a_page_work(page, checkout, done, monkeypatch):
    monkeypatch.chdir(checkout)
    for block in blocks(ROOT / page):
        if block.language == "sh" and not block.not_run:
            for command in block.commands:
                if command not in done:
                    carry_out(command, ["--dry-run"])
                    done.add(command)


@pytest.mark.slow
def test_the_tutorial_works(checkout, monkeypatch, capsys):
    monkeypatch.chdir(checkout)
    # All runs at the smallest size, whichever the page names.
    quick = ["--variant", "small", *(word for change in QUICK for word in ("--set", change))]
    for block in blocks(ROOT / TUTORIAL):
        if block.file:
            Path(block.file).write_text(block.text)
        elif block.edit:
            old, new = (
                "".join(line[1:] for line in block.text.splitlines(keepends=True) if line.startswith(sign))
                for sign in "-+"
            )
            source = Path(block.edit).read_text()
            assert source.count(old) == 1
            Path(block.edit).write_text(source.replace(old, new))
        elif block.language == "sh" and not block.not_run:
            for command in block.commands:
                carry_out(re.sub(r"(run_eval.py run .+?) --variant \w+", r"\1", command), quick)
    said = capsys.readouterr().out
    assert "[1/1] incorrect" in said
    assert "0 in place of -" in said
    ends = (("pool.max_pool2d.mine", "mine"), ("pool", "mine"), ("pool", "cpp_column_maxima"))
    for run, candidate in (*ends, ("mine.scaled_relu.fused", "fused")):
        _, records = run_directory.read(Path("results") / run)
        assert {record.status for record in records if record.candidate == candidate} == {Status.PASSED}


def test_the_output_in_the_readme_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    page = blocks(ROOT / "README.md")
    (sample,) = (block for block in page if block.language == "text")
    (command,) = (command for block in page for command in block.commands if "run_eval.py report" in command)
    carry_out(command, [])
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert not [line for line in sample.text.splitlines() if line.split() not in printed]


def carry_out(command: str, for_runs: list[str]) -> None:
    words = shlex.split(command)
    target = None
    if ">" in words:
        *words, _, target = words
    match words:
        case ["python", "run_eval.py", *ours] | ["assay", *ours]:
            # 3: a gate said no, which examples may show.
            assert cli.main([*ours, *(for_runs if "run" in ours[:1] else [])]) in (0, 3), command
        case [".", ".venv/bin/activate"]:
            pass  # scripts/setup_venv.py makes it
        case ["make", *_]:
            subprocess.run([*words, "--dry-run"], cwd=ROOT, check=True, capture_output=True)
        case _:
            pytest.fail(f"how is this tried? {command}; carry_out must know it, or the block says: not run, and why")
    assert target is None or not target.startswith("/"), command
