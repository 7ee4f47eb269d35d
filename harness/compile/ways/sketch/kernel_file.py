"""One kernel file, in nvcc's place: with the sketch where the file is for it, else by nvcc over the lean headers.

Where the sketch's failure is certainly the file's own, nvcc is not asked again.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from harness.catalog.cpp_tokens import without_comments
from harness.compile.ways import certain, operators, preprocessed
from harness.compile.ways.nvcc_steps import PassFailed
from harness.compile.ways.preprocessed import Preprocessed
from harness.compile.ways.sketch import fitness, module_block
from harness.compile.ways.sketch.passes import compile_with_sketch
from harness.compile.ways.sketch.prefixes import PREFIXES
from harness.compile.ways.way import NotThisWay


def main(arguments: list[str]) -> int:
    """Take nvcc's own arguments, and the rest from the environment (sketch.py sets it); the exit status."""
    nvcc, why = os.environ["ASSAY_NVCC"], ""
    try:
        _with_sketch(nvcc, arguments)
    except PassFailed as error:
        includes = certain.includes_in(shlex.join(arguments))
        if certain.is_certain(error.output, includes, lambda: _with_torch(nvcc, arguments), torch_headers=False):
            sys.stderr.write(f"{error.output}\n{certain.SAID}\n")
            return 1
        why = str(error)
    except (NotThisWay, OSError, ValueError) as error:
        why = str(error)
    note = "sketch" if not why else "no sketch: " + " | ".join(why.strip().splitlines()[:6])[:900]
    with open(os.environ["ASSAY_NOTES"], "a") as notes:
        notes.write(note + "\n")
    return subprocess.run([nvcc, *arguments], check=False).returncode if why else 0


def _with_sketch(nvcc: str, arguments: list[str]) -> None:
    source = source_of(arguments)
    whole = without_comments(source.read_text(errors="replace"))
    code, module = module_block.cut(whole)
    popular = frozenset(operators.POPULAR)
    called = operators.called(Path(os.environ["ASSAY_TORCH"]), whole)
    std = fitness.check(code, shlex.split(os.environ["ASSAY_FLAGS"]), popular, called)
    replaced = _ours()
    fitness.check_surroundings(code, source, arguments, replaced)
    context = operators.wants(operators.CUDA_CONTEXT, whole)
    prefix = Path(os.environ["ASSAY_PREPARED"]) / PREFIXES[context, bool(module)]
    wanted = ["ASSAY_WANTS_STD"] * std + [operators.CUDA_CONTEXT] * context
    narrow = fitness.narrow_of(code, popular)
    compile_with_sketch(nvcc, arguments, narrow, replaced, prefix, Path.cwd() / f"{source.stem}.steps", wanted)


def _ours() -> list[str]:
    """The include folders that are put before torch's."""
    return [str(operators.LEAN), os.environ["ASSAY_GENERATED"]]


def _with_torch(nvcc: str, arguments: list[str]) -> Preprocessed | None:
    """What nvcc would read over torch's own headers; None if that can't be had."""
    try:
        texts = preprocessed.of_nvcc(nvcc, preprocessed.without(arguments, _ours()), Path.cwd())
    except (PassFailed, OSError):
        return None
    return Preprocessed(texts, source_of(arguments).read_text(errors="replace"))


def source_of(arguments: list[str]) -> Path:
    """The one `.cu` file that the arguments compile."""
    files = [Path(argument) for argument in arguments if argument.endswith(".cu")]
    if len(files) != 1 or "-c" not in arguments:
        raise NotThisWay("not one .cu file to compile")
    return files[0]
