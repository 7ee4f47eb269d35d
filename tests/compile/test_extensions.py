"""The builder's order of attempts, with a stock function that only pretends to compile."""

import contextlib
import os
from pathlib import Path

import msgspec
import pytest
from torch.utils import cpp_extension

from harness.compile import extensions
from harness.compile.ways import operators, smaller
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.order import WAYS

CALL = {"name": "ext", "cpp_sources": "torch::Tensor f(torch::Tensor x);", "functions": ["f"]}


class Stock:
    """Writes a library, unless `refuses` says otherwise of its arguments; keeps what it was called with."""

    def __init__(self, refuses=lambda arguments: False):
        self.calls = []
        self.refuses = refuses

    def __call__(self, **arguments):
        self.calls.append(arguments | {"environment": dict(os.environ)})
        version = cpp_extension.JIT_EXTENSION_VERSIONER.bump_version_if_changed(
            arguments["name"], [], [str(arguments)], arguments["build_directory"], False, False, True, False
        )
        if self.refuses(arguments):
            raise RuntimeError("Error building extension 'ext': no")
        name = arguments["name"] + (f"_v{version}" if version else "")
        (Path(arguments["build_directory"]) / f"{name}.so").write_bytes(b"")
        return name


def is_lean(arguments):
    return str(operators.LEAN) in (arguments.get("extra_include_paths") or [])


@pytest.fixture(autouse=True)
def versions():
    cpp_extension.JIT_EXTENSION_VERSIONER.entries.clear()


@pytest.mark.parametrize(("text", "kept"), [("// plain", True), ('const char* here = "/copies/3/fast.py";', False)])
def test_a_call_that_names_the_candidate_s_folder_is_not_kept(tmp_path, text, kept):
    builder = extensions.Builder(tmp_path, "", place="/copies/3")
    builder(Stock(), CALL | {"cpp_sources": [text]})
    assert builder.self_contained == kept


def test_lean_headers_come_first_and_the_call_is_otherwise_as_written(tmp_path):
    stock, call = Stock(), CALL | {"extra_include_paths": ["/mine"], "extra_cflags": ["-O3"], "use_pch": True}
    builder = extensions.Builder(tmp_path, "", ways=WAYS, prepared=tmp_path / "prepared")
    assert builder(stock, call) == "ext"
    (made,) = stock.calls
    generated, ours, theirs = made["extra_include_paths"]
    assert (ours, theirs) == (str(operators.LEAN), "/mine")
    assert (Path(generated) / "assay/operators.h").is_file()
    assert made["extra_cflags"] == ["-include", str(tmp_path / "prepared/binding.h"), "-O3"]
    assert made["use_pch"] is False
    # The runner must find the same call under the same digest.
    assert call["extra_include_paths"] == ["/mine"]
    assert builder.libraries.keys() == {extensions.identify(call).key}
    assert not builder.self_contained


def test_the_stock_build_follows_where_lean_headers_do_not_suffice(tmp_path):
    stock = Stock(refuses=is_lean)
    builder = extensions.Builder(tmp_path, "", ways=WAYS)
    # As if nothing had been tried before it: torch numbers a name's second build.
    assert builder(stock, CALL) == "ext"
    assert [is_lean(call) for call in stock.calls] == [True, False]
    assert list(builder.made.values()) == ["stock headers"]
    assert "extra_include_paths" not in stock.calls[1]


def test_what_does_not_compile_fails_with_the_stock_build_s_words(tmp_path):
    stock = Stock(refuses=lambda arguments: True)
    builder = extensions.Builder(tmp_path, "", ways=WAYS)
    with pytest.raises(RuntimeError, match="Error building extension"):
        builder(stock, CALL)
    assert list(builder.failures) == [extensions.identify(CALL).key]
    assert builder.libraries == {}


def test_stock_headers_are_stock(tmp_path):
    stock = Stock()
    extensions.Builder(tmp_path, "")(stock, CALL)
    assert [is_lean(call) for call in stock.calls] == [False]


CUDA = CALL | {"cuda_sources": "__global__ void k() {}", "extra_cuda_cflags": ["-O3", "-arch=sm_80"]}


def test_a_foreign_architecture_is_replaced_and_told(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "8.0")
    stock = Stock()
    builder = extensions.Builder(tmp_path, "", arch="9.0a")
    builder(stock, CUDA)
    (made,) = stock.calls
    assert made["extra_cuda_cflags"] == ["-O3"]
    assert made["environment"]["TORCH_CUDA_ARCH_LIST"] == "9.0a"
    assert os.environ["TORCH_CUDA_ARCH_LIST"] == "8.0"
    (warning,) = builder.warnings
    assert warning.startswith("foreign_architecture: extension 'ext' names sm_80, 8.0; built for this GPU's sm_90a")


def test_a_candidate_s_own_flags_are_the_last_resort(tmp_path):
    stock = Stock(refuses=lambda arguments: "-arch=sm_80" not in arguments["extra_cuda_cflags"])
    builder = extensions.Builder(tmp_path, "", ways=WAYS, arch="9.0a")
    builder(stock, CUDA)
    assert stock.calls[-1]["extra_cuda_cflags"] == ["-O3", "-arch=sm_80"]
    (warning,) = builder.warnings
    assert "with its own architecture flags only" in warning


def test_the_card_s_own_architecture_is_no_warning(tmp_path):
    builder = extensions.Builder(tmp_path, "", arch="9.0a")
    builder(Stock(), CUDA | {"extra_cuda_cflags": ["-gencode=arch=compute_90,code=sm_90"]})
    assert builder.warnings == []


def test_cuda_sources_are_turned_down_where_there_is_no_cuda(tmp_path):
    with pytest.raises(extensions.NeedsCuda, match="has CUDA sources, and there is no card"):
        extensions.Builder(tmp_path, "there is no card")(Stock(), CUDA)


def test_a_source_that_could_tell_the_headers_is_built_with_the_stock_ones(tmp_path, capsys):
    stock = Stock()
    call = CALL | {"cpp_sources": "#if TORCH_VERSION_MAJOR < 2\nold\n#endif"}
    builder = extensions.Builder(tmp_path, "", ways=WAYS)
    builder(stock, call)
    assert [is_lean(made) for made in stock.calls] == [False]
    assert list(builder.made.values()) == ["stock headers"]
    assert "asks for TORCH_VERSION_MAJOR" in capsys.readouterr().err


def test_flags_that_change_the_headers_are_not_for_the_sketch(tmp_path, monkeypatch):
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    macros = Macros(cpp=frozenset(), cuda=frozenset(), asked=frozenset({"USE_ROCM"}))
    (prepared / smaller.MACROS).write_bytes(msgspec.json.encode(macros))
    monkeypatch.setattr(cpp_extension, "CUDA_HOME", "/cuda")
    monkeypatch.delenv("PYTORCH_NVCC", raising=False)
    for flag, sketched in (("-DTILE=4", True), ("-DUSE_ROCM", False)):
        stock = Stock()
        builder = extensions.Builder(tmp_path / flag, "", ways=WAYS, prepared=prepared)
        builder(stock, CALL | {"cuda_sources": "__global__ void k() {}", "extra_cuda_cflags": [flag]})
        assert ("ASSAY_NVCC" in stock.calls[0]["environment"]) is sketched


def test_the_same_call_again_compiles_nothing(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(cpp_extension, "_import_module_from_library", lambda *arguments: opened.append(arguments))
    stock = Stock()
    builder = extensions.Builder(tmp_path, "")
    for _ in range(2):
        builder(stock, CALL)
    assert len(stock.calls) == 1
    assert [name for name, _, _ in opened] == ["ext"]


def test_a_runner_gets_what_was_built_under_other_names(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(cpp_extension, "_import_module_from_library", lambda name, *_: opened.append(name))
    builder = extensions.Builder(tmp_path, "")
    for name in ("drawn_1", "drawn_2"):
        builder(Stock(), CALL | {"name": name})
    with pytest.raises(RuntimeError):
        builder(Stock(refuses=lambda arguments: True), CALL | {"name": "drawn_3", "cpp_sources": "wrong"})
    prebuilt = extensions.Prebuilt(
        {key: str(tmp_path / file) for key, file in builder.libraries.items()}, builder.failures
    )
    for name in ("drawn_7", "drawn_8", "drawn_7"):
        prebuilt(Stock(), CALL | {"name": name})
    assert opened == ["drawn_1", "drawn_2", "drawn_1"]
    with pytest.raises(RuntimeError, match="Error building extension"):
        prebuilt(Stock(), CALL | {"name": "drawn_9", "cpp_sources": "wrong"})
    with pytest.raises(extensions.LateCompile, match="call load_inline at import or in __init__, with sources"):
        prebuilt(Stock(), CALL | {"name": "drawn_1", "cpp_sources": "other"})


def test_a_call_that_the_build_did_not_reach_is_told_what_the_constructor_raised_there():
    prebuilt = extensions.Prebuilt({}, {}, "RuntimeError: no device")
    with pytest.raises(extensions.LateCompile, match=r"first in __init__.*no device, the constructor raised Runti"):
        prebuilt(Stock(), CALL)


def test_a_candidate_s_own_fallback_does_not_hide_it():
    prebuilt = extensions.Prebuilt({}, {})
    with pytest.raises(extensions.LateCompile), contextlib.suppress(Exception):
        prebuilt(Stock(), CALL)
