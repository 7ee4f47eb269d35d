"""Calls of one candidate in two processes: made here in one, under other places, names, times and process ids."""

import os
import time
import uuid

import pytest

from harness.compile import calls

SOURCE = "torch::Tensor tail(torch::Tensor x) { return x.tanh(); }"


class Process:
    """Makes calls as a process of its own would: with its own folder for temporary files, pid and clock."""

    def __init__(self, folder, pid, seconds, monkeypatch):
        self.folder, self.pid, self.seconds = folder, pid, seconds
        self._patch = monkeypatch
        folder.mkdir()

    def identify(self, make):
        for variable in calls.OWN_FOLDERS:
            self._patch.setenv(variable, str(self.folder))
        self._patch.setattr(os, "getpid", lambda: self.pid)
        self._patch.setattr(time, "time", lambda: self.seconds)
        return calls.identify(make(self.folder), "torch")


@pytest.fixture
def two(tmp_path, monkeypatch):
    return (
        Process(tmp_path / "build", 64, time.time(), monkeypatch),
        Process(tmp_path / "run", 4711, time.time() + 90.5, monkeypatch),
    )


def inline(**changes):
    return {"name": "tail", "cpp_sources": SOURCE, "functions": ["tail"]} | changes


def written(folder, text, name):
    path = folder / f"{uuid.uuid4().hex}" / name
    path.parent.mkdir()
    path.write_text(text)
    return path


ALIKE = {
    "a uuid in the name": lambda folder: inline(name=f"tail_{uuid.uuid4().hex}"),
    "pid and time in the name": lambda folder: inline(name=f"tail_{os.getpid()}_{int(time.time() * 1000) % 100000}"),
    "the name in the source": lambda folder: (
        lambda name: inline(name=name, cpp_sources=f"{SOURCE} PYBIND11_MODULE({name}, m) {{ /* 64 */ }}")
    )(f"tail_{uuid.uuid4().hex[:8]}"),
    "a temporary source": lambda folder: {"name": "tail", "sources": [str(written(folder, SOURCE, "tail.cpp"))]},
    "a source under a drawn name": lambda folder: {
        "name": "tail",
        "sources": str(written(folder, SOURCE, f"{os.getpid()}.cu")),
    },
    "a temporary include folder": lambda folder: inline(
        cpp_sources='#include "tail.h"\n', extra_include_paths=[str(written(folder, SOURCE, "tail.h").parent)]
    ),
    "an include folder as a flag": lambda folder: inline(
        cpp_sources='#include "tail.h"\n', extra_cflags=["-O3", f"-I{written(folder, SOURCE, 'tail.h').parent}"]
    ),
    "a header by its whole path": lambda folder: inline(
        cpp_sources=f'#include "{written(folder, SOURCE, "tail.h")}"\n'
    ),
    "a header that a flag includes": lambda folder: inline(
        extra_cflags=["-include", str(written(folder, SOURCE, "tail.h"))]
    ),
    "an object file": lambda folder: inline(
        extra_ldflags=[str(written(folder, f"\0{folder}", "tail.o")), f"-L{folder}", "-fopenmp"]
    ),
    "a build folder": lambda folder: inline(build_directory=str(folder), verbose=True),
}
ALIKE_IN_OUTLINE = {
    "a uuid in the source": lambda folder: inline(cpp_sources=f"// {uuid.uuid4()}\n{SOURCE}"),
    "a drawn kernel name": lambda folder: inline(cpp_sources=f"void k_{uuid.uuid4().hex[:9]}1a() {{}}{SOURCE}"),
    "a time in the source": lambda folder: inline(cpp_sources=f"// {time.time()}\n{SOURCE}"),
    "a date in the source": lambda folder: inline(
        cpp_sources=time.strftime(f"// %Y-%m-%d %H:%M:%S\n{SOURCE}", time.gmtime(time.time()))
    ),
    "the pid in the source": lambda folder: inline(extra_cflags=[f"-DPID={os.getpid()}"]),
}


@pytest.mark.parametrize("pattern", ALIKE)
def test_names_and_places_that_differ_are_no_difference(two, pattern):
    build, run = (process.identify(ALIKE[pattern]) for process in two)
    assert run.content == build.content


@pytest.mark.parametrize("pattern", ALIKE_IN_OUTLINE)
def test_words_drawn_into_a_source_are_left_out_of_its_outline(two, pattern):
    build, run = (process.identify(ALIKE_IN_OUTLINE[pattern]) for process in two)
    assert run.content != build.content
    assert run.outline == build.outline


UNLIKE = {
    "a number": lambda number: inline(cpp_sources=f"constexpr long N = {number};{SOURCE}"),
    "a number that is no time": lambda number: inline(cpp_sources=f"constexpr long N = {1_000_000_000 + number};"),
    "a bit pattern": lambda number: inline(cpp_sources=f"constexpr int N = 0x{0x1FA0BC00 + number:x};"),
    "a flag": lambda number: inline(extra_cflags=[f"-DTILE={number}"]),
    "a number that is in the name as well": lambda number: inline(
        name=f"mm_{number}", cpp_sources=f"int n = {number};"
    ),
    "functions": lambda number: inline(functions=[f"tail{number}"]),
}


@pytest.mark.parametrize("what", UNLIKE)
def test_what_is_compiled_is_never_left_out(what):
    one, other = (calls.identify(UNLIKE[what](number), "torch") for number in (1024, 2048))
    assert one.outline != other.outline


def test_the_content_of_files_counts(two):
    texts = iter((SOURCE, SOURCE.replace("tanh", "relu")))
    build, run = (
        process.identify(
            lambda folder: inline(
                cpp_sources='#include "tail.h"\n',
                extra_include_paths=[str(written(folder, next(texts), "tail.h").parent)],
            )
        )
        for process in two
    )
    assert run.outline != build.outline


def drawn(name, text=SOURCE):
    return calls.identify(inline(name=name, cpp_sources=text), "torch")


def test_the_same_name_goes_before_the_order_and_the_order_decides_the_rest():
    built = [drawn(name).key for name in ("first", "stable", "second")]
    assert calls.match(drawn("stable"), built, set()) == built[1]
    assert calls.match(drawn("another"), built, {built[1]}) == built[0]
    assert calls.match(drawn("and_another"), built, {built[0], built[1]}) == built[2]
    # Called more often than it was built: any of them is what was asked for.
    assert calls.match(drawn("once_more"), built, set(built)) == built[0]
    assert calls.match(drawn("first", SOURCE.replace("tanh", "relu")), built, set()) is None
    assert calls.match(drawn("first"), ["f" * 64], set()) is None


def test_equal_content_goes_before_an_equal_outline():
    one, other = (f"// {uuid.uuid4()}\n{SOURCE}" for _ in range(2))
    built = [drawn("first", one).key, drawn("second", other).key]
    assert calls.match(drawn("third", other), built, set()) == built[1]
    assert calls.match(drawn("fourth", f"// {uuid.uuid4()}\n{SOURCE}"), built, set()) == built[0]


@pytest.mark.parametrize(
    ("arguments", "foreign"),
    [
        (inline(), False),
        (inline(extra_cflags=["-I/usr/local/cuda/include", "-O3"]), False),
        (inline(extra_cflags=["-I/home/somebody/include"]), True),
        (inline(cpp_sources='#include "/srv/tail.h"\n'), True),
        (inline(cpp_sources="#include <ATen/ATen.h>\n"), False),
        ({"name": "tail", "sources": ["tail.cpp"]}, True),
    ],
)
def test_files_of_others_are_told(arguments, foreign):
    assert calls.reads_foreign_files(arguments) is foreign


def test_a_header_that_cannot_be_read_is_the_compiler_s_to_complain_of(tmp_path):
    names = ["x" * 5000, "/proc/self/mem", "\0"]
    source = "".join(f'#include "{name}"\n' for name in names)
    calls.identify(inline(cpp_sources=source, extra_include_paths=[str(tmp_path)]), "torch")
