"""Made-up profiles: shares, what a record keeps, rules, and doubts."""

import msgspec
import pytest

from harness.config import ProvenanceConfig
from harness.integrity import provenance
from harness.integrity.provenance import Launched, Profile
from harness.records import OUTSIDE, Status

OWN = {"mine"}


def launched(name, us, op="", calls=1):
    return Launched(name=name, op=op, calls=calls, device_us=us)


MIXED = [
    launched("mine", 60.0, calls=3),
    launched("nvjet_hsh_64x8_NNT", 30.0, "aten::mm"),
    launched("void at::native::vectorized_elementwise_kernel<4, X>(int)", 6.0, "aten::add"),
    launched("Memcpy DtoD (Device -> Device)", 4.0, "aten::copy_"),
]


def test_shares_of_a_card():
    found = provenance.of_device(MIXED, OWN)
    assert found.own_share == 0.6
    assert found.shares == {"own": 0.6, "torch": 0.06, "cublas": 0.3, "memory": 0.04}
    assert [(use.name, use.kind, use.calls) for use in found.kernels[:2]] == [
        ("mine", "own", 3),
        ("nvjet_hsh_64x8_NNT", "cublas", 1),
    ]
    assert msgspec.json.decode(msgspec.json.encode(found))["kernels"][0]["class"] == "own"


def test_shares_of_a_cpu_are_of_the_call():
    operators = [launched("", 50.0, "aten::mm"), launched("", 10.0, "aten::empty"), launched("", 20.0, "mine::op")]
    found = provenance.of_host(operators, wall_us=200.0)
    assert found.shares == {"own": 0.7, "torch": 0.25, "memory": 0.05}
    assert found.kernels[0].name == OUTSIDE
    assert found.own_words == OUTSIDE
    assert found.kernels[0].device_us == 120.0


def test_operators_on_several_threads_take_no_more_than_all_of_it():
    found = provenance.of_host([launched("", 300.0, "aten::mm")], wall_us=200.0)
    assert (found.own_share, found.shares) == (0.0, {"torch": 1.0})


def test_no_time_is_no_profile():
    assert provenance.of_device([launched("mine", 0.0)], OWN) is None
    assert provenance.of_host([], 0.0) is None


def test_a_record_keeps_the_longest():
    found = provenance.of_device([launched(f"kernel{number}", 1.0 + number) for number in range(50)], OWN)
    kept = provenance.short(found)
    assert (len(kept.kernels), kept.omitted) == (provenance.MOST_KERNELS, 30)
    assert kept.kernels[0].name == "kernel49"
    assert kept.device_us == found.device_us


@pytest.mark.parametrize(
    "rules, reason, words",
    [
        ({"forbid": ["torch_fallback"]}, "forbidden:torch_fallback", "aten::mm (nvjet_hsh_64x8_NNT), 30 us; aten::add"),
        ({"forbid": ["third_party", "cublas"]}, "forbidden:cublas", "forbids cublas, but a profiled call ran aten::mm"),
        ({"min_own_share": 0.61}, "own_share", "own kernels took 60.0% of the device time"),
    ],
)
def test_rules_name_the_kernels(rules, reason, words):
    outcome = provenance.violation(provenance.of_device(MIXED, OWN), ProvenanceConfig(**rules))
    assert (outcome.status, outcome.reason) == (Status.REJECTED, reason)
    assert words in outcome.message


@pytest.mark.parametrize("rules", [{}, {"min_own_share": 0.6}, {"forbid": ["third_party"]}])
def test_rules_that_are_kept(rules):
    assert provenance.violation(provenance.of_device(MIXED, OWN), ProvenanceConfig(**rules)) is None


def test_copies_and_casts_are_no_fallback():
    moves = [
        launched("mine", 9.0),
        launched("void at::native::elementwise_kernel<128, X>(int)", 5.0, "aten::copy_"),
        launched("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", 1.0),
    ]
    rules = ProvenanceConfig(forbid=["torch_fallback", "cublas", "third_party"])
    assert provenance.violation(provenance.of_device(moves, OWN), rules) is None


def test_what_torch_compile_made_is_a_fallback():
    found = provenance.of_device([launched("triton_poi_fused_add_0", 9.0)], OWN)
    assert provenance.violation(found, ProvenanceConfig(forbid=["torch_fallback"])).reason == "forbidden:torch_fallback"


@pytest.mark.parametrize(
    "profiled_us, timed_us, doubtful",
    [
        (100.0, 95.0, False),
        (160.0, 100.0, False),
        (5000.0, 1000.0, True),
        (1000.0, 5000.0, True),
    ],
)
def test_a_profiled_call_unlike_the_timed_ones_is_doubted(profiled_us, timed_us, doubtful):
    assert bool(provenance.doubt([launched("mine", profiled_us)], profiled_us, timed_us)) == doubtful


def test_a_profile_that_lists_a_part_of_the_work_is_doubted():
    assert "lists 100 us" in provenance.doubt([launched("mine", 100.0)], 1000.0, 1000.0)
    gaps = [launched("mine", 400.0, calls=200)]
    assert provenance.doubt(gaps, 1000.0, 1000.0) == ""


@pytest.mark.parametrize(
    "told",
    [
        {"launched": [{"name": "x", "op": "", "calls": 1, "device_us": -1.0}]},
        {"launched": [{"name": "x", "op": "", "calls": 0, "device_us": 1.0}]},
        {"launched": [{"name": "x" * 1001, "op": "", "calls": 1, "device_us": 1.0}]},
        {"launched": [{"name": "x", "op": "", "calls": 1, "device_us": 1.0}] * 513},
        {"wall_us": -5.0},
    ],
)
def test_a_process_cannot_tell_nonsense(told):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(told, Profile)
