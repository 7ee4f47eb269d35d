"""One call of a torch function, and the mistakes that a kernel in its place may make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

_CONVOLUTION = "input weight bias stride padding dilation groups"
_TRANSPOSED = "input weight bias stride padding output_padding groups dilation"
_MEAN_POOL = "input kernel_size stride padding ceil_mode count_include_pad divisor_override"
_MAX_POOL = "input kernel_size stride padding dilation ceil_mode return_indices"
# Names of positional arguments, which builtin functions don't tell, of the functions looked at.
_NAMES = {
    "linear": "input weight bias",
    **{f"conv{n}d": _CONVOLUTION for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _TRANSPOSED for n in (1, 2, 3)},
    **{f"avg_pool{n}d": _MEAN_POOL for n in (1, 2, 3)},
    **{f"max_pool{n}d": _MAX_POOL for n in (1, 2, 3)},
    "batch_norm": "input running_mean running_var weight bias training momentum eps",
    "instance_norm": "input running_mean running_var weight bias use_input_stats momentum eps",
    "layer_norm": "input normalized_shape weight bias eps",
    "group_norm": "input num_groups weight bias eps",
    "rms_norm": "input normalized_shape weight eps",
    "scaled_dot_product_attention": "query key value attn_mask dropout_p is_causal scale",
    "cross_entropy": "input target weight size_average ignore_index reduce reduction label_smoothing",
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "add", "sub", "mul", "div", "pow"), "input other"),
    **dict.fromkeys(
        ("softmax", "log_softmax", "softmin", "cumsum", "cumprod", "logsumexp", "mean", "sum"), "input dim"
    ),
}
NAMES = {name: tuple(words.split()) for name, words in _NAMES.items()}


@dataclass(frozen=True)
class Call:
    """A call of `function` (torch's, or a method of Tensor). `name` is without the underscore of an in-place form."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @classmethod
    def of(cls, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        name = str(getattr(function, "__name__", ""))
        return cls(name if name.startswith("__") else name.rstrip("_"), function, args, kwargs)

    def get(self, argument: str, default: Any = None) -> Any:
        """An argument, whichever way it was given."""
        names = NAMES.get(self.name, ("input",))
        place = names.index(argument) if argument in names else len(self.args)
        return self.args[place] if place < len(self.args) else self.kwargs.get(argument, default)

    @property
    def input(self) -> Any:
        return self.get("input")

    def result(self) -> Any:
        """What the function returns."""
        return self.function(*self.args, **self.kwargs)

    def changed(self, **changes: Any) -> Any:
        """What it returns with other arguments."""
        names = NAMES.get(self.name, ("input",))
        args, kwargs = list(self.args), dict(self.kwargs)
        for argument, value in changes.items():
            if argument in names and names.index(argument) < len(args):
                args[names.index(argument)] = value
            else:
                kwargs[argument] = value
        return self.function(*args, **kwargs)


@dataclass(frozen=True)
class Mistake:
    """What a kernel may do in place of a call.

    `words` follow "as PyTorch with" (or "as PyTorch", before "without"), and tell mistakes apart; `instead` is what the
    reference has, where that helps. Those of lower `rank` are more usual, and are tried first.
    """

    words: str
    instead: str
    make: Callable[[], Any] = field(compare=False)
    rank: int = 1


Mistakes = Iterator[Mistake]


def floating(value: Any) -> bool:
    """Whether it is a floating tensor."""
    return isinstance(value, torch.Tensor) and value.is_floating_point()
