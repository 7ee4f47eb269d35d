"""Which kernel files can be read with the sketch.

Those that keep to what it knows, and whose constants come out as with torch's own headers.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.compile.own_headers import INCLUDE
from harness.compile.ways.way import NotThisWay

# What the sketch stands in for; a source that includes more of torch needs the real headers.
SKETCHED_TEXT = """
torch/extension.h torch/types.h torch/all.h torch/torch.h ATen/ATen.h ATen/Dispatch.h ATen/cuda/CUDAContext.h
c10/cuda/CUDAGuard.h c10/cuda/CUDAStream.h c10/cuda/CUDAException.h c10/util/Half.h c10/util/BFloat16.h
c10/util/Exception.h c10/core/ScalarType.h c10/util/ArrayRef.h
"""
SKETCHED = frozenset(SKETCHED_TEXT.split())
# Narrower headers of torch, which the sketch as a whole stands in for.
NARROW = re.compile(r"ATen/core/Tensor(?:Body|Base)?\.h|ATen/Functions\.h|ATen/ops/(\w+)\.h")
UMBRELLAS = ("torch/extension.h", "torch/types.h", "torch/all.h", "torch/torch.h", "ATen/ATen.h")
# Of the card, and of its streams and guards: the sketch knows them in any case, torch's own headers only where one of
# these is included. What does not compile by them must not compile here.
MACROS, STREAMS = (
    re.compile(r"\bC10_CUDA_\w+"),
    re.compile(r"\b(?:c10|at)\s*::\s*cuda\b|\b\w*CUDA(?:\w*Guard|Stream)\b"),
)
WITH_STREAMS = frozenset({"ATen/cuda/CUDAContext.h", "c10/cuda/CUDAGuard.h", "c10/cuda/CUDAStream.h"})
WITH_MACROS = WITH_STREAMS | {"c10/cuda/CUDAException.h"}
# Flags that change neither what the headers mean nor how the host pass reads them.
HARMLESS = re.compile(
    r"-O[0-3]|--?use_fast_math|-lineinfo|--generate-line-info|--?ptxas-options=.*|-Xptxas.*|--?maxrregcount.*|-w|"
    r"--expt-relaxed-constexpr|--?fmad.*|--?ftz.*|--?prec-.*|--?diag-suppress.*|-D(?!__|_GLIBCXX|C10_|TORCH_|AT_|NDEBUG).*|"
    r"--?threads.*|-t\d+|--?restrict|--?extra-device-vectorization"
)
# Sketched classes, as large as torch's own, but with other members and conversions.
CLASSES = r"(?:Tensor|Scalar|TensorOptions|TypeMeta|CUDAStream|\w*CUDA\w*Guard)"
# What needs the real classes: classes that are not sketched, and constants that cudafe++ works out by itself and writes
# down as numbers (types of expressions, properties of types), which must not be a sketch's.
BEYOND = re.compile(
    r"\b(complex\w*|PYBIND11_\w+|pybind11|py|TORCH_LIBRARY\w*|autograd|TensorIterator\w*|Generator|Philox\w*|IValue|"
    r"TORCH_CU[A-Z]+_CHECK|getCUDADeviceAllocator)\b"
    r"|\b(?:decltype|concept|requires|offsetof|typeid|is_(?:nothrow_|trivially_)?(?:\w*constructible|\w*assignable|"
    r"destructible|convertible|invocable|copyable)\w*|is_(?:class|empty|final|aggregate|polymorphic|standard_layout|pod|"
    r"trivial|base_of|abstract)(?:_v)?|__(?:is|has)_(?!include\b)\w+)\b|\bnoexcept\s*\("
    # Of an expression, whose type is the sketch's.
    r"|\b(?:sizeof|alignof|alignas)\b(?!\s*\.\.\.|\s*\([^()]*\))"
    # A trait of a sketched class, or an overload by its pointer: these can ask for members.
    r"|\b(?!(?:include|template|vector|optional|tuple|pair|array|map|unordered_map|initializer_list|function|unique_ptr|"
    r"shared_ptr|ArrayRef|make_tuple|is_same|is_same_v|static_cast|const_cast|reinterpret_cast)\b)\w+\s*"
    rf"<(?!<)[^<>;(){{}}=|]*\b{CLASSES}\b[^<>;(){{}}|]*>"
    rf"|\b{CLASSES}(?:\s+const)?\s*\*"
    rf"|\busing\s+(?!{CLASSES}\b)\w+\s*=\s*(?:\w+\s*::\s*)*{CLASSES}\s*;|\btypedef\s[^;]*\b{CLASSES}\b"
    r"|#\s*(?:define|undef)\s+(?:__CUDA|_|C10|TORCH|AT_)|#\s*include(?:_next\b|\s+\w)"
)
# The standard headers that the sketch has in any case, and names from them that need no more.
STD_HEADERS_TEXT = """
cmath cstdint cstdio cstdlib cstring limits math.h optional stdlib.h string tuple type_traits utility vector stdint.h
stdio.h string.h cstddef cassert assert.h float.h cfloat climits
"""
STD_HEADERS = frozenset(STD_HEADERS_TEXT.split())
STD_NAMES_TEXT = """
vector string to_string tuple make_tuple get tie pair make_pair min max swap move forward optional nullopt
numeric_limits size_t int64_t int32_t uint32_t uint8_t uint64_t int8_t int16_t uint16_t is_same is_same_v enable_if
enable_if_t conditional conditional_t decay_t remove_reference_t integral_constant true_type false_type declval abs
fabs sqrt exp log log2 exp2 pow sin cos tanh floor ceil round fmax fmin isnan isinf memcpy memset malloc free
"""
STD_NAMES = frozenset(STD_NAMES_TEXT.split())


def check(code: str, flags: list[str], popular: frozenset[str], called: list[str]) -> bool:
    """Whether the source needs the rest of the standard library; raises NotThisWay where it needs more of torch.

    `code` is without comments.
    """
    for flag in flags:
        if not HARMLESS.fullmatch(flag):
            raise NotThisWay(f"flag {flag}")
    if beyond := BEYOND.search(code):
        raise NotThisWay(f"mentions {beyond[0]}")
    included = INCLUDE.findall(code)
    first = re.search(r"\S[^\n]*", code)
    narrow = narrow_of(code, popular)
    begins = bool(included) and (included[0] in UMBRELLAS or included[0] in narrow)
    if not begins or first is None or not INCLUDE.match(first[0]):
        raise NotThisWay("does not begin with a header of torch")
    for name in (name for name in included if name not in narrow):
        if name.startswith(("torch/", "ATen/", "c10/", "caffe2/")) and name not in SKETCHED:
            raise NotThisWay(f"includes {name}")
    for pattern, headers in ((MACROS, WITH_MACROS), (STREAMS, WITH_STREAMS)):
        if (used := pattern.search(code)) and headers.isdisjoint(included):
            raise NotThisWay(f"uses {used[0]} without its header")
    if "cuda.h" not in included and re.search(r"^[ \t]*#[ \t]*(?:el)?if", code, re.MULTILINE):
        # The sketch includes it in any case.
        raise NotThisWay("has conditionals and does not include cuda.h")
    unknown = [name for name in called if name not in popular]
    if unknown:
        raise NotThisWay(f"calls {unknown[0]}")
    standard = {name for name in included if "/" not in name and not name.startswith("cu")}
    names = set(re.findall(r"\bstd\s*::\s*(\w+)", code))
    return bool(standard - STD_HEADERS or names - STD_NAMES or re.search(r"using\s+namespace\s+std\b", code))


def check_surroundings(code: str, source: Path, arguments: list[str], own: list[str]) -> None:
    """Raises NotThisWay where headers or flags come from elsewhere, which nobody has read. `own` are our folders."""
    for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
        if os.environ.get(name):
            raise NotThisWay(f"{name} is set")
    for word in arguments:
        if word.startswith("-I") and word[2:] not in own:
            raise NotThisWay(f"include folder {word[2:]}")
    for name in INCLUDE.findall(code):
        if (source.parent / name).is_file():
            raise NotThisWay(f"includes {name} beside it")


def narrow_of(code: str, popular: frozenset[str]) -> list[str]:
    """Narrow headers that a source includes and that the sketch knows: `ATen/ops/NAME.h` for `popular` names."""
    found = ((name, NARROW.fullmatch(name)) for name in INCLUDE.findall(code))
    return [name for name, match in found if match and (match[1] is None or match[1] in popular)]
