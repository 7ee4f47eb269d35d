"""Mistakes in an argument, in the kind of a function, or that leave a step out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from harness.oracle.mistakes.call import Call, Mistake, Mistakes, floating

LOG2_E = 1.4426950408889634
# GELU by tanh is 0.5 x (1 + tanh(ROOT (x + CUBIC x^3))).
ROOT, CUBIC = math.sqrt(2 / math.pi), 0.044715
# Steps of Newton's method, which is quadratic here, and starts from a root of the cubic or the line.
NEWTON = 12

# Usual lengths of blocks, after which something may be over; how many lengths of that are tried.
BLOCKS, OVER = (4, 32, 128, 256, 1024), 3

# Steps that a kernel may leave out, since what comes out has the shape of what goes in.
_STEPS = frozenset((
    "relu", "relu6", "gelu", "sigmoid", "tanh", "silu", "mish", "softplus", "softsign", "hardtanh",
    "hardsigmoid", "hardswish", "leaky_relu", "elu", "selu", "celu", "logsigmoid", "abs", "exp", "clamp",
    "clamp_min", "clamp_max", "softmax", "log_softmax", "masked_fill", "neg", "dropout", "tril", "triu", "sqrt",
    "square", "add", "sub", "mul", "div", "layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm",
    "normalize",
))  # fmt: skip
_SAID = {"add": "addition of", "sub": "subtraction of", "mul": "multiplication by", "div": "division by"}
_LOSSES = frozenset((
    "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "triplet_margin_loss", "cosine_embedding_loss",
    "hinge_embedding_loss", "margin_ranking_loss",
))  # fmt: skip


def gelu(call: Call) -> Mistakes:
    """By tanh for by erf, or the reverse; also where they are written out."""
    if call.name == "gelu":
        now = call.get("approximate", "none")
        other = "none" if now == "tanh" else "tanh"
        words, here = f"gelu(approximate='{other}')", f"approximate='{now}'"
        yield Mistake(words, here, lambda: call.changed(approximate=other), 0)
        yield Mistake("gelu as x sigmoid(1.702 x)", here, lambda: call.input * torch.sigmoid(1.702 * call.input))
    elif call.name == "tanh":
        yield Mistake("GELU by erf", "tanh", lambda: torch.erf(_of_cubic(call.input) / math.sqrt(2)))
    elif call.name == "erf":
        yield Mistake("GELU by tanh", "erf", lambda: torch.tanh(_cubic(call.input * math.sqrt(2))))


def _cubic(x: torch.Tensor) -> torch.Tensor:
    return ROOT * (x + CUBIC * x**3)


def _of_cubic(u: torch.Tensor) -> torch.Tensor:
    """The x of which u is the cubic."""
    # From above the root in size, where a step of the convex cubic never goes past it.
    x = torch.sign(u) * torch.minimum(u.abs() / ROOT, (u.abs() / (ROOT * CUBIC)) ** (1 / 3))
    for _ in range(NEWTON):
        x = x - (_cubic(x) - u) / (ROOT * (1 + 3 * CUBIC * x * x))
    return x


def sums(call: Call) -> Mistakes:
    """A sum for a mean, or the reverse; a variance over n for one over n - 1."""
    if call.name in ("mean", "sum"):
        other, power = ("sum", 1) if call.name == "mean" else ("mean", -1)

        def exchanged() -> Any:
            result = call.result()
            return result * float(_terms(call, result)) ** power

        yield Mistake(f"{other} in place of {call.name}", call.name, exchanged, 0)
    elif call.name in ("var", "std", "var_mean", "std_mean"):
        over = {0: "n (biased)", 1: "n - 1 (unbiased)"}
        now = _correction(call)
        if now in over:
            word = "variance" if call.name.startswith("var") else "deviation"
            yield Mistake(f"the {word} over {over[1 - now]}", over[now], lambda: _corrected(call, now), 0)


def _terms(call: Call, result: torch.Tensor) -> int:
    return max(1, int(call.input.numel() // max(1, result.numel())))


def _correction(call: Call) -> int:
    """What is taken from n: 1 by default."""
    given = call.kwargs.get("correction", call.kwargs.get("unbiased"))
    flags = [value for value in call.args[1:] if isinstance(value, bool)]
    if given is None:
        given = flags[0] if flags else 1
    return int(given)


def _corrected(call: Call, now: int) -> Any:
    result = call.result()
    first, *rest = result if isinstance(result, tuple) else (result,)
    n = _terms(call, first)
    ratio = (n - now) / (n - (1 - now)) if n > 1 else math.nan
    first = first * (ratio if call.name.startswith("var") else math.sqrt(ratio))
    return (first, *rest) if isinstance(result, tuple) else first


def dimensions(call: Call) -> Mistakes:
    """A softmax or a running sum along another dimension; one that runs the other way, or overflows."""
    if call.name not in ("softmax", "log_softmax", "cumsum", "cumprod") or not floating(call.input):
        return
    x, dim = call.input, call.get("dim")
    if not isinstance(dim, int):
        return
    dim %= max(1, x.dim())
    for other in range(x.dim()):
        if other != dim and x.shape[other] > 1:
            yield Mistake(f"{call.name}(dim={other})", f"dim={dim}", _with(call, dim=other))
    if call.name == "softmax":
        words = "softmax that does not subtract the maximum"
        yield Mistake(words, "", lambda: x.exp() / x.exp().sum(dim, keepdim=True), 2)
    elif call.name == "log_softmax":
        words = "log_softmax that does not subtract the maximum"
        yield Mistake(words, "", lambda: x - x.exp().sum(dim, keepdim=True).log(), 2)
    else:
        back = f"{call.name} from the other end"
        yield Mistake(back, "from the start", lambda: call.changed(input=x.flip(dim)).flip(dim))


def losses(call: Call) -> Mistakes:
    """Another reduction; no label smoothing."""
    if call.name not in _LOSSES:
        return
    now = call.get("reduction", "mean")
    for kind in ("mean", "sum", *(("batchmean",) if call.name == "kl_div" else ())):
        if now not in (kind, "none"):
            words = f"{call.name}(reduction='{kind}')"
            yield Mistake(words, f"reduction='{now}'", _with(call, reduction=kind), 0)
    if call.name == "cross_entropy":
        smoothing = call.get("label_smoothing", 0.0)
        other = 0.0 if smoothing else 0.1
        words, here = f"cross_entropy(label_smoothing={other:g})", f"label_smoothing={smoothing:g}"
        yield Mistake(words, here, lambda: call.changed(label_smoothing=other), 0)


def tails(call: Call) -> Mistakes:
    """Sums and products that leave out the last terms: one, or what is over after whole blocks."""
    if call.name in ("sum", "mean", "softmax", "log_softmax"):
        x, dim = call.input, call.get("dim")
        if isinstance(dim, tuple | list) and len(dim) == 1:
            (dim,) = dim
        if not floating(x) or not (isinstance(dim, int) or dim is None):
            return
        length = x.numel() if dim is None else x.shape[dim]
        for short in _over(length):
            yield Mistake(f"{call.name} without the last {short} of {length} terms", "", _cut(call, dim, short), 2)
    elif call.name in ("linear", "matmul", "mm", "bmm"):
        one, other = ("weight", -1) if call.name == "linear" else ("other", -2)
        length = call.input.shape[-1]
        if call.get(one).dim() < 2:
            other = -1
        for short in _over(length):
            words = f"{call.name} without the last {short} of {length} terms"
            left, right = call.input[..., : length - short], call.get(one).narrow(other, 0, length - short)
            yield Mistake(words, "", _with(call, **{"input": left, one: right}), 2)


def _over(length: int) -> list[int]:
    """What may be over, of that many."""
    left = {1, *(length % block for block in BLOCKS)} - {0}
    return sorted(short for short in left if short < length)[:OVER]


def _cut(call: Call, dim: int | None, short: int) -> Callable[[], Any]:
    def cut() -> Any:
        x = call.input.reshape(-1) if dim is None else call.input
        along = 0 if dim is None else dim % x.dim()
        left = x.narrow(along, 0, x.shape[along] - short)
        if call.name in ("softmax", "log_softmax"):
            # What is left out of the sum may be written all the same, or not.
            gone = torch.zeros_like(x.narrow(along, 0, short))
            return torch.cat([getattr(torch, call.name)(left, along), gone], along)
        keep = bool(call.kwargs.get("keepdim", len(call.args) > 2 and call.args[2]))
        total = left.sum(along, keepdim=keep and dim is not None)
        return total / x.shape[along] if call.name == "mean" else total

    return cut


def attention(call: Call) -> Mistakes:
    """Causal or not; without the scale."""
    if call.name != "scaled_dot_product_attention":
        return
    causal = bool(call.get("is_causal", False))
    if call.get("attn_mask") is None:
        words, here = f"attention(is_causal={not causal})", f"is_causal={causal}"
        yield Mistake(words, here, lambda: call.changed(is_causal=not causal), 0)
    scale = call.get("scale")
    here = f"scale={scale:g}" if scale is not None else "the default, one over the root of the depth"
    yield Mistake("attention(scale=1)", here, lambda: call.changed(scale=1.0), 0)


def products(call: Call) -> Mistakes:
    """Without the bias; with a square operand transposed."""
    if call.name == "linear":
        weight = call.get("weight")
        if call.get("bias") is not None:
            yield Mistake("linear without its bias", "", lambda: call.changed(bias=None), 0)
        if weight.shape[0] == weight.shape[-1]:
            yield Mistake("linear's weight transposed", "x @ weight.T", lambda: call.changed(weight=weight.mT))
    elif call.name in ("matmul", "mm", "bmm"):
        for name, place in (("input", "first"), ("other", "second")):
            matrix = call.get(name)
            if floating(matrix) and matrix.dim() > 1 and matrix.shape[-1] == matrix.shape[-2]:
                words = f"the {place} operand of a product transposed"
                yield Mistake(words, "", _with(call, **{name: matrix.mT}))


def _with(call: Call, **changes: Any) -> Callable[[], Any]:
    return lambda: call.changed(**changes)


def exponentials(call: Call) -> Mistakes:
    """As compilers make them with fast-math: 2^(x log2 e), the product rounded."""
    x: torch.Tensor = call.input
    if not floating(x):
        return
    ways: dict[str, Callable[[], Any]] = {
        "exp": lambda: _exp(x),
        "sigmoid": lambda: 1 / (1 + _exp(-x)),
        "silu": lambda: x / (1 + _exp(-x)),
        "tanh": lambda: 1 - 2 / (_exp(2 * x) + 1),
        "softmax": lambda: _softmax(x, call.get("dim")),
    }
    # The second forms lose small numbers beside one.
    ways |= {
        "softplus": lambda: torch.log(1 + x.exp()),
        "elu": lambda: torch.where(x > 0, x, x.exp() - 1),
        "expm1": lambda: x.exp() - 1,
        "log1p": lambda: torch.log(1 + x),
    }
    said = {"softplus": "log(1 + exp(x))", "elu": "exp(x) - 1", "expm1": "exp(x) - 1", "log1p": "log(1 + x)"}
    if call.name in said:
        yield Mistake(f"{call.name} by {said[call.name]}", call.name, ways[call.name], 2)
    elif call.name in ways:
        yield Mistake("fast-math exponentials", call.name, ways[call.name], 2)


def _exp(x: torch.Tensor) -> torch.Tensor:
    return torch.exp2(x * LOG2_E)


def _softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    weights = _exp(x - x.amax(dim, keepdim=True))
    return weights / weights.sum(dim, keepdim=True)


def left_out(call: Call) -> Mistakes:
    """Without a step whose result has the shape of its input."""
    if call.name not in _STEPS or not call.args or not isinstance(call.args[0], torch.Tensor):
        return
    x, other = call.args[0], call.args[1] if len(call.args) > 1 else None
    step = call.name
    if step in _SAID:
        if isinstance(other, torch.Tensor):
            if not _fits_into(other.shape, x.shape):
                return
            what = f"a tensor {list(other.shape)}"
        else:
            what = f"{other:g}" if isinstance(other, int | float) else "a number"
        step = f"{_SAID[step]} {what}"
    yield Mistake(f"without {step}", "", lambda: x)
    if call.name == "relu":
        yield Mistake("leaky_relu in place of relu", "relu", lambda: F.leaky_relu(x), 2)
    elif call.name == "leaky_relu":
        yield Mistake("relu in place of leaky_relu", "leaky_relu", lambda: F.relu(x), 2)


def _fits_into(shape: Sequence[int], whole: Sequence[int]) -> bool:
    """Whether a tensor is broadcast to the shape of the whole. PyTorch's own way to tell loads sympy, for seconds."""
    return len(shape) <= len(whole) and all(
        size in (1, other) for size, other in zip(reversed(shape), reversed(whole), strict=False)
    )


def layouts(call: Call) -> Mistakes:
    """A result that is not contiguous, read in the order of its memory as if it were."""
    if call.name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        words = f"the output of {call.name} read in the order of its memory (time before batch) as if contiguous"
        yield Mistake(words, "", lambda: _first_in_memory(call.result()), 0)
    elif call.name in ("transpose", "permute", "t", "swapaxes", "movedim"):
        words = f"the result of {call.name} read in the order of its memory as if contiguous"
        yield Mistake(words, "", lambda: _in_memory(call.result()))


def _first_in_memory(results: Any) -> Any:
    first, *rest = results
    if first.dim() == 3 and first.is_contiguous():
        # Some devices return it copied.
        return (first.transpose(0, 1).contiguous().view(first.shape), *rest)
    return (_in_memory(first), *rest)


def _in_memory(result: torch.Tensor) -> torch.Tensor:
    """The same elements in the order in which they lie."""
    order = sorted(range(result.dim()), key=result.stride, reverse=True)
    return result.permute(order).contiguous().view(result.shape)
