"""Which names torch's own headers know, asked of the preprocessor."""

import shutil

import pytest

from harness.compile.ways import preprocessed
from harness.compile.ways.preprocessed import Preprocessed, by_command

HEADER = """
#define DECLARE(name) int k##name; /* in_a_comment */
#define IN_A_MACRO only_in_a_macro
int declared;
"""
SOURCE = """
#include <theirs.h>
DECLARE(Pasted)
int here = misspelt + kPasted;  // kPasted
"""


@pytest.fixture
def said(tmp_path):
    """What a build prints that failed over `ours`, a folder that hides torch's headers."""
    for folder, text in (("ours", "#define DECLARE(name)\n"), ("theirs", HEADER)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "theirs.h").write_text(text)
    (tmp_path / "ours/first.h").write_text("int only_in_ours;\n")
    (tmp_path / "main.cpp").write_text(SOURCE)
    flags = f"-include {tmp_path}/ours/first.h -I{tmp_path}/ours -isystem {tmp_path}/theirs -c {tmp_path}/main.cpp"
    return f"[1/2] c++\nFAILED: [code=1] main.o \nc++ -MMD -MF main.o.d -DX {flags} -o main.o\nmain.cpp:4:12: error"


def read(said, folder):
    return by_command(said, "", [str(folder / "ours")], folder)


@pytest.mark.parametrize("name", ["declared", "only_in_a_macro", "DECLARE"])
def test_what_a_header_has_is_known(said, tmp_path, name):
    assert read(said, tmp_path).knows(name)


@pytest.mark.parametrize("name", ["misspelt", "in_a_comment", "only_in_ours", "here"])
def test_what_only_the_source_or_our_own_headers_have_is_not(said, tmp_path, name):
    assert not read(said, tmp_path).knows(name)


def test_nor_is_the_source_s_own_text_a_declaration_but_what_a_macro_puts_there_is():
    marked = '# 1 "main.cpp"\nint kPasted;\nint here = kPasted;\n'
    assert Preprocessed([marked], "DECLARE(Pasted) int here = kPasted;").knows("kPasted")
    assert not Preprocessed([marked, marked], "int kPasted; int here = kPasted;").knows("kPasted")


@pytest.mark.parametrize("said", ["ninja: build stopped", "FAILED: main.o \nc++ -DX -c /nowhere/main.cpp -o main.o\n"])
def test_what_cannot_be_read_is_told(said, tmp_path):
    assert by_command(said, "", [], tmp_path) is None


@pytest.mark.skipif(not shutil.which("nvcc"), reason="no nvcc is installed")
def test_nvcc_reads_a_kernel_file_for_the_host_and_for_the_device(tmp_path):
    (tmp_path / "cuda.cu").write_text("#ifdef __CUDA_ARCH__\nint on_device;\n#else\nint on_host;\n#endif\n")
    flags = ["-arch=sm_90", "-c", str(tmp_path / "cuda.cu"), "-o", str(tmp_path / "cuda.o")]
    texts = preprocessed.of_nvcc(shutil.which("nvcc"), flags, tmp_path)
    assert [("on_host" in text, "on_device" in text) for text in texts] in (
        [(True, False), (False, True)],
        [(False, True), (True, False)],
    )
