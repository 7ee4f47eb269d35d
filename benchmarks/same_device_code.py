"""Whether kernels come out the same from the sketch as from torch's own headers: the PTX of both, compared.

    python benchmarks/same_device_code.py                             every candidate in solutions/; hours on two cores
    python benchmarks/same_device_code.py solutions/fused/*/*.py --sample 12

Each kernel file that is read with the sketch is compiled by nvcc.py and by nvcc with the stock headers. Names that nvcc
makes up are made equal; variables that no function mentions are left out. Needs nvcc, no card; exits with 1 where one
differs.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.catalog import modules
from harness.catalog.cpp_tokens import without_comments
from harness.compile import extensions, prepare, toolkit
from harness.compile.precompiled import Precompiled
from harness.compile.tools import Tools, find_tools
from harness.compile.ways import conditionals, operators, smaller
from harness.compile.ways.sketch import nvcc
from harness.store import cache_folder

HEAD = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n"
FUNCTION = re.compile(
    r"^(?:\.visible |\.weak |\.extern )*\.(?:entry|func)\b[^{;]*(?:\{.*?^\}|;)", re.MULTILINE | re.DOTALL
)
VARIABLE = re.compile(r"^(?:\.visible |\.weak |\.extern )*\.(?:global|const|shared)\b[^;]*;", re.MULTILINE)
# Of the file's text and place.
MADE_UP = re.compile(r"_[0-9a-f]{8}(?=_)|_[0-9a-f]{8}(?=\d)|(?<=N__)[0-9a-f]{8}|(?<=_)[0-9a-f]{8}(?=\b|[a-z_])")
NOISE = re.compile(r"^\s*(?://.*|\.loc .*|\.file .*|)\n", re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=["solutions/**/*.py"], help="candidate files or globs")
    parser.add_argument("--sample", type=int, help="so many files with extensions, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arch", default="9.0a", help="as TORCH_CUDA_ARCH_LIST has it")
    arguments = parser.parse_args()
    found = (Path(name) for pattern in arguments.files for name in glob.glob(pattern, recursive=True))
    files = sorted(path for path in found if b"load_inline" in path.read_bytes())
    if arguments.sample:
        files = sorted(random.Random(arguments.seed).sample(files, min(arguments.sample, len(files))))
    with tempfile.TemporaryDirectory() as scratch:
        found_different = compare(files, Path(scratch), arguments.arch)
    sys.exit(1 if found_different else 0)


def compare(files: list[Path], scratch: Path, arch: str) -> int:
    """Print a line for each kernel file, and the counts; how many differ."""
    tools = find_tools(toolkit.find(), arch)
    if tools is None or not tools.nvcc:
        sys.exit("needs torch, a C++ compiler and nvcc")
    os.environ["CPLUS_INCLUDE_PATH"] = os.pathsep.join(tools.stand_ins)
    headers = Precompiled(cache_folder.part(cache_folder.HEADERS), tools)
    counts = {"same": 0, "different": 0, "no sketch": 0}
    for path in files:
        prepare.prepared(prepare.wanted(path.read_bytes()), cache_folder.part(cache_folder.HEADERS), tools)
        for number, call in enumerate(calls(path)):
            folder = scratch / f"{path.parent.name}.{path.stem}.{number}"
            outcome, remark = compare_one(call, folder, headers, tools)
            counts[outcome] += 1
            print(f"{outcome:<10} {path} {remark}", flush=True)
    print(" ".join(f"{outcome.replace(' ', '_')}={count}" for outcome, count in counts.items()))
    return counts["different"]


def calls(path: Path) -> list[dict[str, Any]]:
    """The arguments of the `load_inline` calls with CUDA sources that importing a candidate makes."""
    made: list[dict[str, Any]] = []

    def note(_: Any, arguments: dict[str, Any]) -> Any:
        made.append(arguments)
        return MagicMock()

    extensions.intercept(note)
    modules.execute(path)
    return [arguments for arguments in made if arguments.get("cuda_sources")]


def compare_one(call: dict[str, Any], folder: Path, headers: Precompiled, tools: Tools) -> tuple[str, str]:
    """`same`, `different` or `no sketch`, and the kernels compared, the first difference, or why there was none."""
    given = call["cuda_sources"]
    text = HEAD + ("\n".join(given) if isinstance(given, list) else given)
    flags = [flag for flag in call.get("extra_cuda_cflags") or [] if flag != "-lineinfo" and "arch" not in flag]
    generated = folder / "generated"
    (generated / "assay").mkdir(parents=True)
    (generated / "assay/operators.h").write_text(operators.operators_header(Path(tools.torch_root), [], [text]))
    (folder / "cuda.cu").write_text(text)
    macros = conditionals.read(headers.folder / smaller.MACROS)
    if why := conditionals.obstacle(without_comments(text), macros, cuda=True):
        return "no sketch", why
    stock = [*headers.nvcc_flags(), *flags]
    settings = {
        "ASSAY_NVCC": tools.nvcc,
        "ASSAY_TORCH": tools.torch_root,
        "ASSAY_FLAGS": shlex.join(flags),
        "ASSAY_GENERATED": str(generated),
        "ASSAY_PREPARED": str(headers.folder),
        "ASSAY_NOTES": str(folder / "notes.txt"),
    }
    ours = [sys.executable, "-PSE", nvcc.__file__, f"-I{generated}", f"-I{operators.LEAN}", *stock]
    _run([*ours, "-c", "cuda.cu", "-o", "cuda.o"], folder, settings)
    note = (folder / "notes.txt").read_text().strip()
    if note != "sketch":
        return "no sketch", note
    _run([tools.nvcc, *stock, "-ptx", "cuda.cu", "-o", "stock.ptx"], folder, {})
    (sketched,) = folder.glob("cuda.steps/*.ptx")
    return _compared(device_code(sketched.read_text()), device_code((folder / "stock.ptx").read_text()))


def device_code(ptx: str) -> dict[str, str]:
    """A name -> the text of each function, and of each variable that a function mentions."""
    text = NOISE.sub("", MADE_UP.sub("_x", ptx))
    functions = {_name(match[0]): match[0] for match in FUNCTION.finditer(text)}
    words = {word for body in functions.values() for word in re.findall(r"[\w$]+", body)}
    variables = {_name(match[0]): match[0] for match in VARIABLE.finditer(text)}
    return functions | {name: line for name, line in variables.items() if name in words}


def _name(declaration: str) -> str:
    named = re.search(r"\.(?:entry|func)\s*(?:\([^)]*\)\s*)?([\w$]+)|([\w$]+)(?:\[\d*\])?\s*(?:=|;)", declaration)
    assert named is not None, declaration[:200]
    return named[1] or named[2]


def _compared(ours: dict[str, str], stock: dict[str, str]) -> tuple[str, str]:
    if ours.keys() != stock.keys():
        return "different", f"only one has {sorted(ours.keys() ^ stock.keys())[:3]}"
    for name, text in ours.items():
        if text != stock[name]:
            pairs = zip(text.splitlines(), stock[name].splitlines(), strict=False)
            first = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
            return "different", f"{name}: {first[0].strip()} | {first[1].strip()}"
    return "same", f"{sum('.entry' in text for text in ours.values())} kernels"


def _run(command: list[str], folder: Path, settings: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{folder.name}: {' '.join(command[:4])} ...\n{done.stderr[-3000:]}")


if __name__ == "__main__":
    main()
