"""`run_eval.py check`: what each candidate gets, from the file to the exit code, without a GPU."""

import io
import shutil
import tempfile
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness import check, cli
from harness.compile import toolkit
from harness.errors import UsageError
from harness.records import Outcome, Status
from harness.reports.terminal import check_table
from tests import specimens
from tests.conftest import CORPUS

ROOT = Path(__file__).resolve().parents[1]
KNOWN = specimens.load()
needs_nvcc = pytest.mark.skipif(
    toolkit.find() is None, reason=f"no nvcc in CUDA_HOME, on PATH, in /usr/local/cuda or from PyPI: {toolkit.INSTALL}"
)

# No PyTorch header, so that it compiles in a second: what is tested lies around the compiler.
LIGHT = '''"""A kernel behind Python's own interface."""
from torch import nn
from torch.utils.cpp_extension import load_inline

CPP = """
#include <Python.h>
#include <exception>
extern "C" int launch(float*);
namespace c10::cuda { signed char current_device(); }
// more
static PyObject* run(PyObject*, PyObject*) {
  try {
    return PyLong_FromLong(launch(nullptr) + c10::cuda::current_device());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}
static PyMethodDef methods[] = {{"run", run, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "light", nullptr, -1, methods};
#define INIT(name) PyInit_##name
#define INIT_OF(name) INIT(name)
PyMODINIT_FUNC INIT_OF(TORCH_EXTENSION_NAME)() { return PyModule_Create(&definition); }
"""
CUDA = """
template <int kTile> __global__ void doubled(float* x) {
  __shared__ float tile[kTile];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = 2 * tile[kTile - 1 - threadIdx.x];
}
extern "C" int launch(float* x) {
  doubled<64><<<1, 64>>>(x);
  return 0;
}
"""
light = load_inline(name="light", cpp_sources=CPP, cuda_sources=CUDA, no_implicit_headers=True)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()

    def forward(self, x):
        return light.run()
'''


@pytest.fixture
def checked(tmp_path):
    """Check a source as a candidate of the corpus's problem."""

    def run(source: str) -> check_table.CheckRow:
        path = tmp_path / "toy/scale/candidate.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        (row,) = rows_of([str(path)], tmp_path / "logs")
        return row

    return run


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> check_table.CheckRow:
    """The check of LIGHT itself."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "toy/scale").mkdir(parents=True)
    (folder / "toy/scale/candidate.py").write_text(LIGHT)
    (row,) = rows_of([str(folder / "toy/scale/candidate.py")], folder / "logs")
    return row


def rows_of(patterns: list[str], logs: Path, **changes) -> list[check_table.CheckRow]:
    options = {
        "problems": [str(CORPUS / "problems")],
        "architecture": "90a",
        "timeout_s": 900.0,
        "at_once": 1,
    } | changes
    return list(check.run(patterns, logs=logs, started=lambda title: None, **options))


def test_a_mistake_of_ours_costs_one_candidate_its_row(tmp_path, monkeypatch):
    (tmp_path / "toy/scale").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / f"toy/scale/{name}.py").write_text("class ModelNew:\n    pass\n")
    mistakes = [ZeroDivisionError("in a row")]
    convert = msgspec.convert

    def mistaken(*arguments):
        if mistakes:
            raise mistakes.pop()
        return convert(*arguments)

    monkeypatch.setattr(check.msgspec, "convert", mistaken)
    first, second = rows_of([str(tmp_path / "toy")], tmp_path / "logs")
    assert (first.fault.status, first.fault.reason) == (Status.HARNESS_ERROR, "unrecorded")
    assert second.candidate == "toy/scale/two"
    assert second.fault is None or second.fault.reason != "unrecorded"


def test_whatever_becomes_of_a_row_its_folders_go(tmp_path, monkeypatch):
    (tmp_path / "toy/scale").mkdir(parents=True)
    for name in ("one", "two", "three"):
        (tmp_path / f"toy/scale/{name}.py").write_text("class ModelNew:\n    pass\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def shown(row, console):
        raise ZeroDivisionError

    monkeypatch.setattr(check_table, "show", shown)
    words = ["check", str(tmp_path / "toy"), "--out", str(tmp_path / "logs")]
    with pytest.raises(ZeroDivisionError):
        cli.main(words)
    assert list(tmp_path.glob("assay-*")) == []


def test_a_folder_without_a_candidate_is_no_check(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no candidate found in .*empty"):
        rows_of([str(tmp_path / "empty")], tmp_path / "logs")


def shown(row: check_table.CheckRow, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    check_table.show(row, console)
    return console.file.getvalue()


@needs_nvcc
def test_a_cuda_candidate_is_compiled_loaded_and_described(light):
    assert (light.verdict, light.problem, light.extensions, light.remarks) == ("ok", "toy/scale", 1, [])
    (kernel,) = light.kernels
    assert (kernel.name, kernel.shared_bytes, kernel.architecture) == ("void doubled<64>(float*)", 256, "sm_90a")
    assert kernel.registers > 0
    text = shown(light)
    assert "doubled<64>" in text
    assert "256 B" in text


@needs_nvcc
@pytest.mark.skipif(bool(check.environment.torch_build().cuda), reason="this torch brings the CUDA libraries")
def test_what_a_cpu_build_of_torch_lacks_is_stood_in_for_and_said(light):
    assert light.absent == {"libc10_cuda": 1}
    assert "libc10_cuda (1), which this machine lacks" in " ".join(shown(light).split())


@needs_nvcc
@pytest.mark.skipif(not check.environment.why_no_cuda(), reason="there is a card, so the call goes through")
def test_reaching_for_the_card_at_import_is_not_held_against_it(checked):
    row = checked(LIGHT.replace("\n\nclass", "\nlight.run()\n\nclass"))
    assert (row.verdict, row.fault.reason) == ("unsure", "needs_cuda")
    assert len(row.kernels) == 1


@needs_nvcc
def test_what_a_constructor_did_not_come_to_compile_is_not_called_ok(checked):
    row = checked("""
import torch
from torch.utils.cpp_extension import load_inline


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        blocks = torch.cuda.get_device_properties(0).multi_processor_count
        self.ext = load_inline(name="late", cpp_sources="", extra_cflags=[f"-DBLOCKS={blocks}"])

    def forward(self, x):
        return x
""")
    assert (row.verdict, row.fault.reason) == ("unsure", "not_constructed")
    assert "its constructor raised" in row.fault.message


def test_a_function_that_is_declared_and_not_defined_fails_as_on_a_card(checked):
    row = checked(LIGHT.replace("// more", "void tail(int); void use() { tail(1); }\n"))
    assert (row.verdict, row.fault.status, row.fault.reason) == ("fails", "compile_error", "undefined_symbol")
    (error,) = row.errors
    assert error.text == "undefined symbol: tail(int)"
    assert error.hint.startswith("cpp_sources declares a function that no source defines")


@needs_nvcc
def test_an_error_is_shown_with_the_candidate_s_own_line_and_a_hint(checked):
    source = LIGHT.replace("tile[kTile]", "tile[{TILE}]").replace("x[threadIdx.x] = 2", "wrong = 2")
    row = checked(source)
    lines = source.splitlines()
    assert row.verdict == "fails"
    assert [lines[error.line - 1].strip() for error in row.errors] == [error.source_line for error in row.errors]
    assert "a placeholder such as {TILE}" in row.errors[0].hint
    text = shown(row, 160)
    assert f"candidate.py:{row.errors[0].line}: expected an expression" in text
    assert "__shared__ float tile[{TILE}];" in text
    assert Path(row.log).read_text().count("expected an expression") >= 1


@needs_nvcc
def test_headers_that_are_not_here_leave_it_unsure_and_name_their_package(checked):
    if any(Path(folder, "cudnn.h").is_file() for folder in toolkit.find().include):
        pytest.skip("cuDNN's headers are installed here")
    row = checked(LIGHT.replace("template <int", "#include <cudnn.h>\ntemplate <int"))
    assert (row.verdict, row.fault.reason) == ("unsure", "missing_headers")
    assert "cudnn.h: No such file or directory" in row.errors[0].text
    assert "pip install nvidia-cudnn-cu13" in row.errors[0].text


@needs_nvcc
def test_the_architecture_may_be_named(tmp_path, monkeypatch):
    # Precompiled headers for another architecture take half a minute, and are not what this is about.
    monkeypatch.setattr(check, "_prepared", lambda *_: "")
    path = tmp_path / "toy/scale/candidate.py"
    path.parent.mkdir(parents=True)
    path.write_text(LIGHT)
    (row,) = rows_of([str(path.parent)], tmp_path / "logs", architecture="86")
    assert [kernel.architecture for kernel in row.kernels] == ["sm_86"]


@needs_nvcc
def test_spills_warn(checked):
    row = checked(
        LIGHT.replace("__global__ void doubled", "__global__ void __launch_bounds__(1024, 2) doubled").replace(
            "  __syncthreads();\n",
            "  float v[200];\n  for (int i = 0; i < 200; ++i) v[i] = x[i * 7];\n  __syncthreads();\n"
            "  for (int i = 0; i < 200; ++i) tile[0] += v[i] * v[199 - i] * v[(i * 7) % 200];\n",
        )
    )
    assert row.kernels[0].spills
    assert "spills: doubled<64> keeps values in local memory" in " ".join(shown(row).split())


def test_without_nvcc_a_cuda_candidate_is_unsure_and_the_extra_is_named(checked, monkeypatch):
    monkeypatch.setattr(toolkit, "find", lambda: None)
    row = checked(LIGHT)
    assert (row.verdict, row.fault.reason) == ("unsure", "needs_cuda")
    assert "pip install -e '.[nvcc]'" in shown(row, 200)


def test_a_forged_report_costs_nobody_else():
    outcome = Outcome(status=Status.COMPILE_ERROR, reason="x", message="said", evidence={"errors": [{"line": "seven"}]})
    assert [error.text for error in check._errors(outcome)] == ["said"]


def test_verdicts_of_the_corpus(tmp_path):
    names = ["honest", "missing_entry", "syntax_error", "exits_at_import"]
    rows = rows_of([str(KNOWN[name].path) for name in names], tmp_path)
    verdicts = {row.candidate.rpartition("/")[2]: row.verdict for row in rows}
    assert verdicts == {
        "honest": "ok",
        "missing_entry": "fails",
        "syntax_error": "fails",
        "exits_at_import": "fails",
    }


def test_what_cannot_be_read_fails_and_the_others_are_checked(tmp_path, capsys):
    folder = tmp_path / "toy/scale"
    folder.mkdir(parents=True)
    shutil.copy(KNOWN["honest"].path, folder / "[red]honest.py")
    with open(folder / "large.py", "wb") as file:
        file.truncate(1 << 34)
    (folder / "\x1b[2Jdangling.py").symlink_to("/nowhere")
    assert cli.main(["check", str(folder), "--out", str(tmp_path / "out")]) == 3
    told = capsys.readouterr()
    assert "2 candidates: 1 ok, 1 fails" in told.out
    assert "[red]honest" in told.out
    assert "load_error · source_too_large" in told.out
    assert "dangling.py: a link that leads nowhere" in told.err
    assert all(letter.isprintable() or letter == "\n" for letter in told.out + told.err)


def test_a_problem_is_found_beside_the_solutions_and_is_not_needed(tmp_path):
    (row,) = rows_of([str(KNOWN["honest"].path)], tmp_path, problems=[])
    assert row.problem == "toy/scale"
    far = tmp_path / "no/problem/honest.py"
    far.parent.mkdir(parents=True)
    shutil.copy(KNOWN["honest"].path, far)
    (row,) = rows_of([str(far)], tmp_path, problems=[])
    assert (row.problem, row.verdict) == ("", "ok")


@pytest.mark.parametrize(
    ("before", "options", "code"),
    [
        ("", [], 0),
        ("import a_package_that_nobody_has\n", [], 0),
        ("import a_package_that_nobody_has\n", ["--require", "ok"], 3),
        ("raise ValueError\n", [], 3),
    ],
)
def test_exit_codes(before, options, code, tmp_path, capsys):
    path = tmp_path / "toy/scale/candidate.py"
    path.parent.mkdir(parents=True)
    path.write_text(before + (KNOWN["honest"].path).read_text())
    assert cli.main(["check", str(path), "--out", str(tmp_path), *options]) == code
    assert "1 candidate: 1 " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["check"], "the following arguments are required: FILE"),
        (["check", "nothing.py"], "'nothing.py' matches no Python file"),
        (["check", "solutions", "--arch", "hopper"], "--arch hopper: not an architecture; write it like 90a or 9.0a"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(arguments, sentence, capsys):
    assert cli.main(arguments) == 2
    assert sentence in capsys.readouterr().err
