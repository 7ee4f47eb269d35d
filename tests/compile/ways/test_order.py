"""Builds succeed without each of the ways, and without its files."""

import shutil
import subprocess
import sys

import msgspec
import pytest
from torch.utils import cpp_extension

from harness import places
from harness.compile import extensions
from harness.compile.ways import smaller
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.order import WAYS, chosen
from tests.compile.test_extensions import CALL, CUDA, Stock

NAMES = [way.name for way in WAYS]


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """A folder of precompiled headers as on a machine on which all ways apply."""
    folder = tmp_path / "prepared"
    folder.mkdir()
    macros = Macros(cpp=frozenset(), cuda=frozenset(), asked=frozenset())
    (folder / smaller.MACROS).write_bytes(msgspec.json.encode(macros))
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", "/cuda")
    monkeypatch.delenv("PYTORCH_NVCC", raising=False)
    cpp_extension.JIT_EXTENSION_VERSIONER.entries.clear()
    return folder


def tried(folder):
    """The ways by which the only call in a builder's folder was tried."""
    (call,) = (path for path in folder.iterdir() if path.name != "prepared")
    return sorted((path.name for path in call.iterdir()), key=NAMES.index)


def test_the_stock_build_is_last_and_chosen_alone():
    assert NAMES[-1] == "stock"
    assert chosen("lean") == WAYS
    assert [way.name for way in chosen("stock")] == ["stock"]


@pytest.mark.parametrize("call", [CALL, CUDA], ids=["cpp", "cuda"])
@pytest.mark.parametrize("removed", NAMES)
def test_without_any_one_way_builds_succeed(removed, call, tmp_path, prepared):
    ways = [way for way in WAYS if way.name != removed]
    first = next(way.name for way in ways if call is CUDA or way.name != "sketch")
    builder = extensions.Builder(tmp_path, "", ways=ways, prepared=prepared)
    assert builder(Stock(), call) == "ext"
    assert tried(tmp_path) == [first]
    assert builder.failures == {}


def test_a_way_that_fails_is_followed_by_those_that_it_did_not_contain(tmp_path, prepared):
    builder = extensions.Builder(tmp_path, "", ways=WAYS, prepared=prepared)
    builder(Stock(refuses=lambda arguments: arguments.get("extra_include_paths")), CUDA)
    # The sketch's nvcc falls back to the lean headers by itself.
    assert tried(tmp_path) == ["sketch", "stock"]
    assert list(builder.made.values()) == ["stock headers"]


BUILDS = """
import sys
from pathlib import Path
from harness.compile import extensions, prepare
from harness.compile.ways.order import WAYS
def stock(**arguments):
    Path(arguments["build_directory"], "ext.so").write_bytes(b"")
builder = extensions.Builder(Path(sys.argv[1]), "", ways=WAYS)
builder(stock, {"name": "ext", "cpp_sources": "int f();", "cuda_sources": "__global__ void k() {}"})
prepare.wanted(b"cuda_sources")
print([way.name for way in WAYS])
"""


@pytest.mark.parametrize("way", WAYS[:-1], ids=NAMES[:-1])
def test_a_way_goes_with_its_files_and_its_entry(way, tmp_path):
    shutil.copytree(places.PACKAGE, tmp_path / "harness", ignore=shutil.ignore_patterns("__pycache__", "library"))
    ways = tmp_path / "harness/compile/ways"
    # It has a file there, or a folder.
    module = type(way).__module__.removeprefix("harness.compile.ways.").partition(".")[0]
    if (ways / module).is_dir():
        shutil.rmtree(ways / module)
    else:
        (ways / f"{module}.py").unlink()
    lines = (ways / "order.py").read_text().splitlines()
    (ways / "order.py").write_text("\n".join(line for line in lines if type(way).__name__ not in line))
    command = [sys.executable, "-c", BUILDS, str(tmp_path / "built")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([name for name in NAMES if name != way.name])


@pytest.mark.slow
@pytest.mark.parametrize("removed", ["lean", "stock"])
def test_what_the_others_build_from_cpp_is_a_library(removed, tmp_path):
    source = "#include <torch/extension.h>\nint twice(int x) { return 2 * x; }"
    call = {"name": f"without_{removed}", "cpp_sources": source, "functions": "twice", "extra_cflags": ["-O0"]}
    ways = [way for way in WAYS if way.name != removed]
    built = extensions.Builder(tmp_path, "", ways=ways)(cpp_extension.load_inline, call)
    assert built.twice(21) == 42
