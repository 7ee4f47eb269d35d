"""How often the oracle is wrong where outputs jump: experts chosen by a router, nearest codes, thresholds, in bf16.

    python benchmarks/jumps.py [--only WORD] [--seeds N] [--verbose]

A few tokens are sent to another expert by rounding alone, and two right answers differ there by as much as the output
itself. Judged as in oracle_quality.py, with the same last line; the exit status is 1 unless both counts are 0.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.oracle_quality import Kernel, Lambda, Problem, report, try_out
from harness.oracle.formats import Format, round_to

Numbers = Callable[[torch.Tensor], torch.Tensor]


def same(t: torch.Tensor) -> torch.Tensor:
    return t


def fp8(t: torch.Tensor) -> torch.Tensor:
    """Numbers in e4m3, each row scaled to its range."""
    scale = t.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 448
    return (t / scale).to(torch.float8_e4m3fn).float() * scale


def five_bits(t: torch.Tensor) -> torch.Tensor:
    """Integers of five bits, scaled by row."""
    scale = t.abs().amax(-1, keepdim=True).clamp_min(1e-30) / 15
    return (t / scale).round() * scale


def short(t: torch.Tensor) -> torch.Tensor:
    """Mantissas of five bits."""
    return round_to(t, Format("short", 5))


class Experts(nn.Module):
    """Each token goes through the `kept` experts that its router likes best, which are weighted by that."""

    def __init__(self, width: int, experts: int, kept: int, gated: bool, wide: bool) -> None:
        super().__init__()
        self.gate = nn.Parameter((torch.randn(experts, width) / width**0.5).bfloat16())
        self.up = nn.Parameter((torch.randn(experts, 2 * width if gated else width, width) / width**0.5).bfloat16())
        self.down = nn.Parameter((torch.randn(experts, width, width) / width**0.5).bfloat16())
        self.kept, self.gated, self.wide = kept, gated, wide

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits = F.linear(x, self.gate)
        return self.spread(x, self.chosen(logits.float() if self.wide else logits))

    def chosen(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight, index = logits.softmax(-1).topk(self.kept, -1)
        return weight / weight.sum(-1, keepdim=True), index

    def spread(self, x: torch.Tensor, chosen: tuple[torch.Tensor, torch.Tensor], q: Numbers = same) -> torch.Tensor:
        """What the experts make of the tokens, calculated and added up in the precision of `x`."""
        weight, index = chosen
        out = torch.zeros_like(x)
        for expert in range(len(self.gate)):
            token, place = torch.where(index == expert)
            made = q(x[token]) @ q(self.up[expert].to(x.dtype)).T
            if self.gated:
                up, gate = made.chunk(2, -1)
                made = q(F.silu(gate) * up) @ q(self.down[expert].to(x.dtype)).T
            out.index_add_(0, token, made * weight[token, place, None].to(x.dtype))
        return out


def all_wide(q: Numbers = same, kept: int = 0) -> Kernel:
    """Everything in float32 from the router on, its experts' operands in `q`; of the experts the `kept` best."""

    def kernel(m: Experts, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        weight, index = (wide @ m.gate.float().T).softmax(-1).topk(kept or m.kept, -1)
        return m.spread(wide, (weight / weight.sum(-1, keepdim=True), index), q).to(x.dtype)

    return kernel


def in_halves(m: Experts, x: torch.Tensor) -> torch.Tensor:
    """The router's sums in two parts, each rounded; the experts in float32."""
    half = x.shape[-1] // 2
    logits = x[:, :half] @ m.gate[:, :half].T + x[:, half:] @ m.gate[:, half:].T
    weight, index = m.chosen(logits.float() if m.wide else logits)
    return m.spread(x.float(), (weight.float(), index)).to(x.dtype)


def router_as_it_is(m: Experts, x: torch.Tensor) -> torch.Tensor:
    """The reference's router; the experts in float32."""
    logits = F.linear(x, m.gate)
    weight, index = m.chosen(logits.float() if m.wide else logits)
    return m.spread(x.float(), (weight.float(), index)).to(x.dtype)


def sorted_by_expert(m: Experts, x: torch.Tensor) -> torch.Tensor:
    """Tokens grouped by expert, each group one product, results put back and added in float32."""
    logits = x.float() @ m.gate.float().T
    weight, index = logits.topk(m.kept, -1)
    weight = weight.softmax(-1)
    order = index.reshape(-1).argsort(stable=True)
    token = order // m.kept
    given, counts = x[token], torch.bincount(index.reshape(-1), minlength=len(m.gate)).tolist()
    made = []
    for expert, some in enumerate(given.split(counts)):
        one = some @ m.up[expert].T
        if m.gated:
            up, gate = one.float().chunk(2, -1)
            one = (F.silu(gate) * up).to(x.dtype) @ m.down[expert].T
        made.append(one.float())
    each = torch.empty(len(order), x.shape[-1])
    each[order] = torch.cat(made)
    return (each.reshape(len(x), m.kept, -1) * weight[..., None]).sum(1).to(x.dtype)


def dropping(share: float, by: Kernel) -> Kernel:
    """Zeros for a share of the tokens."""

    def kernel(m: Experts, x: torch.Tensor) -> torch.Tensor:
        out = by(m, x)
        count = max(1, round(share * len(out)))
        out[len(out) // 3 :][:count] = 0
        return out

    return kernel


def beyond_capacity(m: Experts, x: torch.Tensor) -> torch.Tensor:
    """Experts that take no more tokens than 1.25 times their share."""
    wide = x.float()
    weight, index = (wide @ m.gate.float().T).softmax(-1).topk(m.kept, -1)
    weight = weight / weight.sum(-1, keepdim=True)
    most = int(1.25 * index.numel() / len(m.gate))
    for expert in range(len(m.gate)):
        token, place = torch.where(index == expert)
        weight[token[most:], place[most:]] = 0
    return m.spread(wide, (weight, index)).to(x.dtype)


def experts(name: str, tokens: int, width: int, count: int, kept: int, gated: bool, wide: bool) -> Problem:
    module = Experts(width, count, kept, gated, wide)
    return Problem(
        name,
        module,
        lambda: [torch.randn(tokens, width).bfloat16()],
        right={
            "all_wide": all_wide(),
            "in_halves": in_halves,
            "router_as_it_is": router_as_it_is,
            "sorted_by_expert": sorted_by_expert,
            "same": lambda m, x: m(x),
        },
        wrong={
            "drops_1%": dropping(0.01, all_wide()),
            "drops_3%": dropping(0.03, all_wide()),
            "drops_1%_of_its_own": dropping(0.01, lambda m, x: m(x)),
            "fp8": all_wide(fp8),
            "five_bit_integers": all_wide(five_bits),
            # Added up in bf16, expert by expert, the reference errs half as much as these in one layer.
            **({"five_bit_mantissas": all_wide(short)} if gated else {}),
            "one_expert_less": all_wide(kept=kept - 1),
            "beyond_capacity": beyond_capacity,
        },
    )


class Codes(nn.Module):
    """The code nearest to each vector."""

    def __init__(self, codes: int, width: int) -> None:
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width).bfloat16())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = x @ self.codes.T - 0.5 * self.codes.square().sum(-1)
        return self.codes[scores.argmax(-1)] + 0.25 * x


def nearest(tokens: int, codes: int, width: int) -> Problem:
    def by(m: Codes, x: torch.Tensor, q: Numbers = same, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        wide, table = x.to(dtype), m.codes.to(dtype)
        index = (wide @ table.T - 0.5 * table.square().sum(-1)).argmax(-1)
        return (q(m.codes.float()[index]) + 0.25 * x.float()).to(x.dtype)

    def some_wrong(m: Codes, x: torch.Tensor) -> torch.Tensor:
        out = by(m, x)
        out[::64] = m.codes[3] + 0.25 * x[::64]
        return out

    return Problem(
        "nearest code",
        Codes(codes, width),
        lambda: [torch.randn(tokens, width).bfloat16()],
        right={
            "wide": by,
            "distances": lambda m, x: (
                m.codes[torch.cdist(x.float(), m.codes.float()).argmin(-1)].float() + 0.25 * x.float()
            ).to(x.dtype),
            "same": lambda m, x: m(x),
        },
        wrong={
            "fp8": lambda m, x: by(m, x, fp8),
            "five_bit_mantissas": lambda m, x: by(m, x, short),
            "some_wrong": some_wrong,
            "half_the_codes": lambda m, x: by(_Half(m), x),
        },
    )


class _Half:
    def __init__(self, m: Codes) -> None:
        self.codes = m.codes[: len(m.codes) // 2]


def threshold(rows: int, width: int, dtype: torch.dtype) -> Problem:
    w = (torch.randn(width, width) / width**0.5).to(dtype)

    def wide(x: torch.Tensor, y: torch.Tensor, q: Numbers = same) -> torch.Tensor:
        taken = torch.float32 if dtype is torch.bfloat16 else torch.float64
        return ((x.to(taken) @ w.to(taken) > 0) * q(y.to(taken))).to(dtype)

    def halves(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        half = width // 2
        return (x[:, :half] @ w[:half] + x[:, half:] @ w[half:] > 0).to(dtype) * y

    def zeroed(x: torch.Tensor, y: torch.Tensor, share: int = 100) -> torch.Tensor:
        out = wide(x, y)
        out.view(-1)[::share] = 0
        return out

    return Problem(
        f"threshold {str(dtype).removeprefix('torch.')}",
        Lambda(lambda x, y: (x @ w > 0).to(dtype) * y),
        lambda: [torch.randn(rows, width).to(dtype), torch.randn(rows, width).to(dtype)],
        right={
            "wide": lambda m, x, y: wide(x, y),
            "halves": lambda m, x, y: halves(x, y),
            "same": lambda m, x, y: m(x, y),
        },
        wrong={
            "fp8": lambda m, x, y: wide(x, y, lambda t: fp8(t.float()).to(t.dtype)),
            "zeros_1%": lambda m, x, y: zeroed(x, y),
            "rows_zero": lambda m, x, y: wide(x, y) * (torch.arange(rows) % 100 > 0).to(dtype)[:, None],
            "lower": lambda m, x, y: wide(round_to(x, Format("short", 5)), y),
        },
    )


def quantised(rows: int, width: int, dtype: torch.dtype) -> Problem:
    """Each row rounded to 255 steps of its own size, and given back."""

    def steps(x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scale = wide.abs().amax(-1, keepdim=True) / 127
        return ((wide / scale).round().clamp(-127, 127) * scale).to(x.dtype)

    def by_reciprocal(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = wide.abs().amax(-1, keepdim=True) / 127
        return ((wide * scale.reciprocal()).round().clamp(-127, 127) * scale).to(dtype)

    def coarse(x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = wide.abs().amax(-1, keepdim=True) / 63
        return ((wide / scale).round() * scale).to(dtype)

    return Problem(
        f"quantised {str(dtype).removeprefix('torch.')}",
        Lambda(steps),
        lambda: [torch.randn(rows, width).to(dtype)],
        right={
            "reciprocal": lambda m, x: by_reciprocal(x),
            "wide": lambda m, x: steps(x.double()).to(dtype),
            "same": lambda m, x: m(x),
        },
        wrong={
            "coarse": lambda m, x: coarse(x),
            "not_rounded": lambda m, x: x.clone(),
            "floor": lambda m, x: (
                (x / (x.abs().amax(-1, keepdim=True) / 127)).floor() * (x.abs().amax(-1, keepdim=True) / 127)
            ),
        },
    )


def problems(seed: int) -> Iterator[Problem]:
    torch.manual_seed(seed)
    yield experts("experts 6 of 64", 512, 128, 64, 6, gated=False, wide=True)
    yield experts("experts 2 of 8 gated", 256, 64, 8, 2, gated=True, wide=False)
    yield experts("experts 4 of 32 gated", 384, 96, 32, 4, gated=True, wide=True)
    yield nearest(1024, 128, 64)
    for dtype in (torch.bfloat16, torch.float32):
        yield threshold(512, 128, dtype)
        yield quantised(256, 128, dtype)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--seeds", type=int, default=1, help="how many weights and inputs to try each problem with (1)")
    parser.add_argument("--verbose", action="store_true", help="the oracle's sentence under each refusal")
    options = parser.parse_args()
    torch.set_num_threads(1)
    counts, misjudged = Counter[str](), Counter[str]()
    start = time.perf_counter()
    with torch.no_grad():
        for seed in range(options.seeds):
            for problem in problems(seed):
                if options.only in problem.name:
                    tried, missed = try_out(problem, seed, options.verbose)
                    counts += tried
                    misjudged += missed
    return report(counts, misjudged, time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
