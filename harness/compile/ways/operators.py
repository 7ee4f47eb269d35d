"""What a source names -> the few headers of the installed torch that it needs, as one generated include file.

`headers/lean` stands in for torch's umbrella headers and ends in `assay/operators.h`, which is generated for each
build: the operators of ATen that the sources name, torch's factories (`torch::empty`) for them, and a few optional
headers. What is missing does not compile, and then the stock build is made instead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from harness.catalog.cpp_tokens import without_comments

HEADERS = Path(__file__).resolve().parents[1] / "headers"
LEAN = HEADERS / "lean"

# Operators that kernel sources call often: what the precompiled headers hold.
POPULAR_TEXT = """
abs add addmm arange bmm clamp clone div dot einsum empty empty_like empty_strided exp eye fill from_blob full
full_like gelu linear log log_softmax matmul max maximum mean min minimum mm mul mv narrow neg ones ones_like pow rand
rand_like randn randn_like relu rsqrt sigmoid silu softmax sqrt stack sub sum tanh tensor transpose where zeros
zeros_like
"""
POPULAR = tuple(POPULAR_TEXT.split())

# Words that a source has to mention -> the header that holds them. Headers that a source includes itself come anyway.
OPTIONAL = {
    r"TORCH_LIBRARY\w*": "torch/library.h",
    r"Slice|Ellipsis|TensorIndex|indexing|index|index_put_": "ATen/TensorIndexing.h",
    r"cout|cerr|clog|ostream|ostringstream|stringstream|print": "ATen/core/Formatting.h",
    r"parallel_for|parallel_reduce|get_num_threads|set_num_threads": "ATen/Parallel.h",
    r"NoGradGuard|AutoGradMode|GradMode": "ATen/core/grad_mode.h",
}
CUDA_CONTEXT, BINDS_IN_CUDA = "ASSAY_WANTS_CUDA_CONTEXT", "ASSAY_BINDS_IN_CUDA"
# Headers that `headers/lean` leaves empty -> the words that call for the real one.
WANTED = {
    "ASSAY_WANTS_CONTEXT": r"globalContext|Context|hasCUDA|manual_seed|allowTF32\w*",
    "ASSAY_WANTS_TENSORUTILS": r"TensorArg|TensorGeometry\w*|CheckedFrom|checkSame\w*|checkAllSame\w*|checkDim\w*",
    "ASSAY_WANTS_DEVICEGUARD": r"cat|I(?:Tensor)?ListRef|IValue|ivalue",
    CUDA_CONTEXT: r"getCurrentDeviceProperties|getDeviceProperties|warp_size|getCurrentCUDA\w+Handle|"
    r"CUDAContext_\w+|canDeviceAccessPeer|getCUDADeviceAllocator|TORCH_CU[A-Z]+_CHECK|getNumGPUs|is_available",
    BINDS_IN_CUDA: r"py|pybind11|PYBIND11_\w+|PyObject|THPVariable\w*",
}
EMPTIED = {
    "ASSAY_WANTS_CONTEXT": "ATen/Context.h",
    "ASSAY_WANTS_TENSORUTILS": "ATen/TensorUtils.h",
    "ASSAY_WANTS_DEVICEGUARD": "ATen/DeviceGuard.h",
}
# Parts of torch that an umbrella header holds and `headers/lean` does not: a try with it would be lost.
ABSENT = re.compile(r"\btorch\s*::\s*(nn|optim|jit|data)\b")
# A function's declaration (its name, and what is before it on up to two lines), and a use of a name as a function's.
FUNCTION = re.compile(
    r"((?:^[^\n;{}()=]*\n)?^[^\n;{}()=]*[\w>&*]\s[\s&*]*)(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?[{;]", re.M
)
UNQUALIFIED = re.compile(r"(?<![.>:\w])(\w+)\s*\(")
FACTORY = re.compile(r"^inline at::Tensor (\w+)\((?:.|\n)*?\n\}\n", re.MULTILINE)


def operators_header(torch_root: Path, cpp: Iterable[str], cuda: Iterable[str]) -> str:
    """The text of `assay/operators.h` for these sources."""
    cuda_text = without_comments("\n".join(cuda))
    text = without_comments("\n".join(cpp)) + "\n" + cuda_text
    words = set(re.findall(r"\w+", text))
    lines = ["// Generated for one build: what its sources name.", "#pragma once", ""]
    for macro in WANTED:
        if wants(macro, cuda_text if macro == BINDS_IN_CUDA else text):
            lines.append(f"#define {macro}")
            if macro in EMPTIED:
                # Left out once already where a precompiled header was read.
                lines.append(f"#include <{EMPTIED[macro]}>")
    return "\n".join(lines) + "\n" + _operators(torch_root, called(torch_root, text)) + _optional(words)


def wants(macro: str, text: str) -> bool:
    """Whether a source calls for the headers that `macro` of WANTED stands for."""
    return any(re.fullmatch(WANTED[macro], word) for word in set(re.findall(r"\w+", text)))


def absent(code: str) -> str:
    """What of torch a source without comments names that `headers/lean` lacks, unless it includes that by itself."""
    found = ABSENT.search(code)
    if found is None or re.search(rf"#\s*include\s*[<\"]torch/(?:csrc/(?:api/include/torch/)?)?{found[1]}\b", code):
        return ""
    return f"torch::{found[1]}"


def popular_header(torch_root: Path) -> str:
    """The text of `assay/operators.h` for a precompiled header."""
    return "#pragma once\n" + _operators(torch_root, POPULAR)


def called(torch_root: Path, text: str) -> list[str]:
    """ATen's operators that a source without comments names: qualified, or anything if it is `using namespace torch`.

    Or unqualified, where a host function of its own has the name: which of the two is meant is up to the compiler.
    """
    if re.search(r"using\s+namespace\s+(at|torch)\b", text):
        names = set(re.findall(r"\w+", text))
    else:
        names = set(re.findall(r"\b(?:at|torch)\s*::\s*(\w+)", text))
        names |= {name for qualifiers, name in FUNCTION.findall(text) if "__device__" not in qualifiers} & {
            name for name, count in Counter(UNQUALIFIED.findall(text)).items() if count > 1
        }
    return sorted(names & _available(torch_root))


@cache
def _available(torch_root: Path) -> frozenset[str]:
    folder = torch_root / "include/ATen/ops"
    return frozenset(path.name.removesuffix("_ops.h") for path in folder.glob("*_ops.h")) | {"from_blob", "tensor"}


@cache
def _factories(torch_root: Path) -> dict[str, str]:
    """torch's factory functions by name, as the installed `variable_factories.h` defines them."""
    text = (torch_root / "include/torch/csrc/autograd/generated/variable_factories.h").read_text()
    found: dict[str, str] = {}
    for match in FACTORY.finditer(text):
        found[match[1]] = found.get(match[1], "") + match[0].replace("autograd::make_variable(", "assay::variable(")
    return found


def _operators(torch_root: Path, names: Iterable[str]) -> str:
    available, factories = _available(torch_root), _factories(torch_root)
    lines = []
    for name in names:
        if name not in available:
            continue
        if name == "tensor":
            lines.append("#include <torch/csrc/api/include/torch/detail/TensorDataContainer.h>")
        lines.append(f"#include <ATen/ops/{name}.h>")
        if name in factories:
            # A precompiled header may have defined it already.
            guard = f"ASSAY_FACTORY_{name}"
            lines.append(f"#ifndef {guard}\n#define {guard}\nnamespace torch {{\n{factories[name]}}}\n#endif")
    return "\n".join(lines) + "\n"


def _optional(words: set[str]) -> str:
    wanted = [header for pattern, header in OPTIONAL.items() if any(re.fullmatch(pattern, word) for word in words)]
    return "".join(f"#include <{header}>\n" for header in wanted)
