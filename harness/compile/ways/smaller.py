"""The call of an extension that gets smaller headers of torch, whoever compiles its kernel files. No torch.

A source that could tell these headers from torch's own is not for them. `binding.h` is what `main.cpp` of every
extension begins with, precompiled.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.catalog import cpp_tokens
from harness.catalog.facts import HeadersWanted
from harness.compile.calls import listed
from harness.compile.own_headers import own_headers
from harness.compile.precompiled import OPERATORS, Precompiled
from harness.compile.ways import conditionals, operators
from harness.compile.ways.conditionals import Macros
from harness.compile.ways.way import BuildCall, BuildPlan, NotThisWay, Preparation

BINDING, MACROS = "binding.h", "macros.json"


def preparations(wanted: HeadersWanted, headers: Precompiled) -> list[Preparation]:
    """The binding's header for each optimisation level wanted; beforehand, the operators that sources call often."""
    popular = headers.folder / OPERATORS / "assay/operators.h"
    with headers.missing(popular) as missing:
        if missing:
            headers.keep(headers.folder / BINDING, b"#include <torch/extension.h>\n")
            headers.keep(popular, operators.popular_header(Path(headers.tools.torch_root)).encode())
    words = [*headers.cxx([operators.LEAN]), "-x", "c++-header", str(headers.folder / BINDING)]
    return [
        functools.partial(headers.compile, BINDING, level, [*words, *([level] if level else [])])
        for level in wanted.cpp_levels
    ]


def plan(call: BuildCall, folder: Path) -> BuildPlan:
    """The call with the lean headers, and those that are generated for its sources in `folder`, before torch's own."""
    known = macros(call.prepared)
    for text, by_nvcc in [*((text, False) for text in call.cpp), *((text, True) for text in call.cuda)]:
        for code in _with_own_headers(text, call.arguments):
            if why := conditionals.obstacle(code, known, cuda=by_nvcc):
                raise NotThisWay(why)
            if part := operators.absent(code):
                raise NotThisWay(f"names {part}")
    generated = generated_in(folder)
    (generated / "assay").mkdir(parents=True)
    (generated / "assay/operators.h").write_text(operators.operators_header(call.torch_root, call.cpp, call.cuda))
    changed = dict(call.arguments)
    includes = [str(generated), str(operators.LEAN)]
    changed["extra_include_paths"] = [*includes, *listed(changed.get("extra_include_paths"))]
    if call.prepared is not None and "cpp_sources" in changed and not changed.get("no_implicit_headers"):
        changed["extra_cflags"] = ["-include", str(call.prepared / BINDING), *listed(changed.get("extra_cflags"))]
    if "use_pch" in changed:
        # torch would precompile its full headers into its own folder.
        changed["use_pch"] = False
    return BuildPlan(arguments=changed, environment={}, made="lean headers")


def macros(prepared: Path | None) -> Macros | None:
    """Which macros tell smaller headers from torch's; None where that has not been found out."""
    return conditionals.read(prepared / MACROS) if prepared else None


def generated_in(folder: Path) -> Path:
    """Where `plan` puts what it generates."""
    return folder / "generated"


def _with_own_headers(text: str, arguments: Mapping[str, Any]) -> list[str]:
    """A source and the headers that the candidate brings along for it, without comments."""
    folders = [Path(path).parent for path in listed(arguments.get("sources"))]
    folders += [Path(path) for path in listed(arguments.get("extra_include_paths"))]
    return [cpp_tokens.without_comments(each) for each in (text, *own_headers(text, folders))]
