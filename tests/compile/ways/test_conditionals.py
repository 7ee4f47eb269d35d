"""Which sources can tell smaller headers from torch's own by their macros."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from harness.compile import toolkit
from harness.compile.own_headers import own_headers
from harness.compile.ways import conditionals, macro_survey, operators
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.sketch.passes import SKETCH

MACROS = Macros(
    cpp=frozenset({"TORCH_VERSION_MAJOR", "CHECK"}),
    cuda=frozenset({"TORCH_VERSION_MAJOR", "CHECK", "FLT_EPSILON"}),
    asked=frozenset({"NDEBUG", "USE_ROCM"}),
)


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("#if TORCH_VERSION_MAJOR >= 2\n#endif", {"TORCH_VERSION_MAJOR"}),
        ("  #  ifdef A\n#elif defined(B) && !defined C\n#endif", {"A", "B", "C"}),
        ("#define NEW (A > 1)\n#define ALSO NEW\n#if ALSO\n#endif", {"ALSO", "NEW", "A"}),
        ("#define CHECK(x) TORCH_CHECK(x)\nif (A) {}", set()),
        ("#if __has_include(<a.h>)\n#endif", {"a", "h"}),
    ],
)
def test_conditionals_ask_for_names(code, names):
    assert conditionals.asked(code) == names


@pytest.mark.parametrize(
    ("code", "cuda", "why"),
    [
        ("#if TORCH_VERSION_MAJOR < 2\n#endif", False, "asks for TORCH_VERSION_MAJOR"),
        ("#ifndef CHECK\n#define CHECK(x) x\n#endif", True, "asks for CHECK"),
        ("#define CHECK(x) x\n", True, ""),
        ("#ifdef FLT_EPSILON\n#endif", True, "asks for FLT_EPSILON"),
        ("#ifdef FLT_EPSILON\n#endif", False, ""),
        ("#ifndef WARP\n#define WARP 32\n#endif", True, ""),
        ("k<__COUNTER__>();", True, "counts with __COUNTER__"),
        ("#include <a.h>\n#undef NDEBUG\n#include <cassert>", True, "changes NDEBUG before a header"),
        ("#include <a.h>\n#undef NDEBUG\n", True, ""),
        ("#define N 4\n#include <a.h>\n", True, ""),
    ],
)
def test_a_source_that_could_tell_needs_the_stock_headers(code, cuda, why):
    assert conditionals.obstacle(code, MACROS, cuda=cuda) == why


def test_without_a_survey_any_name_but_the_compiler_s_own_could_tell():
    assert conditionals.obstacle("#ifdef __CUDA_ARCH__\n#endif", None, cuda=True) == ""
    assert conditionals.obstacle("#ifdef WARP\n#endif", None, cuda=True) == "asks for WARP"


def test_flags_count_where_headers_ask_for_them():
    assert conditionals.defines(["-O3", "-DUSE_ROCM=1"], MACROS)
    assert conditionals.defines(["-UNDEBUG"], MACROS)
    assert not conditionals.defines(["-DTILE=4", "-DF(x)=NDEBUG"], MACROS)


def test_headers_that_a_candidate_brings_along_are_read(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.cuh").write_text('#include "deep/b.cuh"\n#include <vector>\n')
    (tmp_path / "deep/b.cuh").write_text('#include "a.cuh"\n#if TORCH_VERSION_MAJOR\n#endif\n')
    texts = own_headers('#include "a.cuh"', [tmp_path / "none", tmp_path])
    assert len(texts) == 2
    assert any("TORCH_VERSION_MAJOR" in text for text in texts)


def test_the_survey_knows_torch_s_headers_and_ours(tmp_path):
    root = Path(torch.__file__).parent / "include"
    python = subprocess.run(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('include', scheme='posix_prefix'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    system = [word for path in (root, root / "torch/csrc/api/include", python) for word in ("-isystem", str(path))]
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay/operators.h").write_text(operators.popular_header(root.parent))
    own = [f"-I{tmp_path}", f"-I{operators.LEAN}"]
    found = macro_survey.survey(["c++", "-std=c++20", *system], [], [own], [], tmp_path)
    assert {"TORCH_VERSION_MAJOR", "AT_PER_OPERATOR_HEADERS"} <= found.cpp
    assert not {"TORCH_CHECK", "M_PI", "__cplusplus", "C10_WARP_SIZE"} & found.cpp
    assert {"USE_ROCM", "NDEBUG"} <= found.asked
    assert found.cuda == frozenset()


SAME = """
#include <cstddef>
struct Params { c10::Scalar scalar; float behind; };
struct Options { torch::TensorOptions options; char behind; };
static_assert(offsetof(Params, behind) == 32 && sizeof(Params) == 48);
static_assert(offsetof(Options, behind) == 8 && sizeof(Options) == 10);

#define RETURNS(type, call) \\
  static_assert(std::is_same_v<type, decltype(std::declval<const at::Tensor&>().call)>, #call);
RETURNS(bool, defined()) RETURNS(bool, has_storage()) RETURNS(bool, is_cuda()) RETURNS(bool, is_contiguous())
RETURNS(bool, is_floating_point()) RETURNS(bool, is_complex()) RETURNS(bool, is_sparse()) RETURNS(bool, requires_grad())
RETURNS(bool, is_non_overlapping_and_dense())
RETURNS(int64_t, dim()) RETURNS(int64_t, ndimension()) RETURNS(int64_t, numel()) RETURNS(int64_t, size(0))
RETURNS(int64_t, stride(0)) RETURNS(int64_t, storage_offset())
RETURNS(int64_t, element_size()) RETURNS(size_t, itemsize()) RETURNS(size_t, nbytes())
RETURNS(c10::DeviceIndex, get_device()) RETURNS(c10::IntArrayRef, sizes()) RETURNS(c10::IntArrayRef, strides())
RETURNS(c10::ScalarType, scalar_type()) RETURNS(caffe2::TypeMeta, dtype()) RETURNS(c10::Device, device())
RETURNS(c10::TensorOptions, options()) RETURNS(c10::MemoryFormat, suggest_memory_format())
RETURNS(float*, data_ptr<float>()) RETURNS(void*, data_ptr()) RETURNS(const float*, const_data_ptr<float>())
RETURNS(const void*, const_data_ptr()) RETURNS(float*, mutable_data_ptr<float>()) RETURNS(void*, mutable_data_ptr())
RETURNS(float, item<float>()) RETURNS(c10::Scalar, item()) RETURNS(size_t, dtype().itemsize())
RETURNS(std::vector<at::Tensor>, unbind()) RETURNS(std::vector<at::Tensor>, split(1))
RETURNS(std::vector<at::Tensor>, chunk(2)) RETURNS(at::Tensor, operator[](0)) RETURNS(double, item().toDouble())
RETURNS(int64_t, item().toLong()) RETURNS(float, item().to<float>())
#define SAME(type, call) static_assert(std::is_same_v<type, decltype(call)>, #call);
using Packed32 = at::PackedTensorAccessor32<float, 2>;
using Packed64 = at::PackedTensorAccessor64<float, 2>;
using Accessor = at::TensorAccessor<float, 2>;
extern const at::Tensor tensor;
#define COMMA ,
SAME(Packed32, tensor.packed_accessor32<float COMMA 2>()) SAME(Packed64, tensor.packed_accessor64<float COMMA 2>())
SAME(Accessor, tensor.accessor<float COMMA 2>()) SAME(std::optional<at::Device>, at::device_of(tensor))
"""


@pytest.mark.parametrize("folder", [operators.LEAN, SKETCH], ids=["torch", "sketch"])
def test_the_sketch_has_torch_s_layouts_and_types(folder, tmp_path):
    cuda = toolkit.find()
    if cuda is None:
        pytest.skip("needs the headers of CUDA")
    root = Path(torch.__file__).parent / "include"
    (tmp_path / "assay").mkdir()
    (tmp_path / "assay/operators.h").write_text("")
    text = f'#include <torch/types.h>\n#include "{operators.HEADERS}/layout.h"\n{SAME}'
    if folder == operators.LEAN:
        guards = "#include <c10/cuda/CUDAGuard.h>\n"
        text = f"#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)\n{guards}#endif\n{text}"
    (tmp_path / "a.cpp").write_text(text)
    system = (root, root / "torch/csrc/api/include", *cuda.include, toolkit.STAND_INS)
    places = [f"-I{tmp_path}", f"-I{folder}", *(word for path in system for word in ("-isystem", str(path)))]
    command = ["c++", "-std=c++20", "-fsyntax-only", *places, str(tmp_path / "a.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
