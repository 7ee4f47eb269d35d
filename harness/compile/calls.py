"""Which call of `load_inline` or `load` is which: the same candidate makes it in two processes, build and runner.

What is compared is the content: sources, the files behind them, flags. Not the extension's name, nor the places of
files in folders that are the process's own, because honest candidates draw both anew in each process. Words of that
kind in a source's own text (a uuid, a time, a pid) are left out of a second comparison. Among calls alike their order
decides. No torch.

A wrong pairing can harm nobody but the candidate: whatever is loaded was built by its own build process, from its own
file, before there were any inputs.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import re
import tempfile
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from harness.compile.own_headers import INCLUDE, own_headers

# What does not change the result: where it is built and how much is printed meanwhile.
IRRELEVANT = ("build_directory", "verbose", "keep_intermediates")
# Folders in which a process makes files under names of its own: by these variables, and everybody's.
OWN_FOLDERS = ("TMPDIR", "HOME", "TORCH_EXTENSIONS_DIR")
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
INCLUDE_FLAG = re.compile(r"^(?:-I|-isystem|-iquote)\s*(?=\S)")
FOREIGN_PATH = re.compile(r"(?:^|-I|-L|-isystem|-iquote|-include|[=,\s])/(?!usr/|opt/)")
LARGEST_FILE = 4 << 20
DAY_S = 86400.0
# Words that are drawn anew in each process: uuids, hashes of them, names of temporary files, dates with their time.
DRAWN = re.compile(
    r"(?<!0x)[0-9a-f]{8}([-_]?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}"
    r"|(?<![0-9a-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}(?![0-9a-z])"
    r"|(?<![a-z])tmp[a-z0-9_]{8}(?![a-z0-9])"
    r"|(?<!\d)20\d\d([-_]?)\d\d\2\d\d[-_T ]?\d\d([-_:]?)\d\d\3\d\d(?:[._]?\d{3,6})?(?!\d)",
    re.IGNORECASE,
)
# Seconds, milli-, micro- or nanoseconds since 1970, where they are about now.
INSTANT = re.compile(r"(?<!\d)(\d{10})(?:\.\d+|\d{3}|\d{6}|\d{9})?(?!\d)")


class Identity(NamedTuple):
    """A call by what it would compile: `content`, `outline` (without the words that differ) and `name`, as digests."""

    content: str
    outline: str
    name: str

    @property
    def key(self) -> str:
        """As messages carry it."""
        return ".".join(self)


def identify(arguments: dict[str, Any], compiler: str) -> Identity:
    """The identity of a call with these arguments, for the process that is asked. Raises OSError where a source is not
    there. `compiler` is whatever else the result depends on."""
    name = str(arguments.get("name", ""))
    hidden = functools.partial(_without_places, name=name)
    parts = [compiler]
    for argument in sorted(arguments.keys() - {*IRRELEVANT, "name", "sources", "extra_include_paths"}):
        parts += [argument, hidden(repr(arguments[argument]))]
    files = [Path(path) for path in listed(arguments.get("sources"))]
    texts = [path.read_text(errors="replace") for path in files]
    for path, text in zip(files, texts, strict=True):
        parts += [path.suffix, hidden(text)]
    parts += [hidden(path) for path in listed(arguments.get("extra_include_paths"))]
    texts += [text for language in ("cpp_sources", "cuda_sources") for text in listed(arguments.get(language))]
    folders = _own_include_folders(files, arguments)
    parts += [hidden(header) for text in texts for header in own_headers(text, folders)]
    outline = [_without_drawn_words(part) for part in parts]
    return Identity(_digest(parts), _digest(outline), _digest([name]))


def match(call: Identity, built: Iterable[str], taken: Collection[str]) -> str | None:
    """The key among `built` that a call belongs to, or None. `taken` are those that other calls have been given.

    The very same, else the first of the same content that is not taken, else of the same outline; then one that is.
    """
    keys = [(key, Identity(*parts)) for key in built if len(parts := key.split(".")) == len(Identity._fields)]
    exact = [key for key, made in keys if (made.content, made.name) == (call.content, call.name)]
    alike = [key for key, made in keys if made.content == call.content]
    alike += [key for key, made in keys if made.outline == call.outline and key not in alike]
    free = [key for key in alike if key not in taken]
    return next(iter([*exact, *free, *alike]), None)


def reads_foreign_files(arguments: dict[str, Any]) -> bool:
    """Whether files beside the candidate's own and those of installed software may be compiled, as far as it tells."""
    if arguments.get("sources") or arguments.get("extra_include_paths"):
        return True
    texts = [text for name in arguments if name.endswith("_sources") for text in listed(arguments[name])]
    named = [*_flags(arguments), *(name for text in texts for name in INCLUDE.findall(text))]
    return any(FOREIGN_PATH.search(text) for text in named)


def listed(value: Any) -> list[str]:
    """An argument that may be one string or path, several, or None."""
    if not value:
        return []
    return [str(value)] if isinstance(value, str | os.PathLike) else [str(item) for item in value]


def _own_include_folders(sources: list[Path], arguments: dict[str, Any]) -> list[Path]:
    """Where headers lie that count by their content: beside the sources, and in folders of this process's own."""
    flags = _flags(arguments)
    named = [INCLUDE_FLAG.sub("", flag) for flag in flags if INCLUDE_FLAG.match(flag)]
    named += [flag for before, flag in itertools.pairwise(flags) if before in ("-I", "-isystem", "-iquote")]
    named += listed(arguments.get("extra_include_paths"))
    own = [Path(folder) for folder in named if _own_places().match(folder)]
    return [*(path.parent for path in sources), *own]


def _flags(arguments: dict[str, Any]) -> list[str]:
    return [flag for name in arguments if name.endswith("flags") for flag in listed(arguments[name])]


def _own_places() -> re.Pattern[str]:
    """Paths in folders of this process's own, up to what ends a path in a flag, a list or a source."""
    named = [os.environ.get(name, "") for name in OWN_FOLDERS]
    roots = {root.rstrip("/") for root in (*named, *SHARED_FOLDERS, tempfile.gettempdir())}
    roots |= {os.path.realpath(root) for root in roots if root}
    longest_first = sorted((root for root in roots if len(root) > 1), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(map(re.escape, longest_first))})(?:/[^\s\"'<>,;:()\[\]\\]*)?(?![\w.-])")


def _without_places(text: str, *, name: str) -> str:
    """The text with what a file holds in place of its path, where that is this process's own, and no extension name."""
    text = _own_places().sub(lambda found: _file_digest(Path(found[0])), text)
    return text.replace(name, "<name>") if name else text


def _file_digest(path: Path) -> str:
    """What stands for a path: a text's content, or only that there is a place; object files differ by their paths."""
    try:
        data = path.read_bytes() if path.is_file() and path.stat().st_size <= LARGEST_FILE else b"\0"
    except OSError:
        data = b"\0"
    return "<place>" if b"\0" in data else f"<file {hashlib.sha256(data).hexdigest()}>"


def _without_drawn_words(text: str) -> str:
    now, pid = time.time(), os.getpid()
    text = DRAWN.sub("<drawn>", text)
    text = INSTANT.sub(lambda found: "<drawn>" if abs(int(found[1]) - now) < DAY_S else found[0], text)
    return re.sub(rf"(?<!\d){pid}(?!\d)", "<drawn>", text)


def _digest(parts: list[str]) -> str:
    hasher = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")
        hasher.update(len(data).to_bytes(8, "little") + data)
    return hasher.hexdigest()[:40]
