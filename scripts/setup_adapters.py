"""Make `.venv/adapters` ready: all that `.venv` has, and the frameworks whose adapters are tested.

Called by `.venv`'s own interpreter. The frameworks bring along other versions of what is in `.venv`, which it keeps.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv/adapters"


def main() -> int:
    """The exit code of pip."""
    venv.create(PLACE, clear=True, with_pip=True, symlinks=True)
    (site,) = PLACE.glob("lib/python3.*/site-packages")
    # addsitedir, because what is there may lead on to the torch of another interpreter.
    beside = sysconfig.get_paths()["purelib"]
    (site / "beside.pth").write_text(f"import site; site.addsitedir({beside!r})\n")
    command = [str(PLACE / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    return subprocess.run([*command, "--requirement", str(ROOT / "requirements-adapters.txt")], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
