"""Whose kernel a name is: names as profilers print them, sorted; and a library searched for them."""

import ast
import time

import pytest

from harness.integrity import kernel_names
from harness.integrity.kernel_names import kind, kind_of_operator, qualified
from harness.integrity.own_names import among, written_kernels

NOBODY: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    "name, op, expected",
    [
        ("Memcpy DtoD (Device -> Device)", "", "memory"),
        ("Memset (Device)", "aten::zero_", "memory"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "aten::mm", "cublas"),
        ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute", "", "cublas"),
        ("ampere_sgemm_128x64_nn", "aten::addmm", "cublas"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)", "aten::mm", "cublas"),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::Params<float>)", "", "cublas"),
        ("void gemv2T_kernel_val<int, float, float, float, 128, 16, 4>(float)", "aten::mv", "cublas"),
        ("sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc", "aten::cudnn_convolution", "cudnn"),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(P)", "", "cudnn"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "", "cudnn"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int)", "aten::add", "torch"),
        ("void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda()>(int)", "", "memory"),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::BUnaryFunctor>>(int)",
            "",
            "torch",
        ),
        ("void at::native::vectorized_elementwise_kernel<4, X>(int, X)", "aten::_to_copy", "memory"),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>(float*)",
            "aten::_softmax",
            "torch",
        ),
        ("void pytorch_flash::flash_fwd_kernel<T>(pytorch_flash::Flash_fwd_params)", "", "torch"),
        ("fmha_cutlassF_f16_aligned_64x128_rf_sm80(P)", "", "torch"),
        ("triton_per_fused__softmax_0", "", "triton"),
        ("void cub::DeviceRadixSortKernel<P>(int)", "", "third_party"),
        ("void cub::DeviceReduceKernel<P>(int)", "aten::sort", "torch"),
        ("void regular_fft_factor<1024u, EPT<16u>>(P)", "", "third_party"),
        ("void regular_fft_factor<1024u, EPT<16u>>(P)", "aten::_fft_c2c", "torch"),
        ("add_kernel", "", "third_party"),
    ],
)
def test_names_of_others(name, op, expected):
    assert kind(name, op, NOBODY) == expected


def test_every_kind_is_explained():
    assert {"own", "torch", "triton", "cublas", "cudnn", "memory", "third_party"} == set(kernel_names.KINDS)


@pytest.mark.parametrize(
    "op, expected",
    [
        ("aten::mm", "torch"),
        ("aten::empty_strided", "memory"),
        ("aten::to", "memory"),
        ("mkldnn::_convolution_pointwise", "torch"),
        ("mine::scale", "own"),
        ("Tail", "own"),
        ("Torch-Compiled Region: 0/0", "triton"),
    ],
)
def test_operators_on_the_host(op, expected):
    assert kind_of_operator(op) == expected


@pytest.mark.parametrize(
    "name, parts",
    [
        ("scale(float*)", ["scale"]),
        ("plain", ["plain"]),
        ("void mine::deep::nested<S, (Mode)1>(float*, S)", ["mine", "deep", "nested"]),
        ("(anonymous namespace)::hidden(float*)", ["(anonymous namespace)", "hidden"]),
        ("void apply<f(int)::{lambda(float)#1}>(float*, f(int)::{lambda(float)#1})", ["apply"]),
        ("void pick<decltype(x->y)>(int)", ["pick"]),
        ("", []),
        ("void never_ends<", ["never_ends"]),
    ],
)
def test_a_name_without_what_surrounds_it(name, parts):
    assert qualified(name) == parts


@pytest.fixture
def library(tmp_path):
    """The strings that nvcc leaves in a library for its kernels."""
    path = tmp_path / "ext.so"
    names = b"_Z12scale_kernelPKfPfi _ZN4mine6nestedI1SEEvPfT_ _ZN36_GLOBAL__N__bf2a5ac1_4_k_cu_9e372dba6hiddenEPf"
    names += b" plain_c _ZN2at6native29vectorized_elementwise_kernelILi4E3MineEEvi _ZN3cub6KernelIfEEvi"
    path.write_bytes(b"\x7fELF\0" + names.replace(b" ", b"\0") + b"\0")
    return path


def held(library, *names):
    """Which of the names the library's file holds."""
    with open(library, "rb") as file:
        return {names[place] for place in among(names, [file.fileno()], [])}


def test_kernels_of_its_own_library_are_its_own(library):
    own = {
        "scale_kernel(float const*, float*, int)",
        "void mine::nested<S>(float*, S)",
        "(anonymous namespace)::hidden(float*)",
        "plain_c",
    }
    others = {"scale(float)", "kernel(float)", "nested(float*)", "void other::nested<S>(float*)", "plain"}
    assert held(library, *own, *others) == own
    assert {kind(name, "", own) for name in own} == {"own"}
    assert {kind(name, "", own) for name in others} == {"third_party"}


def test_templates_of_libraries_in_its_own_library(library):
    mine = "void at::native::vectorized_elementwise_kernel<4, Mine>(int)"
    cub = "void cub::Kernel<float>(int)"
    own = held(library, mine, cub)
    assert own == {mine, cub}
    assert kind(mine, "", own) == "own"
    assert kind(mine, "aten::add", own) == "torch"
    assert kind(cub, "", own) == "third_party"


def test_a_library_that_is_empty_holds_nothing(tmp_path):
    (tmp_path / "empty.so").touch()
    assert held(tmp_path / "empty.so", "scale(float)") == set()


@pytest.mark.parametrize(
    "repeated", [b"_Z.a", b"_ZN", b"_ZN12_GLOBAL__N_", b"a\0", b"k0001x", b".k0001x\0", b"_Z6k0001"]
)
def test_many_names_are_searched_for_in_one_pass(tmp_path, repeated):
    """512 names took 512 passes: a second for 32 kB."""
    shapes = ["k{:04d}x", "k{:04d}x(float*)", "a::k{:04d}x()", "(anonymous namespace)::k{:04d}x()", "_Z6k{:04d}xv"]
    names = [shape.format(number) for number in range(103) for shape in shapes]
    (tmp_path / "ext.so").write_bytes(repeated * ((1 << 20) // len(repeated)))
    begun = time.process_time()
    assert held(tmp_path / "ext.so", *names) == set()
    assert time.process_time() - begun < 5


def test_names_that_begin_or_end_as_others_do_are_all_found(tmp_path):
    path = tmp_path / "ext.so"
    path.write_bytes(b"\x7fELF\0_ZL4fastPf\0_Z4fast_Z3innPf\0.fast\0-step\0steps\0\xffab+c\0")
    own = ["_ZL4fastPf", "_ZL4fast", "fast(float*)", "inn()", "_Z4fast_Z", "step", "steps(int)", "ab+c", "c"]
    others = ["fast2", "tep", "ste", "b+c", "+c", "_Z3innPfv", "_Z4fas::t"]
    assert held(path, *own, *others) == set(own)


SOURCE = '''
import triton
from triton import jit

CODE = r"""
// __global__ void commented(float* x)
template <typename T>
__global__ void __launch_bounds__(256) by_text(T* x) { x[0] = 1; }
"""

@triton.autotune(configs=[], key=[])
@triton.jit
def add_kernel(x): ...

@jit(do_not_specialize=["n"])
def other(x): ...

def plain(x):
    """__global__ in prose."""
'''


def test_kernels_written_in_the_source():
    written = written_kernels(list(ast.walk(ast.parse(SOURCE))))
    assert set(written) == {"add_kernel", "other", "by_text"}
    names = ["add_kernel", "add_kernel_0d1d2d", "plain", "void other::add_kernel(int)"]
    assert among(names, [], written) == [0, 1]


def test_nested_namespaces_without_a_name_count_once():
    nested = "(anonymous namespace)::(anonymous namespace)::hidden(float*)"
    assert qualified(nested) == ["(anonymous namespace)", "hidden"]
