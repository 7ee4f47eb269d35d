"""Honest candidates whose modules hold more than plain tensors, and whose fault an exception is."""

import pytest

from harness.config import CheckConfig, TimingConfig
from harness.records import Status

QUICK = {
    "device": "cpu",
    "timing": TimingConfig(precision=0.5, budget_s=0.3, min_pairs=4, max_pairs=4),
    "check": CheckConfig(stress=False),
}
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
MODEL = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.{first}, nn.Linear(48, 64)
{init}
    def forward(self, x):
        {forward}
{rest}
"""
PLAIN = "return self.b(F.relu(self.a(x)))"
INPUTS = "def get_inputs():\n    return [torch.randn(32, 64)]\ndef get_init_inputs():\n    return []\n"


def module(name="ModelNew", forward=PLAIN, init="", rest="", first="Linear(64, 48)"):
    return HEAD + MODEL.format(name=name, forward=forward, init=init, rest=rest, first=first)


PROBLEM = module("Model") + INPUTS
CSR = "self.a.weight.detach().to_sparse_csr()"
WRAPPER = """
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        return cls(args[0].inner)
"""

EXTRA = "    def get_extra_state(self):\n        return {'version': 1}\n"
STORED = """
        from torch.ao.quantization import quantize_dynamic
        self.register_buffer("csr", torch.eye(3).to_sparse_csr())
        self.register_buffer("coo", torch.eye(3).to_sparse())
        self.register_buffer("mkldnn", torch.ones(3).to_mkldnn())
        self.register_buffer("quantized", torch.quantize_per_tensor(torch.ones(3), 1.0, 0, torch.qint8))
        self.register_buffer("expanded", torch.ones(1).expand(3))
        self.wrapped = nn.Parameter(Wrapped(torch.ones(3)), requires_grad=False)
        self.dynamic = quantize_dynamic(nn.Sequential(nn.Linear(64, 48)), {nn.Linear})
"""


@pytest.mark.parametrize(
    "candidate",
    [
        module(init=STORED, rest=EXTRA + WRAPPER, first="LazyLinear(48)"),
        module(
            forward=f"self.w = {CSR} if self.w is None else self.w\n"
            "        return self.b(F.relu((self.w @ x.t()).t() + self.a.bias))",
            init="        self.register_buffer('w', None)",
        ),
        module(
            forward="if not self.fast:\n"
            "            from torch.utils import mkldnn\n"
            "            self.fast = mkldnn.to_mkldnn(nn.Sequential(self.a, nn.ReLU(), self.b))\n"
            "        return self.fast(x.to_mkldnn()).to_dense()",
            init="        self.fast = None",
        ),
    ],
    ids=["at-first", "csr-late", "mkldnn-late"],
)
def test_a_module_may_hold_what_is_no_plain_tensor(evaluate_made, candidate):
    record = evaluate_made(PROBLEM, candidate, **QUICK)
    assert (record.status, record.message) == (Status.PASSED, "")


def test_a_reference_may_hold_it_too(evaluate_made):
    problem = module(
        "Model",
        init="        self.register_buffer('w', torch.eye(3).to_sparse_csr())",
        rest=EXTRA,
        first="LazyLinear(48)",
    )
    record = evaluate_made(problem + INPUTS, module(), **QUICK)
    assert (record.status, record.message) == (Status.PASSED, "")


@pytest.mark.parametrize(
    ("candidate", "status", "reason", "words"),
    [
        (
            HEAD + "class ModelNew(nn.Linear):\n    def __init__(self):\n        super().__init__(3, 3)\n",
            Status.RUNTIME_ERROR,
            "exception:RuntimeError",
            " (for candidate.py, of which no line called it): RuntimeError",
        ),
        (
            HEAD + "class ModelNew(nn.Module):\n    def __init__(self, size):\n        super().__init__()\n",
            Status.LOAD_ERROR,
            "exception:TypeError",
            "candidate.py: __init__ asks for 'size', which the problem does not pass",
        ),
    ],
    ids=["library", "signature"],
)
def test_an_exception_is_whose_it_is(evaluate_made, candidate, status, reason, words):
    record = evaluate_made(PROBLEM, candidate, **QUICK)
    assert (record.status, words in record.message) == (status, True), record.message
    assert record.reason.startswith(reason)
