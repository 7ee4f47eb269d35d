"""A folder of precompiled headers, made once for a machine by the session's side; build processes only read them.

GCC takes a precompiled header under the same flags and optimisation level only, and reads the text otherwise, so that
nothing depends on them. What is precompiled is for the ways to build to say (ways/). No torch.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.compile.tools import Tools
from harness.drafts import draft, make_folder

# Below the folder, before any other headers: what a build would generate for itself.
OPERATORS = "operators"
KEEP_UNUSED_S = 30 * 24 * 3600
# The beginning of a digest of tools.
NAME = re.compile("[0-9a-f]{32}")
# By what they guard; the files of one folder are few.
_LOCKS: dict[Path, threading.Lock] = {}
DEFINES = ("-DTORCH_API_INCLUDE_EXTENSION_H",)
COMMON_NVCC_FLAGS = (
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
)


class Precompiled:
    """Headers for one set of tools, below `root`; made on demand, each whole or not at all."""

    def __init__(self, root: Path, tools: Tools) -> None:
        self.folder = root / tools.digest[:32]
        self.tools = tools

    def compile(self, header: str, level: str, command: Sequence[str]) -> None:
        """The text `header` of the folder, precompiled by `command` for this optimisation level ("" for none), unless
        it is there. Raises RuntimeError where the compiler refuses."""
        target = self._target(header, level)
        with self.missing(target) as missing:
            if not missing:
                return
            make_folder(target.parent)
            # GCC looks at all files beside the target.
            with draft(target, self.folder) as scratch:
                done = subprocess.run([*command, "-o", str(scratch)], capture_output=True, text=True, check=False)
                if done.returncode:
                    raise RuntimeError(done.stderr[-2000:])
                scratch.chmod(0o644)

    @contextlib.contextmanager
    def missing(self, file: Path) -> Iterator[bool]:
        """Whether a file of the folder is still to be made, by whoever asks first: others wait for the block's end."""
        with _LOCKS.setdefault(file, threading.Lock()):
            yield not file.exists()

    def has(self, header: str, level: str) -> bool:
        """Whether it has been precompiled for this level."""
        return self._target(header, level).exists()

    def keep(self, path: Path, data: bytes) -> None:
        """Write a file of the folder, for all to read."""
        make_folder(path.parent)
        with draft(path) as scratch:
            scratch.write_bytes(data)
            scratch.chmod(0o644)

    def cxx(self, before: Sequence[Path] = ()) -> list[str]:
        """The C++ compiler and its flags as torch's own builds have them, with the folders `before` torch's."""
        return [self.tools.cxx, *self.includes(before), *DEFINES, *self._system(), "-fPIC", self.tools.std]

    def nvcc_flags(self, before: Sequence[Path] = ()) -> list[str]:
        """The flags of nvcc, likewise."""
        number = self.tools.arch.replace(".", "")
        gencode = f"-gencode=arch=compute_{number},code=sm_{number}"
        host = ["--compiler-options", "-fPIC", self.tools.std]
        own = ["-DTORCH_EXTENSION_NAME=prefix", *DEFINES, *self._system(), *COMMON_NVCC_FLAGS]
        return [*self.includes(before), *own, gencode, *host]

    def includes(self, before: Sequence[Path]) -> list[str]:
        """The flags that put these folders, if any, before torch's."""
        return [f"-I{path}" for path in (self.folder / OPERATORS, *before)] if before else []

    def used(self, last: str) -> None:
        """Note that somebody uses the folder; those of other tools go when nobody has for a month.

        A folder is taken for such a one by its name and by the file `last`, which each has: the user names where they
        lie, and other things may be there.
        """
        os.utime(self.folder)
        for folder in self.folder.parent.iterdir():
            is_one = NAME.fullmatch(folder.name) and not folder.is_symlink() and (folder / last).is_file()
            if is_one and time.time() - folder.stat().st_mtime > KEEP_UNUSED_S:
                shutil.rmtree(folder, ignore_errors=True)

    def _target(self, header: str, level: str) -> Path:
        return self.folder / f"{header}.gch" / (level or "none")

    def _system(self) -> list[str]:
        root = Path(self.tools.torch_root) / "include"
        system = [root, root / "torch/csrc/api/include", sysconfig.get_path("include", scheme="posix_prefix")]
        if self.tools.cuda_include:
            system.append(self.tools.cuda_include)
        system += self.tools.stand_ins
        return [word for path in system for word in ("-isystem", str(path))]
