"""Drawn weights in place of ones and zeros."""

import copy
import gc
import itertools
import types
import weakref

import pytest
import torch
from torch import nn

from harness.catalog import modules
from harness.wire import weights
from harness.wire.begun import Begun

OWN = """from torch import nn
class Own(nn.Linear):
    def __init__(self, width, height=3):
        super().__init__(width, height)
"""
PARTIAL = "import functools\nModelNew = functools.partial(Own, height=4)"


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 8)
        self.norm, self.other, self.group = nn.BatchNorm1d(8), nn.LayerNorm(8), nn.GroupNorm(2, 4)
        self.scale, self.shift = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(()))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.register_buffer("mask", torch.ones(3))


def made(seed=7):
    """A model, and what its normalisations were constructed with."""
    torch.manual_seed(1)
    with weights.drawn(weights.Drawn(seed)) as drawn:
        return Model(), drawn


def test_no_norm_is_constructed_with_ones_and_zeros():
    model, _ = made()
    for norm in (model.norm, model.other, model.group):
        for tensor in (norm.weight, norm.bias):
            assert len(tensor.unique()) == tensor.numel()
            assert ((tensor == 0) | (tensor == 1)).sum() == 0
    assert bool((model.norm.running_var >= 0.5).all())
    assert bool((model.norm.weight.abs() >= 0.5).all())
    assert model.norm.num_batches_tracked == 0


@pytest.mark.parametrize("source", ["ModelNew = Own", "def ModelNew(width): return Own(width)", PARTIAL])
def test_whatever_makes_a_module_is_called(tmp_path, source):
    path = tmp_path / "candidate.py"
    path.write_text(f"{OWN}{source}\n")
    model = weights.constructed(modules.execute(path), ("ModelNew", "Model"), [2])
    assert model.in_features == 2


def test_what_makes_no_module_is_named(tmp_path):
    path = tmp_path / "candidate.py"
    path.write_text("def ModelNew(width):\n    return {}\n")
    with pytest.raises(
        modules.LoadFault, match=r"^ModelNew in candidate\.py makes a dict, and no torch\.nn\.Module$"
    ) as raised:
        weights.constructed(modules.execute(path), ("ModelNew", "Model"), [2])
    assert raised.value.reason == "not_a_module"


EQUAL = """
import copy
from dataclasses import dataclass
from torch import nn

@dataclass{eq}
class Equal(nn.Module):
    width: int

    def __post_init__(self):
        super().__init__()

class Parent(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.child = nn.Sequential(Equal(width))

class Copying(nn.Module):
    def __init__(self, width):
        super().__init__()
        copy.deepcopy(Equal(width))

"""


@pytest.mark.parametrize("made", ["Equal", "Parent", "Copying"])
def test_a_module_that_is_in_no_set_is_told_how_to_be(tmp_path, made):
    path = tmp_path / "candidate.py"
    source = f"{EQUAL}\nModelNew = {made}\n"

    def constructed(eq):
        path.write_text(source.replace("{eq}", eq))
        module = modules.execute(path)
        with weights.drawn(weights.Drawn(7), module):
            return weights.constructed(module, ("ModelNew",), [2])

    with pytest.raises(
        modules.LoadFault, match=r"^Equal defines __eq__ and no __hash__.*@dataclass\(eq=False\)"
    ) as raised:
        constructed("")
    assert raised.value.reason == "not_a_module"
    assert isinstance(constructed("(eq=False)"), nn.Module)


def test_what_poses_as_a_module_is_no_fault_here(tmp_path):
    path = tmp_path / "candidate.py"
    lines = ("    __class__ = nn.Module", "    def __getattr__(self, name): return lambda: {}")
    path.write_text("\n".join(("from torch import nn", "class ModelNew:", *lines)))
    assert isinstance(weights.constructed(modules.execute(path), ("ModelNew",), []), nn.Module)


def test_a_constructor_that_leaves_out_the_one_of_modules_is_no_fault_here(tmp_path):
    path = tmp_path / "candidate.py"
    path.write_text("from torch import nn\nclass ModelNew(nn.Module):\n    def __init__(self): self.width = 3\n")
    assert weights.constructed(modules.execute(path), ("ModelNew",), []).width == 3


def test_values_depend_on_role_and_size_and_how_many_came_before():
    model, _ = made()
    assert not torch.equal(model.norm.weight, model.other.weight)
    with weights.drawn(weights.Drawn(7)):
        assert torch.equal(nn.LayerNorm(8).weight, model.norm.weight)
        assert torch.equal(nn.LayerNorm(8).weight, model.other.weight)
    with weights.drawn(weights.Drawn(8)):
        assert not torch.equal(nn.LayerNorm(8).weight, model.norm.weight)


def test_copies_and_parameters_alike_get_values_of_their_own():
    with weights.drawn(weights.Drawn(7)) as drawn:
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        model.alike = nn.ParameterList(nn.Parameter(torch.ones(8)) for _ in range(2))
        before = copy.deepcopy(dict(model.state_dict()))
    plain, redrawn = weights.draw_the_rest(model, drawn)
    of_layers = [getattr(one, name).weight for one in model.layers for name in ("norm1", "norm2")]
    values = [*of_layers, *model.alike]
    assert len({tuple(one.tolist()) for one in values}) == len(values)
    assert {"layers.1.norm1.weight", "layers.1.norm2.bias", "alike.0", "alike.1"} <= set(plain) - redrawn
    # What is computed of them in a constructor is right.
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items() if name not in redrawn)
    assert not any("norm" in name for name in redrawn)


def test_who_constructs_copies_like_the_reference_has_its_values_from_the_start():
    def construct(only=None):
        torch.manual_seed(3)
        with weights.drawn(weights.Drawn(7, only)) as drawn:
            block = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8), nn.BatchNorm1d(8))
            nn.init.zeros_(block[1].bias)
            return nn.Sequential(*(copy.deepcopy(block) for _ in range(2))), drawn

    model, drawn = construct()
    weights.draw_the_rest(model, drawn)
    other, _ = construct(drawn.parameters)
    assert all(torch.equal(one, other.state_dict()[name]) for name, one in model.state_dict().items())
    assert not torch.equal(model[0][0].weight, model[1][0].weight)
    # A copy that the reference does not make is one.
    with weights.drawn(weights.Drawn(7, frozenset())):
        own = nn.LayerNorm(8)
        assert torch.equal(copy.deepcopy(own).weight, own.weight)


def test_a_constant_in_place_of_the_reference_s_parameter_has_its_values():
    def scale(only, **options):
        with weights.drawn(weights.Drawn(7, only)) as drawn:
            module = nn.Module()
            module.scale = nn.Parameter(torch.ones(3), **options)
            return module.scale, drawn

    own, drawn = scale(None)
    assert not torch.equal(own, torch.ones(3))
    assert torch.equal(scale(drawn.parameters, requires_grad=False)[0], own)
    assert torch.equal(scale(frozenset(), requires_grad=False)[0], torch.ones(3))


def test_what_was_made_without_a_gradient_and_is_trained_is_no_constant():
    with weights.drawn(weights.Drawn(7)) as drawn:
        module = nn.Module()
        module.low = nn.Parameter(torch.eye(9), requires_grad=False)
        module.kept = nn.Parameter(torch.eye(9), requires_grad=False)
        module.low.requires_grad_(True)
    weights.draw_the_rest(module, drawn)
    assert torch.equal(module.kept, torch.eye(9))
    assert int((module.low == 0).sum()) == 0


def test_other_weights_and_what_is_made_outside_are_as_ever():
    model, _ = made()
    torch.manual_seed(1)
    assert torch.equal(model.linear.weight, Model().linear.weight)
    assert torch.equal(nn.LayerNorm(8).weight, torch.ones(8))


def test_the_rest_is_drawn_in_place_and_all_is_told():
    model, drawn = made()
    plain, redrawn = weights.draw_the_rest(model, drawn)
    assert not redrawn
    assert drawn.parameters == {("scale", 3), ("shift", 1)}
    norms = [f"{norm}.{name}" for norm in ("norm", "other", "group") for name in ("weight", "bias")]
    assert set(plain) == {"scale", "shift", "norm.running_mean", "norm.running_var", *norms}
    assert all(
        torch.equal(value, torch.full_like(value, float("weight" in name or "var" in name or name == "scale")))
        for name, value in plain.items()
    )
    assert bool((model.scale != 1).all())
    assert float(model.shift.detach()) != 0
    assert torch.equal(model.frozen, torch.ones(3))
    assert torch.equal(model.mask, torch.ones(3))


LOW_RANK = """
import torch
from torch import nn
from torch.nn.init import zeros_ as emptied

class Adapter(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(6, 8)
        self.down = nn.Linear(6, 2, bias=False)
        self.up = nn.Linear(2, 8, bias=False)
        emptied(self.up.weight)
        self.gain = nn.Parameter(torch.ones(8))
        self.tied = nn.Module()
        self.tied.gain = self.gain
        self.merged = (self.base.weight + self.up.weight @ self.down.weight).detach() * self.gain[:, None].detach()

class Overwritten(nn.Module):
    def __init__(self):
        super().__init__()
        self.forget = nn.Parameter(torch.zeros(8))
        self.forget.data[:4] = 1
        self.kept = nn.Parameter(torch.zeros(8))
        # Of the same name and size as one that is none.
        self.one, self.other = nn.Linear(6, 5), nn.Linear(6, 5)
        nn.init.zeros_(self.one.bias)
"""


@pytest.fixture
def low_rank(tmp_path):
    path = tmp_path / "low_rank.py"
    path.write_text(LOW_RANK)
    return modules.execute(path)


def constructed(module, name, found):
    torch.manual_seed(1)
    with weights.drawn(found, module):
        return weights.constructed(module, (name,), [])


def test_what_is_computed_of_constants_in_the_constructor_is_of_the_drawn_ones(low_rank):
    found = weights.Drawn(7)
    model = constructed(low_rank, "Adapter", found)
    plain, redrawn = weights.draw_the_rest(model, found)
    # Tied ones stay so.
    assert (set(plain), redrawn) == ({"up.weight", "gain"}, frozenset())
    assert not found.undone
    assert model.gain is model.tied.gain
    merged = (model.base.weight + model.up.weight @ model.down.weight) * model.gain[:, None]
    torch.testing.assert_close(model.merged, merged.detach())
    assert len(model.up.weight.unique()) == 16
    # A runner draws what it is told, and nothing else of its own.
    again = constructed(low_rank, "Adapter", weights.Drawn(7, only=found.parameters))
    torch.testing.assert_close(again.merged, model.merged, rtol=0, atol=0)
    other = constructed(low_rank, "Adapter", weights.Drawn(7, only=frozenset({("gain", 8)})))
    assert torch.equal(other.gain, model.gain)
    assert not other.up.weight.any()
    assert low_rank.emptied is nn.init.zeros_


def test_constants_that_are_changed_in_part_are_told(low_rank):
    found = weights.Drawn(7)
    constructed(low_rank, "Overwritten", found)
    assert found.undone == {("forget", 8)}
    model = constructed(low_rank, "Overwritten", weights.Drawn(7, without=found.undone))
    assert model.forget.tolist() == [1.0] * 4 + [0.0] * 4
    assert len(model.kept.unique()) == 8


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(6, 8)
        self.other = copy.deepcopy(self.one)
        self.shared = self.one
        self.recurrent, self.handed = nn.Parameter(torch.eye(8)), nn.Conv2d(4, 4, 3, bias=False)
        nn.init.dirac_(self.handed.weight)
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, 5.0)).repeat(16, 1))
        self.steps, self.levels = nn.Parameter(torch.arange(5.0)), nn.Parameter(torch.linspace(-4.0, 4.0, 33))
        self.heads = nn.Parameter(torch.randn(4, 12).repeat(6, 1))
        self.inflated = nn.Parameter(torch.randn(4, 3, 1, 9).repeat(1, 1, 5, 1))
        self.turned, self.tall = nn.Parameter(torch.empty(64, 64)), nn.Parameter(torch.empty(48, 2, 8))
        nn.init.orthogonal_(self.turned)
        nn.init.orthogonal_(self.tall)
        self.spectrum = nn.Parameter(torch.randn(2, 9, dtype=torch.cfloat).repeat(4, 1))
        self.slope = nn.PReLU(8)
        self.mask = nn.Parameter(torch.eye(7), requires_grad=False)
        self.small = nn.Parameter(torch.eye(8).to(torch.float8_e4m3fn), requires_grad=True)


def test_structure_that_no_training_keeps_is_changed():
    torch.manual_seed(1)
    model, found = Structured(), weights.Drawn(7)
    before = {name: tensor.detach().clone() for name, tensor in model.named_parameters(remove_duplicate=False)}
    plain, redrawn = weights.draw_the_rest(model, found)
    changed = {"other.weight", "other.bias", "recurrent", "handed.weight", "decay", "levels", "heads", "inflated"}
    assert redrawn == {*changed, "turned", "tall", "spectrum"} == set(plain)
    for name, tensor in plain.items():
        assert torch.equal(tensor, before[name])
        assert not torch.isclose(model.get_parameter(name), tensor, rtol=1e-3).all()
        assert torch.isfinite(model.get_parameter(name)).all()
    # A state that goes through it a hundred times neither grows beyond bounds nor is nothing.
    state = torch.linalg.matrix_power(model.recurrent.detach(), 100).norm()
    assert 1e-8 < state < 1e3
    # Each copy has numbers of its own.
    assert set(model.other.weight.unique().tolist()).isdisjoint(before["other.weight"].unique().tolist())
    assert 1e-3 < torch.linalg.matrix_power(model.turned.detach(), 50).norm() < 1e3
    levels = model.levels.detach()
    assert levels.diff().min() > 0
    assert (levels[0], levels[-1]) == (-4, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.cfloat])
@pytest.mark.parametrize("shape", [(8, 64), (512, 33), (64,), (16, 4, 3, 3), (7, 7)])
def test_drawn_numbers_have_no_structure(shape, dtype):
    torch.manual_seed(2)
    model = nn.Module()
    for number in range(20):
        wide = torch.randn(shape, dtype=torch.cfloat if dtype.is_complex else torch.float64)
        model.register_parameter(f"drawn_{number}", nn.Parameter(wide.to(dtype)))
        model.register_parameter(f"positive_{number}", nn.Parameter(wide.abs().to(dtype)))
    assert weights.draw_the_rest(model, weights.Drawn(7)) == ({}, frozenset())


class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        one = nn.Linear(6, 8)
        self.experts = nn.ModuleList([one, copy.deepcopy(one)])
        self.filter = nn.Parameter(torch.tensor([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]))
        self.blur, self.again = (nn.Parameter(torch.hann_window(9), requires_grad=False) for _ in range(2))
        self.requires_grad_(False)


def test_copies_are_told_in_a_model_that_is_frozen_for_inference_and_filters_stay():
    with weights.drawn(weights.Drawn(7)) as found:
        Frozen()
    assert found.undone == {("filter", 9)}
    with weights.drawn(weights.Drawn(7, without=found.undone)) as found:
        model = Frozen()
    assert set(weights.draw_the_rest(model, found)[0]) == {"experts.1.weight", "experts.1.bias"}


class Computes(nn.Module):
    """Of weights that begin with a structure."""

    def __init__(self):
        super().__init__()
        self.turned, self.linear = nn.Parameter(torch.empty(16, 16)), nn.Linear(16, 16)
        nn.init.orthogonal_(self.turned)
        nn.init.eye_(self.linear.weight)
        self.levels, self.table = nn.Parameter(torch.linspace(-4.0, 4.0, 33)), nn.Parameter(torch.arange(64.0).sin())
        self.one = nn.Parameter(torch.randn(16, 16))
        self.other, self.third = nn.Parameter(self.one.detach().clone()), nn.Parameter(torch.eye(16))
        self.shared = self.levels
        self.computed = [tensor.detach().clone() for tensor in self.parameters()]


TABLE = frozenset({("table", 64)})


def test_what_is_computed_of_a_structure_in_the_constructor_is_of_the_changed_one():
    def made(**which):
        torch.manual_seed(1)
        with weights.drawn(weights.Drawn(7, structured=TABLE, **which)) as found:
            return Computes(), found

    model, found = made()
    names = dict(model.named_parameters())
    for tensor, before in zip(names.values(), model.computed, strict=True):
        assert torch.equal(tensor, before)
    plain, redrawn = weights.draw_the_rest(model, found, frozenset({"table"}))
    assert set(plain) == {"turned", "linear.weight", "levels", "table", "other", "third"}
    assert (redrawn, found.undone) == (frozenset(), frozenset())
    torch.testing.assert_close(plain["turned"] @ plain["turned"].T, torch.eye(16))
    assert torch.equal(plain["linear.weight"], torch.eye(16))
    assert torch.equal(plain["other"], model.one)
    assert not any(torch.equal(names[name], value) for name, value in plain.items())
    # Two that begin alike have nothing in common.
    assert not torch.equal(model.third.sort().values, model.linear.weight.sort().values)
    # A runner makes the same of what it is told, and of nothing else.
    again, _ = made(only=found.parameters)
    for name, tensor in again.named_parameters():
        assert torch.equal(tensor, names[name])
    other, _ = made(only=frozenset({("levels", 33)}))
    assert torch.equal(other.levels, model.levels)
    assert torch.equal(other.third, torch.eye(16))


def test_a_structure_that_is_written_over_is_told():
    class Overwritten(nn.Module):
        def __init__(self):
            super().__init__()
            self.turn, self.kept = nn.Parameter(torch.eye(8)), nn.Parameter(torch.eye(8))
            self.turn.data[0] = 1

    with weights.drawn(weights.Drawn(7)) as found:
        Overwritten()
    assert found.undone == {("turn", 64)}
    with weights.drawn(weights.Drawn(7, without=found.undone)) as found:
        model = Overwritten()
    assert torch.equal(model.turn[1:], torch.eye(8)[1:])
    assert found.parameters == {("kept", 64)}


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.other = nn.BatchNorm1d(8), nn.BatchNorm1d(8)
        nn.init.zeros_(self.norm.weight)
        self.other.weight.data.zero_()
        self.scale = self.norm.weight.detach().clone()


def test_norms_that_are_zeroed_are_drawn_and_known_for_that():
    with weights.drawn(weights.Drawn(7)) as found:
        model = Residual()
    assert torch.equal(model.scale, model.norm.weight)
    plain, redrawn = weights.draw_the_rest(model, found)
    assert redrawn == {"other.weight"}
    for name in ("norm", "other"):
        assert not plain[f"{name}.weight"].any()
        assert model.get_submodule(name).weight.abs().min() >= 0.5
    assert bool((plain["norm.running_var"] == 1).all())


def test_complex_numbers_that_hide_what_they_multiply_are_drawn():
    model = nn.Module()
    model.filter = nn.Parameter(torch.ones(4, 9, dtype=torch.cfloat))
    model.turned = nn.Parameter(torch.full((4, 9), 1j))
    assert set(weights.draw_the_rest(model, weights.Drawn(7))[0]) == {"filter"}
    assert model.filter.imag.abs().min() > 0


def test_where_a_module_is_constructed_makes_no_difference():
    with torch.device("meta"), weights.drawn(weights.Drawn(7)):
        assert nn.LayerNorm(8).weight.is_meta
        assert not nn.LayerNorm(8, device="cpu").weight.eq(1).any()


def test_what_a_model_sets_by_itself_stays():
    with weights.drawn(weights.Drawn(7)) as drawn:
        model = nn.Sequential(nn.LayerNorm(8))
        nn.init.constant_(model[0].weight, 2.0)
    assert set(weights.draw_the_rest(model, drawn)[0]) == {"0.bias"}
    assert torch.equal(model[0].weight, torch.full((8,), 2.0))


@pytest.mark.parametrize(("size", "drawn"), [(1e-6, True), (-1e-4, True), (1e-2, False), (0.25, False)])
def test_a_constant_that_hides_what_it_multiplies_is_drawn(size, drawn):
    model = nn.Module()
    model.gamma = nn.Parameter(torch.full((5,), size))
    plain, _ = weights.draw_the_rest(model, weights.Drawn(7))
    assert bool((model.gamma >= 0.5).all()) is drawn
    if drawn:
        assert torch.equal(plain["gamma"], torch.full((5,), size))


def test_half_precision_has_the_same_values_rounded():
    model, drawn = made()
    model.half()
    assert "norm.weight" in weights.draw_the_rest(model, drawn)[0]
    assert torch.equal(model.norm.weight, made()[0].norm.weight.half())


@pytest.mark.parametrize(
    ("dtype", "paired"),
    [
        (torch.float32, torch.complex64),
        (torch.float64, torch.complex128),
        (torch.float16, torch.complex64),
        (torch.bfloat16, torch.complex64),
    ],
)
def test_each_kind_of_number_is_cast_to_its_own(dtype, paired):
    model = nn.LazyLinear(4)
    model.register_buffer("turns", torch.randn(3, dtype=torch.complex64))
    model.register_buffer("index", torch.arange(3))
    model.register_parameter("scale", nn.Parameter(torch.ones(3, dtype=torch.complex128)))
    turns = model.turns
    weights.cast(model, torch.device("cpu"), dtype)
    assert torch.equal(model.turns, turns.to(paired))
    assert (model.scale.dtype, model.index.dtype, model.bias.dtype) == (paired, torch.int64, dtype)
    assert model(torch.ones(2, 3, dtype=dtype)).dtype is dtype


def test_matrices_are_drawn_larger_and_all_else_is_as_it_was():
    file = types.ModuleType("file")
    file.own_name = nn.init.normal_

    def drawn(factor):
        torch.manual_seed(3)
        with weights.larger(factor, file):
            return nn.ModuleList(
                [nn.Linear(6, 8), nn.Conv2d(2, 3, 3), nn.MultiheadAttention(8, 2), nn.Embedding(5, 4), nn.GRU(3, 4)]
            )

    usual, larger = (dict(drawn(factor).named_parameters()) for factor in (1.0, 3.0))
    for name, tensor in usual.items():
        torch.testing.assert_close(larger[name], tensor * (3.0 if tensor.dim() > 1 else 1.0))
    with weights.larger(3.0, file):
        assert file.own_name(torch.empty(40, 40)).std() > 2
    assert file.own_name is nn.init.normal_
    # Nothing of it is left behind.
    torch.manual_seed(3)
    assert torch.equal(nn.Linear(6, 8).weight, usual["0.weight"])


class Copied(nn.Module):
    def __init__(self, change=None):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8))
        self.second = copy.deepcopy(self.first)
        self.third = copy.deepcopy(self.second)
        self.frozen = copy.deepcopy(nn.Linear(6, 8).requires_grad_(False))
        if change:
            nn.init.normal_(self.second[0].weight)


def test_copies_are_moved_from_the_start_and_known_for_what_they_were():
    found = weights.Drawn(7)
    with weights.drawn(found):
        model = Copied()
        again = copy.deepcopy({"no": "module"})
    assert again == {"no": "module"}
    before = [part[0].weight.detach().clone() for part in (model.first, model.second, model.third)]
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(before, 2))
    model.half()
    plain, redrawn = weights.draw_the_rest(model, found)
    for part in ("second", "third"):
        assert torch.equal(plain[f"{part}.0.weight"], model.first[0].weight)
        assert f"{part}.0.weight" not in redrawn
    assert "first.0.weight" not in plain
    assert not any(name.startswith("frozen") for name in plain)
    # The second side is told which, and makes the same.
    other = weights.Drawn(7, only=found.parameters)
    torch.manual_seed(3)
    with weights.drawn(other):
        torch.manual_seed(3)
        one = Copied()
    with weights.drawn(weights.Drawn(7)):
        torch.manual_seed(3)
        two = Copied()
    assert torch.equal(one.third[0].weight, two.third[0].weight)
    assert copy.deepcopy is before_all


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.LSTM(6, 16, 2),
        lambda: nn.GRU(6, 16, bidirectional=True),
        lambda: nn.LSTMCell(6, 16),
        lambda: nn.GRUCell(6, 16),
    ],
)
def test_some_units_of_a_recurrence_hold_on_to_their_state_on_both_sides(make):
    found, without = weights.Drawn(7), dict(seeded(make).named_parameters())
    with weights.drawn(found):
        model = seeded(make)
    plain, redrawn = weights.draw_the_rest(model, found)
    assert plain
    assert not redrawn
    for name, own in model.named_parameters():
        if name.startswith("bias_hh"):
            assert torch.equal(plain[name], without[name])
            more = (own - without[name]).detach()
            assert torch.equal(more.nonzero()[:, 0], torch.arange(16, 32, 4))
            torch.testing.assert_close(more[16:32:4], torch.linspace(4, 8, 4))
        else:
            assert torch.equal(own, without[name])
    with weights.drawn(weights.Drawn(7, only=found.parameters)):
        other = seeded(make)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), other.parameters(), strict=True))


def test_a_recurrence_that_is_given_other_biases_has_those():
    class Opened(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(6, 16)
            nn.init.ones_(self.gru.bias_hh_l0)

    found = weights.Drawn(7)
    with weights.drawn(found):
        model = Opened()
    plain, _ = weights.draw_the_rest(model, found)
    assert torch.equal(plain["gru.bias_hh_l0"], torch.ones(48))
    assert not found.undone


@pytest.mark.parametrize("make", [lambda: nn.RNN(6, 16), lambda: nn.GRU(6, 16, bias=False)])
def test_what_has_no_gates_with_biases_stays(make):
    with weights.drawn(weights.Drawn(7)):
        model = seeded(make)
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), seeded(make).parameters(), strict=True))


def seeded(make):
    torch.manual_seed(3)
    return make()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("shape", [(2, 64, 4), (2, 256, 8, 16), (4096, 2), (64, 2), (512, 4), (2, 512), (64, 1, 2, 2)])
def test_what_is_drawn_in_few_bits_has_no_structure_by_chance(shape, dtype):
    begun = Begun(7)
    for seed in range(20):
        drawn = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
        assert begun.changed(drawn, "weight") is None


before_all = copy.deepcopy


def test_copies_that_are_changed_since_are_told():
    found = weights.Drawn(7)
    with weights.drawn(found):
        Copied(change=True)
    assert found.undone == {("0.weight", 48)}
    without = weights.Drawn(7, without=found.undone)
    with weights.drawn(without):
        model = Copied()
    assert torch.equal(model.first[0].weight, model.second[0].weight)
    assert not torch.equal(model.first[0].bias, model.second[0].bias)


def test_who_takes_a_replaced_function_keeps_nothing_of_what_was_drawn():
    """As a module does that is imported meanwhile."""
    with weights.drawn(weights.Drawn(7)) as drawn:
        taken, model = copy.deepcopy, nn.LayerNorm(4)
        taken_init, taken_reset = nn.init.ones_, nn.LayerNorm.reset_parameters
    ends = weakref.ref(drawn)
    del drawn
    gc.collect()
    assert ends() is None
    assert torch.equal(taken(model).weight, model.weight)
    taken_reset(model)
    assert bool((model.weight == 1).all())
    assert bool((taken_init(model.bias) == 1).all())
