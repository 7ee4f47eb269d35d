"""A folder that a candidate had to itself goes away, whatever it did there."""

import os

from harness.worker import folders


def test_deep_locked_and_linked_folders_go_and_what_links_point_to_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("here")
    mode = outside.stat().st_mode
    folder = tmp_path / "folder"
    (folder / "locked").mkdir(parents=True)
    (folder / "locked/file").write_text("here")
    (folder / "locked").chmod(0)
    (folder / "link").symlink_to(outside)
    before = os.open(".", os.O_RDONLY)
    os.chdir(folder)
    for _ in range(5000):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(before)
    os.close(before)
    folders.remove(folder)
    assert not folder.exists()
    assert (outside / "file").read_text() == "here"
    assert outside.stat().st_mode == mode


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    folders.remove(tmp_path / "nothing")
