"""From what a source names to the headers it gets, on the installed torch."""

import subprocess
from pathlib import Path

import pytest
import torch

from harness.catalog.cpp_tokens import without_comments
from harness.compile.ways import operators

ROOT = Path(torch.__file__).parent


def test_operators_are_those_named_with_their_namespace():
    text = "auto y = torch::empty_like(x); at :: softmax(y, 0); my::relu(y); y.sigmoid(); // at::matmul"
    assert operators.called(ROOT, without_comments(text)) == ["empty_like", "softmax"]


OWN = "template <class T>\nT celu(const T& x) { return x; }\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        # torch's function is the better match: without its header the candidate's own would be called.
        (OWN + "torch::Tensor f(torch::Tensor x) { return celu(x); }", ["celu"]),
        (OWN, []),
        (OWN + "auto f(Mine x) { return mine::celu(x); }", []),
        ("__device__ float celu(float x) { return x; }\n__global__ void k(float* x) { *x = celu(*x); }", []),
        ("template <class T>\n__device__ __forceinline__ T\ncelu(T x) { return x; }\nvoid f() { celu(1); }", []),
        ("auto y = celu(x);", []),
    ],
)
def test_an_operator_that_the_source_has_a_function_of_the_same_name_beside(text, names):
    assert operators.called(ROOT, text) == names


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a // b\nc /* d\ne */ f", "a  \nc   f"),
        ('u = "http://x"; sizeof(y);', 'u = "http://x"; sizeof(y);'),
        ('"/*" complex "*/"', '"/*" complex "*/"'),
        ('R"a(// )" )a" // b', 'R"a(// )" )a"  '),
        ("'\"' // b", "'\"'  "),
        ("// a \\\n b\nc", " \nc"),
        ("#if A && \\\n B", "#if A &&  B"),
        ("int n = 1'000; // don't", "int n = 1'000;  "),
        ("n = 0xFF'FF + 1'0.5e-3f; // it's", "n = 0xFF'FF + 1'0.5e-3f;  "),
        ("c = u8'/'; // it's", "c = u8'/';  "),
    ],
)
def test_comments_go_and_literals_stay(text, left):
    assert without_comments(text) == left


def test_a_using_directive_makes_any_word_an_operator():
    assert operators.called(ROOT, "using namespace torch; auto y = relu(x);") == ["relu"]


def test_torch_s_own_factories_come_with_their_operators():
    text = operators.operators_header(ROOT, ["torch::zeros({2}); at::relu(x);"], [])
    assert "#include <ATen/ops/zeros.h>" in text
    assert "inline at::Tensor zeros(" in text
    assert "assay::variable(" in text
    assert "make_variable" not in text
    assert "#include <ATen/ops/relu.h>" in text
    assert "ASSAY_FACTORY_relu" not in text


def test_optional_headers_come_where_a_word_calls_for_them():
    text = operators.operators_header(ROOT, ["std::cout << x; at::parallel_for(0, n, 1, f);"], [])
    assert "#include <ATen/core/Formatting.h>" in text
    assert "#include <ATen/Parallel.h>" in text
    assert "torch/library.h" not in text
    assert "ASSAY_WANTS_CONTEXT\n#include <ATen/Context.h>" in operators.operators_header(
        ROOT, ["at::globalContext();"], []
    )


@pytest.mark.parametrize("name", ["torch/extension.h", "torch/types.h", "torch/all.h", "torch/torch.h", "ATen/ATen.h"])
def test_an_umbrella_header_reaches_a_build_s_own_operators_after_a_precompiled_one(name, tmp_path):
    for folder, operator in (("first", "relu"), ("second", "celu")):
        (tmp_path / folder / "assay").mkdir(parents=True)
        text = "#pragma once\n" + f"int seen_{operator};\n"
        (tmp_path / folder / "assay/operators.h").write_text(text)
    (tmp_path / "pre.h").write_text(f"#include <{name}>\n")
    stubs = tmp_path / "stubs"
    for header in ("assay/aten.h", "torch/types.h", "torch/csrc/utils/pybind.h", "torch/csrc/Exceptions.h"):
        (stubs / header).parent.mkdir(parents=True, exist_ok=True)
        (stubs / header).write_text("")
    includes = [f"-I{operators.LEAN}", f"-I{stubs}"]
    aten = tmp_path / "aten"
    (aten / "assay").mkdir(parents=True)
    (aten / "assay/aten.h").write_text("")
    command = ["c++", "-I", str(aten), *includes, "-x", "c++-header", str(tmp_path / "pre.h")]
    subprocess.run([*command, "-I", str(tmp_path / "first")], check=True)
    command = ["c++", "-I", str(aten), "-I", str(tmp_path / "second"), *includes, "-fsyntax-only", "-Winvalid-pch"]
    (tmp_path / "main.cpp").write_text(f"#include <{name}>\nint both = seen_relu + seen_celu;\n")
    subprocess.run([*command, "-include", str(tmp_path / "pre.h"), str(tmp_path / "main.cpp")], check=True)


@pytest.mark.parametrize(
    ("source", "with_ivalue"),
    [
        ("auto f(torch::Tensor x) { return device_of(x); }", False),
        ("auto f(torch::Tensor x) { return torch::cat({x, x}, 0); }", True),
        ("auto f(torch::Tensor x) { return torch::cat({x, x}, device_of(x)->index()); }", True),
        ("auto f(std::vector<torch::Tensor> x) { return device_of(at::ITensorListRef(x)); }", True),
    ],
)
def test_only_what_takes_lists_of_tensors_reads_their_headers(source, with_ivalue, tmp_path):
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay/operators.h").write_text(operators.operators_header(ROOT, [source], []))
    (tmp_path / "main.cpp").write_text(f"#include <torch/types.h>\n{source}\n")
    includes = [tmp_path, operators.LEAN, ROOT / "include", ROOT / "include/torch/csrc/api/include"]
    flags = [f"-I{folder}" for folder in includes]
    command = ["c++", "-std=c++20", "-fsyntax-only", "-H", *flags, str(tmp_path / "main.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("ATen/core/ivalue.h" in done.stderr) is with_ivalue


def test_kernel_files_get_the_binding_only_if_they_bind_themselves():
    binding = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"
    assert "ASSAY_BINDS_IN_CUDA" not in operators.operators_header(ROOT, [binding], ["__global__ void k() {}"])
    assert "ASSAY_BINDS_IN_CUDA" in operators.operators_header(ROOT, [""], [binding])


def test_everything_popular_is_an_operator_of_this_torch():
    assert set(operators.POPULAR) <= operators._available(ROOT)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("namespace F = torch :: nn::functional;", "torch::nn"),
        ("#include <torch/extension.h>\ntorch::jit::script::Module m;", "torch::jit"),
        ("#include <torch/nn/functional.h>\ntorch::nn::functional::gelu(x);", ""),
        ("#include <torch/csrc/api/include/torch/nn.h>\ntorch::nn::Linear l;", ""),
        ("#include <torch/csrc/jit/api/module.h>\ntorch::jit::Module m;", ""),
        ("mytorch::nn::f(); torch::nnz(x);", ""),
    ],
)
def test_parts_of_torch_that_are_not_there_are_known(code, part):
    assert operators.absent(code) == part
