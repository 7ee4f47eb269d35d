"""The source screen: each thing is seen through aliases, and words in comments, docstrings and literals are not."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalog.facts import MOST_FINDINGS, ScreenFinding
from harness.integrity import cxx
from harness.integrity import screen as screening
from harness.integrity.findings import KINDS
from harness.integrity.names import LONGEST, Names
from harness.reading.reader import candidate

ROOT = Path(__file__).resolve().parents[2]


def screen(source: str) -> list[ScreenFinding]:
    return candidate(source.encode(), "candidate.py").findings


def found(source: str) -> list[tuple[int, str, str]]:
    return [(finding.line, finding.kind, finding.text.partition(":")[0]) for finding in screen(source)]


def in_cuda(code: str) -> list[tuple[int, str, str]]:
    return found(f'CUDA = r"""\n#include <torch/extension.h>\nvoid f() {{\n{code}\n}}"""\n')


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("import torch\ntorch.cuda.synchronize = lambda: None", "patch", "replaces torch.cuda.synchronize"),
        ("import torch.cuda as c\nc.Event.elapsed_time = f", "patch", "replaces torch.cuda.Event.elapsed_time"),
        (
            "from time import perf_counter as now\nimport time as t\nt.perf_counter = f",
            "patch",
            "replaces time.perf_counter",
        ),
        ("import torch\nsetattr(torch.Tensor, '__eq__', f)", "patch", "replaces torch.Tensor.__eq__"),
        ("import torch\ndel torch.cuda.Event", "patch", "replaces torch.cuda.Event"),
        ("from unittest import mock", "patch", "imports unittest.mock"),
        ("import gc", "reach", "imports gc"),
        ("from ctypes import CDLL", "reach", "imports ctypes"),
        ("import sys\nframe = sys._getframe(1)", "reach", "sys._getframe"),
        ("import sys\nf = getattr(sys, '_getframe')", "reach", "sys._getframe"),
        ("from sys import modules\nmodules['torch']", "reach", "sys.modules"),
        ("__import__('ctypes')", "reach", "imports ctypes by name"),
        ("import importlib\nimportlib.import_module(name)", "reach", "imports a module that it computes by name"),
        ("open('x', 'w')", "reach", "opens a file for writing"),
        ("open('x', mode='ab')", "reach", "opens a file for writing"),
        ("path.write_text('x')", "reach", "write_text"),
        ("exec('x = 1')", "reach", "exec"),
        ("import socket", "reach", "imports socket"),
        ("import harness.judge.judge", "reach", "imports the harness itself"),
        ("import os\nos.environ['A'] = '1'", "switch", "os.environ"),
        (
            "import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
            "switch",
            "sets torch.backends.cuda.matmul.allow_tf32",
        ),
        ("import torch\ntorch.set_default_dtype(torch.half)", "switch", "torch.set_default_dtype"),
        ("import torch\ntorch.manual_seed(0)", "switch", "torch.manual_seed"),
        ("import subprocess", "thread", "imports subprocess"),
        ("from concurrent.futures import ThreadPoolExecutor", "thread", "imports concurrent.futures"),
        ("import threading", "thread", "imports threading"),
        ("import torch\ns = torch.cuda.Stream()", "stream", "torch.cuda.Stream"),
        ("import time\ntime.sleep(1)", "stream", "time.sleep"),
        ("x.data_ptr()", "cache", "data_ptr in Python"),
    ],
)
def test_what_python_does(source, kind, words):
    assert any(
        (kind, text) == (seen, words) or (kind == seen and text.startswith(words)) for _, seen, text in found(source)
    )


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);", "stream", "cudaStreamCreateWithFlags"),
        ("cudaDeviceSynchronize();", "stream", "cudaDeviceSynchronize"),
        ("attribute.accessPolicyWindow.num_bytes = 1;", "cache", "accessPolicyWindow"),
        ("cudaCtxResetPersistingL2Cache();", "cache", "cudaCtxResetPersistingL2Cache"),
        ("#include <cublas_v2.h>", "library", "includes cublas_v2.h"),
        ('#include "cutlass/gemm/device/gemm.h"', "library", "includes cutlass/gemm/device/gemm.h"),
        ("cublasGemmEx(h);", "library", "calls cublasGemmEx"),
        ("auto y = at::matmul(a, b);", "library", "calls PyTorch's own matmul"),
        ("std::thread t(work);", "thread", "std"),
        ("fork();", "thread", "fork"),
        ("dlsym(h, name);", "reach", "dlsym"),
        ("setenv(a, b, 1);", "reach", "setenv"),
        ("py::module_::import(name);", "reach", "py"),
        ("at::globalContext().setAllowTF32CuBLAS(true);", "switch", "setAllowTF32CuBLAS"),
    ],
)
def test_what_cuda_does(code, kind, words):
    assert [(line, seen, text.startswith(words)) for line, seen, text in in_cuda(code)] == [(4, kind, True)]


@pytest.mark.parametrize(
    "code",
    [
        "// cudaStreamCreate(&s); at::matmul(a, b)",
        "/* #include <cublas_v2.h>\n cudaStreamCreate(&s); */ int x;",
        'TORCH_CHECK(x, "use cublasGemmEx( or fork(");',
        'const char* s = R"(cudaStreamCreate(&s) "quoted" )";',
        "int n = 1'000'000; char quote = '\"'; // \" cudaStreamCreate(",
        "char8_t c = u8'a'; char8_t d = u8'b'; // don't; cudaStreamCreate(&s)",
        "auto y = at::empty_like(x), z = torch::zeros({2}); cudaStream_t s = at::cuda::getCurrentCUDAStream();",
        "object.fork(); pool->system();",
    ],
)
def test_words_in_comments_and_literals_and_everyday_calls_say_nothing(code):
    assert in_cuda(code) == []


def test_python_s_own_prose_says_nothing():
    source = '"""Uses torch::matmul(x) and #include <cublas_v2.h>, threading, gc."""\n# import ctypes; exec("x")\n'
    source += "import torch\nname = 'sys._getframe'\nx = torch.empty(3)\n"
    assert found(source) == []


def test_attributes_of_its_own_are_no_patches():
    source = "import torch\nclass M:\n    def __init__(self):\n        self.linear = torch.nn.Linear(2, 2)\n"
    assert found(source) == []


def test_a_name_that_the_file_defines_is_not_python_s():
    assert found("def open(a, b): ...\ndef eval(x): ...\nopen('x', 'w')\neval(1)\n") == []


def test_library_operations_in_forward_are_for_information():
    source = """
import torch
import torch.nn.functional as F
from torch import nn, matmul
class ModelNew(nn.Module):
    def __init__(self):
        self.linear = nn.Linear(2, 2)
        torch.relu(torch.ones(2))
    def forward(self, x):
        y = F.softmax(self.linear(x), -1) @ x
        return matmul(torch.empty_like(y), y.bmm(x))
"""
    findings = screen(source)
    assert {finding.text.removeprefix("forward calls ") for finding in findings} == {
        "torch.nn.functional.softmax",
        "torch.nn.Linear",
        "torch.matmul",
        "Tensor.bmm",
        "forward multiplies matrices with @",
    }
    assert not any(finding.warning for finding in findings)


def test_a_function_of_the_candidate_s_own_extension_is_none_of_pytorch_s():
    head = "from torch.utils.cpp_extension import load_inline\next = load_inline(name='a', functions=['matmul'])\n"
    forward = "class M:\n    def forward(self, a, b):\n        return ext.matmul(a, b)\n"
    assert found(head + forward) == []
    assert found(f"{head}ext = something()\n{forward}") == [(6, "library", "forward calls Tensor.matmul")]


def test_falling_back_is_told_apart_from_handling():
    head = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    assert found(f"{head}try:\n    y = ext.f(x)\nexcept Exception:\n    y = torch.softmax(x, -1)\n") == [
        (5, "fallback", "except")
    ]
    compiling = f"{head}try:\n    e = load_inline(name='a')\nexcept Exception as error:\n"
    assert found(f"{compiling}    e = None\n") == [(5, "fallback", "except")]
    assert found(f"{compiling}    raise ValueError() from error\n") == []
    assert found(f"{head}try:\n    y = int(x)\nexcept ValueError:\n    y = 0\n") == []


def test_each_finding_comes_once_with_its_first_line_and_a_known_kind():
    findings = screen("import os\n\n\nos.environ['A'] = os.environ['B']\nos.environ['C'] = ''\n")
    assert [(finding.line, finding.kind) for finding in findings] == [(4, "switch")]
    assert all(finding.kind in KINDS for finding in findings)


def test_lines_inside_strings_are_the_file_s(tmp_path):
    source = 'A = 1\nCUDA = """\n#include <torch/extension.h>\n\nvoid f() {\n  cudaDeviceSynchronize();\n}\n"""\n'
    assert [finding.line for finding in screen(source)] == [6]
    assert source.splitlines()[5] == "  cudaDeviceSynchronize();"


def test_an_f_string_is_one_text():
    source = 'N = 4\nCUDA = f"""\n#include <torch/extension.h>\n__global__ void k{N}() {{ }}\nvoid f() {{\n'
    source += '  k{N}<<<1, {N}>>>();\n  cudaDeviceSynchronize();\n}}\n"""\n'
    assert [finding.line for finding in screen(source)] == [7]


def test_blanking_keeps_every_place():
    code = 'int a; // x\n/* y\n z */ "s" b'
    assert [len(line) for line in cxx.bare(code).splitlines()] == [len(line) for line in code.splitlines()]


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ('#include "a.h" // fopen("x")\n', '#include "a.h"' + " " * 14 + "\n"),
        ("#include <a//b.h>\nfork();", "#include <a//b.h>\nfork();"),
        # A macro's name, and no raw string.
        ('FOR"(" fork(); // )"', "FOR    fork();      "),
        ("/\\\n/ fork();", "  \n         "),
    ],
)
def test_what_is_blanked_is_what_a_compiler_does_not_read_as_code(code, left):
    assert cxx.bare(code) == left


def test_what_is_nested_too_deeply_is_said_and_does_no_harm():
    (finding,) = screen("import torch\ntorch" + ".a" * 20_000 + " = 1\n")
    assert finding.text == "nested too deeply to be read"


def steps(source: str) -> int:
    """How many functions are called to read a source: the same on any machine, other than seconds."""
    nodes, count = list(ast.walk(ast.parse(source))), 0

    def counted(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        screening.screen(nodes)
    finally:
        sys.setprofile(None)
    return count


def nested(depth: int, head: str, calls: int = 300) -> str:
    heads = "".join(f"{' ' * level}{head}\n" for level in range(depth))
    body = f"{' ' * depth}f(torch.mm(x))\n" * calls
    ends = "".join(f"{' ' * level}except: pass\n" for level in reversed(range(depth))) if head == "try:" else ""
    return f"import torch\n{heads}{body}{ends}"


@pytest.mark.parametrize(
    ("once", "twice"),
    [
        ("a" + ".b" * 300, "a" + ".b" * 600),
        ("import a\na" + ".b" * 300 + " = 1", "import a\na" + ".b" * 600 + " = 1"),
        ("f" + "(0).g" * 80, "f" + "(0).g" * 160),
        ("getattr(" * 40 + "f" + ", 'g')" * 40, "getattr(" * 80 + "f" + ", 'g')" * 80),
        (nested(1, "def forward(self):"), nested(90, "def forward(self):")),
        (nested(1, "try:"), nested(90, "try:")),
        ("x = f()\n" * 300 + "x.mm()\n" * 300, "x = f()\n" * 600 + "x.mm()\n" * 600),
    ],
    ids=["chain", "known-chain", "calls", "getattr", "forward", "try", "made"],
)
def test_a_text_of_twice_the_size_takes_twice_the_steps_at_most(once, twice):
    assert len(twice) > 1.9 * len(once)
    assert steps(twice) < 2.1 * steps(once) + 100


def test_no_name_grows_without_end():
    """Each one longer by one part than the one before: together they would fill the memory."""
    chain = "".join(f"x{n + 1} = x{n}.b\n" for n in range(1000))
    for source in (f"from a import x0\n{chain}", "import " + "a." * 500 + "a as x0", f"from {'a.' * 500}a import x0"):
        names = Names(list(ast.walk(ast.parse(source))))
        assert all(len(names.of(ast.Name(f"x{n}"))) <= LONGEST for n in range(1000))


def test_no_torch_is_imported():
    script = "import sys; sys.modules['torch'] = None\nfrom harness.reading import reader\n"
    script += "reader.candidate(b'import gc', 'x.py')"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_the_repository_s_honest_candidates_get_no_warning():
    warned = {
        path.name
        for path in ROOT.glob("solutions/*/*/*.py")
        if any(finding.warning for finding in screen(path.read_text()))
    }
    # The one that allows TF32 on purpose.
    assert warned == {"tf32_downgrade.py"}


def test_no_number_of_findings_hides_a_warning():
    calls = "\n".join(f"        torch.a{number}()" for number in range(MOST_FINDINGS + 10))
    above = f"import torch\nclass Unused(torch.nn.Module):\n    def forward(self, x):\n{calls}\n"
    some = found(above + "import ctypes\nimport gc\n")
    last = MOST_FINDINGS + 14
    assert len(some) == MOST_FINDINGS
    assert {(last, "reach", "imports ctypes"), (last + 1, "reach", "imports gc")} < set(some)
    assert some[0] == (1, "reach", "13 findings are left out")
