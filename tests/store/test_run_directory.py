"""Where a run may write."""

import json

import pytest

from harness.errors import UsageError
from harness.store.run_directory import check_place


def put(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    "files",
    [
        {"results.csv": "a,b"},
        {"leaderboard.md": "mine"},
        {"report.html": "mine"},
        {"samples.csv": "mine"},
        {"thesis.tex": "mine"},
        {"run.json": "[]"},
        {"run.json": "no JSON"},
        {"run.json": '{"name": "another program\'s"}', "results.csv": "a,b"},
        {"logs/x.log": "mine", "results.csv": "a,b"},
    ],
)
def test_a_folder_of_other_things_is_refused_and_left_as_it_is(tmp_path, files):
    put(tmp_path, files)
    other = sorted(name for name in files if "/" not in name)[0]
    with pytest.raises(UsageError, match=rf"holds other things than a run \({other}\); choose a new"):
        check_place(tmp_path)
    assert {name: (tmp_path / name).read_text() for name in files} == files


@pytest.mark.parametrize(
    "files",
    [
        {},
        {".gitkeep": ""},
        {"records.jsonl": "", "results.csv": "", "notes.md": ""},
        {"run.json": json.dumps({"environment": {}}), "results.csv": ""},
        {"logs/x.log": "", "profile/x.json": ""},
    ],
)
def test_a_run_s_own_folder_is_taken_and_a_new_one(tmp_path, files):
    put(tmp_path, files)
    check_place(tmp_path)
    check_place(tmp_path / "new/one")
