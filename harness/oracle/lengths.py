"""What a computation is made of, read off its operators: its longest sum, variances, products of many numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from harness.oracle.choices import CHOOSERS, Chosen, chosen
from harness.oracle.formats import is_eight_bits, is_of_eight_bits
from harness.oracle.structure import address

# Who takes logits in place of probabilities has no pole, and who divides by nothing, or by it last, has no NaN: what
# comes of these is for nobody to get right, but where drawn inputs lead there, too.
ODD = frozenset(("pole", "lost_nan"))
# Operators whose answer does not show that they were given NaN. Who asks for NaN by x != x means it.
_ORDERS = frozenset(
    f"aten::{name}"
    for name in ("gt", "ge", "lt", "le", "argmax", "argmin", "sort", "topk", "argsort", "searchsorted", "bucketize")
)
# Operators that find equal numbers, or count them; and those that compare two numbers.
_FINDERS = "_unique _unique2 unique_dim unique_consecutive mode isin searchsorted bucketize"
_EQUALS = frozenset(f"aten::{name}" for name in _FINDERS.split())
_COMPARISONS = frozenset(f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge"))
# So many products, each by another tensor, may leave nothing of the inputs beside the biases of the last ones.
DEEP = 4


@dataclass
class Longest:
    """The longest sum met: of anything, and of products alone (what tensor cores add up).

    `lift` is the largest 1 + mean^2/variance of a variance met, on average over its rows, `most_lift` of any row: how
    much larger the squares are than what is left of them. `seen` has the operators met of which a variance by hand is
    made, `convolution` for one of more than one tap, `multiplication` for a product along a dimension, and `pole` for a
    cross entropy of what is zero or one, where -100 stands for the logarithm of zero, and `lost_nan` for a NaN that is
    compared or ordered, and so decides something without being seen. `by` has the
    addresses of what products of matrices were by, no more than `DEEP` of them, and `chosen` what was chosen by order.
    `products` counts products of matrices in the newest run, `sums` all else there that is added up.
    """

    any: int = 1
    product: int = 0
    lift: float = 1.0
    most_lift: float = 1.0
    seen: set[str] = field(default_factory=set)
    by: set[int] = field(default_factory=set)
    products: int = 0
    sums: int = 0
    chosen: set[Chosen] = field(default_factory=set)

    @property
    def kinds(self) -> frozenset[str]:
        """What decides which hard inputs there are, and what is asked on them.

        `centred`: a variance may be among the sums, so that an honest kernel may take a difference of squares.
        `transformed`: a convolution is, which Winograd's and Fourier's ways take by other products. `multiplied`: the
        numbers along a dimension are multiplied. `deep`: there are `DEEP` products of matrices or more. `graded`:
        numbers are rounded to a grid, as by a quantiser. `signed`: there are vectors or values whose signs or order is
        anybody's choice. `lapack`: that is called. `comparing`: it matters which numbers are equal.
        """
        has = {
            "centred": "variance" in self.seen or {"sum", "difference", "square"} <= self.seen,
            "transformed": "convolution" in self.seen,
            "multiplied": "multiplication" in self.seen,
            "deep": len(self.by) >= DEEP,
            "graded": "grid" in self.seen,
            "signed": "signs" in self.seen,
            "lapack": "lapack" in self.seen,
            "comparing": "comparison" in self.seen,
        }
        return frozenset(kind for kind, is_so in has.items() if is_so)

    @property
    def one_product(self) -> bool:
        """Whether one product of matrices is all that is added up."""
        return (self.products, self.sums) == (1, 0)

    def begin(self) -> None:
        """A run begins."""
        self.products = self.sums = 0

    def meet(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Take note of an operator about to run."""
        self.chosen |= {one for one in (chosen(name, args, kwargs),) if one is not None}
        if name in CHOOSERS:
            self.seen.add("choice")
        if name == "aten::convolution" and math.prod(args[1].shape[2:]) > 1:
            self.seen.add("convolution")
        self.seen.update(part for part, names in _PARTS.items() if name in names)
        if name in _PRODUCTS:
            self.products += 1
            self._multiply(args)
        elif grid_of(name, args, kwargs) is not None:
            self.seen.add("grid")
        self.sums += name in _REDUCTIONS or name in _OF_MANY
        for table, is_product in ((_PRODUCTS, True), (_REDUCTIONS, False)):
            if name in table:
                try:
                    length = table[name](args)
                except (IndexError, TypeError, AttributeError, ZeroDivisionError):
                    # An overload with other arguments: then nothing is known of it.
                    continue
                self.any = max(self.any, length)
                if is_product:
                    self.product = max(self.product, length)
        if name == "aten::binary_cross_entropy" and _is_at_a_pole(args[0]):
            self.seen.add("pole")
        if _compares(name, args):
            self.seen.add("comparison")
        if name in _ORDERS and any(_has_nan(one) for one in args[:2]):
            self.seen.add("lost_nan")
        if name in _VARIANCES:
            try:
                lift, most = _lifts(*_VARIANCES[name](args))
                self.lift, self.most_lift = max(self.lift, lift), max(self.most_lift, most)
            except (IndexError, TypeError, AttributeError, RuntimeError):
                # As above.
                pass

    def _multiply(self, args: tuple[Any, ...]) -> None:
        known = [address(one) for one in args if isinstance(one, torch.Tensor)]
        addresses = [one for one in known if one is not None]
        if len(addresses) > len(set(addresses)):
            # Of a tensor by itself, as in a covariance.
            self.seen.add("square")
        if len(self.by) < DEEP:
            self.by.update(addresses[-1:])


def terms_of(name: str, args: tuple[Any, ...]) -> int:
    """How many products each element of an operator's result is the sum of; 0 where it is no product of matrices."""
    try:
        return _PRODUCTS[name](args) if name in _PRODUCTS else 0
    except (IndexError, TypeError, AttributeError):
        # Another overload.
        return 0


def grid_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    """The dtype whose numbers an operator rounds others to, as a quantiser does: 8-bit floats, or those of which it
    makes whole ones; None of any other operator."""
    if name in ("aten::round", "aten::round_"):
        return args[0].dtype if args[0].is_floating_point() else None
    if name not in ("aten::copy_", "aten::_to_copy"):
        return None
    into, taken = (args[0].dtype, args[1]) if name == "aten::copy_" else (kwargs.get("dtype"), args[0])
    rounds = is_eight_bits(into) and taken.is_floating_point() and not is_of_eight_bits(taken)
    return into if rounds else None


def _is_at_a_pole(probabilities: torch.Tensor) -> bool:
    """Whether a logarithm of zero is taken, or may be: of one of these, or of one minus that."""
    return bool(((probabilities == 0) | (probabilities == 1)).any())


def _has_nan(operand: Any) -> bool:
    return isinstance(operand, torch.Tensor) and operand.is_floating_point() and bool(operand.isnan().any())


def _compares(name: str, args: tuple[Any, ...]) -> bool:
    """Whether an operator tells which floating numbers are equal, or compares a tensor's with each other. One that is
    compared with itself element by element is asked for NaN."""
    floating = [one for one in args[:2] if isinstance(one, torch.Tensor) and one.is_floating_point()]
    if name in _EQUALS:
        return bool(floating)
    if name not in _COMPARISONS or len(floating) < 2:
        return False
    one, other = floating
    itself = address(one) is not None and address(one) == address(other)
    return one.shape != other.shape if itself else name in ("aten::eq", "aten::ne")


def _inner(position: int) -> Callable[[tuple[Any, ...]], int]:
    return lambda args: int(args[position].shape[-1])


def _attention(args: tuple[Any, ...]) -> int:
    return int(max(args[0].shape[-1], args[1].shape[-2]))


def _along(args: tuple[Any, ...]) -> int:
    return int(args[0].shape[args[1]])


def _over(args: tuple[Any, ...]) -> int:
    """Terms of a reduction over the dimensions in the second argument; over all, if there is none."""
    x = args[0]
    dims = args[1] if len(args) > 1 else None
    if dims is None or dims == [] or not isinstance(dims, (int, list, tuple)):
        return int(x.numel())
    return math.prod(x.shape[d] for d in ([dims] if isinstance(dims, int) else dims))


def _per_channel(args: tuple[Any, ...]) -> int:
    return int(args[0].numel() // args[0].shape[1])


def _per_group(args: tuple[Any, ...]) -> int:
    x, _, _, batch, _, _, groups = args[:7]
    return int(x.numel() // (batch * groups))


def _to_places(args: tuple[Any, ...]) -> int:
    """All may come to one place; the largest or smallest of them is no sum."""
    return 1 if args[4:5] and args[4] in ("amax", "amin") else int(args[3].shape[args[1]])


def _in_bags(args: tuple[Any, ...]) -> int:
    mode = args[4] if len(args) > 4 else 0
    return 1 if mode == 2 else int(args[1].numel())


def _adaptive(args: tuple[Any, ...]) -> int:
    sizes = args[0].shape[-len(args[1]) :]
    return math.prod(math.ceil(size / out) + 1 if out > 1 else size for size, out in zip(sizes, args[1], strict=True))


def _lifts(x: torch.Tensor, dims: tuple[int, ...]) -> tuple[float, float]:
    """1 + mean^2/variance, on average and at most over the rows that vary; `x` lies in rows along `dims`."""
    variance, mean = torch.var_mean(x, dims, correction=0)
    ratio = (mean * mean / variance)[variance > 0]
    return (1.0 + float(ratio.mean()), 1.0 + float(ratio.max())) if ratio.numel() else (1.0, 1.0)


def _grouped(args: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[int, ...]]:
    x, _, _, batch, _, _, groups = args[:7]
    return x.reshape(batch * groups, -1), (1,)


def _dims(args: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[int, ...]]:
    x, dims = args[0], args[1] if len(args) > 1 else None
    chosen = (dims,) if isinstance(dims, int) else tuple(dims or ())
    return x, chosen or tuple(range(x.dim()))


# A card has its own for modules with weights.
_BATCH_NORMS = (
    "native_batch_norm",
    "_native_batch_norm_legit",
    "cudnn_batch_norm",
    "miopen_batch_norm",
    "_batch_norm_with_update",
)

# Of variances: the tensor, and the dimensions along which each is taken.
_VARIANCES: dict[str, Callable[[tuple[Any, ...]], tuple[torch.Tensor, tuple[int, ...]]]] = {
    **dict.fromkeys(("aten::var", "aten::std", "aten::var_mean", "aten::std_mean"), _dims),
    "aten::native_layer_norm": lambda args: (args[0], tuple(range(-len(args[1]), 0))),
    **{f"aten::{name}": lambda args: (args[0], (0, *range(2, args[0].dim()))) for name in _BATCH_NORMS},
    "aten::native_group_norm": _grouped,
}

_PRODUCTS: dict[str, Callable[[tuple[Any, ...]], int]] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::mv", "aten::dot", "aten::vdot"), _inner(0)),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmv", "aten::addbmm"), _inner(1)),
    "aten::convolution": lambda args: int(math.prod(args[1].shape[1:])),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_scaled_dot_product_efficient_attention": _attention,
    "aten::_scaled_dot_product_flash_attention": _attention,
    "aten::_scaled_dot_product_cudnn_attention": _attention,
}

_OVER_DIMENSIONS = "sum nansum mean var std logsumexp norm linalg_vector_norm var_mean std_mean"
_ALONG_ONE = "_softmax _log_softmax _safe_softmax cumsum cumsum_ logcumsumexp"
_OVER_ALL = (
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy soft_margin_loss multi_margin_loss "
    "multilabel_margin_loss_forward binary_cross_entropy_with_logits dist"
)

_TO_PLACES = "scatter_add scatter_add_ scatter_reduce scatter_reduce_ index_add index_add_ index_reduce index_reduce_"

_REDUCTIONS: dict[str, Callable[[tuple[Any, ...]], int]] = {
    **dict.fromkeys(_OVER_DIMENSIONS.split(), _over),
    **dict.fromkeys(_ALONG_ONE.split(), _along),
    **dict.fromkeys(_OVER_ALL.split(), lambda args: int(args[0].numel())),
    "native_layer_norm": lambda args: int(math.prod(args[1])),
    **dict.fromkeys(_BATCH_NORMS, _per_channel),
    # Of a card, in place of a power and a mean.
    "_fused_rms_norm": lambda args: int(math.prod(args[1])),
    "native_group_norm": _per_group,
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), lambda args: int(torch.as_tensor(args[1]).numel())),
    **dict.fromkeys(("avg_pool1d", "avg_pool2d", "avg_pool3d"), lambda args: math.prod(args[1])),
    **dict.fromkeys(("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"), _adaptive),
    **dict.fromkeys(("_cdist_forward", "_pdist_forward"), _inner(0)),
    **dict.fromkeys(_TO_PLACES.split(), _to_places),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _in_bags),
    "trace": lambda args: int(min(args[0].shape)),
    "_weight_norm_interface": lambda args: int(args[0].numel() // args[0].shape[args[2]]),
}
_REDUCTIONS = {f"aten::{name}": length for name, length in _REDUCTIONS.items()}

# Some of which read memory that is not theirs where numbers are not finite.
_OF_LAPACK = (
    "_linalg_eigh linalg_eig linalg_eigvals _linalg_eigvals _linalg_svd linalg_qr geqrf linalg_lu linalg_lu_factor_ex "
    "_linalg_solve_ex linalg_inv_ex linalg_cholesky_ex linalg_lstsq _linalg_det _linalg_slogdet linalg_ldl_factor_ex"
)

# What is made of many numbers besides, one way or another.
_OTHERS = "prod cumprod _fft_r2c _fft_c2r _fft_c2c _cudnn_rnn mkldnn_rnn_layer"
_OF_MANY = frozenset(f"aten::{name}" for name in (*_OF_LAPACK.split(), *_OTHERS.split()))

# A square is a power or a product of a tensor with itself, which no name tells from other products; those of matrices
# by themselves are told by `Longest`.
_PARTS = {
    "variance": {name.removeprefix("aten::") for name in _VARIANCES},
    "sum": {"sum", "mean"},
    "difference": {"sub", "rsub"},
    "square": {"pow", "square", "mul"},
    "multiplication": {"prod", "cumprod"},
    "lapack": set(_OF_LAPACK.split()),
    "signs": {"_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_eigvals", "_linalg_eigvals", "linalg_qr", "geqrf"},
}
_PARTS = {part: {f"aten::{name}" for name in names} for part, names in _PARTS.items()}
