"""Folders that are nested deeper than a path may be long, or than Python's stack."""

import os

import pytest

from harness.catalog import solutions


@pytest.mark.parametrize(("name", "levels"), [("d", 1200), ("d" * 100, 100)])
def test_a_deep_folder_does_not_end_discovery(name, levels, tmp_path):
    own = tmp_path / "toy/scale"
    own.mkdir(parents=True)
    (own / "honest.py").write_text("")
    place = os.open(own, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=place)
        below = os.open(name, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    try:
        assert [found.name for found in solutions.discover([str(tmp_path)])] == ["honest"]
    finally:
        os.system(f"rm -rf '{own}'")
