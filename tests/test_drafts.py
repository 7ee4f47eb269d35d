"""Files that appear whole or not at all."""

import threading

import pytest

from harness.drafts import draft


def test_a_file_is_the_old_one_until_the_block_ends(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with draft(path) as place:
        place.write_text("new")
        assert (path.read_text(), place.parent) == ("old", tmp_path)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def fail(path):
    with draft(path) as place:
        place.write_text("half")
        raise OSError("the disk is full")


def test_where_the_block_fails_the_old_one_stays_alone(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="full"):
        fail(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_may_lie_elsewhere_and_is_its_thread_s_own(tmp_path):
    (tmp_path / "below").mkdir()
    places = []

    def write(number):
        with draft(tmp_path / "below/file", tmp_path) as place:
            places.append(place)
            place.write_text(str(number))
            together.wait(10)

    together = threading.Barrier(2)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*places}) == 2
    assert {place.parent for place in places} == {tmp_path}
    assert (tmp_path / "below/file").read_text() in ("0", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["below"]
