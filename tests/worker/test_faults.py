"""Exceptions -> status, reason and sentence, where the sentence can also say how to mend it."""

from harness.records import Status
from harness.worker import faults


def test_a_dispatch_without_half_is_explained():
    text = "\"tail\" not implemented for 'Half'"
    outcome = faults.classify("call", "NotImplementedError", text, "candidate.py", 12, "")
    assert (outcome.status, outcome.reason) == (Status.UNSUPPORTED, "not_implemented")
    assert "AT_DISPATCH_FLOATING_TYPES leaves Half out" in outcome.message


def test_a_refusal_of_the_candidate_s_own_stands_as_it_is():
    outcome = faults.classify("call", "NotImplementedError", "takes float16 only", "candidate.py", 12, "")
    assert outcome.message == "candidate.py:12 says that it does not take this case: takes float16 only"
