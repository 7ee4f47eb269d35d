"""docs/rewards.md is run as it stands."""

import re
from pathlib import Path

from harness.records import Status, is_no_word
from tests.rewards.test_rewards import failed

PAGE = (Path(__file__).parents[2] / "docs/rewards.md").read_text()


def test_the_loop_of_the_page_improves_by_what_it_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/rewards.md", "exec"), names)
    texts = [text for _, text in names["turns"]]
    assert texts[0].startswith("runtime_error: exception:TypeError")
    assert texts[1].startswith("incorrect: mismatch:")
    assert texts[2].startswith("passed")
    assert all(len(text) <= 2048 for text in texts)


def test_the_page_names_all_that_is_no_word_against_a_candidate():
    known = {status for status in Status if status is not Status.PASSED and is_no_word(failed(status))}
    assert known == {"harness_error", "invalid_reference"}
