"""Operations by name: what is special about some of them, and how they name their arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Operations by the arguments of which they may need but a part: what a mask hides, half of a triangle, fewer points
# than there are.
PARTLY_READ = {
    "self": """where masked_fill masked_fill_ masked_select masked_scatter index_put index_put_ index_copy scatter
        slice_scatter select_scatter diagonal_scatter constant_pad_nd im2col fractional_max_pool2d fractional_max_pool3d
        nll_loss_forward nll_loss2d_forward linalg_solve_triangular linalg_cholesky_ex upsample_nearest1d
        upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d upsample_bicubic2d
        upsample_trilinear3d""".split(),  # noqa: SIM905 - one a line would fill the page
    "other": ["where"],
    "source": ["masked_scatter"],
    "src": ["scatter"],
    "input": ["native_dropout", "grid_sampler_2d", "grid_sampler_3d"],
    "A": ["triangular_solve", "_linalg_eigh"],
    "sorted_sequence": ["searchsorted"],
    "boundaries": ["bucketize"],
}
# The table, and the indices into it.
GATHERS = {
    "embedding": ("weight", "indices"),
    "_embedding_bag": ("weight", "indices"),
    "_embedding_bag_forward_only": ("weight", "indices"),
    "index_select": ("self", "index"),
    "index": ("self", "indices"),
    "_unsafe_index": ("self", "indices"),
    "gather": ("self", "index"),
    "take": ("self", "index"),
}
OVERWRITING = {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "exponential_", "bernoulli_", "set_"}
# Their result is a Python value, which may steer all that follows, or only be asserted.
STEERING = {"_local_scalar_dense", "equal"}
ATTENTION = {
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
}
RECURRENT = {"lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "mkldnn_rnn_layer"}
POOLS = {"avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
UNCOUNTED = ("_fft", "linalg_", "lu_", "cholesky", "_linalg", "_sparse", "_cdist", "_weight_int", "quantized")
# Where recurrent operations (and functions: see modes.Layers) hold their weights, beside biases of one dimension and
# states of three.
WEIGHTS = ("params", "weight", "weight0", "weight1", "weight2", "weight3")


def name_of(func: Any) -> str:
    """`mm` for aten.mm.default; with its namespace (`mine::mm`) where that is not aten."""
    return func._schema.name.removeprefix("aten::") if hasattr(func, "_schema") else f"higher_order::{func}"


def written_arguments(func: Any) -> set[str]:
    """Names of the arguments that an operation writes to."""
    arguments = func._schema.arguments if hasattr(func, "_schema") else ()
    return {one.name for one in arguments if one.alias_info is not None and one.alias_info.is_write}


def arguments_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the schema's names, defaults included."""
    if not hasattr(func, "_schema"):
        return {str(place): value for place, value in enumerate(args)} | dict(kwargs)
    call = {one.name: one.default_value for one in func._schema.arguments}
    return call | {one.name: value for one, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs)
