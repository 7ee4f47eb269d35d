"""A `run.json` that a person or another program wrote: a report that says what is wrong with it, or one without it."""

import copy
import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from harness.errors import UsageError
from harness.reports import compare, markdown
from harness.reports.html import page
from harness.reports.terminal import compare_table, leaderboard
from harness.store import run_directory

RUN = Path(__file__).resolve().parents[2] / "results/starter-h200"
REAL = json.loads((RUN / "run.json").read_text())


def places(value, at=()):
    """Where each value of a manifest is; of a list the first one."""
    if at:
        yield at
    for key in list(value) if isinstance(value, dict) else range(min(1, len(value))) if isinstance(value, list) else ():
        yield from places(value[key], (*at, key))


def exchanged(place, value) -> dict:
    manifest = copy.deepcopy(REAL)
    holder = manifest
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return manifest


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with open(RUN / "records.jsonl") as records:
        (folder / "records.jsonl").write_text("".join(records.readline() for _ in range(3)))
    return folder


@pytest.mark.parametrize("value", [[["x"]], [3], {"a": [1]}, 3, "x", None], ids=str)
def test_no_value_of_another_type_ends_a_report(run, value, tmp_path):
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    for place in places(REAL):
        (tmp_path / "run.json").write_text(json.dumps(exchanged(place, value)))
        try:
            manifest, records = run_directory.read(tmp_path)
        except UsageError as error:
            assert "run.json is not a run's manifest: " in str(error)  # noqa: PT017 - others end in a report
            continue
        assert markdown.leaderboard(records, manifest)
        leaderboard.show(records, Console(file=io.StringIO()), manifest)
        assert compare_table.head("A", tmp_path, manifest)
        for one, other in ((manifest, REAL), (REAL, manifest)):
            list(compare.notes(compare.rows(records, records), one, other))


@pytest.mark.parametrize("value", ["x", ["x"], None, []])
def test_a_command_may_be_words_or_a_text(run, value, tmp_path):
    shutil.copytree(run, tmp_path, dirs_exist_ok=True)
    (tmp_path / "run.json").write_text(json.dumps(REAL | {"command": value}))
    manifest, records = run_directory.read(tmp_path)
    assert "</html>" in page.report(records, manifest)
