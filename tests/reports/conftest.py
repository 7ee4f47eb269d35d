"""A made-up run that shows every shape a report has to cope with, and files to hold the reports' text still."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.records import KernelUse, Provenance, Record, Status

GOLDEN = Path(__file__).parent / "golden"


GEMM_AND_ROWS = Provenance(
    own_share=0.18,
    device_us=2400.0,
    shares={"own": 0.18, "cublas": 0.819, "memory": 0.001},
    kernels=[
        KernelUse(name="nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", kind="cublas", calls=2, device_us=1965.6),
        KernelUse(name="void softmax_rows<1024>(__half*, int)", kind="own", device_us=432.0),
        KernelUse(name="Memset (Device)", kind="memory", device_us=2.4),
    ],
)


def made_up(candidate: str, status: str = "passed", **fields: Any) -> Record:
    """A record of sdpa on an H200 that only says what a test is about; `speedup` brings an interval and times."""
    fields = {"problem": "attention/sdpa", "variant": "default", "precision": "float16", **fields}
    if status == "passed":
        speedup, lo, hi = fields.pop("interval", (2.0, 1.9, 2.1))
        baseline_ms = fields.setdefault("baseline_ms", 7.42)
        figures = {"speedup": speedup, "speedup_lo": lo, "speedup_hi": hi, "candidate_ms": baseline_ms / speedup}
        fields = figures | fields
    else:
        fields.setdefault("reason", "mismatch:values")
    fields = {"key": candidate, "device": "NVIDIA H200", "baseline": "eager", **fields}
    return Record(candidate=candidate, status=Status(status), **fields)


@pytest.fixture
def make() -> Callable[..., Record]:
    return made_up


@pytest.fixture
def records() -> list[Record]:
    fused = {"problem": "fused/gemm_batchnorm_scale_softmax", "precision": "float32"}
    small = {"variant": "small", "baseline_ms": 0.0413}
    return [
        made_up(
            "one_thread_per_query",
            interval=(0.0843, 0.084, 0.0846),
            baseline_ms=7.41,
            caption="A block per (batch, head), a thread per query: the honest lower bound.",
            error_ratio=0.97,
            compile_s=31.5,
            wall_s=12.25,
        ),
        made_up("composed", interval=(3.1, 3.08, 3.12), caption="matmul, softmax, matmul", error_ratio=1.9, wall_s=4.5),
        made_up(
            "cublas_softmax",
            interval=(3.09, 3.07, 3.11),
            caption="Strided-batched GEMM | fused row kernel",
            provenance=GEMM_AND_ROWS,
        ),
        made_up(
            "flash_wide_head",
            interval=(4.1, 4.08, 4.12),
            baseline_ms=7.43,
            caption="Tensor-core online softmax for D = 1024",
            error_ratio=1.25,
            sol_fraction=0.89,
            compile_s=48.0,
            wall_s=9.75,
            warnings=["another process used the card during 2 of 40 pairs"],
        ),
        made_up(
            "wrong_grid",
            "incorrect",
            reason="mismatch:tail_rows",
            caption="Launches one block too few",
            message="The last 16 of 512 rows of the output were never written; first wrong element [0, 0, 496, 0]: "
            "expected 0.0132, got nan.",
            error_ratio=float("inf"),
        ),
        made_up(
            "three_tiled_kernels",
            "compile_error",
            reason="compiler",
            message="three_tiled_kernels.py:41: error: 'AT_DISPATCH_FLOATING_TYPES' | no operator std::vector<int>*",
            log="logs/attention-sdpa-three_tiled_kernels.txt",
        ),
        made_up("hangs", "timeout", reason="first_call", message="The first call did not end within 120 s."),
        made_up("composed", interval=(1.84, 1.8, 1.88), caption="matmul, softmax, matmul", error_ratio=0.41, **small),
        made_up("segfault", "crashed", reason="signal:SIGSEGV", message="The runner died of SIGSEGV.", **small),
        made_up(
            "linear_then_three_kernels",
            "unsupported",
            reason="needs_cuda",
            message="linear_then_three_kernels.py needs a CUDA device: no NVIDIA driver was found",
            **fused,
        ),
        made_up(
            "split_wgmma",
            "unsupported",
            reason="needs_cuda",
            message="split_wgmma.py:98 needs a CUDA device: no NVIDIA driver was found",
            **fused,
        ),
        made_up(
            "triton_softmax",
            "unsupported",
            reason="missing_module:triton",
            message="triton_softmax.py:4 imports 'triton', which is not installed here",
            **fused,
        ),
        made_up(
            "float32_only",
            "unsupported",
            reason="not_implemented",
            message="float32_only.py:9 raised NotImplementedError: float16",
            **small,
        ),
        made_up(
            "tf32_downgrade",
            "rejected",
            reason="precision_downgrade",
            message="Its error is 175 times the reference's own: the products are TF32's.",
            error_ratio=175.2,
            **fused,
        ),
    ]


@pytest.fixture
def manifest() -> dict[str, Any]:
    return {
        "schema": 1,
        "command": ["python", "run_eval.py", "run", "configs/seeds.yaml", "--set", "timing.precision=0.01 "],
        "config": {"device": "cuda"},
        "started_at": "2026-11-21T09:00:00Z",
        "finished_at": "2026-11-21T09:12:31Z",
        "environment": {
            "device": "NVIDIA H200",
            "device_kind": "cuda",
            "torch": "2.11.0+cu130",
            "cuda": "13.0",
            "driver": "580.65",
            "compiler": "g++ 13.3",
            "python": "3.12.1",
            "commit": "0123abc",
            "sandbox": ["uid", "namespaces", "landlock"],
        },
    }


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with its file under golden/; ASSAY_GOLDEN=write makes the text the new file, to be read in git."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("ASSAY_GOLDEN") == "write":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare
