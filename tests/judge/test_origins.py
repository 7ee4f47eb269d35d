"""What is known of where a parameter's numbers come from."""

import copy

import pytest
import torch
from torch import nn

from harness.judge.origins import Origins

WIDE = 64


def not_drawn(make):
    """Names of the parameters, numbered as `make` returns them, that were not drawn."""
    torch.manual_seed(1)
    origins = Origins()
    with origins:
        model = nn.ParameterList(nn.Parameter(one) for one in make())
    return list(origins.not_drawn(model))


def normal(*shape):
    return torch.randn(*(shape or (WIDE, WIDE)))


def written(write):
    """A drawn matrix that is written to."""

    def make():
        matrix = normal()
        write(matrix)
        return [matrix]

    return make


def by_parts(draw):
    """A matrix that is filled part by part."""

    def make():
        matrix = torch.empty(WIDE, WIDE)
        for part in matrix.chunk(4):
            draw(part)
        return [matrix]

    return make


def in_its_own_way():
    layer = nn.Linear(WIDE, WIDE)
    nn.init.trunc_normal_(layer.weight)
    return [layer.weight.detach(), layer.bias.detach(), *(one.detach() for one in nn.GRU(WIDE, WIDE).parameters())]


@pytest.mark.parametrize(
    "make",
    [
        lambda: [normal(), torch.rand(WIDE, WIDE), torch.empty(WIDE, WIDE).uniform_(-1, 1)],
        lambda: [normal() * 0.02 + 1, -torch.rand(WIDE, WIDE).log(), torch.normal(0.0, 2.0, (WIDE, WIDE))],
        lambda: [torch.cat([normal(), normal(8, WIDE)]), torch.stack([normal(), normal()])],
        lambda: [normal().double(), normal().bfloat16(), torch.randn(WIDE, WIDE, dtype=torch.complex64)],
        by_parts(lambda part: part.normal_()),
        by_parts(nn.init.xavier_uniform_),
        by_parts(lambda part: part.copy_(torch.randn(part.shape))),
        written(lambda matrix: matrix[3].zero_()),
        written(lambda matrix: matrix.mul_(0.1).clamp_(-1, 1)),
        in_its_own_way,
    ],
)
def test_what_is_drawn_number_by_number(make):
    assert not_drawn(make) == []


def shared(join):
    """Three parameters, each made of a part that is common and one of its own."""

    def make():
        common = normal()
        return [join(common, normal()) for _ in range(3)]

    return make


@pytest.mark.parametrize(
    "make",
    [
        shared(lambda common, own: torch.cat([common, own])),
        shared(lambda common, own: torch.where(own > 0, common, own)),
        shared(lambda common, own: common * 0.5),
        lambda: [normal(), *(torch.randn(WIDE, WIDE, generator=torch.Generator().manual_seed(3)) for _ in range(3))][
            1:
        ],
    ],
)
def test_who_has_a_draw_in_common_with_another_is_told(make):
    assert not_drawn(make) == ["1", "2"]


@pytest.mark.parametrize(
    "make",
    [
        # Numbers that need few digits.
        lambda: [torch.randint(-127, 128, (WIDE, WIDE)) * 0.01],
        lambda: [normal().half().float()],
        lambda: [normal().bfloat16().float() * 1.0],
        lambda: [(normal() * 40).to(torch.int8).float()],
        lambda: [torch.bernoulli(torch.rand(WIDE, WIDE))],
        # What somebody else has written.
        written(lambda matrix: torch.mm(normal(WIDE, 2), normal(2, WIDE), out=matrix)),
        written(lambda matrix: matrix.numpy().__setitem__(slice(None), (normal(WIDE, 2) @ normal(2, WIDE)).numpy())),
        written(lambda matrix: matrix[:, 8:].mul_(0.0)),
        written(lambda matrix: matrix.data.copy_(normal(WIDE, 2) @ normal(2, WIDE))),
        written(lambda matrix: matrix[:32].copy_(matrix[32:].clone())),
        written(lambda matrix: torch._foreach_mul_([matrix], 2.0)),
        # The same, part by part.
        by_parts(lambda part: part.normal_(0, 1, generator=torch.Generator().manual_seed(0))),
        # Next to nothing, but for some.
        lambda: [torch.normal(0.0, torch.eye(WIDE) + 1e-9)],
        lambda: [torch.normal(torch.eye(WIDE), 1e-4)],
        lambda: [torch.normal(normal(WIDE, 2) @ normal(2, WIDE), 1e-4)],
        lambda: [torch.exp(-30 * torch.rand(WIDE, WIDE))],
    ],
)
def test_what_is_not(make):
    assert not_drawn(make) == ["0"]


def test_copies_of_a_module_are_told():
    torch.manual_seed(1)
    origins = Origins()
    with origins:
        layer = nn.Linear(WIDE, WIDE)
        model = nn.ModuleList([layer, copy.deepcopy(layer)])
    assert list(origins.not_drawn(model)) == ["1.weight", "1.bias"]
