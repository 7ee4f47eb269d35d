"""From what a source names to the headers it gets, on the installed torch."""

from pathlib import Path

import torch

from harness.compile import lean

ROOT = Path(torch.__file__).parent


def test_operators_are_those_named_with_their_namespace():
    text = "auto y = torch::empty_like(x); at :: softmax(y, 0); my::relu(y); y.sigmoid(); // at::matmul"
    assert lean.called(ROOT, lean.COMMENT.sub(" ", text)) == ["empty_like", "softmax"]


def test_a_using_directive_makes_any_word_an_operator():
    assert lean.called(ROOT, "using namespace torch; auto y = relu(x);") == ["relu"]


def test_torch_s_own_factories_come_with_their_operators():
    text = lean.operators_header(ROOT, ["torch::zeros({2}); at::relu(x);"], [])
    assert "#include <ATen/ops/zeros.h>" in text
    assert "inline at::Tensor zeros(" in text
    assert "assay::variable(" in text
    assert "make_variable" not in text
    assert "#include <ATen/ops/relu.h>" in text
    assert "ASSAY_FACTORY_relu" not in text


def test_optional_headers_come_where_a_word_calls_for_them():
    text = lean.operators_header(ROOT, ["std::cout << x; at::parallel_for(0, n, 1, f);"], [])
    assert "#include <ATen/core/Formatting.h>" in text
    assert "#include <ATen/Parallel.h>" in text
    assert "torch/library.h" not in text
    assert "#define ASSAY_WANTS_CONTEXT" in lean.operators_header(ROOT, ["at::globalContext();"], [])


def test_kernel_files_get_the_binding_only_if_they_bind_themselves():
    binding = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}"
    assert "ASSAY_BINDS_IN_CUDA" not in lean.operators_header(ROOT, [binding], ["__global__ void k() {}"])
    assert "ASSAY_BINDS_IN_CUDA" in lean.operators_header(ROOT, [""], [binding])


def test_everything_popular_is_an_operator_of_this_torch():
    assert set(lean.POPULAR) <= lean._available(ROOT)
