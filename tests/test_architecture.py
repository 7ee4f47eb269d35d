"""The direction of imports: a room sees only lower steps, and rooms on one step are strangers."""

import ast
import builtins
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness import cli
from harness.sandbox import visible

ROOT = Path(__file__).resolve().parents[1]

# Top to bottom; a room may import from its own folder and from any lower step.
STEPS = [
    {"__main__"},
    {"cli"},
    {"commands"},
    {"options"},
    {"serve", "adapters", "doctor", "profile"},
    {"api"},
    {"session", "audit", "check", "evaluator", "cluster"},
    {"execution", "reports", "packs"},
    {"supervise"},
    {"processes"},
    {"judge"},
    {"links", "runner", "reading"},
    {"wire"},
    {"compile", "oracle", "timing", "integrity", "sandbox", "instruments"},
    {"roofline"},
    {"machine"},
    {"rewards"},
    {"catalog", "store", "metrics", "environment"},
    {"config"},
    {"records"},
    {"places"},
    {"errors", "wording", "version", "drafts", "nesting"},
]
STEP = {room: number for number, rooms in enumerate(STEPS) for room in rooms}

# A guest package and the only rooms that may import it.
GUESTS = {
    "torch": {
        "judge",
        "links",
        "runner",
        "oracle",
        "processes/zygote.py",
        "compile",
        "wire",
        "roofline/ceilings.py",
        "roofline/floors.py",
        "roofline/flops.py",
        "roofline/modes.py",
        "roofline/parts.py",
        "roofline/views.py",
        "roofline/work.py",
    },
    "pandas": {"reports/rows.py", "api.py"},
    "starlette": {"serve", "adapters/openenv.py"},
    "uvicorn": {"serve"},
    "ray": {"cluster"},
    "inspect_ai": {"adapters/inspect_ai.py"},
    "openenv": {"adapters/openenv.py"},
    "verifiers": {"adapters/verifiers.py"},
    "rich": {
        "commands",
        "session.py",
        *(f"reports/terminal/{path.name}" for path in (ROOT / "harness/reports/terminal").glob("*.py")),
    },
    "matplotlib": {"reports/html/figures.py", "reports/html/slopes.py", "reports/html/svg.py"},
    "jinja2": {"reports/html/render.py"},
    "yaml": {"config.py"},
    "pynvml": {"environment.py", "machine/nvml_card.py", "machine/card_users.py"},
    "cuda": {"links", "wire", "sandbox/cuda_probe.py"},
}

FILES = sorted((ROOT / "harness").rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "harness").parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def test_every_file_is_in_a_known_room():
    assert {room_of(path) for path in FILES} - {"__init__"} <= set(STEP)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path):
    own = room_of(path)
    if own == "__init__":
        return
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] != "harness" or len(parts) < 2:
            continue
        other = parts[1]
        assert other == own or STEP[other] > STEP[own], f"{own} may not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_guests_stay_in_their_rooms(path):
    relative = str(path.relative_to(ROOT / "harness"))
    for module in imported_modules(path):
        allowed = GUESTS.get(module.split(".")[0])
        assert allowed is None or relative in allowed or room_of(path) in allowed, f"{relative} imports {module}"


# Past what a candidate itself catches.
WITHOUT_ROOT = {"LateCompile", "NeedsCuda"}


def test_all_our_exceptions_have_one_root():
    standard = {
        name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)
    }
    classes = [
        node for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    ]
    bases = {node.name: {base.id for base in node.bases if isinstance(base, ast.Name)} for node in classes}
    assert len([name for name in bases if "AssayError" in bases[name]]) > 10
    rootless = {name for name in bases if bases[name] & standard and "AssayError" not in bases[name]}
    assert rootless == WITHOUT_ROOT | {"AssayError"}


def test_package_init_files_are_empty():
    assert [path for path in FILES if path.name == "__init__.py" and path.read_text().strip()] == []


# They take apart what others wrote, which has made parsers crash, hang and run out of stack. In the session none of
# them may even be loaded: reading.reader and the processes that run candidates do the reading.
READS_SOURCES = {"ast", "tokenize", "harness.integrity.cxx", "harness.reading.reader"}
COMMANDS = [f"commands.{name}" for name in cli.COMMANDS.values()]
SESSION = [
    "cli",
    *COMMANDS,
    "session",
    "check",
    "audit",
    "profile",
    "doctor.examination",
    "doctor.trial",
    "api",
    "execution.local",
    "packs.importing",
]
# A number on the user's own command line, and a problem that `new` makes a candidate of, where no session is.
NO_SOURCE = {
    "harness.commands.audit",
    "harness.catalog.starting_points",
    "harness.catalog.modules",
    "harness.catalog.effort",
}


def file_of(module: str) -> Path | None:
    path = ROOT / f"{module.replace('.', '/')}.py"
    return path if path.is_file() else None


def loaded_by_the_session() -> set[str]:
    found: set[str] = set()
    waiting = [f"harness.{name}" for name in SESSION]
    while waiting:
        module = waiting.pop()
        path = file_of(module)
        if path is None or module in found:
            continue
        found.add(module)
        # What a process of its own imports when it has been started is not the session's.
        tree = ast.parse(path.read_text())
        roles = {
            id(node) for one in tree.body if getattr(one, "name", "") in ("main", "loaded") for node in ast.walk(one)
        }
        roles = roles if module == "harness.processes.zygote" else set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in roles:
                names = [alias.name for alias in node.names]
                base = getattr(node, "module", None)
                waiting += [f"{base}.{name}" for name in names] + [base] if base else names
    return found


def test_the_session_cannot_parse_what_others_wrote():
    session = loaded_by_the_session()
    assert {"harness.reading.reading", "harness.catalog.solutions", "harness.supervise.supervisor"} <= session
    guilty = {
        module
        for module in session - NO_SOURCE
        if (READS_SOURCES & imported_modules(file_of(module))) or module in READS_SOURCES
    }
    assert guilty == set()


def closure(*starts: str) -> set[str]:
    """All modules of the harness that these import, and what they import, when they are first loaded."""
    found: set[str] = set()
    waiting = [f"harness.{start}" for start in starts]
    while waiting:
        module = waiting.pop()
        path = file_of(module)
        if path is None or module in found:
            continue
        found.add(module)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                waiting += [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
            elif isinstance(node, ast.Import):
                waiting += [alias.name for alias in node.names]
    return found


def modules_in(room: str) -> list[str]:
    places = [path.relative_to(ROOT / "harness").with_suffix("") for path in FILES if room_of(path) == room]
    return [".".join(place.parts) for place in places if place.name != "__init__"]


def test_who_runs_a_candidate_sees_nothing_of_who_judges_it():
    loaded = {module.split(".")[1] for module in closure(*modules_in("runner"), *modules_in("reading"))}
    assert loaded >= {"runner", "wire", "compile", "catalog"}
    assert loaded & set(visible.CLOSED) == set()


def test_who_supervises_loads_no_torch():
    modules = [f"harness.{name}" for room in ("supervise", "processes", "sandbox") for name in modules_in(room)]
    script = f"import sys; sys.modules['torch'] = None\nfor name in {modules!r}: __import__(name)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT)


def test_who_uses_the_package_waits_for_no_library():
    heavy = {"torch", "pandas", "numpy", "matplotlib", "starlette", "rich"}
    script = f"import sys, harness.api; print(sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def test_a_run_with_nothing_to_do_loads_nothing_of_what_carries_out():
    script = "import sys, harness.commands.run; print([one for one in sys.modules if 'harness.supervise' in one])"
    found = subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True, text=True)
    assert found.stdout == "[]\n"


def test_no_room_is_crowded():
    folders = Counter(path.parent.relative_to(ROOT / "harness") for path in FILES if path.name != "__init__.py")
    assert {str(folder) for folder, count in folders.items() if count > 17} <= {"oracle"}
