"""The files of texts: what one thread writes is never another one's data."""

from pathlib import Path

import pytest

from harness.catalog.sources import own_files
from harness.config import Config
from harness.evaluator.planning import Planner

PROBLEM = "import torch\n"


def test_a_text_that_is_being_written_is_no_data_of_the_one_that_is_there(tmp_path, monkeypatch: pytest.MonkeyPatch):
    rename, found = Path.rename, []

    def renamed(draft, target):
        # Another thread was quicker.
        target.write_text(PROBLEM)
        found.extend(own_files(target))
        return rename(draft, target)

    monkeypatch.setattr(Path, "rename", renamed)
    place = Planner(Config(), {}, tmp_path)._problem_file(PROBLEM)
    assert found == [str(place)]
