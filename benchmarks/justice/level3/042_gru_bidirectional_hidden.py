"""Level 3, problem 42: GRU of several layers in both directions, returning the last hidden states."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 6, "seq_len": 13, "input_size": 29, "hidden_size": 35, "num_layers": 2}


def _run(gru, x, h0, reversed_steps=True, reset_before_product=False):
    last = []
    for layer in range(gru.num_layers):
        directions = []
        for direction in range(2):
            w_ih, w_hh, b_ih, b_hh = (getattr(gru, name) for name in gru._all_weights[2 * layer + direction])
            h, states = h0[2 * layer + direction], [None] * x.shape[0]
            steps = range(x.shape[0])
            from_input = F.linear(x, w_ih, b_ih)
            for t in reversed(steps) if direction and reversed_steps else steps:
                r_in, z_in, n_in = from_input[t].chunk(3, 1)
                r_h, z_h, n_h = F.linear(h, w_hh, b_hh).chunk(3, 1)
                r, z = torch.sigmoid(r_in + r_h), torch.sigmoid(z_in + z_h)
                if reset_before_product:
                    size = gru.hidden_size
                    n = torch.tanh(n_in + F.linear(r * h, w_hh[2 * size :], b_hh[2 * size :]))
                else:
                    n = torch.tanh(n_in + r * n_h)
                h = n + z * (h - n)
                states[t] = h
            directions.append(torch.stack(states))
            last.append(h)
        x = torch.cat(directions, 2)
    return torch.stack(last)


def honest_update_as_interpolation(model, x, h0):
    """Input products of all steps at once; the update as n + z * (h - n)."""
    return _run(model.gru, x, h0)


def honest_merged_gate_products(model, x, h0):
    """Reset and update gates from one product of input and state together; exp2 for the sigmoids."""
    gru, last = model.gru, []
    size = gru.hidden_size
    for layer in range(gru.num_layers):
        directions = []
        for direction in range(2):
            w_ih, w_hh, b_ih, b_hh = (getattr(gru, name) for name in gru._all_weights[2 * layer + direction])
            gate_weight = torch.cat((w_hh[: 2 * size], w_ih[: 2 * size]), 1).T.contiguous()
            gate_bias = b_ih[: 2 * size] + b_hh[: 2 * size]
            h, states = h0[2 * layer + direction], []
            for step in x.flip(0) if direction else x:
                gates = torch.cat((h, step), 1) @ gate_weight + gate_bias
                gates = 1.0 / (1.0 + torch.exp2(gates * -1.4426950408889634))
                candidate = h @ w_hh[2 * size :].T + b_hh[2 * size :]
                n = torch.tanh(step @ w_ih[2 * size :].T + b_ih[2 * size :] + gates[:, :size] * candidate)
                z = gates[:, size:]
                h = (1.0 - z) * n + z * h
                states.append(h)
            states = torch.stack(states)
            directions.append(states.flip(0) if direction else states)
            last.append(h)
        x = torch.cat(directions, 2)
    return torch.stack(last)


def wrong_reset_before_product(model, x, h0):
    """Resets the state before the candidate's product, as the first paper has it; seen on the drawn inputs."""
    return _run(model.gru, x, h0, reset_before_product=True)


def wrong_both_directions_forward(model, x, h0):
    """The backward direction reads the steps forward too; seen on the drawn inputs."""
    return _run(model.gru, x, h0, reversed_steps=False)
