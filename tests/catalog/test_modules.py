"""Problem and solution files as modules: overrides, entry classes, and faults with their lines."""

import pickle
from pathlib import Path

import pytest

from harness.catalog import modules
from harness.catalog.modules import LoadFault


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "module.py"
    path.write_text(text)
    return path


def test_overrides_reach_derived_constants(tmp_path):
    path = write(tmp_path, "rows = 4\ncolumns, depth = 5, 6\nscale: float = 1.0\ntotal = rows * columns * depth\n")
    module = modules.execute(path, {"rows": 10, "depth": 7, "scale": 0.5})
    assert (module.total, module.scale) == (10 * 5 * 7, 0.5)


def test_a_constant_assigned_twice_stays_overridden(tmp_path):
    module = modules.execute(write(tmp_path, "rows = 4\nhalf = rows // 2\nrows = 8\n"), {"rows": 20})
    assert (module.rows, module.half) == (20, 10)


def test_lines_of_an_overridden_module_are_the_file_s_own(tmp_path):
    path = write(tmp_path, "rows = 4\n\n\ndef fail():\n    raise ValueError\n")
    module = modules.execute(path, {"rows": 5})
    with pytest.raises(ValueError) as raised:
        module.fail()
    assert raised.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize("overrides", [None, {"rows": 2}])
def test_annotations_are_what_they_are_in_the_file_whether_it_has_overrides(tmp_path, overrides):
    module = modules.execute(write(tmp_path, "rows = 4\ndef f(x: int): pass\n"), overrides)
    assert module.f.__annotations__ == {"x": int}


def test_two_modules_of_one_file_do_not_know_each_other(tmp_path):
    path = write(tmp_path, "values = []\n")
    first, second = modules.execute(path), modules.execute(path)
    first.values.append(1)
    assert second.values == []


@pytest.mark.parametrize("overrides", [None, {"rows": 2}])
@pytest.mark.parametrize("name", ["dc.v1", "a b-c", "x²", "größe", "1", "-"])
def test_a_module_pickles_its_own_classes_whatever_its_file_is_called(tmp_path, name, overrides):
    path = tmp_path / f"{name}.py"
    path.write_text("rows = 1\nclass Own:\n    pass\n")
    module = modules.execute(path, overrides)
    assert module.__name__.isidentifier()
    assert type(pickle.loads(pickle.dumps(module.Own()))) is module.Own


def test_a_syntax_error_has_its_line(tmp_path):
    with pytest.raises(LoadFault, match=r"module\.py:2") as raised:
        modules.execute(write(tmp_path, "a = 1\nb = = 2\n"))
    assert (raised.value.reason, raised.value.line) == ("syntax_error", 2)


@pytest.mark.parametrize("overrides", [None, {"rows": 2}])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from __future__ import annotations", "from __future__ imports must occur at the beginning of the file"),
        ("return rows", "'return' outside function"),
        ("for row in range(rows): yield row", "'yield' outside function"),
        ("nonlocal other", "nonlocal declaration not allowed at module level"),
        ("def f(x, x): pass", "duplicate argument 'x' in function definition"),
        ("continue", "'continue' not properly in loop"),
    ],
)
def test_so_has_one_that_only_the_compiler_finds(tmp_path, line, said, overrides):
    path = write(tmp_path, f"rows = 1\n\n{line}\n")
    with pytest.raises(LoadFault, match=rf"^module\.py:3: {said}$") as raised:
        modules.execute(path, overrides)
    assert (raised.value.reason, raised.value.line) == ("syntax_error", 3)


ENTRIES = {
    "class ModelNew: pass": "ModelNew",
    "def ModelNew(): return Model()": "ModelNew",
    "import functools\nModelNew = functools.partial(Model)": "ModelNew",
    "ModelNew = None": "Model",
}


@pytest.mark.parametrize("source, taken", ENTRIES.items())
def test_the_first_entry_that_can_be_called_is_taken(tmp_path, source, taken):
    module = modules.execute(write(tmp_path, f"class Model: pass\n{source}\n"))
    assert modules.entry(module, ("ModelNew", "Model")) == (taken, getattr(module, taken))


def test_a_file_without_an_entry_is_told_which_it_lacks(tmp_path):
    module = modules.execute(write(tmp_path, "ModelNew = None\n"))
    with pytest.raises(LoadFault, match=r"module\.py defines no ModelNew or Model that can be called") as raised:
        modules.entry(module, ("ModelNew", "Model"))
    assert raised.value.reason == "missing_entry"


def test_computed_constants_are_no_literals(tmp_path):
    tree = modules.parse(write(tmp_path, "VARIANTS = dict(a=1)\n"))
    with pytest.raises(ValueError, match="VARIANTS must be a literal"):
        modules.literal(tree, "VARIANTS")
