"""The direction of imports: a room sees only lower steps, and rooms on one step are strangers."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Top to bottom; a room may import from its own folder and from any lower step.
STEPS = [
    {"cli"},
    {"options"},
    {"session", "audit", "check", "doctor"},
    {"execution", "reports"},
    {"worker"},
    {"compile", "oracle", "timing", "integrity"},
    {"catalog", "store", "metrics", "environment"},
    {"config"},
    {"records"},
    {"errors", "wording"},
]
STEP = {room: number for number, rooms in enumerate(STEPS) for room in rooms}

# A guest package and the only rooms that may import it.
GUESTS = {
    "torch": {
        "worker",
        "compile",
        "oracle",
        "timing/ceilings.py",
        "timing/flops.py",
        "timing/modes.py",
        "timing/parts.py",
        "timing/views.py",
        "timing/work.py",
    },
    "pandas": {"reports/rows.py"},
    "rich": {
        "reports/terminal.py",
        "reports/compare_table.py",
        "cli.py",
        "session.py",
        "reports/audit_table.py",
        "reports/check_table.py",
        "reports/doctor_table.py",
    },
    "yaml": {"config.py"},
    "pynvml": {"environment.py", "timing/nvml_card.py"},
    "cuda": {"worker"},
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


def test_package_init_files_are_empty():
    assert [path for path in FILES if path.name == "__init__.py" and path.read_text().strip()] == []


# They take apart what others wrote, which has made parsers crash, hang and run out of stack. In the session none of
# them may even be loaded: worker.reader and the processes that run candidates do the reading.
READS_SOURCES = {"ast", "tokenize", "harness.integrity.cxx", "harness.worker.reader"}
SESSION = ["cli", "session", "check", "audit", "doctor", "execution.local"]
# A number on the user's own command line.
NO_SOURCE = {"harness.cli"}


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
        roles = {id(node) for one in tree.body if getattr(one, "name", "") == "main" for node in ast.walk(one)}
        roles = roles if module == "harness.worker.zygote" else set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in roles:
                names = [alias.name for alias in node.names]
                base = getattr(node, "module", None)
                waiting += [f"{base}.{name}" for name in names] + [base] if base else names
    return found


def test_the_session_cannot_parse_what_others_wrote():
    session = loaded_by_the_session()
    assert {"harness.worker.reading", "harness.catalog.solutions", "harness.worker.supervisor"} <= session
    guilty = {
        module
        for module in session - NO_SOURCE
        if (READS_SOURCES & imported_modules(file_of(module))) or module in READS_SOURCES
    }
    assert guilty == set()
