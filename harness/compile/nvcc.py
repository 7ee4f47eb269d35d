"""nvcc for kernel files that keep to what `headers/sketch` knows: torch's headers are parsed once, and ahead of time.

Run by ninja in place of nvcc (PYTORCH_NVCC). nvcc reads a file three times: cudafe++ and cicc look for kernels and
their launches, and the host compiler reads cudafe++'s output, which is the source text again with launches spelt out.
Here the first two read the sketch, and the host compiler gets the real headers as a precompiled header, which trusted
code has made beforehand by the same steps (precompiled.py). Sources whose constants could come out differently with the
sketch are not read with it (BEYOND), and a kernel that the host compiler would launch with template arguments that the
device pass has not seen is a compile error. What does not succeed is left to nvcc with the real headers.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

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
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)
# In place of the sketch for the host compiler: with the handles of CUDA's libraries, or not, and with pybind11, or not.
PREFIXES = {
    (False, False): "prefix.hpp",
    (True, False): "context.hpp",
    (False, True): "module.hpp",
    (True, True): "context_module.hpp",
}
END_OF_HEADERS = re.compile(r"^extern int assay_end_of_headers;.*$", re.MULTILINE)
START_OF_HEADERS = re.compile(r'^# \d+ "[^"]*cuda_runtime\.h".*$', re.MULTILINE)
# Carries a launch to the stub of its instantiation; the unspecialised one has nothing to launch.
UNSPECIALISED = re.compile(r"^(__wrapper__device_stub_\w+\([^{}]*\)) ?\{[^{}]*\}$", re.MULTILINE)
NOTHING_TO_LAUNCH = "cudaLaunchKernel(0,"


class NotForSketch(Exception):
    """The source or its flags need nvcc with the real headers; the text says what for."""


class Steps:
    """The commands of one nvcc call, as `nvcc --dryrun` prints them, with intermediate files in `folder`."""

    def __init__(self, nvcc: str, arguments: list[str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        command = [nvcc, *arguments, "--dryrun", "--keep", "--keep-dir", str(folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise NotForSketch(done.stdout[-500:])
        self.environment = dict(os.environ)
        self.commands: list[str] = []
        for line in done.stdout.splitlines():
            text = line.removeprefix("#$ ")
            assignment = re.fullmatch(r"([A-Z_]+)=(.*)", text)
            if assignment:
                self.environment[assignment[1]] = assignment[2].strip()
            elif line.startswith("#$ "):
                self.commands.append(text)
        self.passes = [command for command in self.commands if not command.startswith("rm ")]

    def run(self, command: str) -> None:
        """Raises NotForSketch where it fails."""
        done = subprocess.run(command, shell=True, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotForSketch(f"{command.split()[0]}: {(done.stdout + done.stderr)[-1500:]}")


def source_of(arguments: list[str]) -> Path:
    """The one `.cu` file that the arguments compile."""
    files = [Path(argument) for argument in arguments if argument.endswith(".cu")]
    if len(files) != 1 or "-c" not in arguments:
        raise NotForSketch("not one .cu file to compile")
    return files[0]


def check(code: str, flags: list[str], popular: frozenset[str], called: list[str]) -> bool:
    """Whether the source needs the rest of the standard library; raises NotForSketch where it needs more of torch.

    `code` is without comments.
    """
    for flag in flags:
        if not HARMLESS.fullmatch(flag):
            raise NotForSketch(f"flag {flag}")
    if beyond := BEYOND.search(code):
        raise NotForSketch(f"mentions {beyond[0]}")
    included = INCLUDE.findall(code)
    first = re.search(r"\S[^\n]*", code)
    narrow = narrow_of(code, popular)
    begins = bool(included) and (included[0] in UMBRELLAS or included[0] in narrow)
    if not begins or first is None or not INCLUDE.match(first[0]):
        raise NotForSketch("does not begin with a header of torch")
    for name in (name for name in included if name not in narrow):
        if name.startswith(("torch/", "ATen/", "c10/", "caffe2/")) and name not in SKETCHED:
            raise NotForSketch(f"includes {name}")
    if "cuda.h" not in included and re.search(r"^[ \t]*#[ \t]*(?:el)?if", code, re.MULTILINE):
        # The sketch includes it in any case.
        raise NotForSketch("has conditionals and does not include cuda.h")
    unknown = [name for name in called if name not in popular]
    if unknown:
        raise NotForSketch(f"calls {unknown[0]}")
    standard = {name for name in included if "/" not in name and not name.startswith("cu")}
    names = set(re.findall(r"\bstd\s*::\s*(\w+)", code))
    return bool(standard - STD_HEADERS or names - STD_NAMES or re.search(r"using\s+namespace\s+std\b", code))


def check_surroundings(code: str, source: Path, arguments: list[str], own: list[str]) -> None:
    """Raises NotForSketch where headers or flags come from elsewhere, which nobody has read. `own` are our folders."""
    for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"):
        if os.environ.get(name):
            raise NotForSketch(f"{name} is set")
    for word in arguments:
        if word.startswith("-I") and word[2:] not in own:
            raise NotForSketch(f"include folder {word[2:]}")
    for name in INCLUDE.findall(code):
        if (source.parent / name).is_file():
            raise NotForSketch(f"includes {name} beside it")


def narrow_of(code: str, popular: frozenset[str]) -> list[str]:
    """Narrow headers that a source includes and that the sketch knows: `ATen/ops/NAME.h` for `popular` names."""
    found = ((name, NARROW.fullmatch(name)) for name in INCLUDE.findall(code))
    return [name for name, match in found if match and (match[1] is None or match[1] in popular)]


def headers_of(text: str) -> tuple[int, int]:
    """Where the headers' part of cudafe++'s output begins and ends."""
    begin, ends = START_OF_HEADERS.search(text), list(END_OF_HEADERS.finditer(text))
    if begin is None or len(ends) != 1:
        raise NotForSketch("no end of headers in cudafe++'s output")
    return begin.start(), ends[0].end()


def without_empty_launches(text: str) -> str:
    """cudafe++'s output with the unspecialised launch stubs deleted, so that nobody can call them."""
    changed = UNSPECIALISED.sub(r"\1 = delete;", text)
    if NOTHING_TO_LAUNCH in changed:
        raise NotForSketch("a launch stub that is not understood")
    return changed


def host_words(command: str) -> list[str]:
    """The host compiler's own pass as words, less its input (the text that cudafe++ wrote) and output."""
    words = shlex.split(command)
    if "-c" not in words or words[-2] != "-o":
        raise NotForSketch("the last step is no host compilation")
    return words[:-3]


def compile_with_sketch(
    nvcc: str,
    arguments: list[str],
    sketch: Path,
    narrow: list[str],
    replaced: list[str],
    prefix: Path,
    folder: Path,
    wanted: list[str],
    cut: Callable[[str], tuple[str, str]],
) -> None:
    """All passes, with the sketch for the `narrow` headers too, and without the include folders `replaced`.

    `wanted` are macros that the sketch asks for; what `cut` takes out of the text only the host compiler reads. Raises
    NotForSketch where a pass fails, ValueError as `cut` does.
    """
    if not prefix.exists():
        raise NotForSketch(f"{prefix.name} has not been made")
    for name in narrow:
        place = folder / "narrow" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#include <assay/sketch.h>\n")
    extra = ["-I", str(folder / "narrow"), "-I", str(sketch), *(f"-D{macro}" for macro in wanted)]
    # The sketch goes on where the lean headers would stand in its way.
    arguments = [word for word in arguments if not word.startswith("-I") or word[2:] not in replaced]
    steps = Steps(nvcc, [*extra, *arguments], folder)
    if sum("cicc" in command.split()[0] for command in steps.passes) != 1:
        raise NotForSketch("more than one architecture")
    module = ""
    for command in steps.passes[:-1]:
        steps.run(command)
        if " -E " in command:
            preprocessed = Path(shlex.split(command)[-1])
            text, block = cut(preprocessed.read_text())
            preprocessed.write_text(text)
            module = module or block
        elif command.startswith("cudafe++"):
            (output,) = folder.glob("*.cudafe1.cpp")
            text = output.read_text()
            begin, end = headers_of(text)
            output.write_text(text[:begin] + without_empty_launches(text[end:]) + "\n" + module)
    compiler, *flags = host_words(steps.passes[-1])
    *_, text_file, _, target = shlex.split(steps.passes[-1])
    steps.run(shlex.join([compiler, "-include", str(prefix), *flags, text_file, "-o", target]))


def _beside(name: str) -> ModuleType:
    """A module of this folder, by its file: inside the sandbox the folder that `harness` lies in cannot be listed."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise NotForSketch(f"{name}.py is not to be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str]) -> int:
    """Entry of the script: nvcc's own arguments, the rest from the environment (extensions.Builder sets it)."""
    nvcc, torch_root = os.environ["ASSAY_NVCC"], Path(os.environ["ASSAY_TORCH"])
    why = ""
    try:
        lean, module_block = _beside("lean"), _beside("module_block")
        source = source_of(arguments)
        whole = lean.without_comments(source.read_text(errors="replace"))
        code, module = module_block.cut(whole)
        popular = frozenset(lean.POPULAR)
        std = check(code, shlex.split(os.environ["ASSAY_FLAGS"]), popular, lean.called(torch_root, whole))
        replaced = [str(lean.LEAN), os.environ["ASSAY_GENERATED"]]
        check_surroundings(code, source, arguments, replaced)
        folder = Path.cwd() / f"{source.stem}.steps"
        context = lean.wants(lean.CUDA_CONTEXT, whole)
        prefix = Path(os.environ["ASSAY_PREPARED"]) / PREFIXES[context, bool(module)]
        wanted = ["ASSAY_WANTS_STD"] * std + [lean.CUDA_CONTEXT] * context
        narrow = narrow_of(code, popular)
        cut = module_block.cut
        compile_with_sketch(nvcc, arguments, lean.SKETCH, narrow, replaced, prefix, folder, wanted, cut)
    except (NotForSketch, OSError, ValueError) as error:
        why = str(error)
    note = "sketch" if not why else "no sketch: " + " | ".join(why.strip().splitlines()[:6])[:900]
    with open(os.environ["ASSAY_NOTES"], "a") as notes:
        notes.write(note + "\n")
    return subprocess.run([nvcc, *arguments], check=False).returncode if why else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
