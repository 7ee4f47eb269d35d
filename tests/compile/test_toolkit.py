"""Where nvcc is looked for, and what is laid out for torch to find."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.compile import toolkit

TOOL = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; fi
echo "said: $*" >&2
exit 3
"""


@pytest.fixture
def home(tmp_path) -> Path:
    """A toolkit as its packages on PyPI lay it out: lib instead of lib64, libcudart without the linker's name."""
    home = tmp_path / "with a space" / "cu13"
    for folder in ("bin", "include", "lib"):
        (home / folder).mkdir(parents=True)
    for name in ("nvcc", "ptxas"):
        (home / "bin" / name).write_text(TOOL)
        (home / "bin" / name).chmod(0o755)
    (home / "include/cuda_runtime.h").write_text("")
    (home / "lib/libcudart.so.13").write_bytes(b"")
    return home


@pytest.fixture
def found(home, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", str(home))
    toolkit.find.cache_clear()
    yield toolkit.find()
    toolkit.find.cache_clear()


def test_cuda_home_comes_first(found, home):
    assert (found.nvcc, found.version, found.include[0]) == (str(home / "bin/nvcc"), "13.0", str(home / "include"))
    assert toolkit.runtime_library(found) == str(home / "lib/libcudart.so.13")


def test_packages_from_pypi_are_found(home, monkeypatch, tmp_path):
    (tmp_path / "site/nvidia").mkdir(parents=True)
    (tmp_path / "site/nvidia/cu13").symlink_to(home)
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert tmp_path / "site/nvidia/cu13" in list(toolkit._homes())


def test_no_toolkit_is_none(monkeypatch, tmp_path):
    monkeypatch.setattr(toolkit, "_homes", lambda: iter([tmp_path]))
    toolkit.find.cache_clear()
    assert toolkit.find() is None
    toolkit.find.cache_clear()


def test_ptxas_is_asked_and_its_words_are_kept_and_passed_on(found, tmp_path):
    environment = toolkit.lay_out(found, tmp_path / "laid out")
    tools = Path(environment["CUDA_HOME"], "bin")
    result = subprocess.run([tools / "ptxas", "-arch=sm_90a", "a b.ptx"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (3, "said: -v -arch=sm_90a a b.ptx\n")
    (log,) = (tmp_path / "laid out/logs").glob("*.txt")
    assert log.read_text() == result.stderr
    assert (tools / "nvcc").resolve() == Path(found.nvcc)


def test_an_absent_library_links_and_an_unknown_one_does_not(found, tmp_path):
    environment = os.environ | toolkit.lay_out(found, tmp_path / "home")
    source = tmp_path / "empty.c"
    source.write_text("")
    command = ["cc", "-shared", "-o", str(tmp_path / "out.so"), str(source)]
    subprocess.run([*command, "-lc10_cuda", "-lcublas"], env=environment, check=True)
    failed = subprocess.run([*command, "-lunheard_of"], env=environment, capture_output=True, check=False)
    assert failed.returncode != 0


def test_headers_that_are_not_installed_name_their_package(found, home):
    asked = 'identifier "cublasDgemm" is undefined'
    assert toolkit.missing_package(asked, found) == "nvidia-cublas"
    assert toolkit.missing_package("cudnn.h: No such file or directory", found) == "nvidia-cudnn-cu13"
    assert toolkit.missing_package("CUDNN_STATUS_SUCCESS", found) == ""
    assert toolkit.missing_package('identifier "wrong" is undefined', found) == ""
    (home / "include/cublas_v2.h").write_text("")
    assert toolkit.missing_package(asked, found) == ""
