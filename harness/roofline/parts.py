"""Which part of its arguments an operation needs, where that is not all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from harness.roofline.flops import taps
from harness.roofline.ledger import Read
from harness.roofline.operations import ATTENTION, GATHERS, POOLS
from harness.roofline.views import storage_number, tensors


def narrow(name: str, call: Mapping[str, Any], results: list[torch.Tensor], reads: list[Read]) -> str:
    """Where only a part of an argument is needed, and how large it is at least. The answer is a note where that is not
    known, else empty."""
    if name in GATHERS:
        table, index = (call[argument] for argument in GATHERS[name])
        elements = tensors(index)[0].numel() * table.size(1) if "embedding" in name else results[0].numel()
        reads[0].most_bytes = min(reads[0].view.nbytes, elements * table.element_size())
        gathered_bytes = _gathered_bytes(name, table, index, call)
        if gathered_bytes is None:
            return f"{name}: what several or logical indices gather is not counted"
        reads[0].least_bytes = min(reads[0].most_bytes, gathered_bytes)
    elif name in ("mul", "mul_") and any(tensor.dtype == torch.bool for tensor in tensors(list(call.values()))):
        # A mask by another name.
        masked = {storage_number(tensor) for tensor in tensors(list(call.values())) if tensor.dtype != torch.bool}
        for read in reads:
            read.sure = read.sure and read.storage not in masked
    elif name in ("tril", "triu"):
        reads[0].sure = False
        reads[0].least_bytes = reads[0].most_bytes = reads[0].view.nbytes * _triangle_share(name, call)
    elif name in POOLS or (name == "convolution" and not call["transposed"]):
        source = call.get("input", call.get("self"))
        share = _covered_share(name, call, source, results[0])
        if share < 1:
            reads[0].sure = False
            reads[0].least_bytes = reads[0].most_bytes = reads[0].view.nbytes * share
    elif name in ATTENTION and (call.get("attn_mask", call.get("attn_bias")) is not None or call.get("is_causal")):
        # A mask may hide keys from every query; a causal one does where there are more keys than queries.
        hidden = not call.get("is_causal") or call["key"].size(-2) > call["query"].size(-2)
        of_keys = {storage_number(call["key"]), storage_number(call["value"])}
        for read in reads:
            read.sure = read.sure and not (hidden and read.storage in of_keys)
    return ""


def _gathered_bytes(name: str, table: Any, index: Any, call: Mapping[str, Any]) -> float | None:
    """Bytes that the distinct indices need; None where they cannot be counted."""
    indices = tensors(index)
    item_bytes = table.element_size()
    if name == "gather":
        # The other dimensions' positions are all distinct.
        return item_bytes * indices[0].numel() / max(1, indices[0].size(call["dim"]))
    if len(indices) != 1 or indices[0].dtype == torch.bool:
        return None
    count = int(torch.unique(indices[0]).numel())
    if name == "take":
        return float(item_bytes * count)
    dim = call["dim"] if name == "index_select" else 0
    if name in ("index", "_unsafe_index"):
        dim = next(place for place, part in enumerate(index) if part is not None)
    return item_bytes * count * table.numel() / max(1, table.size(dim))


def _covered_share(name: str, call: Mapping[str, Any], source: torch.Tensor, result: torch.Tensor) -> float:
    """Share of a convolution's or a pool's input that any output depends on."""
    weight = call.get("weight") if name == "convolution" else None
    dims = weight.dim() - 2 if weight is not None else (3 if "3d" in name else 2)
    share = 1.0
    for dim in range(dims):
        size = source.size(dim - dims)
        places: set[int] = set()
        for tap in taps(call, dim, dims, size, result.size(dim - dims), weight):
            places.update(tap)
        share *= len(places) / size
    return share


def _triangle_share(name: str, call: Mapping[str, Any]) -> float:
    """Share of a matrix on and below (tril) or above (triu) a diagonal."""
    rows, columns, diagonal = call["self"].size(-2), call["self"].size(-1), call["diagonal"]
    if name == "triu":
        below = sum(min(max(row + diagonal, 0), columns) for row in range(rows))
        return 1 - below / (rows * columns)
    return sum(min(max(row + diagonal + 1, 0), columns) for row in range(rows)) / (rows * columns)
