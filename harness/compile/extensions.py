"""Interception of `load_inline` and `load`: built in the build process, only opened in the runner.

Both processes run the candidate's own module code; the calls it makes are told apart by a digest of what they would
compile, so that the runner finds what the builder made, whatever the extension is called.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

# What does not change the result: where it is built and how much is printed meanwhile.
IRRELEVANT = ("build_directory", "verbose", "keep_intermediates")
ERROR_PREFIX = "Error building extension"


class NeedsCuda(BaseException):
    """A CUDA source on a machine without CUDA. No `Exception`, so that a candidate's own fallback cannot hide it."""


class Builder:
    """Carries out each distinct call in a folder of its own below `folder`."""

    def __init__(self, folder: Path, why_no_cuda: str) -> None:
        self._folder = folder
        self._why_no_cuda = why_no_cuda
        self.libraries: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def __call__(self, stock: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if self._why_no_cuda and uses_cuda(arguments):
            raise NeedsCuda(f"extension '{arguments.get('name')}' has CUDA sources, and {self._why_no_cuda}")
        key = digest(arguments)
        build_folder = self._folder / f"{len(self.libraries) + len(self.failures)}_{key[:12]}"
        build_folder.mkdir(parents=True, exist_ok=True)
        try:
            # Stock load_inline inserts into the lists it is given; the digest in the runner must not see that.
            result = stock(**_copied(arguments) | {"build_directory": str(build_folder), "verbose": False})
        except Exception as error:
            self.failures[key] = str(error)
            raise
        library = next(iter(sorted(build_folder.glob("*.so"), key=os.path.getmtime, reverse=True)))
        self.libraries[key] = str(library.relative_to(self._folder))
        return result


class Prebuilt:
    """Opens what the builder made; compiles nothing."""

    def __init__(self, libraries: Mapping[str, str], failures: Mapping[str, str]) -> None:
        self._libraries = libraries
        self._failures = failures

    def __call__(self, stock: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        key = digest(arguments)
        if key in self._failures:
            raise RuntimeError(self._failures[key])
        if key not in self._libraries:
            raise LateCompile(
                f"extension '{arguments.get('name')}' was not built beforehand: call load_inline at import or in "
                "__init__, with sources that do not depend on the process"
            )
        library = Path(self._libraries[key])
        return cpp_extension._import_module_from_library(
            library.stem, str(library.parent), arguments.get("is_python_module", True)
        )


class LateCompile(RuntimeError):
    """A `load_inline` call that the build process never saw."""


def intercept(handler: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> None:
    """Let `handler(stock function, arguments)` carry out this process's `load_inline` and `load` calls from now on."""
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


def digest(arguments: dict[str, Any]) -> str:
    """What the call would compile, in 64 hex digits: sources (of `load`: the files' contents), names, flags, torch."""
    hasher = hashlib.sha256(torch.__version__.encode())
    for name in sorted(arguments.keys() - set(IRRELEVANT)):
        hasher.update(f"\0{name}\0{arguments[name]!r}".encode())
    for path in _listed(arguments.get("sources")):
        hasher.update(Path(path).read_bytes())
    return hasher.hexdigest()


def uses_cuda(arguments: dict[str, Any]) -> bool:
    """Whether the call needs nvcc: CUDA strings, `.cu` files, or `with_cuda`."""
    files = _listed(arguments.get("sources"))
    return bool(
        _listed(arguments.get("cuda_sources"))
        or arguments.get("with_cuda")
        or any(Path(path).suffix in (".cu", ".cuh") for path in files)
    )


def _listed(value: Any) -> list[str]:
    if not value:
        return []
    return [str(value)] if isinstance(value, str | os.PathLike) else [str(item) for item in value]


def _copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, list) else value for name, value in arguments.items()}
