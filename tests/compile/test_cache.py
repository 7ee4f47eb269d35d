"""The cache of built extensions: found by key only, verified when read, bounded, safe beside others and after kills."""

import contextlib
import os
import queue
import socket
import threading

import msgspec
import pytest

from harness.compile.cache import ENTRY, Cache

KEY = "ab" + "0" * 62


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", 1 << 20)


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "build/ext.so"
    path.parent.mkdir()
    path.write_bytes(b"\x7fELF" + bytes(1000))
    return path


def files(root, pattern):
    return [path for path in root.rglob(pattern) if path.is_file()]


def test_what_is_stored_is_fetched_with_its_name_and_warnings(cache, library, tmp_path):
    assert cache.fetch(KEY, tmp_path / "run") is None
    cache.store(KEY, {"digest": str(library)}, ["remark: one"])
    paths, warnings = cache.fetch(KEY, tmp_path / "run")
    copy = tmp_path / "run/cached_0/ext.so"
    assert (paths, warnings) == ({"digest": str(copy)}, ["remark: one"])
    assert copy.read_bytes() == library.read_bytes()


def damaged(kind, root):
    (path,) = files(root, ENTRY if kind.startswith("entry") else "*.so")
    data = path.read_bytes()
    if kind.endswith("gone"):
        path.unlink()
    elif kind.endswith("torn"):
        path.write_bytes(data[: len(data) // 2])
    elif kind == "library linked elsewhere":
        path.rename(path.with_suffix(".bak"))
        path.symlink_to(path.with_suffix(".bak"))
    else:
        path.write_bytes(data[:-1] + b"!")


@pytest.mark.parametrize(
    "kind",
    [
        "entry gone",
        "entry torn",
        "entry altered",
        "library gone",
        "library torn",
        "library altered",
        "library linked elsewhere",
    ],
)
def test_a_damaged_entry_is_absent_and_is_replaced(cache, library, tmp_path, kind):
    cache.store(KEY, {"digest": str(library)}, [])
    damaged(kind, tmp_path / "cache")
    assert cache.fetch(KEY, tmp_path / "run") is None
    cache.store(KEY, {"digest": str(library)}, [])
    assert cache.fetch(KEY, tmp_path / "again") is not None


@pytest.mark.parametrize("name", [ENTRY, "*.so"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "socket"])
def test_what_is_no_regular_file_is_absent_holds_up_nobody_and_is_replaced(name, kind, cache, library, tmp_path):
    cache.store(KEY, {"digest": str(library)}, [])
    (path,) = files(tmp_path / "cache", name)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):
            made.bind(path.name)
    before = len(os.listdir("/proc/self/fd"))
    fetched = queue.Queue()
    threading.Thread(target=lambda: fetched.put(cache.fetch(KEY, tmp_path / "run")), daemon=True).start()
    assert fetched.get(timeout=10.0) is None
    assert len(os.listdir("/proc/self/fd")) == before
    cache.store(KEY, {"digest": str(library)}, [])
    assert cache.fetch(KEY, tmp_path / "again") is not None


@pytest.mark.parametrize("file", ["0/ext\0.so", "", "..", "x" * 300, "/etc/passwd"])
def test_an_entry_that_names_no_library_is_absent(file, cache, library, tmp_path):
    cache.store(KEY, {"digest": str(library)}, [])
    (path,) = files(tmp_path / "cache", ENTRY)
    entry = msgspec.json.decode(path.read_bytes())
    entry["libraries"]["digest"]["file"] = file
    path.write_bytes(msgspec.json.encode(entry))
    assert cache.fetch(KEY, tmp_path / "run") is None


def test_an_entry_under_another_s_key_is_absent(cache, library, tmp_path):
    cache.store(KEY, {"digest": str(library)}, [])
    other = "ab" + "1" * 62
    (tmp_path / "cache/ab" / KEY).rename(tmp_path / "cache/ab" / other)
    assert cache.fetch(other, tmp_path / "run") is None


def test_the_first_of_two_writers_wins_and_nothing_is_left_over(cache, library, tmp_path):
    threads = [threading.Thread(target=cache.store, args=(KEY, {"d": str(library)}, [])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.name for path in (tmp_path / "cache/ab").iterdir()] == [KEY]
    assert cache.fetch(KEY, tmp_path / "run") is not None


def test_what_was_used_least_lately_goes_first(library, tmp_path):
    cache = Cache(tmp_path / "cache", 3000)
    for number, key in enumerate(("aa" + "0" * 62, "bb" + "0" * 62)):
        cache.store(key, {"d": str(library)}, [])
        os.utime(tmp_path / "cache" / key[:2] / key, (number, number))
    cache.fetch("aa" + "0" * 62, tmp_path / "touch")
    cache.store("cc" + "0" * 62, {"d": str(library)}, [])
    kept = {path.parent.name for path in files(tmp_path / "cache", ENTRY)}
    assert kept == {"aa" + "0" * 62, "cc" + "0" * 62}


def test_what_a_killed_writer_left_goes_after_an_hour(cache, library, tmp_path):
    for name, age_s in (("old", 7200), ("new", 10)):
        left = tmp_path / "cache/ab" / f".new-{name}"
        left.mkdir(parents=True)
        then = left.stat().st_mtime - age_s
        os.utime(left, (then, then))
    cache.store(KEY, {"digest": str(library)}, [])
    assert {path.name for path in (tmp_path / "cache/ab").iterdir()} == {KEY, ".new-new"}


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_only_regular_files_are_kept(cache, tmp_path, kind):
    path = tmp_path / "ext.so"
    if kind == "link":
        path.symlink_to("/etc/passwd")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    cache.store(KEY, {"digest": str(path)}, [])
    assert cache.fetch(KEY, tmp_path / "run") is None
    assert files(tmp_path / "cache", "*") == []


def test_a_place_that_cannot_be_written_keeps_nothing(library, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    cache = Cache(tmp_path / "cache", 1 << 20)
    cache.store(KEY, {"digest": str(library)}, [])
    assert cache.fetch(KEY, tmp_path / "run") is None


def test_what_is_very_large_is_not_kept_at_the_cost_of_others(cache, library, tmp_path, monkeypatch):
    cache.store(KEY, {"digest": str(library)}, [])
    large = tmp_path / "build/large.so"
    large.write_bytes(bytes((1 << 19) + 1))
    cache.store("cd" + KEY[2:], {"digest": str(large)}, [])
    assert [path.name for path in files(tmp_path / "cache", "*.so")] == ["ext.so"]
    monkeypatch.setattr("harness.compile.cache.KEPT_BYTES", 500)
    cache.store("ef" + KEY[2:], {"digest": str(library)}, [])
    assert len(files(tmp_path / "cache", "*.so")) == 1
