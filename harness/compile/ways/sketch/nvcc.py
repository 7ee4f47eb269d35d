"""What ninja runs in place of nvcc (PYTORCH_NVCC): kernel_file.py, without site-packages, in the sandbox."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3]


class ByFile:
    """Finds the harness's modules where they must lie: Python's search lists folders that the sandbox keeps closed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module's file or package; None for modules of others."""
        first, *rest = name.split(".")
        place = PACKAGE.joinpath(*rest)
        if first != PACKAGE.name:
            return None
        if place.is_dir():
            return spec_from_file_location(name, place / "__init__.py", submodule_search_locations=[str(place)])
        return spec_from_file_location(name, place.with_suffix(".py"))


if __name__ == "__main__":
    sys.meta_path.insert(0, ByFile)
    from harness.compile.ways.sketch.kernel_file import main

    sys.exit(main(sys.argv[1:]))
