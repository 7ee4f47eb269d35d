"""A kernel file's passes with the sketch in torch's place: torch's headers are parsed once, and ahead of time.

nvcc reads a file three times: cudafe++ and cicc look for kernels and their launches, and the host compiler reads
cudafe++'s output, which is the source text again with launches spelt out. Here the first two read the sketch, and the
host compiler gets the real headers as a precompiled header, which trusted code has made beforehand by the same steps
(prefixes.py). A kernel that the host compiler would launch with template arguments that the device pass has not seen is
a compile error. What does not succeed is left to nvcc with the real headers.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from harness.compile.ways import operators
from harness.compile.ways.nvcc_steps import PassFailed, Steps
from harness.compile.ways.sketch import module_block, prefixes
from harness.compile.ways.way import NotThisWay

SKETCH = operators.HEADERS / "sketch"
# Carries a launch to the stub of its instantiation; the unspecialised one has nothing to launch.
UNSPECIALISED = re.compile(r"^(__wrapper__device_stub_\w+\([^{}]*\)) ?\{[^{}]*\}$", re.MULTILINE)
NOTHING_TO_LAUNCH = "cudaLaunchKernel(0,"


def compile_with_sketch(
    nvcc: str,
    arguments: list[str],
    narrow: list[str],
    replaced: list[str],
    prefix: Path,
    folder: Path,
    wanted: list[str],
) -> None:
    """All passes, with the sketch for the `narrow` headers too, and without the include folders `replaced`.

    `wanted` are macros that the sketch asks for. A PYBIND11_MODULE only the host compiler reads. Raises NotThisWay, or
    PassFailed.
    """
    if not prefix.exists():
        raise NotThisWay(f"{prefix.name} has not been made")
    for name in narrow:
        place = folder / "narrow" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("#include <assay/sketch.h>\n")
    extra = ["-I", str(folder / "narrow"), "-I", str(SKETCH), *(f"-D{macro}" for macro in wanted)]
    # The sketch goes on where the lean headers would stand in its way.
    arguments = [word for word in arguments if not word.startswith("-I") or word[2:] not in replaced]
    steps = Steps(nvcc, [*extra, *arguments], folder)
    if sum("cicc" in command.split()[0] for command in steps.passes) != 1:
        raise NotThisWay("more than one architecture")
    module = ""
    for command in steps.passes[:-1]:
        steps.run(command)
        if " -E " in command:
            preprocessed = Path(shlex.split(command)[-1])
            text, block = module_block.cut(preprocessed.read_text())
            preprocessed.write_text(text)
            module = module or block
        elif command.startswith("cudafe++"):
            (output,) = folder.glob("*.cudafe1.cpp")
            text = output.read_text()
            begin, end = prefixes.headers_of(text)
            output.write_text(text[:begin] + without_empty_launches(text[end:]) + "\n" + module)
    compiler, *flags = steps.host_words()
    *_, text_file, _, target = shlex.split(steps.passes[-1])
    steps.run(shlex.join([compiler, "-include", str(prefix), *flags, text_file, "-o", target]))


def without_empty_launches(text: str) -> str:
    """cudafe++'s output with the unspecialised launch stubs deleted, so that nobody can call them."""
    changed = UNSPECIALISED.sub(r"\1 = delete;", text)
    if NOTHING_TO_LAUNCH in changed:
        raise PassFailed("a launch stub that is not understood")
    return changed
