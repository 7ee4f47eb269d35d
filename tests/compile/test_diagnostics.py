"""Compiler output -> the candidate's own line, over outputs as g++ and nvcc print them."""

from pathlib import Path

import pytest

from harness.compile import diagnostics

CANDIDATE = '''"""Caption."""
from torch.utils.cpp_extension import load_inline

CPP = "torch::Tensor f(torch::Tensor x);"
CUDA = """
__global__ void kernel(float* x) {
    x[0] = wrong;
}
torch::Tensor f(torch::Tensor x) { return y; }
"""
ext = load_inline(name="f", cpp_sources=CPP, cuda_sources=CUDA, functions=["f"])
'''
HEADERS = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
CUDA = CANDIDATE.split('"""')[3]


@pytest.fixture
def built(tmp_path):
    candidate = tmp_path / "candidate.py"
    candidate.write_text(CANDIDATE)
    (tmp_path / "cuda.cu").write_text(HEADERS + CUDA)
    (tmp_path / "main.cpp").write_text(
        "#include <torch/extension.h>\ntorch::Tensor f(torch::Tensor x);\nPYBIND11_MODULE"
    )
    return candidate


def test_nvcc_s_first_error_is_traced_to_the_python_file(built):
    output = f'[1/3] nvcc ...\n{built.parent}/cuda.cu(6): error: identifier "wrong" is undefined\n    x[0] = wrong;\n'
    found = diagnostics.first_error(output, built)
    assert (found.line, found.source_line) == (7, "x[0] = wrong;")
    assert found.text == 'identifier "wrong" is undefined'
    assert (found.generated_file, found.generated_line) == ("cuda.cu", 6)


def test_g_plus_plus_columns_and_fatal_errors(built):
    output = f"{built.parent}/main.cpp:2:15: fatal error: nothing.h: No such file\n"
    assert diagnostics.first_error(output, built).line == 4


def test_the_earliest_of_several_kinds_is_taken(built):
    output = f"/usr/bin/ld: x.o: undefined reference to `g'\n{built.parent}/cuda.cu(6): error: later\n"
    assert "undefined reference" in diagnostics.first_error(output, built).text


def test_lines_of_torch_s_own_are_traced_to_nothing(built):
    output = f"{built.parent}/main.cpp:3:1: error: expected constructor\n"
    found = diagnostics.first_error(output, built)
    assert (found.line, found.text) == (0, "expected constructor")


def test_no_pattern_leaves_the_last_line(built):
    assert diagnostics.first_error("\nninja: build stopped\n\n", built).text == "ninja: build stopped"
    assert "without an error message" in diagnostics.first_error("", built).text


def test_the_same_line_twice_is_told_apart_by_its_block(tmp_path: Path):
    candidate = tmp_path / "candidate.py"
    candidate.write_text('A = """\nint x = y;\n"""\nB = """\n\nint x = y;\n"""\n')
    generated = tmp_path / "main.cpp"
    generated.write_text("#include <torch/extension.h>\n\nint x = y;\n\n\nint x = y;\n")
    assert diagnostics.trace_back(generated, 6, candidate)[0] == 6


def test_a_form_feed_ends_no_line(tmp_path: Path):
    candidate = tmp_path / "candidate.py"
    candidate.write_text('A = "\f"\nB = """\n// \u2028 \f\nint x = y;\nint z = w;\n"""\n')
    generated = tmp_path / "main.cpp"
    generated.write_text("#include <torch/extension.h>\n\n// \u2028 \f\nint x = y;\nint z = w;\n")
    assert diagnostics.trace_back(generated, 4, candidate) == (4, "int x = y;")


def test_the_first_errors_come_once_each_with_their_lines_and_hints(built):
    folder = built.parent
    output = (
        f'{folder}/cuda.cu(6): error: identifier "wrong" is undefined\n    x[0] = wrong;\n           ^\n\n'
        f'{folder}/cuda.cu(6): error: identifier "wrong" is undefined\n    x[0] = wrong;\n           ^\n\n'
        f'{folder}/cuda.cu(8): error: no suitable user-defined conversion from "std::tuple<at::Tensor, at::Tensor>" to '
        f'"at::Tensor" exists\n\n{folder}/main.cpp:2:1: error: third\n{folder}/main.cpp:2:1: error: fourth\n'
    )
    found = diagnostics.errors(output, built)
    assert [error.line for error in found] == [7, 9, 4]
    assert found[0].hint == ""
    assert "several tensors" in found[1].hint


def test_an_error_inside_a_header_is_traced_to_who_asked_for_it(built):
    header = "/usr/include/c++/12/bits/stl.h"
    output = (
        f"In file included from {built.parent}/main.cpp:1:\n{header}: In instantiation of 'f':\n"
        f"{built.parent}/main.cpp:2:7:   required from here\n{header}:33:5: error: no matching function\n"
    )
    (found,) = diagnostics.errors(output, built)
    assert (found.line, found.source_line) == (4, "torch::Tensor f(torch::Tensor x);")
    nvcc = f"{header}(33): error: no matching function\n"
    nvcc += f'          detected during instantiation of "f" at line 6 of {built.parent}/cuda.cu\n'
    assert diagnostics.errors(nvcc, built)[0].line == 7


def test_a_line_of_an_f_string_is_found_with_its_braces_doubled(tmp_path):
    candidate = tmp_path / "candidate.py"
    candidate.write_text('N = 4\nA = f"""\nvoid f() {{ int x[{N}]; }}\nvoid g() {{ return y; }}\n"""\n')
    generated = tmp_path / "main.cpp"
    generated.write_text("#include <a>\n\nvoid f() { int x[4]; }\nvoid g() { return y; }\n")
    assert diagnostics.trace_back(generated, 4, candidate)[0] == 4


def test_names_are_demangled(built):
    output = "ImportError: /b/tail.so: undefined symbol: _Z4tailN2at6TensorE"
    assert diagnostics.errors(output, built)[0].text == "undefined symbol: tail(at::Tensor)"
