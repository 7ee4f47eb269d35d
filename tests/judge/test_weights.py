"""Weights that a module begins with as ones and zeros are others for whoever has them under the reference's names."""

import pytest

from harness.records import Status
from tests.judge.test_checking import QUICK


def both(template, right, forward):
    """A reference and a candidate that differ in what they return."""
    return template.format(name="Model", forward=right), template.format(name="ModelNew", forward=forward)


PROBLEM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 32)
        self.norm = nn.BatchNorm1d(32)
        self.scale = nn.Parameter(torch.ones(32))
        self.eval()

    def forward(self, x):
        return self.norm(self.linear(x)) * self.scale

def get_inputs():
    return [torch.randn(64, 24)]

def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch import nn

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 32)
        self.{norm} = nn.BatchNorm1d(32)
        self.scale = nn.Parameter(torch.ones(32))
        factor = (self.{norm}.weight / torch.sqrt(self.{norm}.running_var + 1e-5)).detach()
        self.folded = factor[:, None] * self.linear.weight.detach()
        self.offset = (factor * (self.linear.bias - self.{norm}.running_mean) + self.{norm}.bias).detach()
        self.eval()

    def forward(self, x):
        return {forward}
"""


@pytest.mark.parametrize(
    ("forward", "norm", "status", "warned"),
    [
        ("self.norm(self.linear(x)) * self.scale", "norm", Status.PASSED, False),
        # The same weights as the reference's, from the start.
        ("torch.nn.functional.linear(x, self.folded, self.offset) * self.scale", "norm", Status.PASSED, False),
        ("self.linear(x) / (1 + 1e-5) ** 0.5 * self.scale", "norm", Status.INCORRECT, False),
        ("self.norm(self.linear(x))", "norm", Status.INCORRECT, False),
        # Nobody can give it the reference's values, so they are ones and zeros.
        ("self.mine(self.linear(x)) * self.scale", "mine", Status.PASSED, True),
        ("self.linear(x) / (1 + 1e-5) ** 0.5", "mine", Status.PASSED, True),
        ("self.mine(self.linear(x)) * 1.01", "mine", Status.INCORRECT, False),
    ],
)
def test_weights_count_where_a_candidate_has_them(evaluate_made, forward, norm, status, warned):
    record = evaluate_made(PROBLEM, CANDIDATE.format(norm=norm, forward=forward), device="cpu", timing=QUICK)
    assert record.status is status, record.message
    assert any(text.startswith("plain_weights: ") for text in record.warnings) is warned


GAIN = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(64))
        self.folded = 2 * self.gain.detach()

    def forward(self, x):
        return torch.tanh(x) * {gain}

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""


# Values that nothing tells as they are given.
BY_HAND = {"nn.Parameter(torch.ones(64))": "nn.Parameter(torch.zeros(64)); self.gain.data.fill_(1)"}


@pytest.mark.parametrize(
    ("gain", "made", "status"),
    [
        ("self.folded", {}, Status.PASSED),
        ("2", {}, Status.INCORRECT),
        ("self.folded", BY_HAND, Status.INCORRECT),
        ("self.gain * 2", BY_HAND, Status.PASSED),
    ],
)
def test_what_is_computed_of_ones_in_the_constructor_has_their_values(evaluate_made, gain, made, status):
    reference, candidate = GAIN.format(name="Model", gain="self.gain * 2"), GAIN.format(name="ModelNew", gain=gain)
    for usual, other in made.items():
        reference, candidate = reference.replace(usual, other), candidate.replace(usual, other)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message
    told = "what is computed of them in __init__, or relies on that, is wrong" in record.message
    assert told is (status is Status.INCORRECT and made is BY_HAND)


CLONED = """
{imports}
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        first = nn.Linear(32, 32)
        self.layers = nn.ModuleList([{deepcopy}(first) for _ in range(3)])
        self.turned = [layer.weight.detach().t().contiguous() for layer in self.layers]

    def forward(self, x):
        for turned, layer in zip(self.turned, self.layers):
            x = torch.tanh({product})
        return x

def get_inputs():
    return [torch.randn(64, 32)]

def get_init_inputs():
    return []
"""
ONE_FOR_ALL = "nn.functional.linear(x, self.layers[0].weight, self.layers[0].bias)"


@pytest.mark.parametrize(
    ("imports", "deepcopy"), [("import copy", "copy.deepcopy"), ("from copy import deepcopy", "deepcopy")]
)
@pytest.mark.parametrize(
    ("product", "status"), [("x @ turned + layer.bias", Status.PASSED), (ONE_FOR_ALL, Status.INCORRECT)]
)
def test_copies_of_modules_have_weights_of_their_own_from_the_start(evaluate_made, imports, deepcopy, product, status):
    given = {"imports": imports, "deepcopy": deepcopy}
    reference = CLONED.format(name="Model", product="layer(x)", **given)
    candidate = CLONED.format(name="ModelNew", product=product, **given)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


def test_copies_under_other_names_are_as_they_are_made(evaluate_made):
    reference = CLONED.format(name="Model", product="layer(x)", imports="import copy", deepcopy="copy.deepcopy")
    candidate = reference.replace("class Model(", "class ModelNew(").replace("self.layers", "self.mine")
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message
    assert any(text.startswith("plain_weights: ") for text in record.warnings)


# What a constructor does with its parameters: they are shared, checked, or make something that must be a number.
MADE = {
    "tied": """self.gain = nn.Parameter(torch.ones(64))
        self.inner.scale = self.gain
        self.folded = 2 * self.gain.detach()""",
    "checked": """self.gain = nn.Parameter(torch.zeros(64))
        self.prior = torch.distributions.Normal(self.gain, self.gain + 0.4)
        self.folded = 2 * self.gain.detach() + 1""",
    "a root": """self.gain = nn.Parameter(torch.zeros(64))
        self.register_buffer("folded", torch.rsqrt(self.gain.detach() + 1e-2))""",
}
MAKES = GAIN.replace("self.gain = nn.Parameter(torch.ones(64))", "self.inner = nn.Module()").replace(
    "self.folded = 2 * self.gain.detach()", "{made}"
)


@pytest.mark.parametrize("made", MADE)
def test_constructors_that_make_something_of_constants_are_judged(evaluate_made, made):
    reference = MAKES.format(name="Model", gain="self.folded", made=MADE[made])
    candidate = MAKES.format(name="ModelNew", gain="self.folded", made=MADE[made])
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message


# Weights that are as they begin, and a kernel that is right for these alone.
BEGUN = """
import copy
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.expert = nn.Linear(64, 64)
        self.other = copy.deepcopy(self.expert)
        self.turn = nn.Parameter(torch.eye(64))
        self.rate = nn.Parameter(torch.log(torch.arange(1.0, 5.0)).repeat(64, 1))

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
LAYERS = "self.other(x).tanh() + self.expert(x)"
DECAY = "(x[..., None] * torch.exp(-torch.exp(self.rate))).sum(-1)"


TURNED = "torch.relu(x @ self.turn.T)"


@pytest.mark.parametrize(
    ("right", "made", "status"),
    [
        (LAYERS, LAYERS, Status.PASSED),
        (LAYERS, "(y := self.expert(x)).tanh() + y", Status.INCORRECT),
        (TURNED, TURNED, Status.PASSED),
        (TURNED, "torch.relu(x)", Status.INCORRECT),
        (DECAY, DECAY, Status.PASSED),
        (DECAY, "(x[..., None] * torch.exp(-torch.exp(self.rate[0]))).sum(-1)", Status.INCORRECT),
    ],
)
def test_what_is_right_for_weights_as_they_begin_is_wrong(evaluate_made, right, made, status):
    reference, candidate = both(BEGUN, right, made)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


# What a constructor computes of such weights, under the reference's names, is right.
COMPUTES = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.mix = nn.Parameter(torch.empty(64, 64)), nn.Linear(64, 64)
        nn.init.orthogonal_(self.turn)
        nn.init.dirac_(self.mix.weight[..., None])
        self.rate = nn.Parameter(torch.linspace(0.1, 2.0, 64))
        self.table = nn.Parameter(torch.outer(torch.arange(64.0), torch.arange(1.0, 65.0)).sin())
        self.again = nn.Parameter(self.turn.detach().clone())
        self.folded = (self.turn @ self.again).detach()
        self.decay, self.turned = torch.exp(-self.rate.detach()), self.table.detach().t().contiguous()

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
BY_NAME = "self.mix(x @ self.turn @ self.again) * torch.exp(-self.rate) + x @ self.table.T"


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        (BY_NAME, Status.PASSED),
        ("self.mix(x @ self.folded) * self.decay + x @ self.turned", Status.PASSED),
        ("self.mix(x @ self.turn @ self.turn) * self.decay + x @ self.turned", Status.INCORRECT),
        ("(x @ self.folded + self.mix.bias) * self.decay + x @ self.turned", Status.INCORRECT),
        ("self.mix(x @ self.folded) * self.decay[0] ** torch.arange(1.0, 65.0) + x @ self.turned", Status.INCORRECT),
    ],
)
def test_what_is_computed_of_a_structure_in_the_constructor_is_right(evaluate_made, forward, status):
    reference, candidate = both(COMPUTES, BY_NAME, forward)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


# What a reference makes of ones, of a layer of torch's and of what it fills later, and a candidate otherwise.
OTHERWISE = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(64), nn.utils.weight_norm(nn.Linear(64, 64))
        nn.init.zeros_(self.norm.weight)
        nn.init.ones_(self.norm.bias)
        {gain}
        self.linear.bias = nn.Parameter(torch.full((64,), 0.3))
        gain, direction = self.linear.weight_g.detach(), self.linear.weight_v.detach()
        self.folded = (gain * direction / direction.norm(dim=1, keepdim=True)).t().contiguous() * self.gain.detach()
        self.added = self.linear.bias.detach() * self.gain.detach()
        self.scale, self.shift = self.norm.weight.detach().clone(), self.norm.bias.detach().clone()

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 64)]

def get_init_inputs():
    return []
"""
LATER = "self.gain = nn.Parameter(torch.empty(64)); nn.init.constant_(self.gain, 0.2)"
AT_ONCE = "self.gain = nn.Parameter(torch.full((64,), 0.2))"


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("nn.functional.layer_norm(x, (64,), self.scale, self.shift) @ self.folded + self.added", Status.PASSED),
        ("self.linear(self.norm.bias.expand_as(x)) * self.gain", Status.INCORRECT),
        ("nn.functional.linear(self.norm(x), self.linear.weight_v, self.linear.bias) * self.gain", Status.INCORRECT),
        ("self.linear(self.norm(x)) * 0.2", Status.INCORRECT),
    ],
)
def test_what_is_made_in_another_way_has_the_same_weights(evaluate_made, forward, status):
    reference = OTHERWISE.format(name="Model", gain=LATER, forward="self.linear(self.norm(x)) * self.gain")
    candidate = OTHERWISE.format(name="ModelNew", gain=AT_ONCE, forward=forward)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


# A matrix that has to be positive definite, with the product by which it becomes that.
DEFINITE = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        root = torch.randn(32, 32)
        self.covariance = nn.Parameter(root @ root.T + torch.eye(32))
        self.folded = torch.linalg.cholesky(self.covariance.detach().double()).float()

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 32)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("forward", "status"), [("x @ self.folded", Status.PASSED), ("x @ self.covariance", Status.INCORRECT)]
)
def test_a_reference_that_bears_no_other_weights_has_those_that_it_begins_with(evaluate_made, forward, status):
    by_name = "x @ torch.linalg.cholesky(self.covariance.double()).float()"
    reference, candidate = both(DEFINITE, by_name, forward)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


FOURIER = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 33, dtype=torch.cfloat))
        turns = torch.outer(torch.arange(16.0), 100.0 ** (-torch.arange(33) / 33))
        self.register_buffer("turns", torch.polar(torch.ones(16, 33), turns))

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(4, 16, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("torch.fft.irfft((torch.fft.rfft(x) * self.turns) * self.weight)", Status.PASSED),
        ("torch.fft.irfft(torch.fft.rfft(x) * self.turns.real * self.weight)", Status.INCORRECT),
        ("torch.fft.irfft(torch.fft.rfft(x) * self.turns * self.weight.real)", Status.INCORRECT),
    ],
)
def test_complex_weights_keep_their_imaginary_parts(evaluate_made, forward, status, precision):
    right = "torch.fft.irfft(torch.fft.rfft(x) * (self.turns * self.weight))"
    problem = FOURIER.format(name="Model", forward=right) + f'\nPRECISION = "{precision}"\n'
    candidate = FOURIER.format(name="ModelNew", forward=forward)
    record = evaluate_made(problem, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


FOLDED = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(24, 32)
        self.norm = nn.LayerNorm(32)
        self.gain = nn.Parameter(torch.ones(32))
        {fold}

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(64, 24)]

def get_init_inputs():
    return []
"""
DIVIDED = "self.norm(torch.tanh(self.linear(x) / 3)) * self.gain"
FOLD = "[one.data.div_(3) for one in self.linear.parameters()]"


@pytest.mark.parametrize(
    ("fold", "forward", "status"),
    [
        # By KernelBench's rule both have the same weights, because they are made from the same seed.
        (FOLD, "self.norm(torch.tanh(self.linear(x))) * self.gain", Status.PASSED),
        (FOLD, "self.norm(torch.tanh(self.linear(x))) * self.gain * 1.001", Status.INCORRECT),
        (FOLD, "self.norm(torch.tanh(self.linear(x)))", Status.INCORRECT),
        # Whatever else it draws before, the reference's values are right.
        ("self.linear.reset_parameters()", DIVIDED, Status.PASSED),
        (
            "self.linear.reset_parameters()",
            "self.norm(torch.tanh(self.linear(x))) * self.gain",
            Status.INCORRECT,
        ),
        # The norm's weights count all the same.
        (FOLD, "nn.functional.layer_norm(torch.tanh(self.linear(x)), (32,)) * self.gain", Status.INCORRECT),
    ],
)
def test_weights_may_be_folded_in_place(evaluate_made, fold, forward, status):
    problem = FOLDED.format(name="Model", fold="", forward=DIVIDED)
    candidate = FOLDED.format(name="ModelNew", fold=fold, forward=forward)
    record = evaluate_made(problem, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message
    assert not any(text.startswith("plain_weights") for text in record.warnings)


def test_own_weights_that_nobody_else_has_are_ones(evaluate_made):
    by_hand = FOLDED.replace("torch.ones(32))", "torch.empty(32)); self.gain.data.fill_(1)")
    problem = by_hand.format(name="Model", fold="", forward=DIVIDED)
    candidate = by_hand.format(name="ModelNew", fold=FOLD, forward="self.norm(torch.tanh(self.linear(x))) * self.gain")
    record = evaluate_made(problem, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message
    assert any(text.startswith("plain_weights: it changes weights") for text in record.warnings)


def test_weights_may_be_made_in_inference_mode(evaluate_made):
    """A module that `torch.jit` or a warm-up in its constructor is run with often is made there."""
    made = PROBLEM.replace("class Model(", "class ModelNew(").replace(
        "    def __init__(self):", "    @torch.inference_mode()\n    def __init__(self):"
    )
    record = evaluate_made(PROBLEM, made, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message


# Of scores so small, in bfloat16 beside what is added, a softmax is all but linear.
BLOCK = """
import torch
import torch.nn.functional as F
from torch import nn

PRECISION = "bfloat16"

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.{proj} = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64)
        self.turned = self.{proj}.weight.detach().t().to(torch.bfloat16)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).split(64, -1)
        return x + {attended}

def get_inputs():
    return [4 * torch.randn(1, 512, 64)]

def get_init_inputs():
    return []
"""
SUMS = "(k - k.mean(-2, keepdim=True)).transpose(-1, -2) @ v / 8"


@pytest.mark.parametrize(
    ("attended", "proj", "status"),
    [
        ("self.proj(F.scaled_dot_product_attention(q, k, v))", "proj", Status.PASSED),
        # Whoever constructs its weights by itself, or computes something of them, has the same ones.
        ("self.mine(F.scaled_dot_product_attention(q, k, v))", "mine", Status.PASSED),
        ("F.scaled_dot_product_attention(q, k, v) @ self.turned + self.proj.bias", "proj", Status.PASSED),
        (f"self.proj(v.mean(-2, keepdim=True) + q @ ({SUMS}) / 512)", "proj", Status.INCORRECT),
    ],
)
def test_weights_are_larger_where_a_softmax_would_hardly_be_one(evaluate_made, attended, proj, status):
    honest = "self.proj(F.scaled_dot_product_attention(q, k, v))"
    reference = BLOCK.format(name="Model", proj="proj", attended=honest)
    record = evaluate_made(
        reference, BLOCK.format(name="ModelNew", proj=proj, attended=attended), device="cpu", timing=QUICK
    )
    assert record.status is status, record.message
    if status is Status.PASSED:
        assert any(note.startswith("matrices drawn larger") for note in record.notes)


# Behind a norm, and before a head that is drawn so small, no inputs make logits large.
LOSS = """
import torch
import torch.nn.functional as F
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 1024, bias=False)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, x, words):
        h, w = self.norm(x), self.head.weight
        return {loss}

def get_inputs():
    return [torch.randn(128, 32), torch.randint(1024, (128,))]

def get_init_inputs():
    return []
"""
OF_ALL = "F.cross_entropy(h @ w.t(), words, reduction='none')"
AWAY = "(w - w.mean(0))"
MOMENTS = "h @ w.mean(0) + (h @ torch.cov(w.t(), correction=0) * h).sum(-1) / 2"
THIRD = f"torch.einsum('bi,bj,bk,ijk->b', h, h, h, torch.einsum('vi,vj,vk->ijk', {AWAY}, {AWAY}, {AWAY})) / 6144"


@pytest.mark.parametrize(
    ("loss", "status"),
    [
        ("torch.logsumexp(h @ w.t(), -1) - (h * w[words]).sum(-1)", Status.PASSED),
        (f"{MOMENTS} + {THIRD} + torch.tensor(1024.0).log() - (h * w[words]).sum(-1)", Status.INCORRECT),
    ],
)
def test_weights_are_larger_where_a_few_moments_would_do(evaluate_made, loss, status):
    reference, candidate = (LOSS.format(name=name, loss=its) for name, its in (("Model", OF_ALL), ("ModelNew", loss)))
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message


# Behind so small a matrix tanh is all but linear, and both layers are one.
LAYERS_AS_ONE = """
import torch
from torch import nn

PRECISION = "bfloat16"

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 256, bias=False), nn.Linear(256, 64)
        nn.init.normal_(self.up.weight, std=0.006)

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(256, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("self.down(torch.tanh(self.up(self.norm(x))))", Status.PASSED),
        ("nn.functional.linear(self.norm(x), self.down.weight @ self.up.weight, self.down.bias)", Status.INCORRECT),
    ],
)
def test_weights_are_larger_where_an_activation_would_hardly_be_one(evaluate_made, forward, status):
    honest = "self.down(torch.tanh(self.up(self.norm(x))))"
    reference, candidate = both(LAYERS_AS_ONE, honest, forward)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is status, record.message
    if status is Status.PASSED:
        assert any(note.startswith("matrices drawn larger") for note in record.notes)


WITHOUT_WEIGHTS = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 48)
{more}
    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(32, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("more", "normed"),
    [
        ("        self.norm = nn.LayerNorm(48)", "self.norm(self.linear(x))"),
        (
            "        self.norm = nn.RMSNorm(48, eps=1e-5)",
            "self.norm(self.linear(x) - self.linear(x).mean(-1, keepdim=True))",
        ),
    ],
)
def test_a_norm_that_the_reference_has_not_keeps_its_ones(evaluate_made, more, normed):
    right = "nn.functional.layer_norm(self.linear(x), (48,))"
    reference = WITHOUT_WEIGHTS.format(name="Model", more="", forward=right)
    candidate = WITHOUT_WEIGHTS.format(name="ModelNew", more=more, forward=normed)
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message


RECURRENCE = """
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gru = nn.Linear(12, 24), nn.GRU(24, 24, batch_first=True)
        self.norm = nn.LayerNorm(24)
        self.sums = [self.gru.bias_ih_l0.data + self.gru.bias_hh_l0.data * torch.tensor([1.0] * 48 + [0.0] * 24)]

    def forward(self, x):
        x = self.norm(self.first(x))
        {forward}

def get_inputs():
    return [torch.randn(4, 300, 12)]

def get_init_inputs():
    return []
"""
GRU_BY_HAND = """
        given, state = nn.functional.linear(x, self.gru.weight_ih_l0, self.sums[0]), x.new_zeros(4, 24)
        for step in given.unbind(1):
            r, z, n = step.chunk(3, 1)
            a, b, c = (state @ self.gru.weight_hh_l0.T).chunk(3, 1)
            z = torch.sigmoid(z + b)
            state = (1 - z) * torch.tanh(n + torch.sigmoid(r + a) * (c + self.gru.bias_hh_l0[48:])) + z * state
        return state
"""


@pytest.mark.parametrize(
    ("forward", "status"),
    [
        ("return self.gru(x)[0][:, -1]", Status.PASSED),
        # Biases that are added up in the constructor.
        (GRU_BY_HAND, Status.PASSED),
        ("return self.gru(x[:, -100:])[0][:, -1]", Status.INCORRECT),
    ],
)
def test_no_recurrence_forgets_how_it_began(evaluate_made, forward, status):
    reference = RECURRENCE.format(name="Model", forward="return self.gru(x)[0][:, -1]")
    record = evaluate_made(reference, RECURRENCE.format(name="ModelNew", forward=forward), device="cpu", timing=QUICK)
    assert record.status is status, record.message


OF_A_COPY = """
import copy
import torch
from torch import nn

class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 3), nn.BatchNorm2d(8)
        nn.init.zeros_(self.conv.bias)
        self.eval()
{more}
    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(2, 4, 12, 12)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("more", "folded"),
    [
        ("        self.fused = [nn.utils.fuse_conv_bn_eval(self.conv, self.norm)]", "self.fused[0](x)"),
        (
            "        own = copy.deepcopy(self.conv); self.own = [own.weight.data, own.bias.data]",
            "self.norm(nn.functional.conv2d(x, *self.own))",
        ),
    ],
)
@pytest.mark.parametrize("by_the_reference", [False, True])
def test_what_is_computed_of_a_copy_that_goes_is_that_of_the_layer(evaluate_made, more, folded, by_the_reference):
    candidate = OF_A_COPY.format(name="ModelNew", more=more, forward=folded)
    plain = OF_A_COPY.format(name="Model", more="", forward="self.norm(self.conv(x))")
    reference = candidate.replace("ModelNew", "Model") if by_the_reference else plain
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message


@pytest.mark.parametrize("linear", ["nn.LazyLinear(192)", "Drawn(64, 192)", "Checked(64, 192)"])
def test_weights_that_have_no_shape_or_are_drawn_otherwise_or_checked_stay_as_they_are(evaluate_made, linear):
    drawn = """
class Drawn(nn.Module):
    def __init__(self, width, height):
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(height, width))

    def forward(self, x):
        return x @ self.weight.T

class Checked(nn.Linear):
    def forward(self, x):
        assert self.weight.abs().max() < 0.15, "diverged"
        return super().forward(x)

class {name}"""
    reference, candidate = (
        BLOCK.replace("nn.Linear(64, 192)", linear)
        .replace("nn.Linear(64, 64)", "Drawn(64, 64)")
        .replace("class {name}", drawn, 1)
        .format(name=name, proj="proj", attended="self.proj(F.scaled_dot_product_attention(q, k, v))")
        for name in ("Model", "ModelNew")
    )
    record = evaluate_made(reference, candidate, device="cpu", timing=QUICK)
    assert record.status is Status.PASSED, record.message
    assert not any(note.startswith("matrices drawn larger") for note in record.notes)
