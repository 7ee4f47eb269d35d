"""C++ and CUDA in a candidate's strings: the code without comments and literals, and findings in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.catalog.cpp_tokens import Kind, tokens

KEPT = (Kind.CODE, Kind.HEADER, Kind.UNCLOSED)
NOT_A_LINE_END = re.compile(r"[^\n]")

OWN_WORK = (
    "empty|empty_like|empty_strided|zeros|zeros_like|ones|ones_like|full|full_like|tensor|from_blob|arange|scalar_tensor"
    "|dtype|device|TensorOptions|Tensor|TensorList|OptionalTensorRef|IntArrayRef|IntList|Scalar|Half|BFloat16|parallel_for"
    "|get_num_threads|ceil_div|vec|native|cuda|cpu|detail|optional|nullopt|elementSize|kFloat|kHalf|toAccumulateType"
)
# Kind, whether it warns, pattern for code without comments and literals, and the text; groups fill the braces.
RULES = (
    (
        "stream",
        False,
        r"\b(?P<name>cudaStreamCreate\w*|getStreamFromPool)\s*\(",
        "{name}: runs work on a stream of its own",
    ),
    (
        "stream",
        False,
        r"\b(?P<name>cuda(?:Device|Stream|Event)Synchronize)\s*\(",
        "{name}: waits for the device, so its calls cannot be enqueued ahead and are timed with launch latency",
    ),
    (
        "stream",
        False,
        r"\b(?P<name>cudaGraph(?:Launch|Instantiate)\w*)\s*\(",
        "{name}: replays a CUDA graph of its own",
    ),
    (
        "cache",
        True,
        r"\b(?P<name>cudaAccessPolicyWindow|accessPolicyWindow|cudaCtxResetPersistingL2Cache"
        r"|cudaLimitPersistingL2CacheSize)\b",
        "{name}: sets part of the L2 cache aside, which may keep data from one call to the next",
    ),
    (
        "library",
        False,
        r"^[ \t]*+#[ \t]*+include[ \t]*+[<\"]"
        r"(?P<name>(?:cublas|cudnn|cutlass|cute/|cusparse|cufft|thrust/|cub/)[^>\"]*)",
        "includes {name}: a library does part of the work",
    ),
    ("library", False, r"\b(?P<name>(?:cublas|cudnn|cusparse|cufft)[A-Z]\w*)\s*\(", "calls {name}"),
    (
        "library",
        False,
        rf"\b(?:at|torch)::(?P<name>(?!(?:{OWN_WORK})\b)[a-z][a-z0-9_]*)\s*\(",
        "calls PyTorch's own {name}",
    ),
    (
        "thread",
        True,
        r"\b(?P<name>std::(?:jthread|thread|async)|pthread_create)\b",
        "{name}: works outside the calling thread",
    ),
    (
        "thread",
        True,
        r"(?<![\w.>:])(?P<name>v?fork|system|popen|execv\w*|posix_spawn)\s*\(",
        "{name}: starts a process",
    ),
    ("reach", True, r"\b(?P<name>dlopen|dlsym|LoadLibrary)\s*\(", "{name}: looks up code outside its own library"),
    ("reach", True, r"\b(?P<name>setenv|putenv|unsetenv)\s*\(", "{name}: changes the process's environment"),
    (
        "reach",
        True,
        r"(?<![\w.>])(?P<name>fopen|std::ofstream|std::fstream|std::ifstream|ptrace|process_vm_\w+|socket|mmap)\b(?=[\s(<])",
        "{name}: accesses files, memory or the network",
    ),
    (
        "reach",
        True,
        r"\b(?P<name>py(?:bind11)?::(?:exec|eval|eval_file|module_::import|module::import)|PyImport_\w+|PyRun_\w+)\b",
        "{name}: runs Python from its extension",
    ),
    (
        "switch",
        True,
        r"\b(?P<name>setAllow\w+|setFloat32MatmulPrecision|setBenchmarkCuDNN|manual_seed|set_default_dtype|set_num_threads"
        r"|cudaDeviceSetLimit|cudaDeviceSetCacheConfig|cudaSetDeviceFlags|cudaDeviceReset)\s*\(",
        "{name}: sets something for the whole process",
    ),
)
# A search is many times faster if the pattern begins with letters and not with a boundary. So the boundary is checked
# after the rest has been found.
BOUNDARY = r"\b"
_COMPILED = tuple(
    (kind, warning, pattern.startswith(BOUNDARY), re.compile(pattern.removeprefix(BOUNDARY), re.MULTILINE), text)
    for kind, warning, pattern, text in RULES
)


def looks_like_code(text: str) -> bool:
    """Whether a string is C++ or CUDA and not prose: it has a bracket, and a word that only code has."""
    return "(" in text and bool(
        re.search(
            r"^[ \t]*+#[ \t]*+include|__global__|__device__|\b(?:torch|at|std|c10)::|PYBIND11_MODULE|\bextern \"C\"",
            text,
            re.M,
        )
    )


def bare(code: str) -> str:
    """The code with comments and literals replaced by spaces; lines and columns do not move."""
    return "".join(piece if kind in KEPT else NOT_A_LINE_END.sub(" ", piece) for kind, piece in tokens(code))


def remarks(code: str) -> Iterator[tuple[int, str, str, bool]]:
    """Line (from 0), kind, sentence and whether it warns, of each finding in `code`."""
    text = bare(code)
    for kind, warning, whole_word, pattern, sentence in _COMPILED:
        line, counted = 0, 0
        for match in pattern.finditer(text):
            before = text[max(match.start() - 1, 0) : match.start()]
            if whole_word and (before.isalnum() or before == "_"):
                continue
            line += text.count("\n", counted, match.start("name"))
            counted = match.start("name")
            yield line, kind, sentence.format(**match.groupdict()), warning
