"""docs/refusals.md: each reason that a refusal can have has a section, and each example is what Assay says."""

import ast
import json
import re
from pathlib import Path

import pytest

from harness.records import Status
from tests import specimens

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs/refusals.md").read_text()
PUBLISHED = (ROOT / "results").rglob("records.jsonl")
RECORDS = [json.loads(line) for path in PUBLISHED for line in path.read_text().splitlines()]


def sections() -> dict[str, list[str]]:
    """The reasons that the page's headings name, by status."""
    parts = re.split(r"^## (\w+)$", TEXT, flags=re.MULTILINE)[1:]
    headings = {
        status: re.findall(r"^### (.+)$", part, re.MULTILINE)
        for status, part in zip(parts[::2], parts[1::2], strict=True)
    }
    return {status: re.findall(r"`([\w:]+)`", " ".join(found)) for status, found in headings.items()}


def of_tables() -> set[tuple[str, str]]:
    """Statuses and reasons in the tables of docs/evaluation.md and docs/oracle.md."""
    statuses = (ROOT / "docs/evaluation.md").read_text().partition("\n## Statuses\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|(.*)\|$", statuses, re.MULTILINE)
    found = {
        (status, reason) for status, cell in rows for reason in re.findall(r"`([a-z_]+(?::\w+)?)(?::\.\.\.)?`", cell)
    }
    refusals = (ROOT / "docs/oracle.md").read_text().partition("\n## What a refusal says\n")[2].partition("\n## ")[0]
    for cell in re.findall(r"^\| (`.+?) \|", refusals, re.MULTILINE):
        words = re.findall(r"`(:?[a-z_]+(?::\w+)?)`", cell)
        found |= {("incorrect", f"mismatch{word}" if word.startswith(":") else word) for word in words}
    return found


def of_records() -> set[tuple[str, str]]:
    """Those of published runs, and those that the corpus expects."""
    corpus = [one.on(device) for one in specimens.load().values() for device in ("cpu", "cuda")]
    found = {(record["status"], record["reason"]) for record in RECORDS} | {
        (str(one.status), one.reason) for one in corpus
    }
    return {(status, reason) for status, reason in found if status != "passed" and reason}


def test_each_status_has_its_part_in_order():
    assert list(sections()) == [status for status in Status if status is not Status.PASSED]


@pytest.mark.parametrize("status, reason", sorted(of_tables() | of_records()))
def test_each_reason_has_a_section(status, reason):
    named = [word for word in sections()[status] if f"{reason}:".startswith(f"{word}:")]
    assert named, f"docs/refusals.md lacks a section `{reason}` below {status}"


def literals() -> str:
    """All texts in the harness's code, those of f-strings in pieces."""
    trees = [ast.parse(path.read_bytes()) for path in (ROOT / "harness").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return "\n".join(node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def test_each_example_is_of_a_published_run_or_of_the_code():
    said = "\n".join(record["message"] for record in RECORDS) + "\n" + literals()
    examples = re.findall(r"^> (.+)$", TEXT, re.MULTILINE)
    pieces = [piece.strip() for example in examples for piece in example.split("…")]
    assert not [piece for piece in pieces if piece not in said]
    assert len(examples) == len(re.findall(r"^### ", TEXT, re.MULTILINE))
