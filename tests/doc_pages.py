"""The Markdown pages of the repository as data: their fenced blocks, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
ROOTS_PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "solutions/README.md",
    ROOT / "results/README.md",
    ROOT / "tests/corpus/README.md",
]
PAGES = sorted([*ROOTS_PAGES, *(ROOT / "docs").rglob("*.md")])
# What begins a command of a shell, in the pages.
PROGRAMS = ("python", "assay", "make", "pip", "git", ".venv/bin/python", ".")
MARK = re.compile(r"<!-- (not run|file|edit): (.+) -->")
# Why a block is not run that only lists a command's options; these are looked up all the same.
SYNOPSIS = "a synopsis"


class Block(msgspec.Struct, frozen=True):
    """A fenced block. `page` is relative to the repository, `line` the fence's, from 1.

    A comment before the block marks it: `<!-- not run: why -->`, `<!-- file: path -->` for the content of a file, or
    `<!-- edit: path -->` for lines of a file that are replaced (a `diff`).
    """

    page: str
    line: int
    language: str
    text: str
    not_run: str = ""
    file: str = ""
    edit: str = ""

    @property
    def commands(self) -> list[str]:
        """The commands of a block of a shell, each as one line without comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [" ".join(found) for line in lines if (found := shlex.split(line, comments=True, posix=False))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    return [
        _block(page, before, token)
        for before, token in zip([None, *tokens], tokens, strict=False)
        if token.type == "fence"
    ]


def _block(page: Path, before: Token | None, fence: Token) -> Block:
    mark = MARK.fullmatch(before.content.strip()) if before is not None and before.type == "html_block" else None
    marked = {mark[1].replace(" ", "_"): mark[2]} if mark else {}
    assert fence.map is not None
    place = page.relative_to(ROOT).as_posix()
    return Block(place, fence.map[0] + 1, fence.info.strip(), fence.content, **marked)


def mentioned(page: Path) -> Iterator[list[str]]:
    """The words of each command of ours that a page names: in blocks, in steps of a workflow, and in its text."""
    text = page.read_text(encoding="utf-8")
    fenced = blocks(page)
    found = [command for block in fenced if block.language == "sh" for command in block.commands]
    for block in fenced:
        if block.not_run == SYNOPSIS:
            found.append(" ".join([*block.text.split()[:3], *re.findall(r"--[a-z-]+", block.text)]))
    found += re.findall(r"^ *- run: (assay .+)$", text, re.MULTILINE)
    found += [" ".join(span.split()) for span in re.findall(r"(?<!`)`((?:[^`\n]|\n(?!\n))+)`(?!`)", text)]
    for command in found:
        program = re.match(r"(?:(?:\.venv/bin/)?python run_eval\.py|run_eval\.py|assay) +", command)
        if program:
            yield command[program.end() :].split(" #")[0].split()
