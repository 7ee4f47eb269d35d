"""The words of `ptxas -v` -> what each kernel uses. Recorded from nvcc 13.0 for sm_90a."""

import shutil

import pytest

from harness.compile import resources

OUTPUT = """\
[1/3] nvcc -Xptxas=-v -c cuda.cu -o cuda.cuda.o
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_ZN4mine5plainEPf' for 'sm_90a'
ptxas info    : Function properties for _ZN4mine5plainEPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
ptxas info    : Compile time = 11.090 ms
ptxas info    : Function properties for _ZN4mine1fEf
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function '_Z8spillingILi128EEvPfi' for 'sm_90a'
ptxas info    : Function properties for _Z8spillingILi128EEvPfi
    3440 bytes stack frame, 2552 bytes spill stores, 3292 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 3440 bytes cumulative stack size, 512 bytes smem
ptxas info    : Compile time = 707.191 ms
"""


def test_each_kernel_gets_its_own_figures():
    plain, spilling = resources.parse(OUTPUT)
    assert (plain.registers, plain.shared_bytes, plain.stack_bytes, plain.spills) == (12, 0, 0, False)
    assert (spilling.registers, spilling.shared_bytes, spilling.stack_bytes) == (255, 512, 3440)
    assert (spilling.spill_store_bytes, spilling.spill_load_bytes, spilling.spills) == (2552, 3292, True)
    assert spilling.architecture == "sm_90a"


def test_output_without_kernels_gives_none():
    assert resources.parse("main.cpp:1:1: error: nothing\nptxas info    : 0 bytes gmem\n") == []


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt (binutils) on PATH")
def test_names_are_as_in_the_source():
    names = [kernel.name for kernel in resources.demangled(resources.parse(OUTPUT))]
    assert names == ["mine::plain(float*)", "void spilling<128>(float*, int)"]
