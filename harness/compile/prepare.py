"""What the session makes ahead of builds: the precompiled headers of all ways, and what tells their headers apart.

`macros.json` says which macros are not the same in all sets of headers. No torch.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from harness.catalog.facts import HeadersWanted
from harness.compile.precompiled import Precompiled
from harness.compile.tools import Tools
from harness.compile.ways import operators, smaller
from harness.compile.ways.macro_survey import survey
from harness.compile.ways.order import WAYS
from harness.compile.ways.way import BuildWay
from harness.drafts import make_folder
from harness.environment import cores

# What a file with CUDA in it is likely to hold; a wrong guess only costs time.
CUDA_WORDS = (b"cuda_sources", b".cu", b"__global__")
CONTEXT_HEADER, MODULE = b"ATen/cuda/CUDAContext.h", b"PYBIND11_MODULE"
LEVELS = ("-O0", "-O1", "-O2", "-O3")


def levels_in(source: bytes, argument: str) -> list[str]:
    """Optimisation levels that a file may pass in `argument` (extra_cflags); a wrong guess only costs time."""
    levels = [level for level in LEVELS if level.encode() in source] if argument.encode() in source else []
    return levels or [""]


def wanted(source: bytes) -> HeadersWanted:
    """Which precompiled headers a candidate's file can use."""
    return HeadersWanted(
        cpp_levels=levels_in(source, "extra_cflags"),
        cuda_levels=levels_in(source, "extra_cuda_cflags"),
        cuda=any(word in source for word in CUDA_WORDS),
        context=CONTEXT_HEADER in source and operators.wants(operators.CUDA_CONTEXT, source.decode(errors="replace")),
        module=MODULE in source,
    )


def prepared(wanted: HeadersWanted, root: Path, tools: Tools, ways: Sequence[BuildWay] = WAYS) -> Path:
    """A folder below `root` with all these precompiled headers.

    Raises RuntimeError or OSError where they cannot be made; the candidate builds without them, in longer.
    """
    headers = Precompiled(root, tools)
    make_folder(headers.folder)
    steps = [step for way in ways for step in way.preparations(wanted, headers)]
    if any(way.headers["cpp"] for way in ways):
        steps.append(functools.partial(_survey, headers, ways))
    # Side by side, and beside those of other builds: on a new machine, everything waits for them.
    with ThreadPoolExecutor(cores(), thread_name_prefix="headers") as threads:
        for step in [threads.submit(step) for step in steps]:
            step.result()
    headers.used(smaller.MACROS)
    return headers.folder


def _survey(headers: Precompiled, ways: Sequence[BuildWay]) -> None:
    with headers.missing(headers.folder / smaller.MACROS) as missing:
        if missing:
            _carry_out_survey(headers, ways)


def _carry_out_survey(headers: Precompiled, ways: Sequence[BuildWay]) -> None:
    with_nvcc = [headers.tools.nvcc, *headers.nvcc_flags()] if headers.tools.nvcc else []
    cpp, cuda = (
        [headers.includes([place]) for place in dict.fromkeys(place for way in ways for place in way.headers[language])]
        for language in ("cpp", "cuda")
    )
    with tempfile.TemporaryDirectory(dir=headers.folder) as scratch:
        found = survey(headers.cxx(), with_nvcc, cpp, cuda, Path(scratch))
    headers.keep(headers.folder / smaller.MACROS, msgspec.json.encode(found))
