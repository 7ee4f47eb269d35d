"""When a failed build is not tried again with torch's own headers."""

from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from harness.compile import extensions
from harness.compile.ways.certain import first_error_line, includes_in, is_certain
from harness.compile.ways.order import WAYS
from harness.compile.ways.preprocessed import Preprocessed
from tests.compile.test_extensions import CALL

TORCH = str(Path(torch.__file__).parent / "include")
CUDA = "cuda.cu(6): error: "
CPP = "main.cpp:5:31: error: "


def by_gcc(said):
    """Its quotation marks."""
    return said.replace("<", "\N{LEFT SINGLE QUOTATION MARK}").replace(">", "\N{RIGHT SINGLE QUOTATION MARK}")


@pytest.mark.parametrize(
    ("said", "sketched", "with_torch"),
    [
        (CUDA + 'identifier "treadIdx" is undefined', True, True),
        (CPP + "<shift_and_halve> was not declared in this scope; did you mean <shift>?", True, True),
        (CPP + "'shift_and_halve' was not declared in this scope", True, True),
        (CUDA + 'namespace "at" has no member "empty_and_halve"', True, True),
        # Names that a header has.
        (CPP + "<numeric_limits> is not a member of <std>", False, False),
        (CUDA + 'namespace "torch" has no member "relu"', False, False),
        (CUDA + 'namespace "torch" has no member "kSomething"', False, False),
        # Members of classes, which the sketch only outlines.
        (CUDA + 'class "at::Tensor" has no member "rows_by_columns"', True, True),
        (CUDA + 'class "at::Tensor" has no member "scatter_reduce_"', False, True),
        (CPP + "<class at::Tensor> has no member named <scatter_reduce_>", False, True),
        (CUDA + 'no suitable conversion function from "at::Tensor" to "float *" exists', False, True),
        (CUDA + "too few arguments in function call", False, True),
        (CUDA + 'expected a ";"', True, True),
        (CPP + "expected <;> before <}> token", True, True),
        (CPP + "expected template-name before <<> token", False, False),
        (CPP + "expected class-name before <{> token", False, False),
        ("cuda.cu:3:10: fatal error: my_kernels.cuh: No such file or directory", True, True),
        ("cuda.cu:3:10: fatal error: ATen/ATen.h: No such file or directory", False, False),
        # A header may miss what another one brings; an overload may be declared elsewhere.
        (f"{TORCH}/ATen/core/TensorBody.h:6:1: error: expected <;> before <}}> token", False, False),
        (CUDA + 'no instance of overloaded function "f" matches the argument list', False, False),
        (CPP + "invalid use of incomplete type <class at::Generator>", False, False),
        ("ptxas error   : Entry function '_Z1kPf' uses too much shared data (0x40000 bytes)", True, True),
        ("ext.so: undefined symbol: _Z5scaleN2at6TensorEd", True, True),
        ("ext.so: undefined symbol: _ZN2at4_ops4relu4callERKNS_6TensorE", False, False),
        # Only the first one counts.
        (f'{CUDA}no operator "+=" matches\n{CUDA}expected a ";"', False, False),
        ("ninja: build stopped: subcommand failed.", False, False),
    ],
)
def test_a_failure_is_final_where_no_header_could_change_it(said, sketched, with_torch):
    output = f"Error building extension 'ext': [1/3] c++ -c main.cpp\n{by_gcc(said)}\n"
    headers = Preprocessed(['# 1 "torch.h"\nnumeric_limits relu kSomething scatter_reduce_'], "")
    assert is_certain(output, [TORCH], lambda: headers, torch_headers=False) is sketched
    assert is_certain(output, [TORCH], lambda: headers, torch_headers=True) is with_torch


def test_a_name_is_not_certain_where_headers_cannot_be_read():
    said = f"Error building extension 'ext': [1/3] c++ -c main.cpp\n{CPP}'f' was not declared in this scope\n"
    assert not is_certain(said, [TORCH], lambda: None, torch_headers=True)


def test_the_first_error_is_told_in_a_line():
    said = f"Error building extension 'ext': [1/3] c++ -c main.cpp\n{CUDA}no\n{CUDA}expected a \";\"\n"
    assert first_error_line(said) == CUDA + "no"
    assert first_error_line("killed\nand more") == "killed"


def test_include_folders_are_read_off_the_command_that_failed():
    said = "FAILED: main.o \nc++ -MMD -I/own/headers -isystem /torch/include -I -DX -o main.o -c main.cpp\n"
    assert includes_in(said) == ["/own/headers", "/torch/include"]


class Ninja:
    """A stock `load_inline` whose builds fail as they are told to, and what they were asked to make first."""

    def __init__(self, monkeypatch, *said):
        self.said = list(said)
        self.defaults = []
        monkeypatch.setattr(cpp_extension, "_run_ninja_build", self.run)

    def __call__(self, **arguments):
        folder = Path(arguments["build_directory"])
        (folder / "build.ninja").write_text(
            "build main.o: compile main.cpp\nbuild ext.so: link main.o\ndefault ext.so\n"
        )
        cpp_extension._run_ninja_build(str(folder), False, "Error building extension 'ext'")
        (folder / "ext.so").write_bytes(b"")
        return "ext"

    def run(self, build_directory, verbose, error_prefix):
        self.defaults.append((Path(build_directory) / "build.ninja").read_text().split()[-1])
        if self.said and (said := self.said.pop(0)):
            raise RuntimeError(
                f"{error_prefix}: [1/2] c++ -c main.cpp\nFAILED: [code=1] main.o \nc++ -c main.cpp\n{by_gcc(said)}"
            )


UNCERTAIN = CPP + "no matching function for call to <f(int)>"


def test_a_certain_failure_is_the_builds(tmp_path, monkeypatch):
    ninja = Ninja(monkeypatch, CPP + "expected <;> before <}> token")
    builder = extensions.Builder(tmp_path, "", ways=WAYS)
    with pytest.raises(RuntimeError, match=" before "):
        builder(ninja, CALL)
    assert ninja.defaults == ["ext.so"]
    assert len(builder.failures) == 1


def test_otherwise_what_failed_is_built_first_with_torch_s_own_headers(tmp_path, monkeypatch):
    ninja = Ninja(monkeypatch, UNCERTAIN, UNCERTAIN)
    with pytest.raises(RuntimeError, match="no matching function"):
        extensions.Builder(tmp_path, "", ways=WAYS)(ninja, CALL)
    assert ninja.defaults == ["ext.so", "main.o"]


def test_and_then_the_rest(tmp_path, monkeypatch):
    ninja = Ninja(monkeypatch, UNCERTAIN)
    assert extensions.Builder(tmp_path, "", ways=WAYS)(ninja, CALL) == "ext"
    assert ninja.defaults == ["ext.so", "main.o", "ext.so"]
