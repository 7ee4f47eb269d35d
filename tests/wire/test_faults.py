"""Whatever an exception of a candidate says, there is a status, a reason and a sentence to send and show."""

import pytest

from harness.records import Status
from harness.wire import faults


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
    assert "AT_DISPATCH_FLOATING_TYPES leaves Half out" in outcome.message


def test_a_refusal_of_the_candidate_s_own_stands_as_it_is():
    outcome = faults.classify("call", "NotImplementedError", "takes float16 only", "candidate.py", 12, "")
    assert outcome.message == "candidate.py:12 raised NotImplementedError: takes float16 only"


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
