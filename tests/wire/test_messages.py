"""What untrusted processes may send: every field bounded, explained, and lied about."""

import io
import os
import random
import re
import socket
import threading
from pathlib import Path

import msgspec
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect
from rich.console import Console

from harness import records
from harness.instruments.insight import Insight
from harness.integrity import provenance
from harness.oracle import structure
from harness.records import Outcome, Record, Status
from harness.reports.terminal import profile_table
from harness.timing import claims
from harness.wire import faults, values
from harness.wire.channel import MAX_FRAME_BYTES, Channel, DeadlineExceeded, PeerGone, ProtocolError, pair
from harness.wire.layout import view
from harness.wire.messages import (
    BUILD_FAULTS,
    BuildFailed,
    BuildTried,
    Built,
    Failed,
    Finished,
    FromBuilder,
    FromRunner,
    Inspected,
)
from tests.links import lies

TABLE = Path(__file__).parents[2] / "docs/messages.md"
# What a record is at most; timing takes most of one that passed.
LONGEST_RECORD_BYTES = 1 << 18
# Bounded by the frame, and by the number of calls or the form of the reference's output that they are held against.
BY_THE_FRAME = {("Enqueued", "outputs"), ("Sequence", "items"), ("Mapping", "items")}
# By BuildFailed, which every outcome of an untrusted process comes in.
BY_BUILD_FAILED = {("Outcome", field) for field in ("reason", "message", "evidence", "limit")}
FIELDS = [(name, field) for name, info in sorted(lies.structs().items()) for field in info.fields]


def unbounded(info):
    """The parts of a type that have no end."""
    match info:
        case inspect.StrType():
            return [] if info.max_length is not None else [info]
        case inspect.BytesType():
            return [] if info.max_length is not None else [info]
        case inspect.IntType():
            return [] if None not in (info.ge, info.le) else [info]
        case inspect.AnyType():
            return [info]
    own = [info] if isinstance(info, inspect.ListType | inspect.DictType | inspect.VarTupleType) else []
    found = [info for info in own if info.max_length is None]
    if not isinstance(info, inspect.StructType):
        found += [one for part in lies.parts(info) for one in unbounded(part)]
    return found


@pytest.mark.parametrize(("name", "field"), FIELDS, ids=lambda part: getattr(part, "name", part))
def test_every_field_has_an_end(name, field):
    if (name, field.name) in BY_BUILD_FAILED:
        return
    most = 1 if (name, field.name) in BY_THE_FRAME else 0
    assert len(unbounded(field.type)) <= most


def test_the_inventory_has_a_row_for_every_field_and_none_too_many():
    rows = set(re.findall(r"^\| `(\w+)\.(\w+)` \|", TABLE.read_text(), re.MULTILINE))
    assert rows == {(name, field.name) for name, field in FIELDS}


def received(kind, data):
    """What a receiver makes of these bytes, or the error by which it tells that they are no message."""
    ours, theirs = pair()
    with ours, theirs:

        def send():
            try:
                theirs.sendall(data)
                theirs.shutdown(socket.SHUT_WR)
            except OSError:
                # The receiver had heard enough.
                pass

        sender = threading.Thread(target=send)
        sender.start()
        try:
            return Channel(ours, kind).message(10.0)
        finally:
            ours.close()
            sender.join()


def recorded(outcome):
    """The size of a record with this outcome, as a journal would keep it and read it again."""
    record = Record(
        key="k",
        problem="p",
        variant="v",
        precision="float32",
        candidate="c",
        device="cpu",
        baseline="eager",
        status=outcome.status,
        reason=outcome.reason,
        message=outcome.message,
        evidence=outcome.evidence,
    )
    line = records.encode(record)
    assert records.decode(line).reason == outcome.reason
    return len(line)


def consume(message):
    """What the receiver does with a message, as far as it needs no clock and no process. Nothing may be raised but the
    errors that cost the sender its result."""
    block, expected = torch.zeros(4096, dtype=torch.uint8), (torch.zeros(3), {"a": 1.0})
    for node in getattr(message, "outputs", []):
        try:
            output = values.decode(node, lambda ref: ref if ref.block == -1 else view(block, ref))
        except ValueError:
            continue
        fault = structure.compare(expected, output)
        assert fault is None or len(fault.message) < 10_000
    if isinstance(message, Failed):
        arguments = (message.phase, message.exception, message.text, "candidate.py", message.line, "no card")
        outcome = faults.classify(*arguments)
        assert outcome.status is not Status.PASSED
        assert recorded(outcome) < LONGEST_RECORD_BYTES
    if isinstance(message, Finished):
        claims.unaccounted([10.0, 11.0], [message.claimed_us] * 2)
        if message.profile is not None:
            for found in (
                provenance.of_device(message.profile.launched, frozenset()),
                provenance.of_host(message.profile.launched, message.profile.wall_us),
            ):
                assert len(msgspec.json.encode(found and provenance.short(found))) < LONGEST_RECORD_BYTES
    if isinstance(message, Inspected):
        insight = Insight(
            candidate="",
            instrument="ncu",
            **{name: getattr(message, name) for name in ("launches", "findings", "failed", "said")},
        )
        profile_table.show(insight, None, Console(file=io.StringIO()))
    if isinstance(message, BuildTried | Inspected):
        message = message.built
    if isinstance(message, BuildFailed):
        assert message.outcome.status in BUILD_FAULTS
        assert recorded(message.outcome) < LONGEST_RECORD_BYTES
    if isinstance(message, Built):
        # It goes on to the runner, with as much again around it.
        assert len(msgspec.json.encode(message)) < MAX_FRAME_BYTES / 2


KINDS = {"runner": FromRunner, "builder": FromBuilder, "checker": BuildTried, "inspector": Inspected}


@pytest.mark.parametrize("lying", [0.0, 0.02, 0.2])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_any_message_is_taken_or_refused_and_nothing_else(kind, lying, seed):
    rng = random.Random(seed)
    told = lies.message(rng, rng.choice(lies.names(kind)), lying)
    try:
        message = received(kind, lies.frame(told))
    except ProtocolError as error:
        refusal = str(error)
    else:
        consume(message)
        refusal = ""
    assert len(refusal) < 1000


@pytest.mark.parametrize("name", sorted(lies.structs()))
def test_true_messages_are_taken(name):
    """Otherwise the lies would all end at the first field. Not each is: some fields belong together."""
    info = lies.structs()[name].cls
    taken = 0
    for seed in range(40):
        told = lies.message(random.Random(seed), name, 0.0)
        try:
            msgspec.json.decode(lies.frame(told)[4:], type=info)
            taken += 1
        except msgspec.DecodeError:
            pass
    assert taken


@pytest.mark.parametrize(
    "outcome",
    [
        *(Outcome(status=status, reason="said") for status in Status if status not in BUILD_FAULTS),
        Outcome(status=Status.COMPILE_ERROR),
        Outcome(status=Status.COMPILE_ERROR, reason="compiler", message="x" * 10_000),
        Outcome(status=Status.COMPILE_ERROR, reason="x" * 10_000),
        Outcome(status=Status.COMPILE_ERROR, reason="compiler", evidence={"text": "x" * 100_000}),
        Outcome(status=Status.COMPILE_ERROR, reason="compiler", limit="build.timeout_s"),
        # What the harness lacks excuses a candidate (rewards.is_no_word), and only the harness says so.
        Outcome(status=Status.UNSUPPORTED, reason="needs_memory"),
        Outcome(status=Status.UNSUPPORTED, reason="no_profile"),
    ],
)
def test_a_build_may_only_say_that_it_failed_and_not_for_ever(outcome):
    data = lies.frame({"type": "BuildFailed", "outcome": msgspec.to_builtins(outcome)})
    with pytest.raises(ProtocolError):
        received(FromBuilder, data)
    built = b'{"type": "BuildTried", "built": ' + data[4:] + b"}"
    with pytest.raises(ProtocolError):
        received(BuildTried, len(built).to_bytes(4, "little") + built)


@pytest.mark.parametrize("reason", ["needs_cuda", "missing_module:triton", "missing_headers", "not_implemented"])
def test_a_build_may_say_what_the_machine_lacks(reason):
    outcome = Outcome(status=Status.UNSUPPORTED, reason=reason)
    data = lies.frame({"type": "BuildFailed", "outcome": msgspec.to_builtins(outcome)})
    assert received(FromBuilder, data).outcome == outcome


@pytest.mark.parametrize("depth", [9, 300, 500, 900, 5000])
def test_evidence_nested_without_end_is_refused_where_it_arrives(depth):
    told = (
        b'{"type": "BuildFailed", "outcome": {"status": "compile_error", "reason": "compiler", "evidence": {"a": %b}}}'
    )
    nested = told % (b"[" * depth + b"]" * depth)
    for kind, data in ((FromBuilder, nested), (BuildTried, b'{"type": "BuildTried", "built": %b}' % nested)):
        with pytest.raises(ProtocolError):
            received(kind, len(data).to_bytes(4, "little") + data)


def test_evidence_as_deep_as_a_record_keeps_it_is_taken():
    evidence = {"a": []}
    for _ in range(records.MOST_DEPTH - 2):
        evidence = {"a": evidence}
    outcome = Outcome(status=Status.COMPILE_ERROR, reason="compiler", evidence=evidence)
    message = received(FromBuilder, lies.frame({"type": "BuildFailed", "outcome": msgspec.to_builtins(outcome)}))
    assert message.outcome.evidence == evidence
    assert "[dict]" not in str(records._bounded(evidence, records._Room(1000)))
    assert records.too_deep({"a": evidence})


def test_a_nesting_that_our_own_senders_do_not_make_is_refused():
    told = {"type": "scalar", "value": 1}
    for _ in range(400):
        told = {"type": "sequence", "kind": "list", "items": [told]}
    message = received(FromRunner, lies.frame({"type": "Enqueued", "number": 1, "nonce": 1, "outputs": [told]}))
    with pytest.raises(ValueError, match="nesting deeper"):
        values.decode(message.outputs[0], lambda ref: ref)


def test_a_key_twice_is_refused():
    told = {"type": "mapping", "items": [["a", {"type": "scalar", "value": number}] for number in (1, 2)]}
    message = received(FromRunner, lies.frame({"type": "Enqueued", "number": 1, "nonce": 1, "outputs": [told]}))
    with pytest.raises(ValueError, match="the key 'a' twice"):
        values.decode(message.outputs[0], lambda ref: ref)


def test_what_our_own_senders_make_of_endless_values_is_taken():
    for value in ("x" * 100_000, {"x" * 300: 1}, {1 << 70: 1}, 1 << 70, float("inf"), [float("nan")]):
        data = msgspec.json.encode(values.encode(value, lambda tensor: None))
        told = b'{"type": "Enqueued", "number": 1, "nonce": 1, "outputs": [' + data + b"]}"
        assert received(FromRunner, len(told).to_bytes(4, "little") + told).number == 1


@pytest.mark.parametrize("data", [b"\x02", b"\x02\x00\x00\x00{}", b"\xff\xff\xff\xff"])
def test_descriptors_beside_what_is_no_message_are_closed(data):
    ours, theirs = pair()
    with ours, theirs, open(os.devnull) as file:
        before = len(os.listdir("/proc/self/fd"))
        socket.send_fds(theirs, [data], [file.fileno()] * 8)
        with pytest.raises((ProtocolError, DeadlineExceeded, PeerGone)):
            Channel(ours, FromRunner).receive(0.05)
        assert len(os.listdir("/proc/self/fd")) == before


def test_descriptors_that_nobody_asked_for_are_closed():
    ours, theirs = pair()
    with ours, theirs, open(os.devnull) as file:
        before = len(os.listdir("/proc/self/fd"))
        Channel(theirs, FromRunner).send(Finished(number=3, claimed_us=1.5), (file.fileno(),) * 8)
        assert Channel(ours, FromRunner).message(1.0).number == 3
        assert len(os.listdir("/proc/self/fd")) == before
