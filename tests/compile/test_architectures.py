"""Architecture flags of candidates, in every spelling that nvcc takes."""

import pytest

from harness.compile import architectures


@pytest.mark.parametrize(
    ("flags", "kept", "numbers"),
    [
        (["-O3", "-arch=sm_80"], ["-O3"], ["80"]),
        (["-arch", "sm_90a", "--use_fast_math"], ["--use_fast_math"], ["90"]),
        (["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_86,code=sm_86"], [], ["80", "86"]),
        (["-gencode", "arch=compute_100a,code=sm_100a", "-lineinfo"], ["-lineinfo"], ["100"]),
        (["-gencode arch=compute_75,code=sm_75"], [], ["75"]),
        (["--gpu-architecture=sm_120"], [], ["120"]),
        (["-arch=native"], [], []),
        (["-DARCH=80", "-Xptxas=-v"], ["-DARCH=80", "-Xptxas=-v"], []),
    ],
)
def test_flags_are_told_apart(flags, kept, numbers):
    assert architectures.split(flags) == (kept, numbers)


def test_the_card_s_own_architecture_among_others_is_nothing_foreign():
    assert architectures.foreign(["80", "90"], "9.0a") == []
    assert architectures.foreign(["80", "86"], "9.0a") == ["80", "86"]


def test_a_hopper_card_gets_its_own_instructions():
    assert [architectures.of_card(name) for name in ("9.0", "8.0", "10.0", "")] == ["9.0a", "8.0", "10.0", ""]
