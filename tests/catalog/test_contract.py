"""What reading tells of a candidate's contract with its problem."""

import pytest

from harness.catalog import contract, problems
from tests.conftest import Here

PROBLEM = """
import torch
from torch import nn
features = 4
class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
    def forward(self, x, mask=None):
        return x
def get_inputs(): return [torch.randn(2, features)]
def get_init_inputs(): return [features]
"""
CANDIDATE = '''"""A caption."""
from torch import nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
    def forward(self, x, mask=None):
        return x
'''


@pytest.fixture
def remarks(tmp_path):
    def of(source: str, problem: str = PROBLEM) -> list[tuple[str, int, bool]]:
        path = tmp_path / "set/name.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(problem)
        candidate = tmp_path / "set/name/candidate.py"
        candidate.parent.mkdir(exist_ok=True)
        candidate.write_text(source)
        found = contract.remarks(Here.read(candidate), problems.read(path, Here()))
        return [(remark.text, remark.line, remark.fatal) for remark in found]

    return of


def test_a_candidate_that_keeps_to_it_gets_no_remark(remarks):
    assert remarks(CANDIDATE) == []


def test_other_names_are_told_and_other_counts_are_fatal(remarks):
    renamed = CANDIDATE.replace("x, mask", "y, mask")
    assert remarks(renamed) == [("forward takes (y, mask); the problem's takes (x, mask)", 6, False)]
    ((text, line, fatal),) = remarks(CANDIDATE.replace("self, x, mask=None", "self, x, mask, scale"))
    assert (text, line, fatal) == ("forward takes (x, mask, scale); the problem's takes (x, mask)", 6, True)
    ((_, line, fatal),) = remarks(CANDIDATE.replace("self, features", "self"))
    assert (line, fatal) == (4, True)


def test_any_arguments_are_accepted_and_inherited_methods_are_not_guessed(remarks):
    assert remarks(CANDIDATE.replace("self, x, mask=None", "self, *args")) == []
    assert (
        remarks(CANDIDATE.replace("nn.Module", "Base").replace("    def __init__(self, features):\n", "    if 1:\n"))
        == []
    )


def test_an_init_that_is_left_out_takes_nothing(remarks):
    source = (
        '"""Caption."""\nimport torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, x, mask=None): ...\n'
    )
    assert remarks(source) == [("__init__ takes (); the problem's takes (features)", 3, True)]


def test_a_missing_entry_is_fatal(remarks):
    assert remarks('"""Caption."""\nclass Other: pass\n') == [
        ("defines no ModelNew or Model that can be called", 0, True)
    ]
    assert remarks("def broken(:\n") == []


def test_model_and_imported_entries_count(remarks):
    assert remarks(CANDIDATE.replace("ModelNew", "Model")) == []
    assert remarks('"""Caption."""\nfrom elsewhere import Fast as ModelNew\n') == []


def test_what_makes_a_module_need_not_be_a_class(remarks):
    own = CANDIDATE.replace("ModelNew", "Own")
    assert remarks(f"{own}\ndef ModelNew(features):\n    return Own(features)\n") == []
    assert remarks(f"{own}\nimport functools\nModelNew = functools.partial(Own)\n") == []


def test_compiling_inside_a_function_needs_the_problem(tmp_path):
    path = tmp_path / "far/away/candidate.py"
    path.parent.mkdir(parents=True)
    inside = "        self.e = torch.utils.cpp_extension.load_inline(name='e')\n"
    path.write_text(CANDIDATE.replace("        super().__init__()\n", inside))
    (remark,) = contract.remarks(Here.read(path), None)
    assert "name the problem with --problems" in remark.text


def test_a_missing_caption_is_only_said(remarks):
    ((text, _, fatal),) = remarks(CANDIDATE.replace('"""A caption."""', ""))
    assert "no docstring" in text
    assert not fatal


def test_dispatch_without_half_is_told_where_the_problem_is_half(remarks):
    source = CANDIDATE + 'CUDA = """\nvoid f() {\n  AT_DISPATCH_FLOATING_TYPES(t, "f", [] {});\n}"""\n'
    ((text, line, fatal),) = remarks(source, f'PRECISION = "float16"\n{PROBLEM}')
    assert "float16, which AT_DISPATCH_FLOATING_TYPES does not cover" in text
    assert (line, fatal) == (10, False)
    assert remarks(source) == []
    assert remarks(source.replace("TYPES(", "TYPES_AND_HALF("), f'PRECISION = "float16"\n{PROBLEM}') == []
