"""Draws of the judge's: nobody can tell the next ones from those before, or from the problem's file."""

import pytest
import torch

from harness.catalog.sources import LoadFault
from harness.judge.reference import Reference
from harness.machine.pauses import pausing
from harness.oracle.expectation import InvalidReference
from harness.wire.messages import CandidateSource

PROBLEM = """
import itertools
import random
import numpy as np
import torch
from torch import nn

OWN = np.random.default_rng(3)
STEPS = itertools.count()
OTHER = torch.Generator().manual_seed(3)

class Model(nn.Module):
    def forward(self, *inputs):
        return inputs[0]

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""
CPU = torch.device("cpu")


@pytest.fixture
def reference(tmp_path):
    def made(inputs, seed=1):
        file = tmp_path / "problem.py"
        file.write_text(PROBLEM.format(inputs=inputs))
        return Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, seed)

    return made


@pytest.mark.parametrize(
    "inputs", ["torch.rand(40)", "torch.from_numpy(np.random.rand(40))", "torch.tensor([random.random()] * 40)"]
)
def test_every_draw_has_a_seed_of_its_own_whoever_draws_it(reference, inputs):
    """A state that goes on from one draw to the next can be computed from what was drawn."""
    one, other, third = reference(inputs), reference(inputs), reference(inputs, seed=2)
    first = [one.draw().inputs[0] for _ in range(2)]
    again = other.draw().inputs[0]
    # Whatever else is drawn in between.
    exec("import random, numpy, torch; random.random(); numpy.random.rand(); torch.rand(1)")

    assert torch.equal(again, first[0])
    assert torch.equal(other.draw().inputs[0], first[1])
    assert not torch.equal(first[0], first[1])
    assert not torch.equal(third.draw().inputs[0], first[0])
    one.require_fresh_inputs()


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.from_numpy(OWN.random(40))",
        "torch.rand(40, generator=OTHER)",
        # One of them is enough: what is computed from it alone can be computed ahead.
        "torch.rand(40), torch.rand(40, generator=OTHER)",
    ],
)
def test_a_generator_of_the_file_s_own_with_a_seed_of_its_own_is_refused(reference, inputs):
    with pytest.raises(InvalidReference, match="generator of the file's own") as raised:
        reference(inputs).require_fresh_inputs()
    assert raised.value.reason == "same_inputs"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("", "get_inputs returns no numbers"),
        ("torch.randn(0, 64), [torch.randn(4, 0)]", "get_inputs returns no numbers"),
        ("torch.ones(4), torch.randn(0, 64)", "get_inputs returns the same inputs in every call"),
        ("torch.randn(0, 64), 'tanh'", "get_inputs returns the same inputs in every call"),
    ],
)
def test_inputs_that_are_always_the_same_are_told_why(reference, inputs, said):
    with pytest.raises(InvalidReference, match=f"^{said}") as raised:
        reference(inputs).require_fresh_inputs()
    assert raised.value.reason == "same_inputs"


@pytest.mark.parametrize(
    "inputs",
    [
        "torch.rand(40), torch.ones(40)",
        "torch.rand(40), torch.from_numpy(np.random.default_rng(3).random(40))",
        "torch.rand(40), torch.randint(0, 2, ())",
        "torch.from_numpy(np.random.default_rng().random(40))",
        "torch.rand(40), 3, True, None",
        # A step's number, which is no draw.
        "torch.rand(40), next(STEPS), torch.tensor(next(STEPS))",
    ],
)
def test_constants_and_what_is_alike_by_chance_are_not(reference, inputs):
    for seed in range(4):
        reference(inputs, seed).require_fresh_inputs()


@pytest.fixture
def returning(tmp_path):
    """A reference whose output is an expression of `x`."""

    def make(output):
        file = tmp_path / "problem.py"
        file.write_text(
            PROBLEM.format(inputs="torch.rand(40)").replace("return inputs[0]", f"x = inputs[0]; return {output}")
        )
        return Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)

    return make


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("x[x > 0.5]", "shapes"),
        ("{str(float(x[0])): x}", "keys or lengths"),
        ("[0] * int(1000 * x[0])", "keys or lengths"),
    ],
)
def test_an_output_whose_form_depends_on_the_inputs_is_refused(returning, output, what):
    made = returning(output)
    with pytest.raises(LoadFault, match=f"the output's {what} depend on the inputs' values"):
        made.try_out()


@pytest.mark.parametrize("depth", [17, 300, 3000])
def test_an_output_that_is_nested_too_deeply_is_no_failure_of_ours(returning, depth):
    with pytest.raises(InvalidReference, match=r"the reference's output.* is a nesting deeper than 16") as raised:
        returning(f"__import__('functools').reduce(lambda some, _: [some], range({depth}), x)").try_out()
    assert raised.value.reason == "unsupported_output"


def test_an_output_that_is_nested_as_deeply_as_may_be_is_taken(returning):
    returning("__import__('functools').reduce(lambda some, _: [some], range(16), x)").try_out()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("(x, 2**70)", r"output\[1\] is an int of more than 64 bits"),
        ("{'a': [x, -2**63]}", r"output\['a'\]\[1\] is an int of more than 64 bits"),
        ("{'a': x, (1, 2): x}", "output is a dict with a key that is a tuple"),
        ("{'a': x, True: x}", "output is a dict with a key that is a bool"),
        ("{'a' * 201: x}", "output is a dict with a text of more than 200 characters as a key"),
        ("{2**70: x}", "output is a dict with an int of more than 64 bits as a key"),
        ("[x, {1, 2}]", r"output\[1\] is a set"),
        ("[x, 1j]", r"output\[1\] is a complex"),
        ("[x, torch.Generator()]", r"output\[1\] is a torch.*Generator"),
    ],
)
def test_an_output_that_cannot_be_handed_over_is_told_with_what_may_be(returning, output, said):
    told = f"^the reference's {said}; an output may have tensors, numbers"
    with pytest.raises(InvalidReference, match=told) as raised:
        returning(output).try_out()
    assert raised.value.reason == "unsupported_output"
    assert str(raised.value).endswith("with texts or integers as keys")


@pytest.mark.parametrize(
    ("output", "place"), [("x.as_subclass(Own)", "output"), ("[x, x.as_subclass(Own)]", "output[1]")]
)
def test_an_output_of_a_class_of_its_own_is_told_as_one(returning, output, place):
    own = "type('Own', (torch.Tensor,), {})"
    with pytest.raises(InvalidReference) as raised:
        returning(output.replace("Own", own)).try_out()
    assert raised.value.reason == "unsupported_output"
    assert str(raised.value).startswith(f"the reference's {place} is a tensor of a class of its own, Own: ")


def test_an_output_may_be_a_parameter(returning):
    returning("nn.Parameter(x)").try_out()


@pytest.mark.parametrize(
    ("output", "inputs", "why"),
    [
        ("x + 1", "torch.rand(40), 0.5", ""),
        ("x * inputs[1]", "torch.rand(40), float(torch.rand(()))", "an input that is no tensor differs"),
        ("x * inputs[1]['time'][0]", "torch.rand(40), {'time': [random.randrange(2)]}", "an input that is no tensor"),
        ("nn.functional.dropout(x)", "torch.rand(40)", "draws random numbers"),
        ("x + torch.randn(40, device='cpu')", "torch.rand(40)", "draws random numbers"),
    ],
)
def test_what_a_call_says_beside_its_tensors_may_be_told_early_only_if_it_says_nothing_new(
    tmp_path, output, inputs, why
):
    file = tmp_path / "problem.py"
    file.write_text(PROBLEM.format(inputs=inputs).replace("return inputs[0]", f"x = inputs[0]; return {output}"))
    late = Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1).try_out().late
    assert why in late
    assert bool(why) == bool(late)


def test_so_is_an_input(reference):
    with pytest.raises(LoadFault, match=r"input\[1\] is an int of more than 64 bits; it may return tensors, numbers"):
        reference("torch.rand(40), 2**70").draw()


@pytest.fixture
def with_function(tmp_path):
    """A reference whose file has one of its functions return something else."""

    def made(function, returned):
        file = tmp_path / "problem.py"
        before = {"get_inputs": "[{inputs}]", "get_init_inputs": "[]"}
        file.write_text(PROBLEM.replace(f"return {before[function]}", f"return {returned}"))
        return Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)

    return made


@pytest.mark.parametrize(
    ("returned", "what"),
    [("{'x': torch.rand(4)}", "a dict"), ("torch.rand(4)", "a Tensor"), ("None", "None"), ("4", "an int")],
)
@pytest.mark.parametrize("function", ["get_inputs", "get_init_inputs"])
def test_arguments_are_a_list(with_function, function, returned, what):
    with pytest.raises(LoadFault, match=f"^{function} returned {what}; return the arguments in a list") as raised:
        with_function(function, returned).draw()
    assert raised.value.reason == "contract"


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (
            "[3, nn.GELU()]",
            r"what cannot be handed over: argument\[1\] is a torch.nn.*GELU; it may return tensors, numb",
        ),
        (
            "[{'act': torch.relu}]",
            r"what cannot be handed over: argument\[0\]\['act'\] is a builtin_function_or_method",
        ),
        ("[np.int64(3)]", r"what cannot be handed over: argument\[0\] is a numpy.int64"),
        ("[__import__('types').SimpleNamespace(n=3)]", r"what .*: argument\[0\] is a types.SimpleNamespace"),
        ("[torch.rand(4).to_sparse()]", "a tensor that is sparse"),
    ],
)
def test_init_arguments_are_what_a_runner_can_be_sent(with_function, returned, said):
    with pytest.raises(LoadFault, match=f"^get_init_inputs returns {said}") as raised:
        with_function("get_init_inputs", returned)
    assert raised.value.reason == "contract"


STRUCTURES = """
import copy
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        one, other = torch.randn(9, 9), torch.randn(9)
        self.linear, self.norm, self.padded = nn.Linear(24, 32), nn.BatchNorm1d(9), nn.Embedding(40, 8, padding_idx=0)
        self.raw = nn.Parameter(0.02 * torch.randn(9, 9) + 1)
        self.turned = nn.Parameter(torch.rand(9, 8).t().contiguous())
        self.stacked = nn.Parameter(torch.stack([torch.randn(9) for _ in range(4)]))
        self.normal = nn.Parameter(nn.init.trunc_normal_(torch.empty(9, 9)))
        self.one, self.scaled, self.rolled, self.part = (
            nn.Parameter(made) for made in (one, 0.9 * one, one.roll(2, 1), one[2:].clone())
        )
        self.cosines = nn.Parameter(torch.cos(torch.outer(torch.arange(6.0), torch.arange(9.0))), requires_grad=False)
        self.scalar = nn.Parameter(torch.tensor(0.3))

        self.slope, self.quarter = nn.PReLU(8), nn.Parameter(torch.full((9,), 0.25))
        self.window = nn.Parameter(torch.outer(torch.hann_window(9), torch.hann_window(9))[None, None])
        self.poles = nn.Parameter(-0.5 + 1j * torch.pi * torch.arange(6.0))
        self.rotations = nn.Parameter(torch.stack([nn.init.orthogonal_(torch.empty(16, 16)) for _ in range(3)]))
        self.queries = nn.Parameter(torch.randn(1, 1, 9).repeat(1, 4, 1))
        self.stack = nn.Parameter(torch.stack([torch.randn(9), *[other] * 7]))
        self.circulant = nn.Parameter(torch.stack([other.roll(place) for place in range(9)]))
        self.product, self.rank = (nn.Parameter(made) for made in (torch.kron(one[:3], one[:3]), one[:, :2] @ one[:2]))
        self.blocks, self.sparse = nn.Parameter(torch.block_diag(one, one)), nn.Parameter(torch.empty(9, 9))
        nn.init.sparse_(self.sparse, 0.5)
        self.gained = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 6))
        self.seeded, self.again = (
            nn.Parameter(torch.randn(9, 7, generator=torch.Generator().manual_seed(5)) * factor) for factor in (1, 2)
        )
        self.emptied = nn.Parameter(torch.randn(9, 8))
        self.binary = nn.Parameter((torch.rand(9, 8) * 4).int().clamp(max=1).float())
        self.emptied.data[:, 4:] = 0
        self.nearly = nn.Parameter(0.25 + 1e-9 * torch.randn(9, 9))
        nn.init.ones_(self.norm.weight)
        nn.init.zeros_(self.norm.bias)
        self.student = nn.Linear(5, 5)
        self.teacher, self.loaded = copy.deepcopy(self.student), nn.Linear(5, 5)
        self.loaded.load_state_dict(self.student.state_dict())
        self.loaded.requires_grad_(False)

    def forward(self, x):
        return x

def get_inputs():
    return [torch.randn(64, 24)]

def get_init_inputs():
    return []
"""
# What has a structure of its own, and what has one by being a copy; the others begin as ones and zeros.
STRUCTURED = {
    *(
        "scaled",
        "rolled",
        "part",
        "again",
        "emptied",
        "binary",
        "nearly",
        "slope.weight",
        "quarter",
        "window",
        "poles",
        "rotations",
        "queries",
        "stack",
    ),
    *("circulant", "product", "rank", "blocks", "sparse", "gained.parametrizations.weight.original0"),
}
COPIES = {f"{module}.{name}" for module in ("teacher", "loaded") for name in ("weight", "bias")}
CONSTANTS = {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var"}


def test_parameters_that_were_not_drawn_number_by_number_are_changed_and_no_others(tmp_path):
    file = tmp_path / "problem.py"
    file.write_text(STRUCTURES)
    made = Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)
    assert set(made.plain) == STRUCTURED | COPIES | CONSTANTS
    names = dict(made.model.named_parameters())
    assert not any(torch.equal(names[name], made.plain[name]) for name in STRUCTURED | COPIES)
    # Whoever constructs the same has the same, but for what no constructor of its own makes.
    assert made._redrawn == {"loaded.weight", "loaded.bias", "emptied"}
    # Nothing of a norm that sets its ones and zeros by itself.
    assert {name for name, _ in made.construction.structured} < {name.rpartition(".")[2] for name in STRUCTURED}
    # What decays goes on to do so.
    assert made.model.poles.real.max() < 0
    assert (made.model.poles.imag.diff() - torch.pi).abs().max() > 0.1


def test_who_waits_for_the_card_waits_for_no_whole_opening(tmp_path):
    """Of a reference, what is made of each parameter and what is looked at of each draw are pieces of their own."""
    file, pieces = tmp_path / "problem.py", []
    file.write_text(STRUCTURES)

    def begun(work):
        pieces.clear()
        with pausing(lambda: pieces.append(work)):
            found = work()
        return found, len(pieces)

    made, at = begun(lambda: Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1))
    assert at > 2 * len(list(made.model.parameters()))
    assert begun(made.draw)[1] >= 1
    assert begun(lambda: made.promises)[1] > 8


def test_what_can_be_constructed_once_only_is_changed_afterwards(tmp_path):
    file = tmp_path / "problem.py"
    file.write_text(f"made = 0\n{STRUCTURES}".replace("super()", "global made; made += 1; assert made == 1; super()"))
    once = Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)
    assert set(once.plain) == STRUCTURED | COPIES | CONSTANTS
    assert {"circulant", "product", "scaled"} < once._redrawn


@pytest.mark.parametrize("before", ["self.early.detach().clone()", "torch.zeros(9, 9)"])
@pytest.mark.parametrize("filled", ["sparse_(self.late, 0.5)", "normal_(self.late)", "eye_(self.late)"])
def test_what_was_there_before_a_parameter_is_filled_does_not_count(tmp_path, before, filled):
    """Memory that nobody has written to may hold another one's numbers, or a constant."""
    lines = (
        *("assert next(STEPS) == 0, 'constructed twice'", "super().__init__()"),
        *("self.early = nn.Parameter(torch.randn(9, 9))", f"self.late = nn.Parameter({before})", f"nn.init.{filled}"),
    )
    file = tmp_path / "problem.py"
    constructor = "def __init__(self): " + "; ".join(lines)
    file.write_text(PROBLEM.format(inputs="torch.rand(9, 9)").replace("def forward", f"{constructor}\n    def forward"))
    made = Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)
    assert ("late" in made.plain) == ("normal_" not in filled)


def test_of_a_constructor_that_bears_no_watching_any_parameter_may_have_a_structure(tmp_path):
    file = tmp_path / "problem.py"
    watched = (
        "from torch.utils._python_dispatch import _get_current_dispatch_mode as mode; assert mode() is None; super()"
    )
    file.write_text(STRUCTURES.replace("super()", watched))
    made = Reference(CandidateSource(path=str(file), entries=("Model",)), "float32", CPU, 1)
    assert {"rotations", "queries", "stack"} < set(made.plain)
    assert "circulant" in made.plain
