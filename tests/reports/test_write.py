import errno
import os
import subprocess

import pytest

from harness.errors import UsageError
from harness.reports import rows, write

NAMES = {"results.csv", "leaderboard.md", "report.html", "reports.sha256"}


def test_all_files_are_written_and_nothing_else_is_left(tmp_path, records, manifest):
    write.write_all(tmp_path, records[:1], manifest)
    write.write_all(tmp_path, records, manifest)
    assert {path.name for path in tmp_path.iterdir()} == NAMES
    assert (tmp_path / "results.csv").read_text(encoding="utf-8") == rows.to_csv(records)
    assert "µs" in (tmp_path / "leaderboard.md").read_text(encoding="utf-8")


def test_a_failure_keeps_the_old_file_and_no_draft(tmp_path, records, manifest, monkeypatch):
    write.write_all(tmp_path, records[:1], manifest)
    before = (tmp_path / "results.csv").read_text()

    def fail(*_):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(UsageError, match="disk full"):
        write.write_all(tmp_path, records, manifest)
    assert (tmp_path / "results.csv").read_text() == before
    assert {path.name for path in tmp_path.iterdir()} == NAMES


def test_reports_are_current_until_a_file_of_the_run_is_changed_or_removed(tmp_path, records, manifest, monkeypatch):
    assert not write.are_current(tmp_path)
    (tmp_path / "records.jsonl").write_text("records")
    (tmp_path / "run.json").write_text("manifest")
    write.write_all(tmp_path, records, manifest)
    assert write.are_current(tmp_path)
    # What a user can look into, too.
    assert subprocess.run(["sha256sum", "--check", "--quiet", write.SEAL], cwd=tmp_path, check=False).returncode == 0
    for name in sorted({"records.jsonl", "run.json", *NAMES}):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(kept + b" ")
        assert not write.are_current(tmp_path), name
        (tmp_path / name).unlink()
        assert not write.are_current(tmp_path), name
        (tmp_path / name).write_bytes(kept)
        assert write.are_current(tmp_path)
    (tmp_path / "samples.csv").write_text("of records that are gone")
    assert not write.are_current(tmp_path)


def test_reports_of_other_code_are_not_current(tmp_path, records, manifest, monkeypatch):
    write.write_all(tmp_path, records, manifest)
    (tmp_path / "code").mkdir()
    (tmp_path / "code/page.html").write_text("another page")
    monkeypatch.setattr(write, "__file__", str(tmp_path / "code/write.py"))
    assert not write.are_current(tmp_path)
