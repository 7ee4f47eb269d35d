"""Make `.venv` of this checkout ready: with the calling interpreter's own torch where it has one, else pinned versions.

Standard library only: this runs before anything is installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"


def main() -> None:
    """Create the environment and install what the project needs into it; exits with a sentence where it cannot."""
    # The regular expressions of earlier ones (python/cpython#106052) take comments of C++ for code.
    if sys.version_info < (3, 11, 5):
        this = sys.version.split()[0]
        sys.exit(f"error: Python 3.11.5 or newer is needed, this is {this}; make PYTHON=python3.12 ...")
    if shutil.which("c++") is None and shutil.which("g++") is None:
        sys.exit("error: no C++ compiler (c++ or g++) on PATH; candidates are compiled with it")
    own_torch = _site_of_torch()
    if not (VENV / "bin/python").exists():
        try:
            venv.create(VENV, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError:
            sys.exit("error: this Python has no ensurepip; install it (on Debian and Ubuntu: apt install python3-venv)")
    if own_torch is None:
        print("installing into .venv what requirements.txt names; PyTorch is large, and this takes minutes", flush=True)
        _pip("install", "--requirement", str(ROOT / "requirements.txt"))
        return
    print(f"using the torch of {sys.executable}", flush=True)
    # A path file instead of system-site-packages: inside a virtual environment that would mean its base interpreter.
    (_site_packages() / "interpreter_torch.pth").write_text(f"{own_torch}\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["test"], *extras["docs"]]
    print("installing into .venv what pyproject.toml names; this may take a minute", flush=True)
    _pip("install", *wanted)


def _site_of_torch() -> Path | None:
    """The site-packages folder that this interpreter finds torch in."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    site = Path(spec.origin).parents[1]
    return None if site.is_relative_to(VENV) else site


def _site_packages() -> Path:
    (site,) = VENV.glob("lib/python3.*/site-packages")
    return site


def _pip(*arguments: str) -> None:
    command = [str(VENV / "bin/python"), "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    if subprocess.run(command, check=False).returncode:
        sys.exit("error: pip could not install what is needed; its own words are above")


if __name__ == "__main__":
    main()
