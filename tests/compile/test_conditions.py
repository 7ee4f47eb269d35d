"""What decides about a build, as jobs' keys and the cache have it."""

import msgspec
import pytest

from harness.compile import conditions, tools
from harness.compile.conditions import COMPILER_VARIABLES
from harness.config import CompileConfig
from harness.environment import choose_devices


def digest(**settings):
    return conditions.find(choose_devices("cpu")[0], CompileConfig(**settings)).digest


@pytest.mark.parametrize("name", COMPILER_VARIABLES)
def test_each_variable_of_a_compiler_is_in_it(name, monkeypatch):
    before = digest()
    monkeypatch.setenv(name, "/usr/bin/c++" if name == "CXX" else "-O0")
    assert digest() != before


@pytest.mark.parametrize("settings", [{"headers": "stock"}, {"arch": "8.6"}])
def test_settings_of_builds_are_in_it_and_others_are_not(settings):
    assert digest(**settings) != digest() == digest(cache_gb=1.0, cache_dir="/elsewhere")


def test_another_compiler_that_says_the_same_is_another_one(tmp_path, monkeypatch):
    before = digest()
    (tmp_path / "c++").write_text('#!/bin/sh\nPATH=${PATH#*:} exec c++ "$@"\n')
    (tmp_path / "c++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert digest() != before


def test_our_own_code_is_not_in_it(monkeypatch):
    before = digest()
    monkeypatch.setattr(tools, "_own_digest", lambda: "other headers")
    assert digest() == before


def test_no_compiler_is_a_condition_of_its_own(monkeypatch):
    before = conditions.find(choose_devices("cpu")[0], CompileConfig())
    monkeypatch.setattr(tools, "find_tools", lambda cuda, arch: None)
    assert digest() == msgspec.structs.replace(before, tools=None).digest != before.digest
