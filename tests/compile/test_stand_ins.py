"""Which undefined names belong to libraries that a machine without a card lacks, and which are the candidate's own."""

import subprocess

import pytest

from harness.compile import stand_ins


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("_ZN3c104cuda14current_deviceEv", "libc10_cuda"),
        ("_ZNK3c104cuda10CUDAStream6streamEv", "libc10_cuda"),
        ("_ZTVN3c104cuda4impl13CUDAGuardImplE", "libc10_cuda"),
        ("_ZN2at4cuda24getCurrentCUDABlasHandleEb", "libtorch_cuda"),
        ("cublasGemmStridedBatchedEx", "libcublas"),
        ("cublasLtMatmul", "libcublasLt"),
        ("cuLaunchKernel", "libcuda"),
        ("cudaLaunchKernel", ""),
        ("_Z4tailN2at6TensorE", ""),
        ("_ZN2at6TensorD1Ev", ""),
        ("custom", ""),
    ],
)
def test_owners(name, library):
    assert stand_ins.owner_of(name) == library


def test_only_what_a_library_leaves_open_is_undefined(tmp_path):
    source = tmp_path / "x.c"
    source.write_text("int cuInit(int); int own(void) { return 1; } int f(void) { return own() + cuInit(0); }\n")
    library = tmp_path / "x.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    names = stand_ins.undefined(library)
    assert "cuInit" in names
    assert "own" not in names
