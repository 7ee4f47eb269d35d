"""What a way to build is: it turns a call of `load_inline` or `load` into another one, or says why it does not apply.

order.py lists the ways in the order in which they are tried. No torch, and nothing that needs a package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from harness.errors import AssayError

if TYPE_CHECKING:
    from harness.catalog.facts import HeadersWanted
    from harness.compile.precompiled import Precompiled


Preparation = Callable[[], None]


class NotThisWay(AssayError):
    """The sources or their flags are not for this way; the text says what of them."""


class BuildCall(NamedTuple):
    """What is to be built, and what there is to build it with.

    `arguments` are load_inline's or load's, `cpp` and `cuda` the texts among them. `nvcc` is the compiler's file, empty
    where kernel files are not ours to compile; `prepared` the folder of precompiled headers, or None.
    """

    arguments: Mapping[str, Any]
    cpp: Sequence[str]
    cuda: Sequence[str]
    torch_root: Path
    nvcc: str
    prepared: Path | None


class BuildPlan(NamedTuple):
    """The call to make instead, under these variables. `made` says how, for the log; so does the file `notes`, if it is
    there afterwards."""

    arguments: dict[str, Any]
    environment: dict[str, str]
    made: str
    notes: Path | None = None


class BuildWay(Protocol):
    """One way to build. `contains` names ways that it has tried by itself where its build fails.

    `headers`: folders of headers that it has a compiler read before torch's, for "cpp" and "cuda".
    """

    name: str
    contains: frozenset[str]
    headers: Mapping[str, tuple[Path, ...]]

    def preparations(self, wanted: HeadersWanted, headers: Precompiled) -> list[Preparation]:
        """In the session: calls that make the precompiled headers that its builds of such a candidate can use, each of
        which may be carried out beside all others and does nothing where its headers are there.

        They raise RuntimeError or OSError where these cannot be made.
        """

    def plan(self, call: BuildCall, folder: Path) -> BuildPlan:
        """In a build process: what to call for, with its own files in `folder`. Raises NotThisWay."""
