"""Operands with eight bits leave errors that are as large at small elements as at large ones; 16 bits do not."""

import pytest
import torch
from torch import nn

from harness.oracle.oracle import Oracle

ROWS, TERMS, COLUMNS = 256, 1024, 256
DTYPES = (torch.bfloat16, torch.float16)


def stored(x):
    return x.bfloat16().double()


def exactly(x):
    return x


def integers(x):
    """Eight bits for each row."""
    step = x.abs().amax(-1, keepdim=True) / 127
    return (x / step).round() * step


def octets(x):
    step = x.abs().amax(-1, keepdim=True) / 256
    return (x / step).to(torch.float8_e4m3fn).double() * step


class Linear(nn.Module):
    def __init__(self):
        super().__init__()
        self.of = nn.Linear(TERMS, COLUMNS)

    def forward(self, x):
        return self.of(x)

    def made(self, x, operand, between):
        product = operand(x.double()) @ operand(self.of.weight.double()).mT
        return between(product) + self.of.bias.double()


class Cut(Linear):
    """Half of it is zeros."""

    def forward(self, x):
        return torch.relu(super().forward(x))

    def made(self, x, operand, between):
        return torch.relu(super().made(x, operand, between))


class Block(nn.Module):
    """What is added to its input."""

    def __init__(self):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x):
        return x + self.narrow(nn.functional.gelu(self.wide(self.norm(x))))

    def made(self, x, operand, between):
        normed = between(
            nn.functional.layer_norm(x.double(), (256,), self.norm.weight.double(), self.norm.bias.double())
        )
        wide = operand(normed) @ operand(self.wide.weight.double()).mT + self.wide.bias.double()
        middle = between(nn.functional.gelu(wide))
        narrow = operand(middle) @ operand(self.narrow.weight.double()).mT + self.narrow.bias.double()
        return x.double() + between(narrow)


class Attention(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)

    def made(self, q, k, v, operand, between):
        scores = between(operand(q.double()) @ operand(k.double()).mT / 8)
        return between(scores.softmax(-1)) @ operand(v.double().mT).mT


PROBLEMS = {
    "linear of positive": (Linear, lambda: [torch.rand(ROWS, TERMS)]),
    "linear": (Linear, lambda: [torch.randn(ROWS, TERMS)]),
    "cut": (Cut, lambda: [torch.randn(ROWS, TERMS)]),
    "block": (Block, lambda: [torch.randn(ROWS, 256)]),
    "attention": (Attention, lambda: list(torch.randn(3, 2, 4, 128, 64))),
}


def verdicts(name, dtype, operand, between):
    """Of the full check, the fast one, and that of several outputs together."""
    make, draw = PROBLEMS[name]
    module, inputs = make().to(dtype), [one.to(dtype) for one in draw()]
    oracle = Oracle(module)
    with torch.no_grad():
        got = module.made(*inputs, operand, between).to(dtype)
    full = oracle.check(oracle.expect(inputs), got)
    glance = oracle.glance(inputs)
    return full, oracle.check(glance, got, explained=False).passed, oracle.check_together([glance] * 2, [got, got])


@pytest.mark.parametrize("name", ["linear", "linear of positive", "cut"])
def test_weights_alone_in_eight_bits_are_told(name):
    make, draw = PROBLEMS[name]
    module, inputs = make().to(torch.bfloat16), [one.to(torch.bfloat16) for one in draw()]
    oracle = Oracle(module)
    expected = oracle.expect(inputs)

    def finding(operand):
        with torch.no_grad():
            product = inputs[0].double() @ operand(module.of.weight.double()).mT + module.of.bias.double()
            return oracle.check(expected, (torch.relu(product) if name == "cut" else product).to(torch.bfloat16))

    assert not finding(integers).passed
    # A factor that is folded into them.
    assert finding(lambda weight: stored(1.37 * weight) / 1.37).passed


OPERANDS = [(name, operand, dtype) for name in PROBLEMS for operand in (integers, octets) for dtype in DTYPES]


@pytest.mark.parametrize(("name", "operand", "dtype"), OPERANDS)
@pytest.mark.parametrize("between", [exactly, stored])
def test_eight_bits_are_told(name, operand, between, dtype):
    full, fast, together = verdicts(name, dtype, operand, between)
    assert (full.passed, fast, together) == (False, False, [False, False])


def test_the_reason_is_a_lower_precision():
    full, *_ = verdicts("block", torch.bfloat16, integers, exactly)
    assert full.reason == "precision_downgrade"
    assert "small elements err as much as large ones" in full.message


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("between", [exactly, stored])
def test_sixteen_bits_are_right_whatever_is_stored_between(name, between):
    full, *_ = verdicts(name, torch.bfloat16, exactly, between)
    assert full.passed, full.message
