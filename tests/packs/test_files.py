"""Files of a source: encodings, sizes, links, and whatever else lies in a folder."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.claims import Left
from harness.errors import UsageError
from harness.packs import files
from harness.packs.files import Unusable
from tests.packs.conftest import NEW

# A mark of UTF-16 and a null are the mark of UTF-32.
ANY = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff\r\0"))


@given(ANY, st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_a_text_is_read_in_the_encoding_that_its_mark_says(text, encoding):
    assert files.decoded(text.encode(encoding)) == text


@given(st.lists(st.sampled_from(["a", "\x0c", "\u2028", "\x85", "é"])), st.sampled_from(["\r\n", "\r", "\n"]))
def test_only_ends_of_lines_end_lines(lines, end):
    assert files.decoded(end.join(lines).encode()) == "\n".join(lines)


@given(st.binary(max_size=100))
def test_any_bytes_are_a_text_or_refused(data):
    with contextlib.suppress(Unusable):
        text = files.decoded(data)
        assert files.encoded(text).decode() == text


def test_what_is_no_file_of_the_pack_is_left(tmp_path, read):
    secret = tmp_path / "secret.py"
    secret.write_text(NEW)
    pack = tmp_path / "level1"
    pack.mkdir()
    (pack / "task_1.py").symlink_to(secret)
    (pack / "task_2.py").symlink_to(pack / "nowhere")
    (pack / "further").symlink_to(tmp_path)
    os.mkfifo(pack / "task_3.py")
    (pack / "task_4.png").write_bytes(b"x")
    (pack / ".task_5.py").write_text(NEW)
    (pack / "task_6.py").write_bytes(b"#" * (files.sources.MOST_BYTES + 1))
    (pack / "task_7.json").write_text("{}")
    samples, left = read(pack)
    assert samples == []
    assert {one.origin.file: one.reason.partition(";")[0] for one in left} == {
        ".task_5.py": "a hidden file",
        "further": "no kind of file that is imported",
        "task_1.py": "it cannot be read: a link that leads out of the source",
        "task_2.py": "it cannot be read: No such file or directory",
        "task_3.py": "it is not a regular file",
        "task_4.png": "no kind of file that is imported",
        "task_6.py": "it is larger than 4 MiB",
        "task_7.json": "it is a table: name the field that holds code with --code-field",
    }


def test_a_link_within_the_source_is_followed(tmp_path, read):
    for run in ("first", "second"):
        (tmp_path / "pack" / run).mkdir(parents=True)
    (tmp_path / "pack/first/level_1_problem_1_sample_0.py").write_text(NEW)
    (tmp_path / "pack/second/level_1_problem_1_sample_0.py").symlink_to("../first/level_1_problem_1_sample_0.py")
    (tmp_path / "pack/second/circle.py").symlink_to("circle.py")
    # Whose folder that is may not be known.
    (tmp_path / "pack/second/process.py").symlink_to("/proc/1/cwd/x")
    samples, left = read(tmp_path / "pack")
    assert [one.code.decode() for one in samples] == [NEW, NEW]
    assert [one.origin.file for one in left] == ["second/circle.py", "second/process.py"]


def test_a_link_that_the_user_names_is_followed(tmp_path, read):
    (tmp_path / "blob").write_text(NEW)
    (tmp_path / "task_1.py").symlink_to(tmp_path / "blob")
    ((sample,), _) = read(tmp_path / "task_1.py")
    assert sample.code.decode() == NEW


def test_a_source_that_is_not_there_is_a_wrong_argument(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        list(files.walk(tmp_path / "nothing"))


def test_a_name_that_cannot_be_shown_is_repaired_in_what_is_said(tmp_path):
    os.mkdir(tmp_path / "pack")
    place = os.path.join(os.fsencode(tmp_path / "pack"), b"\xff\x1b[31m.py")
    with open(place, "wb") as file:
        file.write(NEW.encode())
    (found,) = files.walk(tmp_path / "pack")
    assert not isinstance(found, Left)
    assert found.below.isprintable()
    assert files.contents(found) == NEW.encode()
