"""Files that appear whole or not at all."""

import os
import threading

import pytest

from harness.drafts import draft, fresh, kept


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


def put_link(path, victim):
    path.symlink_to(victim)


def put_hard_link(path, victim):
    os.link(victim, path)


def put_pipe(path, victim):
    os.mkfifo(path)


def put_nowhere(path, victim):
    path.symlink_to("nowhere/at/all")


@pytest.mark.parametrize("put", [put_link, put_hard_link, put_pipe, put_nowhere])
def test_what_has_the_name_of_a_file_of_ours_is_replaced_and_not_written_to(tmp_path, put):
    victim = tmp_path / "bashrc"
    victim.write_text("the user's")
    put(tmp_path / "log", victim)
    with fresh(tmp_path / "log") as file:
        file.write(b"ours")
    assert ((tmp_path / "log").read_text(), victim.read_text()) == ("ours", "the user's")


@pytest.mark.parametrize("put", [put_link, put_hard_link, put_pipe, put_nowhere])
def test_a_file_that_is_kept_is_nobody_else_s(tmp_path, put):
    victim = tmp_path / "bashrc"
    victim.write_text("the user's")
    put(tmp_path / "lock", victim)
    with pytest.raises(OSError):
        kept(tmp_path / "lock")
    assert victim.read_text() == "the user's"


def test_a_file_that_is_kept_is_made_once(tmp_path):
    for text in (b"", b"ours"):
        descriptor = kept(tmp_path / "lock")
        assert os.read(descriptor, 100) == text
        os.write(descriptor, b"ours")
        os.close(descriptor)


def test_a_draft_is_not_written_through_a_link(tmp_path):
    victim = tmp_path / "bashrc"
    victim.write_text("the user's")
    drafted = tmp_path / f".file.{os.getpid()}.{threading.get_ident()}.tmp"
    drafted.symlink_to(victim)
    with draft(tmp_path / "file") as place:
        place.write_text("ours")
    assert ((tmp_path / "file").read_text(), victim.read_text()) == ("ours", "the user's")
    assert not (tmp_path / "file").is_symlink()
