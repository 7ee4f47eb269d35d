"""What is done to cudafe++'s output, and what nvcc.py is in a build's place."""

import os
import subprocess
import sys

import pytest

from harness.compile.ways.nvcc_steps import PassFailed
from harness.compile.ways.sketch import nvcc, passes, prefixes
from harness.compile.ways.way import NotThisWay


def test_a_launch_without_its_kernel_does_not_compile():
    text = (
        "__wrapper__device_stub_kt(const T *__restrict__ &x, T *&y, int &n) "
        "{ ::cudaLaunchKernel(0, 0, 0, 0, 0, 0);}\nkt(const T *x) {__wrapper__device_stub_kt<T,N>(x);\n"
    )
    changed = passes.without_empty_launches(text)
    assert changed.startswith("__wrapper__device_stub_kt(const T *__restrict__ &x, T *&y, int &n) = delete;\n")
    assert changed.endswith("{__wrapper__device_stub_kt<T,N>(x);\n")
    with pytest.raises(PassFailed, match="not understood"):
        passes.without_empty_launches(text.replace("int &n", "S<[]{}> &n"))


def test_the_headers_end_at_the_mark():
    text = '# 1\n# 61 "/usr/include/cuda_runtime.h" 3\nint a;\nextern int assay_end_of_headers; \nint b;\n'
    begin, end = prefixes.headers_of(text)
    assert (text[:begin], text[end:]) == ("# 1\n", "\nint b;\n")
    with pytest.raises(PassFailed):
        prefixes.headers_of("int b;\n")


def test_without_its_headers_a_kernel_file_is_left_to_nvcc(tmp_path):
    with pytest.raises(NotThisWay, match=r"context\.hpp has not been made"):
        passes.compile_with_sketch("nvcc", [], [], [], tmp_path / "context.hpp", tmp_path, [])


def test_the_script_needs_its_own_files_alone_and_leaves_to_nvcc_what_it_cannot_read(tmp_path):
    (tmp_path / "nvcc").write_text('#!/bin/sh\necho "$@" > called.txt\nexit 3\n')
    (tmp_path / "nvcc").chmod(0o755)
    (tmp_path / "a.cu").write_text("int main() { return 0; }\n")
    settings = {
        "ASSAY_NVCC": str(tmp_path / "nvcc"),
        "ASSAY_TORCH": "/nowhere",
        "ASSAY_FLAGS": "",
        "ASSAY_PREPARED": "",
    }
    settings |= {"ASSAY_GENERATED": "/nowhere", "ASSAY_NOTES": str(tmp_path / "notes.txt")}
    command = [sys.executable, "-PSE", nvcc.__file__, "-c", "a.cu", "-o", "a.o"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert (tmp_path / "called.txt").read_text() == "-c a.cu -o a.o\n"
    assert (tmp_path / "notes.txt").read_text() == "no sketch: does not begin with a header of torch\n"
