"""Level 3, problem 36: LSTM of several layers, returning every layer's last hidden state."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 5, "sequence_length": 23, "input_size": 37, "hidden_size": 41, "num_layers": 3}


def _run(lstm, x, h0, c0, order=(0, 1, 2, 3)):
    """All layers one after the other; the gates lie in the weights as input, forget, cell, output."""
    last = []
    for layer in range(lstm.num_layers):
        w_ih, w_hh, b_ih, b_hh = lstm._all_weights[layer]
        w_ih, w_hh, b_ih, b_hh = (getattr(lstm, name) for name in (w_ih, w_hh, b_ih, b_hh))
        h, c, states = h0[layer], c0[layer], []
        from_input = F.linear(x, w_ih, b_ih + b_hh)
        for t in range(x.shape[1]):
            gates = (from_input[:, t] + h @ w_hh.T).chunk(4, 1)
            i, f, g, o = (gates[place] for place in order)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        x = torch.stack(states, 1)
        last.append(h)
    return torch.stack(last)


def honest_input_product_at_once(model, x, h0, c0):
    """Biases added once, the input product for all steps at once, layer after layer."""
    return _run(model.lstm, x, h0, c0)


def honest_diagonal_order(model, x, h0, c0):
    """All layers advance within a step; gates reordered as rows of one product; sigmoid through tanh."""
    lstm = model.lstm
    size, weights, biases = lstm.hidden_size, [], []
    for layer in range(lstm.num_layers):
        w_ih, w_hh, b_ih, b_hh = (getattr(lstm, name) for name in lstm._all_weights[layer])
        both, bias = torch.cat((w_ih, w_hh), 1), b_ih + b_hh
        # Input, forget and output gates first, halved for the tanh; the cell's candidate last.
        rows = torch.cat((torch.arange(2 * size), torch.arange(3 * size, 4 * size), torch.arange(2 * size, 3 * size)))
        factor = torch.ones(4 * size)
        factor[: 3 * size] = 0.5
        weights.append((both[rows] * factor[:, None]).T.contiguous())
        biases.append(bias[rows] * factor)
    h, c = list(h0), list(c0)
    for t in range(x.shape[1]):
        below = x[:, t]
        for layer in range(lstm.num_layers):
            gates = torch.tanh(torch.cat((below, h[layer]), 1) @ weights[layer] + biases[layer])
            i, f, o = (0.5 + 0.5 * gate for gate in gates[:, : 3 * size].chunk(3, 1))
            c[layer] = torch.addcmul(i * gates[:, 3 * size :], f, c[layer])
            h[layer] = o * torch.tanh(c[layer])
            below = h[layer]
    return torch.stack(h)


def wrong_gates_in_another_order(model, x, h0, c0):
    """Reads the gates as input, forget, output, cell; seen on the drawn inputs."""
    return _run(model.lstm, x, h0, c0, order=(0, 1, 3, 2))


def wrong_only_last_steps(model, x, h0, c0):
    """Runs the last six steps only, as earlier ones fade; seen on the drawn inputs."""
    return _run(model.lstm, x[:, -6:], h0, c0)
