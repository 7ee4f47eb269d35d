import errno
import os

import pytest

from harness.errors import UsageError
from harness.reports import rows, write


def test_all_files_are_written_and_nothing_else_is_left(tmp_path, records, manifest):
    write.write_all(tmp_path, records[:1], manifest)
    write.write_all(tmp_path, records, manifest)
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "leaderboard.md", "report.html"}
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
    assert {path.name for path in tmp_path.iterdir()} == {"results.csv", "leaderboard.md", "report.html"}
