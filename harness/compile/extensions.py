"""Interception of `load_inline` and `load`: built in the build process, only opened in the runner.

Both processes run the candidate's own module code; the calls it makes are told apart by what they would compile
(calls.py), so that the runner finds what the builder made, whatever the extension is called and wherever its files lie.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from harness.compile import architectures, calls
from harness.compile.ways import certain, operators, preprocessed, smaller
from harness.compile.ways.order import chosen
from harness.compile.ways.way import BuildCall, BuildPlan, BuildWay, NotThisWay

# Characters of a failed attempt that the build's log keeps.
LOGGED = 4000
ERROR_PREFIX = "Error building extension"
# Ninja's line about a file that could not be made.
DEFAULT = re.compile(r"^default .*$", re.MULTILINE)


class NeedsCuda(BaseException):
    """A CUDA source on a machine without CUDA. No `Exception`, so that a candidate's own fallback cannot hide it."""


class Builder:
    """Carries out each distinct call in a folder of its own below `folder`.

    `ways` are tried in their order; the last one's failure is the call's. `prepared` is a folder of precompiled headers
    (prepare.py), or None. `arch` is the card's architecture as TORCH_CUDA_ARCH_LIST has it (`9.0a`): it is built for
    that, whatever the candidate's flags or environment say, unless only its own flags compile. `why_no_cuda`, where not
    empty, turns CUDA sources down with NeedsCuda; a caller that has laid out a CUDA toolkit (cpp_extension.CUDA_HOME)
    on a machine without a card leaves it empty.

    `libraries` and `failures` are keyed by the identity of a call; `made` says of each library how it was built,
    `warnings` are for the record. `self_contained`: no file beside the candidate's own was compiled, and no call named
    the `place` in which that lies.
    """

    def __init__(
        self,
        folder: Path,
        why_no_cuda: str,
        *,
        ways: Sequence[BuildWay] = chosen("stock"),
        prepared: Path | None = None,
        arch: str = "",
        place: str = "",
    ) -> None:
        self._folder = folder
        self._place = place
        self._why_no_cuda = why_no_cuda
        *self._first, self._last = ways
        self._prepared = prepared
        self._arch = arch
        self._numbers = itertools.count()
        self.libraries: dict[str, str] = {}
        self.failures: dict[str, str] = {}
        self.made: dict[str, str] = {}
        self.self_contained = True
        self.warnings: list[str] = []

    def __call__(self, stock: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if self._why_no_cuda and uses_cuda(arguments):
            raise NeedsCuda(f"extension '{arguments.get('name')}' has CUDA sources, and {self._why_no_cuda}")
        key = identify(arguments).key
        if key in self.libraries:
            # As torch does: the same call again compiles nothing.
            return _opened(self._folder / self.libraries[key], arguments)
        build_folder = self._folder / f"{next(self._numbers)}_{key[:12]}"
        if calls.reads_foreign_files(arguments) or (self._place and self._place in repr(arguments)):
            self.self_contained = False
        try:
            result = self._built(stock, arguments, key, build_folder)
        except Exception as error:
            self.failures[key] = str(error)
            raise
        library = next(iter(sorted(build_folder.rglob("*.so"), key=os.path.getmtime, reverse=True)))
        self.libraries[key] = str(library.relative_to(self._folder))
        print(f"extension '{arguments.get('name')}': {self.made[key]}", file=sys.stderr)
        return result

    def _built(self, stock: Callable[..., Any], arguments: dict[str, Any], key: str, folder: Path) -> Any:
        own = self._for_this_card(arguments)
        call, tried, failed = self._call(own), set[str](), list[str]()
        for way in self._first:
            if way.name in tried:
                continue
            versions = dict(cpp_extension.JIT_EXTENSION_VERSIONER.entries)
            try:
                plan = way.plan(call, folder / way.name)
                tried |= way.contains
                return self._carried_out(stock, plan, key, folder / way.name)
            except NotThisWay as error:
                print(f"{way.name}: {error}", file=sys.stderr)
            except Exception as error:
                output = str(error)
                # Flags that were taken out may make the difference.
                if own is arguments and self._is_its_own(output, call, folder / way.name):
                    raise
                # Whatever it was: another way decides. It must not find the name taken by this attempt.
                print(f"{way.name}: {output[-LOGGED:]}", file=sys.stderr)
                cpp_extension.JIT_EXTENSION_VERSIONER.entries = versions
                failed += [match["object"] for match in preprocessed.FAILED.finditer(output)]
        last, place = self._last, folder / self._last.name
        try:
            with _first(failed):
                return self._carried_out(stock, last.plan(call, place), key, place)
        except Exception:
            if own.get("extra_cuda_cflags") == arguments.get("extra_cuda_cflags"):
                raise
            place = folder / "as_written"
            result = self._carried_out(stock, last.plan(self._call(arguments), place), key, place)
        self.warnings = [text for text in self.warnings if not text.startswith("foreign_architecture")]
        name = arguments.get("name")
        self.warnings.append(f"foreign_architecture: extension '{name}' compiles with its own architecture flags only")
        return result

    def _is_its_own(self, output: str, call: BuildCall, folder: Path) -> bool:
        """Whether a build over smaller headers failed by what the candidate wrote."""

        def read() -> preprocessed.Preprocessed | None:
            ours = [str(operators.LEAN), str(smaller.generated_in(folder))]
            return preprocessed.by_command(output, call.nvcc, ours, folder)

        return certain.is_certain(output, certain.includes_in(output), read, torch_headers=True)

    def _call(self, arguments: dict[str, Any]) -> BuildCall:
        cpp, cuda = _texts(arguments)
        # Whoever names a compiler of their own gets that one.
        home = cpp_extension.CUDA_HOME if "PYTORCH_NVCC" not in os.environ else None
        return BuildCall(
            arguments=arguments,
            cpp=cpp,
            cuda=cuda,
            torch_root=Path(torch.__file__).parent,
            nvcc=str(Path(home) / "bin/nvcc") if home else "",
            prepared=self._prepared,
        )

    def _carried_out(self, stock: Callable[..., Any], plan: BuildPlan, key: str, folder: Path) -> Any:
        folder.mkdir(parents=True, exist_ok=True)
        architecture = {"TORCH_CUDA_ARCH_LIST": self._arch} if self._arch else {}
        with _environment(plan.environment | architecture):
            # Stock load_inline inserts into the lists it is given; the digest in the runner must not see that.
            result = stock(**_copied(plan.arguments) | {"build_directory": str(folder), "verbose": False})
        self.made[key] = plan.made + _notes(plan.notes)
        return result

    def _for_this_card(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The call with the card's own architecture in place of those that the candidate names."""
        asked = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
        if not self._arch or not uses_cuda(arguments):
            return arguments
        kept, numbers = architectures.split(calls.listed(arguments.get("extra_cuda_cflags")))
        foreign = architectures.foreign(numbers, self._arch) if numbers else []
        if asked and asked != self._arch and architectures.number(self._arch) not in asked.replace(".", ""):
            foreign = [*foreign, asked]
        if foreign:
            names = ", ".join(f"sm_{name}" if name.isdigit() else name for name in foreign)
            self.warnings.append(
                f"foreign_architecture: extension '{arguments.get('name')}' names {names}; "
                f"built for this GPU's sm_{self._arch.replace('.', '')}"
            )
        same = kept == calls.listed(arguments.get("extra_cuda_cflags"))
        return arguments if same else arguments | {"extra_cuda_cflags": kept}


class Prebuilt:
    """Opens what the builder made; compiles nothing. `unconstructed` is what the constructor raised in the build."""

    def __init__(self, libraries: Mapping[str, str], failures: Mapping[str, str], unconstructed: str = "") -> None:
        self._libraries = libraries
        self._failures = failures
        self._unconstructed = unconstructed
        self._given: dict[calls.Identity, str] = {}

    def __call__(self, stock: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        call = identify(arguments)
        key = self._given.get(call) or calls.match(call, [*self._libraries, *self._failures], set(self._given.values()))
        if key is None:
            raise LateCompile(f"extension '{arguments.get('name')}' was not built before the run: {self._mend()}")
        self._given[call] = key
        if key in self._failures:
            raise RuntimeError(self._failures[key])
        return _opened(Path(self._libraries[key]), arguments)

    def _mend(self) -> str:
        if self._unconstructed:
            return (
                "call load_inline at import, or first in __init__: in its build process, which has no device, "
                f"the constructor raised {self._unconstructed}"
            )
        return "call load_inline at import or in __init__, with sources that do not depend on the process"


class LateCompile(BaseException):
    """A `load_inline` call that the build process never saw. No `Exception`, as NeedsCuda is none."""


def intercept(handler: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> None:
    """Let `handler(stock function, arguments)` carry out this process's `load_inline` and `load` calls from now on."""
    # Stock load_inline deletes a precompiled header that other processes of this machine may be using.
    cpp_extension.remove_extension_h_precompiler_headers = lambda: None
    for name in ("load_inline", "load"):
        stock = getattr(cpp_extension, name)
        setattr(cpp_extension, name, _replacement(stock, handler))


def _replacement(stock: Callable[..., Any], handler: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(stock)

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return handler(stock, dict(signature.bind(*args, **kwargs).arguments))

    replacement.__name__ = stock.__name__
    replacement.__doc__ = stock.__doc__
    replacement.__signature__ = signature  # type: ignore[attr-defined]
    return replacement


def identify(arguments: dict[str, Any]) -> calls.Identity:
    """Which call this is. Raises OSError where a source of `load` is not there."""
    return calls.identify(arguments, torch.__version__)


def _opened(library: Path, arguments: dict[str, Any]) -> Any:
    return cpp_extension._import_module_from_library(
        library.stem, str(library.parent), arguments.get("is_python_module", True)
    )


def uses_cuda(arguments: dict[str, Any]) -> bool:
    """Whether the call needs nvcc: CUDA strings, `.cu` files, or `with_cuda`."""
    files = calls.listed(arguments.get("sources"))
    return bool(
        calls.listed(arguments.get("cuda_sources"))
        or arguments.get("with_cuda")
        or any(Path(path).suffix in (".cu", ".cuh") for path in files)
    )


def _texts(arguments: dict[str, Any]) -> tuple[list[str], list[str]]:
    """C++ and CUDA sources of a call, as text."""
    cpp, cuda = calls.listed(arguments.get("cpp_sources")), calls.listed(arguments.get("cuda_sources"))
    for path in calls.listed(arguments.get("sources")):
        (cuda if Path(path).suffix in (".cu", ".cuh") else cpp).append(Path(path).read_text(errors="replace"))
    return cpp, cuda


def _notes(file: Path | None) -> str:
    """What a way's own compiler wrote of each kernel file; nothing where there was none."""
    try:
        return ", " + "; ".join(file.read_text().splitlines()) if file else ""
    except OSError:
        return ""


@contextlib.contextmanager
def _first(objects: Sequence[str]) -> Iterator[None]:
    """Have torch's builds make these objects before all else: where they fail again, nothing else is compiled."""
    ninja = cpp_extension._run_ninja_build

    def run(build_directory: str, *rest: Any, **more: Any) -> None:
        file = Path(build_directory) / "build.ninja"
        whole = file.read_text()
        known = [name for name in dict.fromkeys(objects) if f"build {name}:" in whole]
        if known:
            file.write_text(DEFAULT.sub(f"default {' '.join(known)}", whole))
            ninja(build_directory, *rest, **more)
            file.write_text(whole)
        ninja(build_directory, *rest, **more)

    cpp_extension._run_ninja_build = run
    try:
        yield
    finally:
        cpp_extension._run_ninja_build = ninja


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
