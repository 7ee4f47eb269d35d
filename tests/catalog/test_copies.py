"""Copies of a run's files: what was digested and nothing else, for all to read, and shown as the user's own."""

import os

import msgspec
import pytest

from harness import session
from harness.catalog import sources
from harness.catalog.copies import Copies
from harness.records import Status
from tests.conftest import CORPUS, Here, corpus_config


@pytest.fixture
def mine(tmp_path):
    """A candidate with data beside it, in the user's folder."""
    folder = tmp_path / "mine/toy/scale"
    folder.mkdir(parents=True)
    (folder / "fast.py").write_text("class ModelNew: pass\n")
    (folder / "fast.weights.bin").write_bytes(b"\0" * 3_000_000)
    (folder / "fast_other.bin").write_text("another candidate's")
    return folder / "fast.py"


def test_a_copy_is_what_was_digested_and_can_be_read_by_all(mine, tmp_path):
    mine.chmod(0o600)
    (mine.parent / "fast.weights.bin").chmod(0o600)
    candidate = Here.read(mine)
    copy = Copies(tmp_path / "copies").candidate(candidate)
    assert copy.fault is None
    assert sources.digest(copy.path, copy.path.read_bytes()) == candidate.digest == copy.digest
    assert copy.path.name == "fast.py"
    assert {path.name: path.stat().st_mode & 0o777 for path in copy.path.parent.iterdir()} == {
        "fast.py": 0o644,
        "fast.weights.bin": 0o644,
    }
    above = copy.path.parent.stat().st_mode & 0o777, copy.path.parents[1].stat().st_mode & 0o777
    assert above == (0o755, 0o711)


@pytest.mark.parametrize("name", ["fast.py", "fast.weights.bin"])
def test_a_file_that_has_changed_since_it_was_digested_is_not_evaluated(mine, tmp_path, name):
    candidate = Here.read(mine)
    with (mine.parent / name).open("a") as file:
        file.write("# edited\n")
    fault = Copies(tmp_path / "copies").candidate(candidate).fault
    # Tried again by the next run.
    assert (fault.status, fault.reason) == (Status.HARNESS_ERROR, "source_changed")


def test_a_problem_that_has_changed_is_no_word_against_problem_or_candidate(tmp_path):
    problem = tmp_path / "problems/toy/scale.py"
    problem.parent.mkdir(parents=True)
    problem.write_text((CORPUS / "problems/toy/scale.py").read_text())
    config = msgspec.structs.replace(corpus_config("honest"), problems=[str(problem)], baselines=["eager"])
    jobs = session.plan(msgspec.structs.replace(config, include=[])).jobs[:1]
    problem.write_text("# edited\n")
    (job,) = map(Copies(tmp_path / "copies").job, jobs)
    assert (job.problem.fault, job.candidate.fault.reason) == ("", "source_changed")


def test_a_copy_that_finds_no_room_is_an_error_of_the_harness(mine, tmp_path, monkeypatch):
    def full(path, folder, known):
        (folder / path.name).write_text("half of it")
        raise OSError(28, os.strerror(28))

    candidate = Here.read(mine)
    monkeypatch.setattr(sources, "copy", full)
    fault = Copies(tmp_path / "copies").candidate(candidate).fault
    assert (fault.status, fault.reason) == (Status.HARNESS_ERROR, "not_copied")
    assert "No space left on device" in fault.message
    # Others may find room.
    assert list((tmp_path / "copies").rglob("*.py")) == []


def test_texts_name_the_user_s_own_folder(mine, tmp_path):
    copies = Copies(tmp_path / "copies")
    copy = copies.candidate(Here.read(mine)).path
    said = f'File "{copy}", line 3; {copy.parent}: {copy.parent}0/x \udcff'
    assert copies.shown(said) == f'File "{mine}", line 3; {mine.parent}: {copy.parent}0/x \udcff'
    # What a candidate prints is no number that Python refuses to read.
    assert copies.shown(f"{copy.parents[1]}/{'7' * 5000}/") == f"{copy.parents[1]}/{'7' * 5000}/"
    assert copies.shown_bytes(b"\xff " + os.fsencode(copy)) == b"\xff " + os.fsencode(mine)


def linked(mine, how):
    (mine.parent / "secret").write_text("password = 1\n")
    (mine.parent / "secret").chmod(0o600)
    getattr(mine.parent / "link.py", how)(mine.parent / "secret")
    return mine.parent / "link.py"


@pytest.mark.parametrize("how", ["symlink_to", "hardlink_to"])
def test_a_link_to_a_file_that_is_closed_to_others_is_refused(mine, how):
    link = linked(mine, how)
    fault = Here.read(link).fault
    assert (fault.status, fault.reason) == (Status.LOAD_ERROR, "unreadable")
    assert "chmod o+r" in fault.message
    (mine.parent / "secret").chmod(0o644)
    assert Here.read(link).fault is None


def test_data_of_somebody_else_s_under_another_name_is_refused(mine):
    link = linked(mine, "symlink_to")
    link.unlink()
    (mine.parent / "fast.secret.bin").hardlink_to(mine.parent / "secret")
    assert Here.read(mine).fault.reason == "unreadable"


@pytest.mark.parametrize("linked", [False, True])
def test_a_folder_is_read_as_often_for_many_files_as_for_few(tmp_path, monkeypatch, linked):
    listed, seen = sources._listed, []
    monkeypatch.setattr(sources, "_listed", lambda folder: seen.append(folder) or listed(folder))

    def times(count):
        solutions, elsewhere = tmp_path / f"{count}/toy/scale", tmp_path / f"elsewhere{count}"
        for folder in (solutions, elsewhere):
            folder.mkdir(parents=True)
        for number in range(count):
            place = (elsewhere if linked else solutions) / f"c{number}.py"
            place.write_text(f"class ModelNew: number = {number}\n")
            if linked:
                (solutions / place.name).symlink_to(place)
        config = msgspec.structs.replace(corpus_config(), include=[], solutions=[str(tmp_path / str(count))])
        seen.clear()
        jobs = session.plan(config).jobs
        copies = Copies(tmp_path / f"copies{count}")
        copied = copies.jobs(jobs)
        for job in copied:
            copies.release(job)
        assert len(copied) == count
        return len(seen)

    assert times(4) == times(16)
