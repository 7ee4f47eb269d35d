"""Level 3, problem 1: three linear layers with ReLU between."""

import torch
import torch.nn.functional as F

SIZES = {"batch_size": 35, "input_size": 511, "layer_sizes": [387, 293], "output_size": 101}


def _layers(model):
    return [layer for layer in model.network if isinstance(layer, torch.nn.Linear)]


def honest_running_sums(model, x):
    """Every layer with one running sum along the inner axis, which starts at the bias."""
    layers = _layers(model)
    for layer in layers:
        out = layer.bias.expand(x.shape[0], -1).clone()
        for k in range(x.shape[1]):
            out.addcmul_(x[:, k : k + 1], layer.weight[:, k])
        x = out if layer is layers[-1] else out.clamp(min=0)
    return x


def honest_split_bfloat16(model, x):
    """Three bfloat16 parts a number and six products a layer, in slices of 64, ReLU in the epilogue."""

    def parts(t):
        high = t.bfloat16().float()
        middle = (t - high).bfloat16().float()
        return high, middle, (t - high - middle).bfloat16().float()

    layers = _layers(model)
    for layer in layers:
        out = torch.zeros(x.shape[0], layer.out_features)
        for k in range(0, x.shape[1], 64):
            left, right = parts(x[:, k : k + 64]), parts(layer.weight[:, k : k + 64].T)
            out = out + sum(left[i] @ right[j] for i, j in ((0, 2), (2, 0), (1, 1), (0, 1), (1, 0), (0, 0)))
        out = out + layer.bias
        x = out if layer is layers[-1] else torch.relu(out)
    return x


def wrong_relu_on_output(model, x):
    """Applies ReLU after the last layer too; seen on the drawn inputs."""
    return torch.relu(model.network(x))


def wrong_half_weights(model, x):
    """Weights are stored in half precision; seen on the drawn inputs."""
    layers = _layers(model)
    for layer in layers:
        out = F.linear(x, layer.weight.half().float(), layer.bias)
        x = out if layer is layers[-1] else torch.relu(out)
    return x
