"""C++ and CUDA in a candidate's strings: the code without comments and literals, and what in it is worth a look."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What may hide a word from the compiler. Raw strings first: their quotes are no quotes.
TOKENS = re.compile(
    r"""
    (?P<raw>R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<line>//(?:\\\n|[^\n])*)
  | (?P<block>/\*.*?(?:\*/|\Z))
  | (?P<include>^[ \t]*\#[ \t]*include[^\n]*)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<separator>(?<=[0-9a-fA-F])'(?=[0-9a-fA-F]))
  | (?P<character>'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
KEPT = ("include", "separator")

OWN_WORK = (
    "empty|empty_like|empty_strided|zeros|zeros_like|ones|ones_like|full|full_like|tensor|from_blob|arange|scalar_tensor"
    "|dtype|device|TensorOptions|Tensor|TensorList|OptionalTensorRef|IntArrayRef|IntList|Scalar|Half|BFloat16|parallel_for"
    "|get_num_threads|ceil_div|vec|native|cuda|cpu|detail|optional|nullopt|elementSize|kFloat|kHalf|toAccumulateType"
)
# Kind, whether it warns, pattern over code without comments and literals, and what to say; groups fill the braces.
RULES = (
    ("stream", False, r"\b(?P<name>cudaStreamCreate\w*|getStreamFromPool)\s*\(", "{name}: work on a stream of its own"),
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
        r"^\s*#\s*include\s*[<\"](?P<name>(?:cublas|cudnn|cutlass|cute/|cusparse|cufft|thrust/|cub/)[^>\"]*)",
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
        "{name}: reaches for files, memory or the network",
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
_COMPILED = tuple((kind, warning, re.compile(pattern, re.MULTILINE), text) for kind, warning, pattern, text in RULES)


def looks_like_code(text: str) -> bool:
    """Whether a string is C++ or CUDA rather than prose: it has a body, and a word that only code has."""
    return "(" in text and bool(
        re.search(
            r"^\s*#\s*include|__global__|__device__|\b(?:torch|at|std|c10)::|PYBIND11_MODULE|\bextern \"C\"", text, re.M
        )
    )


def bare(code: str) -> str:
    """The code with comments and literals blanked; every line and column stays where it was."""

    def blank(match: re.Match[str]) -> str:
        return match.group() if match.lastgroup in KEPT else re.sub(r"[^\n]", " ", match.group())

    return TOKENS.sub(blank, code)


def remarks(code: str) -> Iterator[tuple[int, str, str, bool]]:
    """Line (from 0), kind, sentence and whether it warns, of each thing in `code` worth a look."""
    text = bare(code)
    for kind, warning, pattern, sentence in _COMPILED:
        for match in pattern.finditer(text):
            line = text[: match.start("name")].count("\n")
            yield line, kind, sentence.format(**match.groupdict()), warning
