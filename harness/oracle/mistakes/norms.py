"""Mistakes in a normalisation: eps, the kind of variance, the mean, weight and bias."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from harness.oracle.mistakes.call import Call, Mistake, Mistakes, floating

EPS = (1e-5, 1e-6, 1e-8, 1e-3, 0.0)
# Up to this, a number that is added may be an eps.
MOST = 1e-2
_NORMS = ("layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm")
# On a sum with an eps, or a root: what it was made of.
_MARK = "_assay_made_of"


def norms(call: Call) -> Mistakes:
    """Mistakes in functions that normalise."""
    if call.name not in _NORMS or not floating(call.input):
        return
    norm = _norm(call)
    if norm is None:
        return
    if norm.training:
        words = f"{call.name} with the unbiased variance (over n - 1)"
        yield Mistake(words, "the biased one, over n", lambda: norm.apply(correction=1), 0)
    for eps in EPS:
        if eps != norm.eps:
            words = f"{call.name}(eps={eps:g})"
            yield Mistake(words, f"eps={norm.eps:g}", _with_eps(norm, eps), 0 if eps < 1e-3 else 1)
    words = f"{call.name} with eps outside the root"
    yield Mistake(words, "eps inside", lambda: norm.apply(inside=False), 1)
    if call.get("weight") is not None:
        yield Mistake(f"{call.name} without its weight", "", lambda: norm.apply(weight=False))
    if norm.bias is not None:
        yield Mistake(f"{call.name} without its bias", "", lambda: norm.apply(bias=False))
    if norm.centred and norm.training:
        yield Mistake(f"{call.name} without subtracting the mean", "", lambda: norm.apply(centred=False))


def _with_eps(norm: _Norm, eps: float) -> Callable[[], Any]:
    return lambda: norm.apply(eps=eps)


@dataclass(frozen=True)
class _Norm:
    """A normalisation taken apart. `x` is seen in the shape in which `dims` are normalised; weight and bias broadcast
    to `shape`, the output's. Not in `training`, `mean` and `variance` are given."""

    x: torch.Tensor
    dims: tuple[int, ...]
    shape: torch.Size
    dtype: torch.dtype
    eps: float
    weight: torch.Tensor | None
    bias: torch.Tensor | None
    centred: bool
    training: bool = True
    mean: torch.Tensor | None = None
    variance: torch.Tensor | None = None

    def apply(
        self,
        eps: float | None = None,
        correction: int = 0,
        inside: bool = True,
        weight: bool = True,
        bias: bool = True,
        centred: bool = True,
    ) -> torch.Tensor:
        """The output, by default as the reference's."""
        eps = self.eps if eps is None else eps
        x = self.x.to(torch.promote_types(self.dtype, torch.float32))
        mean = x.mean(self.dims, keepdim=True) if self.training else self.mean
        if self.variance is not None:
            variance = self.variance
        elif self.centred:
            variance = x.var(self.dims, correction=correction, keepdim=True)
        else:
            variance = x.square().mean(self.dims, keepdim=True)
        root = (variance + eps).sqrt() if inside else variance.sqrt() + eps
        out = ((x - mean if mean is not None and self.centred and centred else x) / root).reshape(self.shape)
        if weight and self.weight is not None:
            out = out * self.weight
        if bias and self.bias is not None:
            out = out + self.bias
        return out.to(self.dtype)


def _norm(call: Call) -> _Norm | None:
    x = call.input
    eps = call.get("eps", 1e-5)
    if eps is None:
        # RMSNorm's default.
        eps = torch.finfo(torch.promote_types(x.dtype, torch.float32)).eps
    weight, bias = call.get("weight"), call.get("bias")
    if call.name in ("layer_norm", "rms_norm"):
        dims = tuple(range(x.dim() - len(call.get("normalized_shape")), x.dim()))
        return _Norm(x, dims, x.shape, x.dtype, eps, weight, bias, call.name == "layer_norm")
    per_channel = (1, -1, *(1,) * (x.dim() - 2))
    weight, bias = (None if t is None else t.reshape(per_channel) for t in (weight, bias))
    if call.name == "group_norm":
        seen = x.reshape(x.shape[0], call.get("num_groups"), -1)
        return _Norm(seen, (2,), x.shape, x.dtype, eps, weight, bias, True)
    if call.name == "instance_norm":
        dims = tuple(range(2, x.dim()))
        return _Norm(x, dims, x.shape, x.dtype, eps, weight, bias, True) if call.get("use_input_stats", True) else None
    dims = (0, *range(2, x.dim()))
    if call.get("training", False):
        return _Norm(x, dims, x.shape, x.dtype, eps, weight, bias, True)
    mean, variance = call.get("running_mean"), call.get("running_var")
    if mean is None or variance is None:
        return None
    kept = [t.reshape(per_channel) for t in (mean, variance)]
    return _Norm(x, dims, x.shape, x.dtype, eps, weight, bias, True, False, *kept)


def written_out(call: Call) -> Mistakes:
    """Mistakes in a normalisation that is written out: another eps, or the eps on the other side of the root."""
    eps, made = call.get("other"), getattr(call.input, _MARK, None)
    if call.name == "add" and isinstance(eps, float) and 0 < eps <= MOST and floating(call.input):
        for other in EPS:
            if other != eps:
                yield Mistake(f"eps={other:g}", f"eps={eps:g}", _with_other(call, other), 0 if other < 1e-3 else 1)
        if made is not None and made[0] == "root":
            yield Mistake("eps inside the root", "eps outside", lambda: (made[1] + eps).sqrt())
    elif made is not None and made[0] == "sum" and (power := _power(call)):
        yield Mistake("eps outside the root", "eps inside", lambda: (made[1].sqrt() + made[2]) ** round(2 * power))


def _with_other(call: Call, other: float) -> Callable[[], Any]:
    return lambda: call.changed(other=other)


def _power(call: Call) -> float:
    """That a root takes its argument to; 0 of another function."""
    if call.name == "pow":
        power = call.get("other", call.kwargs.get("exponent"))
        return power if isinstance(power, float) and math.isclose(abs(power), 0.5) else 0.0
    return {"sqrt": 0.5, "rsqrt": -0.5}.get(call.name, 0.0)


def mark(call: Call, result: Any) -> None:
    """Keep on a sum with an eps, and on a root, what `written_out` has to know."""
    if not floating(result) or not floating(call.input):
        return
    if call.name == "add":
        eps = call.get("other")
        if isinstance(eps, float) and 0 < eps <= MOST:
            setattr(result, _MARK, ("sum", call.input, eps))
    elif _power(call) == 0.5:
        setattr(result, _MARK, ("root", call.input))
