"""One step of an LSTM whose gates see the cell; hidden state and cell are returned."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.gates = nn.Linear(inputs + hidden, 4 * hidden)
        self.peep = nn.Parameter(torch.randn(3, hidden) * 0.3)

    def forward(self, x, h, c):
        i, f, g, o = self.gates(torch.cat((x, h), 1)).chunk(4, 1)
        i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c)
        c = f * c + i * torch.tanh(g)
        return torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c), c


def get_init_inputs():
    return [71, 59]


def get_inputs():
    return [torch.randn(37, 71), torch.rand(37, 59) * 2 - 1, torch.randn(37, 59)]


def _step(model, gates, c, late=True):
    i, f, g, o = gates.chunk(4, 1)
    i, f = 1 / (1 + torch.exp(-(i + model.peep[0] * c))), 1 / (1 + torch.exp(-(f + model.peep[1] * c)))
    new = f * c + i * torch.tanh(g)
    o = 1 / (1 + torch.exp(-(o + model.peep[2] * (new if late else c))))
    return o * torch.tanh(new), new


def honest_two_products(model, x, h, c):
    """One product for the input, one for the state, added; sigmoids by exponentials."""
    weight = model.gates.weight
    return _step(model, x @ weight[:, : x.shape[1]].T + (h @ weight[:, x.shape[1] :].T + model.gates.bias), c)


def honest_running_product(model, x, h, c):
    """One accumulator a gate over inputs and states; sigmoids through tanh."""
    both, weight = torch.cat((x, h), 1), model.gates.weight
    gates = model.gates.bias.expand(x.shape[0], -1)
    for k in range(both.shape[1]):
        gates = torch.addcmul(gates, both[:, k : k + 1], weight[:, k])
    i, f, g, o = gates.chunk(4, 1)
    i, f = (0.5 + 0.5 * torch.tanh(0.5 * (gate + peep * c)) for gate, peep in zip((i, f), model.peep, strict=False))
    new = torch.addcmul(i * torch.tanh(g), f, c)
    return (0.5 + 0.5 * torch.tanh(0.5 * (o + model.peep[2] * new))) * torch.tanh(new), new


def wrong_output_sees_the_old_cell(model, x, h, c):
    """The output gate sees the cell before the step: wrong on the problem's own inputs."""
    return _step(model, model.gates(torch.cat((x, h), 1)), c, late=False)


def wrong_products_in_half(model, x, h, c):
    """The product in float16: a lower precision than was asked for."""
    both = torch.cat((x, h), 1).half().float()
    return _step(model, F.linear(both, model.gates.weight.half().float(), model.gates.bias), c)
