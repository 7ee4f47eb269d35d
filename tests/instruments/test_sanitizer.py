"""Compute Sanitizer's output, as written down by hand after its documentation; its form has changed twice."""

import pytest

from harness.instruments import sanitizer
from harness.instruments.sanitizer import Place

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at scale(float *, int)+0x150 in cuda.cu:12
=========     by thread (255,0,0) in block (39,0,0)
=========     Address 0x7f2a3e000400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f2a3e000000 of size 1,024 bytes
=========
========= Invalid __global__ write of size 4 bytes
=========     at scale(float *, int)+0x150 in cuda.cu:12
=========     by thread (254,0,0) in block (39,0,0)
=========     Address 0x7f2a3e0003fc is out of bounds
=========
what the candidate printed
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to x.
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at block_sum(float *)+0x90 in cuda.cu:13
=========     and Read access at block_sum(float *)+0xa0 in cuda.cu:14 [2048 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_findings_of_memcheck_have_their_place_and_like_ones_are_one():
    write, api = sanitizer.parse(MEMCHECK)
    assert (write.text, write.times) == ("Invalid __global__ write of size 4 bytes", 2)
    assert write.places == [Place(kernel="scale(float *, int)", file="cuda.cu", line=12)]
    assert write.more.startswith("by thread (255,0,0) in block (39,0,0); Address 0x7f2a3e000400 is out of bounds")
    assert api.text.startswith("Program hit cudaErrorLaunchFailure (error 719)")
    assert api.places == []


def test_a_race_has_both_its_places():
    (race,) = sanitizer.parse(RACECHECK)
    assert race.text == "Race reported between Write access"
    assert [(place.kernel, place.line) for place in race.places] == [
        ("block_sum(float *)", 13),
        ("block_sum(float *)", 14),
    ]


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("at unaligned():0x160 in demo.cu:6", Place(kernel="unaligned()", file="demo.cu", line=6)),
        ("at 0x3c8 in /a/b.cu:42:copy(int*,int*)", Place(kernel="copy(int*,int*)", file="b.cu", line=42)),
        ("at 0x150 in copy(int*, int)", Place(kernel="copy(int*, int)")),
        ("at copy(int*, int)+0x150", Place(kernel="copy(int*, int)")),
        (
            "at void ns::copy<(int)8>(int*)+0x50 in /x/y.cuh:7",
            Place(kernel="void ns::copy<(int)8>(int*)", file="y.cuh", line=7),
        ),
    ],
)
def test_places_of_every_version_are_understood(said, place):
    (finding,) = sanitizer.parse(f"========= Invalid __shared__ read of size 4 bytes\n=========     {said}\n")
    assert finding.places == [place]


@pytest.mark.parametrize(
    "said", ["", "nothing of it", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"]
)
def test_where_nothing_is_wrong_there_is_no_finding(said):
    assert sanitizer.parse(said) == []
