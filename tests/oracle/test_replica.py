"""Each run of the reference starts from the same state, also where runs share a replica."""

import threading

import pytest
import torch
from torch import nn

from harness.oracle import exact
from harness.oracle.exact import ExactReference
from harness.oracle.oracle import Oracle
from harness.oracle.replica import replica


class Stateful(nn.Module):
    """A module whose forward does something to itself, each time to something else."""

    def __init__(self, act):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("mean", torch.zeros(3))
        self.count = 0
        self.kept = []
        self.drawn = torch.Generator().manual_seed(3)
        self.act = [act]

    def forward(self, x):
        return self.act[0](self, x)


def counted(self, x):
    self.count += 1
    return x * self.count


def appended(self, x):
    self.kept.append(x)
    return x + len(self.kept)


def averaged(self, x):
    self.mean += x.mean(0)
    return x - self.mean


def replaced(self, x):
    self.mean = self.mean + 1
    return x + self.mean


def returned(self, x):
    self.mean.add_(1)
    return self.mean


def drew(self, x):
    return x + torch.rand(3, generator=self.drawn)


def raised(self, x):
    self.count += 1
    if x.sum() < 0:
        raise ValueError("negative")
    return x * self.count


@pytest.mark.parametrize("act", [counted, appended, averaged, replaced, returned, drew, raised])
def test_no_run_sees_what_another_one_did(act):
    module = Stateful(act)
    if act is not drew:
        del module.drawn
    reference = ExactReference(module)
    x = torch.rand(4, 3)
    outputs = []
    for _ in range(4):
        outputs.append(reference.native([x], 1))
        if act is raised:
            with pytest.raises(ValueError, match="negative"):
                reference.native([-x], 1)
    fresh = ExactReference(module).native([x], 1)
    for output in outputs:
        assert torch.equal(output, fresh)


@pytest.mark.parametrize(("act", "made"), [(averaged, 2), (lambda self, x: x + self.mean, 2), (counted, 5)])
def test_runs_share_a_replica_that_can_be_put_back(act, made, monkeypatch):
    counts = []
    replica = exact.replica

    def counting(*arguments):
        counts.append(arguments)
        return replica(*arguments)

    monkeypatch.setattr("harness.oracle.exact.replica", counting)
    monkeypatch.setattr("harness.oracle.replica.replica", counting)
    module = Stateful(act)
    del module.drawn
    reference = ExactReference(module)
    for _ in range(5):
        reference.native([torch.rand(4, 3)], 1)
    # The first tells whether parameters are written to.
    assert len(counts) == made


def test_what_cannot_be_copied_is_shared():
    class Locked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.lock = nn.Linear(4, 4), threading.Lock()

        def forward(self, x):
            with self.lock:
                return self.linear(x)

    module = Locked()
    made = replica(module, lambda t: t.double())
    assert made.lock is module.lock
    assert made(torch.ones(4, dtype=torch.float64)).dtype is torch.float64
    assert module.linear.weight.dtype is torch.float32


class Step(nn.Module):
    """A forward with a backward in it, as a training step has."""

    def __init__(self, accumulates):
        super().__init__()
        self.linear, self.accumulates = nn.Linear(16, 8), accumulates

    def forward(self, x):
        with torch.enable_grad():
            loss = self.linear(x).square().mean()
            if not self.accumulates:
                return torch.autograd.grad(loss, list(self.linear.parameters()))
            self.zero_grad()
            loss.backward()
        return tuple(parameter.grad.clone() for parameter in self.linear.parameters())


@pytest.mark.parametrize("accumulates", [False, True])
def test_parameters_have_gradients_where_the_reference_asks_for_them(accumulates):
    torch.manual_seed(0)
    module, x = Step(accumulates), torch.randn(32, 16)
    oracle = Oracle(module)
    with torch.no_grad():
        expected = oracle.expect([x])
        right, wrong = (tuple(factor * one for one in expected.native) for factor in (1.0, 1.01))
        assert oracle.check(expected, right).passed
        assert not oracle.check(expected, wrong).passed
        again = oracle.expect([x])
    assert all(torch.equal(one, other) for one, other in zip(expected.native, again.native, strict=True))
