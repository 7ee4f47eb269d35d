"""The survey behind conditionals.py: the macros of torch's headers and of ours. No torch.

Each set of headers is read from the narrowest of torch's headers to the widest: what is the same for both is the same
for all that sources include.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from harness.compile.ways.conditionals import CONDITIONS, Macros, definitions, unlike
from harness.compile.ways.nvcc_steps import Steps

# What load_inline puts before every kernel file, and the sketch before any.
CUDA = """\
#ifdef __CUDACC__
#include <cuda.h>
#endif
"""
NARROWEST = CUDA + "#include <ATen/core/Tensor.h>\n"
WIDEST = f"""{CUDA}
#include <torch/extension.h>
#if __has_include(<c10/cuda/impl/cuda_cmake_macros.h>)
#include <c10/cuda/CUDAGuard.h>
#if __has_include(<cublasLt.h>) && __has_include(<cusolverDn.h>) && __has_include(<cusparse.h>)
#include <ATen/cuda/CUDAContext.h>
#endif
#endif
"""
CONDITION = re.compile(rf"^[ \t]*#[ \t]*(?:{'|'.join(CONDITIONS)})\b((?:.*\\\n)*.*)$", re.MULTILINE)


def survey(cxx: list[str], nvcc: list[str], cpp: list[list[str]], cuda: list[list[str]], folder: Path) -> Macros:
    """Compare the headers as `cxx`, a C++ compiler and its flags, reads them, and as `nvcc` does, if not empty.

    `cpp` and `cuda` are flags that put one set of our headers each before torch's; `folder` is for intermediate files.
    Raises RuntimeError where a preprocessor refuses.
    """
    of_cxx, of_host, of_device = [], [], []
    for number, text in enumerate((NARROWEST, WIDEST)):
        source = folder / f"survey{number}.cu"
        source.write_text(text)
        for flags in ([], *cpp):
            words = [*cxx[:1], *flags, *cxx[1:], "-E", "-dM", "-x", "c++", str(source)]
            of_cxx.append(definitions(_said(words)))
        for flags in ([], *cuda) if nvcc else ():
            host, device = _of_nvcc([*nvcc[:1], *flags, *nvcc[1:]], source, folder, "-E -dM")
            of_host.append(definitions(host))
            of_device.append(definitions(device))
    rules = _of_nvcc(nvcc, source, folder, "-M") if nvcc else [_said([*cxx, "-M", "-x", "c++", str(source)])]
    return Macros(
        cpp=frozenset(unlike(of_cxx)),
        cuda=frozenset(unlike(of_host) | unlike(of_device)),
        asked=frozenset(_asked_by_headers(rules)),
    )


def _of_nvcc(words: Sequence[str], source: Path, folder: Path, option: str) -> list[str]:
    """What nvcc's preprocessing steps, of the host and of the device pass, print with `option` in place of -E."""
    arguments = [*words[1:], "-c", str(source), "-o", str(folder / "survey.o")]
    return Steps(words[0], arguments, folder / "steps").preprocessed(option)


def _asked_by_headers(rules: list[str]) -> set[str]:
    """The words in the conditionals of all headers that these rules for make name."""
    files = {word for rule in rules for word in rule.split() if word.startswith("/") and not word.endswith(":")}
    texts = (Path(file).read_text(errors="replace") for file in files)
    return {word for text in texts for line in CONDITION.findall(text) for word in re.findall(r"[A-Za-z_]\w*", line)}


def _said(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout
