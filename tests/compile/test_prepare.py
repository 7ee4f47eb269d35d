"""Which headers are made for a candidate's file."""

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.compile import prepare
from harness.compile.precompiled import Precompiled
from harness.compile.tools import Tools
from harness.compile.ways import smaller
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.sketch import sketch
from harness.compile.ways.sketch.prefixes import PREFIXES

TOOLS = Tools(
    cxx="c++", nvcc="nvcc", torch_root="/torch", cuda_include="/cuda", std="-std=c++20", arch="9.0a", versions=()
)
CONTEXT = b"#include <ATen/cuda/CUDAContext.h>\n__global__ void k() {}\n"


@pytest.mark.parametrize(
    ("source", "cpp", "cuda", "prefixes"),
    [
        (b"cpp_sources=SOURCE", [""], [], []),
        (b"cuda_sources=SOURCE", [""], [""], ["prefix.hpp"]),
        (b"cuda_sources=SOURCE, extra_cuda_cflags=['-O3']", [""], ["-O3"], ["prefix.hpp"]),
        (
            b"cuda_sources=SOURCE, extra_cflags=['-O3'], extra_cuda_cflags=['-O2']",
            ["-O2", "-O3"],
            ["-O2", "-O3"],
            ["prefix.hpp"],
        ),
        (CONTEXT + b"at::cuda::getCurrentCUDAStream();", [""], [""], ["prefix.hpp"]),
        (CONTEXT + b"at::cuda::getCurrentCUDABlasHandle();", [""], [""], ["prefix.hpp", "context.hpp"]),
        (b"__global__ void k(); torch.cuda.is_available()", [""], [""], ["prefix.hpp"]),
        (b"__global__ void k(); PYBIND11_MODULE(name, m) {}", [""], [""], ["prefix.hpp", "module.hpp"]),
        (
            CONTEXT + b"at::cuda::getCurrentCUDABlasHandle(); PYBIND11_MODULE(name, m) {}",
            [""],
            [""],
            ["prefix.hpp", "module.hpp", "context.hpp", "context_module.hpp"],
        ),
    ],
)
def test_a_file_gets_what_it_may_need(source, cpp, cuda, prefixes, monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(sketch.prefixes, "prepare", lambda kind, level, *_: made.append((PREFIXES[kind], level)))
    monkeypatch.setattr(Precompiled, "compile", lambda self, header, level, command: made.append((header, level)))
    monkeypatch.setattr(smaller.operators, "popular_header", lambda root: "")
    monkeypatch.setattr(prepare, "survey", lambda *_: Macros(cpp=frozenset(), cuda=frozenset(), asked=frozenset()))
    prepare.prepared(prepare.wanted(source), tmp_path, TOOLS)
    assert sorted(set(made)) == sorted([*(("binding.h", level) for level in cpp), *itertools.product(prefixes, cuda)])
    assert (tmp_path / TOOLS.digest[:32] / smaller.MACROS).is_file()


# Takes `-o FILE`; says that it has begun, and ends when as many have as there are to be.
COMPILER = """\
import os, pathlib, sys, time
log, beside, target = sys.argv[1], int(sys.argv[2]), sys.argv[4]
with open(log, "a") as file:
    file.write("begun\\n")
deadline = time.monotonic() + 60
while len(pathlib.Path(log).read_text().splitlines()) < beside and time.monotonic() < deadline:
    time.sleep(0.01)
pathlib.Path(target).touch()
"""


def test_headers_are_made_side_by_side_and_each_once(tmp_path):
    headers, log = Precompiled(tmp_path, TOOLS), tmp_path / "log"
    headers.folder.mkdir()
    command = [sys.executable, "-c", COMPILER, str(log), "2"]
    with ThreadPoolExecutor(4) as threads:
        for made in [threads.submit(headers.compile, "a.h", level, command) for level in ("-O2", "-O3") * 2]:
            made.result()
    assert log.read_text().splitlines() == ["begun"] * 2
    assert headers.has("a.h", "-O2")
    assert headers.has("a.h", "-O3")


def test_one_that_fails_is_tried_by_the_next_that_asks(tmp_path):
    headers = Precompiled(tmp_path, TOOLS)
    headers.folder.mkdir()
    with pytest.raises(RuntimeError, match="no such header"):
        headers.compile("a.h", "", [sys.executable, "-c", "import sys; sys.exit('no such header')"])
    headers.compile("a.h", "", [sys.executable, "-c", COMPILER, str(tmp_path / "log"), "1"])
    assert headers.has("a.h", "")
