"""Which folders are taken for a cache of ours, and that nothing else in them is ever deleted or written."""

import os
import time

import pytest

from harness.compile.cache import ENTRY, Cache
from harness.compile.precompiled import KEEP_UNUSED_S, Precompiled
from harness.errors import UsageError
from harness.store import cache_folder
from harness.store.cache_folder import BUILDS, HEADERS, MARK, PACKS, part
from tests.compile.test_prepare import TOOLS

DIGEST = "0123456789abcdef" * 2
OLD = time.time() - 2 * KEEP_UNUSED_S


def put(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("years of work")


def all_below(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


@pytest.mark.parametrize("made", [False, True])
def test_a_new_or_empty_folder_becomes_ours_and_stays_it(tmp_path, made):
    root = tmp_path / "cache"
    if made:
        root.mkdir()
    assert part(HEADERS, str(root)) == root / "headers"
    assert [path.name for path in root.iterdir()] == [MARK]
    put(root, "notes.txt")
    assert part(BUILDS, str(root)) == root / "builds"


def test_what_an_earlier_version_made_is_ours(tmp_path):
    put(tmp_path, "ceilings.json", f"headers/{DIGEST}/macros.json", f"builds/01/{DIGEST * 2}/{ENTRY}")
    put(tmp_path, f"packs/mine-{DIGEST[:16]}/import.json", f"packs/mine-{DIGEST[:16]}.lock")
    part(PACKS, str(tmp_path))
    assert (tmp_path / MARK).is_file()


@pytest.mark.parametrize(
    "name",
    [
        "thesis.tex",
        "builds/v1/app",
        "headers/zlib.h",
        "packs/holiday/list.txt",
        "builds",
        "ceilings.json/x",
        ".git/config",
    ],
)
def test_a_folder_with_anything_else_is_refused_and_left_as_it_is(tmp_path, name):
    put(tmp_path, name)
    before = all_below(tmp_path)
    with pytest.raises(UsageError, match=r"is no cache folder of Assay's: .*; name a new or an empty folder by "):
        part(HEADERS, str(tmp_path))
    assert all_below(tmp_path) == before


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("name", cache_folder.FORMS)
def test_no_part_is_a_link(tmp_path, name, marked):
    root, victim = tmp_path / "cache", tmp_path / "thesis"
    root.mkdir()
    victim.mkdir()
    if marked:
        (root / MARK).touch()
    (root / name).symlink_to(victim)
    with pytest.raises(UsageError, match=rf"{name} is a link"):
        part(name, str(root))


def test_a_place_that_cannot_be_written_is_taken_as_it_is(tmp_path):
    (tmp_path / "file").write_text("no folder")
    assert part(BUILDS, str(tmp_path / "file")) == tmp_path / "file/builds"


def test_of_old_headers_only_our_own_go(tmp_path):
    """By name and file, and not where a link leads."""
    theirs, other = f"{DIGEST}/photo.jpg", "letters/macros.json"
    put(tmp_path / "headers", f"{DIGEST[::-1]}/macros.json", theirs, other)
    put(tmp_path / "elsewhere", "macros.json")
    (tmp_path / "headers" / DIGEST.replace("0", "1")).symlink_to(tmp_path / "elsewhere")
    headers = Precompiled(tmp_path / "headers", TOOLS)
    headers.folder.mkdir()
    for folder in [*(tmp_path / "headers").iterdir(), tmp_path / "elsewhere"]:
        os.utime(folder, (OLD, OLD))
    headers.used("macros.json")
    kept = [DIGEST, DIGEST.replace("0", "1"), "letters", headers.folder.name]
    assert sorted(path.name for path in (tmp_path / "headers").iterdir()) == sorted(kept)
    assert (tmp_path / "elsewhere/macros.json").is_file()


@pytest.mark.parametrize("name", ["de/letters/all.txt", f"de/{DIGEST * 2}/all.txt", f"src/{DIGEST * 2}/{ENTRY}"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_full_cache_deletes_its_own_entries_alone(tmp_path, name, linked):
    root = tmp_path / "builds"
    put(tmp_path / "elsewhere" if linked else root, name)
    root.mkdir(exist_ok=True)
    if linked:
        (root / name.split("/")[0]).symlink_to(tmp_path / "elsewhere" / name.split("/")[0])
    put(tmp_path, "ext.so")
    cache = Cache(root, 100)
    for first in "12":
        cache.store(first * 64, {"digest": str(tmp_path / "ext.so")}, [])
    assert (root / name).read_text() == "years of work"
    assert not list((root / "22").iterdir())


def test_no_entry_is_written_where_a_link_leads(tmp_path):
    root, victim = tmp_path / "builds", tmp_path / "thesis"
    root.mkdir()
    victim.mkdir()
    (root / "11").symlink_to(victim)
    put(tmp_path, "ext.so")
    Cache(root, 1 << 20).store("1" * 64, {"digest": str(tmp_path / "ext.so")}, [])
    assert list(victim.iterdir()) == []
