"""Whatever an exception of a candidate says, there is a status, a reason and a sentence to send and show."""

import signal
from pathlib import Path

import pytest
import torch

from harness.catalog import modules
from harness.records import Status
from harness.runner import runner
from harness.wire import faults, weights

SPARSE = """class Entry(torch.nn.Module):
    def __init__(self, x):
        super().__init__()
        self.register_buffer("sparse", x.to_sparse())
"""


class Unspeakable(Exception):
    def __str__(self):
        raise self


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("plain\ttext\nin lines"), "plain\ttext\nin lines"),
        (ValueError("\ud800"), "?"),
        (ValueError("\x1b[2J"), "\N{REPLACEMENT CHARACTER}[2J"),
        (Unspeakable(), "[printing the exception raised Unspeakable]"),
    ],
)
def test_a_text_can_be_sent_and_shown(error, text):
    assert faults.printed(lambda: str(error)) == text


def test_a_long_text_keeps_both_ends():
    text = faults.printed(lambda: "a" + "x" * 50_000_000 + "z")
    assert (text[0], text[-1], len(text)) == ("a", "z", 2 * faults.PRINTED)


def test_a_long_class_name_is_cut():
    assert faults.exception_name(type("E" * 10_000_000, (Exception,), {})()) == "E" * 80


@pytest.mark.parametrize(
    ("source", "outside", "status"),
    [
        ("class Entry(torch.nn.Linear):\n    def __new__(cls, x): torch.nn.Linear(3, 3)(x)", "", Status.RUNTIME_ERROR),
        (
            "import functools\nEntry = functools.partial(torch.nn.Linear, 3, 'x')",
            "torch/nn/modules/linear.py:",
            Status.RUNTIME_ERROR,
        ),
        ("class Entry: ...", "", Status.RUNTIME_ERROR),
        (SPARSE, "harness/wire/layout.py:", Status.RUNTIME_ERROR),
    ],
    ids=["own", "library", "signature", "handled by the harness"],
)
def test_an_exception_is_whose_it_is(source, outside, status, tmp_path):
    path = tmp_path / "c.py"
    path.write_text(f"import torch\n{source}\n")
    module = modules.execute(path)
    with pytest.raises(Exception) as raised:
        # Made by the file's own class; what we then do with it is our own business.
        runner._may_take([*weights.constructed(module, ("Entry",), [torch.ones(2)]).buffers()], ())
    found = faults.outside(raised.value, path)
    assert (found.startswith(outside), bool(found)) == (True, bool(outside))
    outcome = faults.classify("call", type(raised.value).__name__, str(raised.value), "c.py", 0, "", found)
    assert (outcome.status, found in outcome.message) == (status, True)


@pytest.mark.parametrize(("trusted", "status"), [(True, Status.HARNESS_ERROR), (False, Status.RUNTIME_ERROR)])
def test_only_a_trusted_process_is_believed_that_the_harness_failed(trusted, status):
    place = "harness/wire/weights.py:49"
    outcome = faults.classify("call", "TypeError", "an int is no function", "c.py", 0, "", place, trusted=trusted)
    assert (outcome.status, place in outcome.message) == (status, True)


def test_a_process_that_goes_away_and_lives_on_has_no_exit_code():
    outcome = faults.death(None, "a call")
    assert (outcome.status, outcome.reason) == (Status.CRASHED, "gone")


def test_what_the_device_is_heard_of_late_is_no_fault_of_ours():
    for exception, text in (("RuntimeError", "CUDA error: unknown error"), ("AcceleratorError", "CUDA error: x")):
        outcome = faults.classify("call", exception, text, "c.py", 0, "", "harness/runner/cuda_runner.py:9")
        assert outcome.status is Status.RUNTIME_ERROR
        assert outcome.message.startswith("harness/runner/cuda_runner.py:9 (for c.py, of which no line called it): ")


@pytest.mark.parametrize(
    "error",
    [ModuleNotFoundError("No module named 'nobody_has_it'", name="nobody_has_it"), NotImplementedError("not for Half")],
)
def test_what_a_problem_asks_for_in_vain_is_no_candidate_s_doing(error):
    record = faults.of_problem(error, Path("p.py"), "")
    assert record.status is Status.INVALID_REFERENCE


def test_our_own_mistake_is_no_problem_s():
    try:
        faults.candidate_line(None, None)
    except AttributeError as error:
        outcome = faults.of_problem(error, Path("p.py"), "")
    assert outcome.status is Status.HARNESS_ERROR
    assert outcome.message.startswith("the harness itself raised AttributeError in harness/wire/faults.py:")


@pytest.mark.parametrize(
    ("exception", "text", "reason"),
    [
        ("OSError", "[Errno 24] Too many open files: '/dev/null'", "open_files"),
        ("OSError", "[Errno 28] No space left on device", "disk_full"),
        ("RuntimeError", "can't start new thread", "processes"),
        ("BlockingIOError", "[Errno 11] Resource temporarily unavailable", "processes"),
    ],
)
def test_limits_of_the_system_have_their_own_status(exception, text, reason):
    outcome = faults.classify("call", exception, text, "c.py", 7, "")
    assert (outcome.status, outcome.reason) == (Status.RESOURCE_LIMIT, reason)
    assert outcome.message.startswith("c.py:7 ")


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (-24, Status.RESOURCE_LIMIT, "cpu_time"),
        (-25, Status.RESOURCE_LIMIT, "file_size"),
        (-11, Status.CRASHED, "signal:SIGSEGV"),
        (0, Status.CRASHED, "exit:0"),
    ],
)
def test_deaths_are_told_apart(code, status, reason):
    outcome = faults.death(code, "call")
    assert (outcome.status, outcome.reason) == (status, reason)


def test_a_dispatch_without_half_is_explained():
    text = "\"tail\" not implemented for 'Half'"
    outcome = faults.classify("call", "NotImplementedError", text, "candidate.py", 12, "")
    assert (outcome.status, outcome.reason) == (Status.UNSUPPORTED, "not_implemented")
    assert "AT_DISPATCH_FLOATING_TYPES does not cover Half" in outcome.message


def test_a_refusal_of_the_candidate_s_own_stands_as_it_is():
    outcome = faults.classify("call", "NotImplementedError", "takes float16 only", "candidate.py", 12, "")
    assert outcome.message == "candidate.py:12 raised NotImplementedError: takes float16 only"


@pytest.mark.parametrize("phase", ["load", "call"])
def test_a_name_of_the_problem_s_is_not_there(phase):
    outcome = faults.classify(phase, "NameError", "name 'math' is not defined", "fast.py", 7, "")
    assert outcome.message.startswith("fast.py:7: NameError: name 'math' is not defined (a candidate has no names of")


def test_a_refused_connection_says_what_the_sandbox_leaves():
    outcome = faults.classify("load", "RuntimeError", "Connection refused", "a.py", 3, "")
    assert (outcome.status, outcome.reason) == (Status.LOAD_ERROR, "exception:RuntimeError")
    assert "share_memory_()" in outcome.message


@pytest.mark.parametrize(
    ("exception", "text", "reason"),
    [
        (
            "AcceleratorError",
            "CUDA error: an illegal memory access was encountered\nCUDA kernel errors",
            "illegal_address",
        ),
        ("RuntimeError", "CUDA error: misaligned address\nCUDA kernel errors might", "misaligned_address"),
        ("RuntimeError", "CUDA error: invalid argument", "invalid_launch"),
        ("RuntimeError", "Triton Error [CUDA]: invalid argument", "invalid_launch"),
        ("RuntimeError", "launch of scale: invalid configuration argument", "invalid_launch"),
        ("AcceleratorError", "CUDA error: device-side assert triggered", "device_assert"),
        (
            "AcceleratorError",
            "CUDA error: no kernel image is available for execution on the device",
            "wrong_architecture",
        ),
        ("CudaCallFailed", "cuStreamSynchronize failed with CUDA_ERROR_LAUNCH_FAILED", "launch_failure"),
        ("CudaCallFailed", "cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_INSTRUCTION", "illegal_instruction"),
    ],
)
def test_what_the_driver_says_is_a_fault_of_the_device(exception, text, reason):
    outcome = faults.classify("call", exception, text, "c.py", 7, "")
    assert (outcome.status, outcome.reason) == (Status.RUNTIME_ERROR, reason)
    assert reason in faults.DEVICE_WORDS


@pytest.mark.parametrize(
    ("exception", "text"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB."),
        ("MemoryError", ""),
        ("RuntimeError", "CUDA error: out of memory\nCUDA kernel errors might"),
        ("RuntimeError", "cudaMalloc failed: out of memory"),
        ("AcceleratorError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        ("RuntimeError", "Triton Error [CUDA]: out of memory"),
        ("RuntimeError", "cuMemCreate failed with CUDA_ERROR_OUT_OF_MEMORY"),
        (
            "RuntimeError",
            "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you",
        ),
        ("OSError", "[Errno 12] Cannot allocate memory"),
    ],
)
def test_memory_that_gave_out_has_its_own_status(exception, text):
    outcome = faults.classify("call", exception, text, "c.py", 7, "")
    assert (outcome.status, outcome.reason) == (Status.OUT_OF_MEMORY, "out_of_memory")


@pytest.mark.parametrize(
    ("exception", "text"),
    [
        ("ValueError", "got an invalid argument: dim=3"),
        ("ValueError", "CUDA error: an illegal memory access was encountered"),
        ("RuntimeError", "got an invalid argument: dim=3"),
        ("RuntimeError", "the CUDA path takes no: invalid argument of this kind"),
        ("RuntimeError", "out of memory slots"),
        ("RuntimeError", "the table for CUDA is full: out of memory slots"),
        ("KeyError", "out of memory"),
        ("ValueError", "can't start new thread"),
        ("ValueError", "[Errno 24] Too many open files"),
        ("RuntimeError", "a misaligned address is no place for a vector"),
    ],
)
def test_what_a_candidate_says_of_its_own_is_an_exception_of_its_own(exception, text):
    outcome = faults.classify("call", exception, text, "c.py", 7, "")
    assert (outcome.status, outcome.reason) == (Status.RUNTIME_ERROR, f"exception:{exception}")


class Linear:
    def forward(self, x, y=0): ...


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((1, 2, 3), "c.py: forward takes 2 arguments, but the problem passes 3 (TypeError: "),
        ((), "c.py: forward asks for 'x', which the problem does not pass (TypeError: "),
    ],
)
def test_a_call_that_a_candidate_does_not_take_is_told_in_the_problem_s_terms(arguments, said):
    with pytest.raises(TypeError) as raised:
        Linear().forward(*arguments)
    outcome = faults.classify("call", "TypeError", str(raised.value), "c.py", 0, "", "torch/nn/modules/module.py:9")
    assert outcome.message.startswith(said)
    assert outcome.evidence["raised_in"] == "torch/nn/modules/module.py:9"
    # One that it made itself has its line.
    assert faults.classify("call", "TypeError", str(raised.value), "c.py", 7, "").message.startswith(
        "c.py:7: TypeError"
    )


def test_what_a_signal_usually_means_is_said():
    assert "index out of bounds" in faults.death(-signal.SIGSEGV, "call").message
    assert faults.death(-signal.SIGILL, "call").message == "the process died of SIGILL in call"
