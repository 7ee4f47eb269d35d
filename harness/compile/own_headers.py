"""The headers that a candidate brings along for its sources."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"]+)[>\"]", re.MULTILINE)


def own_headers(code: str, folders: list[Path]) -> list[str]:
    """The texts of the headers that lie in these folders and that `code` includes, at any depth; what cannot be read is
    the compiler's to complain of."""
    texts: dict[Path, str] = {}
    waiting = [code]
    while waiting:
        for name in INCLUDE.findall(waiting.pop()):
            with contextlib.suppress(OSError, ValueError):
                path = next((folder / name for folder in folders if (folder / name).is_file()), None)
                if path is not None and path not in texts:
                    texts[path] = path.read_text(errors="replace")
                    waiting.append(texts[path])
    return list(texts.values())
