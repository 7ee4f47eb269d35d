"""The wheel as its users meet it: in an environment of their own, in a repository of their own."""

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from harness.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("harness", "configs", "problems", "solutions", "pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"

# What an untrusted process may read, by its Landlock rules alone; it prints whether it could.
READ = """
import json, sys
from harness.sandbox import enforcement, visible
rules = enforcement.Confinement(
    layers=("landlock",), readable=tuple(visible.common([])), essential=(*visible.essential(), sys.argv[1])
)
if enforcement.attempt(rules):
    sys.exit(3)
def reads(path):
    try:
        return bool(open(path).read())
    except OSError:
        return False
print(json.dumps([reads(path) for path in sys.argv[1:]]))
import neighbour_of_ours
"""


def carried_out(command, **options):
    """Nothing in its surroundings leads back to this checkout."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, check=False, env=surroundings, **options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder of an environment that has the wheel, and finds the rest where this one does; in a repository."""
    # Asked for by their metadata: to look for the module has setuptools meddle with the imports of this process.
    there = {distribution.name.lower() for distribution in importlib.metadata.distributions()}
    for tool in ("setuptools", "pip"):
        if tool not in there:
            pytest.skip(f"no wheel can be built and installed here: {tool} is missing")
    place = tmp_path_factory.mktemp("user")
    source = place / "source"
    source.mkdir()
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    built = carried_out([sys.executable, "-c", BUILD, place], cwd=source)
    assert built.returncode == 0, built.stderr
    shutil.rmtree(source)
    environment = place / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python3.*/site-packages")
    others = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "others.pth").write_text("\n".join(others))
    (site / "neighbour_of_ours.py").write_text("HERE = True\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", environment / "bin/python"]
    (wheel,) = place.glob("*.whl")
    done = carried_out([*pip, "install", "--no-index", "--no-deps", "--quiet", wheel])
    assert done.returncode == 0, done.stderr
    assert carried_out(["git", "init", "--quiet", place]).returncode == 0
    return environment


@pytest.mark.parametrize("called", [["bin/assay"], ["bin/python", "-m", "harness"]])
def test_it_says_its_version_and_what_it_is_called(installed, called, tmp_path):
    command = [installed / called[0], *called[1:]]
    assert carried_out([*command, "--version"], cwd=tmp_path).stdout == f"assay {VERSION}\n"
    usage = "python -m harness" if len(called) > 1 else "assay"
    assert f"{usage} run configs/seeds.yaml" in carried_out([*command, "--help"], cwd=tmp_path).stdout


def test_what_it_brings_along_is_found_from_an_empty_folder(installed, tmp_path):
    command = [installed / "bin/assay", "run", "configs/quickstart.yaml", "--device", "cpu", "--dry-run"]
    result = carried_out(command, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    solved = ("attention/sdpa", "fused/gemm_batchnorm_scale_softmax")
    jobs = [f"{name} small" for name in solved for _ in (ROOT / "solutions" / name).glob("*.py")]
    assert [line.rsplit(" ", 2)[0] for line in result.stdout.splitlines()] == jobs
    assert "note: configs/quickstart.yaml is not in this folder; using " in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_is_whole(installed):
    (package,) = installed.glob("lib/python3.*/site-packages/harness")
    assert (package / "py.typed").is_file()
    for folder in ("configs", "problems", "solutions"):
        brought = {path.relative_to(package / "library") for path in (package / "library" / folder).rglob("*.*")}
        brought = {path for path in brought if path.suffix != ".pyc"}
        kept = (path for suffix in ("py", "yaml") for path in (ROOT / folder).rglob(f"*.{suffix}"))
        assert brought == {path.relative_to(ROOT) for path in kept}
    report = {path.name for path in (package / "reports/html/templates").iterdir()}
    assert report == {path.name for path in (ROOT / "harness/reports/html/templates").iterdir()}
    headers = [path for suffix in ("h", "cu") for path in (ROOT / "harness").rglob(f"*.{suffix}")]
    assert len(headers) > 10
    assert [path for path in headers if not (package / path.relative_to(ROOT / "harness")).is_file()] == []


def test_it_does_not_take_the_user_s_repository_for_its_own(installed, tmp_path):
    script = (
        "from harness import environment, places; print([environment.commit(), places.CHECKOUT, places.python_path()])"
    )
    assert carried_out([installed / "bin/python", "-c", script], cwd=tmp_path).stdout.strip() == "['', None, '']"


def test_its_neighbours_are_open_to_candidates_and_its_closed_rooms_are_not(installed, tmp_path):
    (package,) = installed.glob("lib/python3.*/site-packages/harness")
    candidates = package / "library/solutions/attention/sdpa"
    own, another = candidates / "composed.py", candidates / "cpp_blocked.py"
    closed = (another, package / "library/problems/attention/sdpa.py", package / "judge/judge.py")
    command = [installed / "bin/python", "-c", READ, own, package / "wire/values.py", *closed]
    result = carried_out(command, cwd=tmp_path)
    if result.returncode == 3:
        pytest.skip("no Landlock here")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [True, True, False, False, False]
