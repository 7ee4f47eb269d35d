"""Whole conversations with processes that lie: a real runner and a real builder, whose messages are changed on the way.

Nothing here knows how judge and session work inside: the liars are candidates of a run, and what counts is the journal.
"""

import json
import random
import secrets

import pytest
from rich.console import Console

from harness import records, session
from harness.config import BuildConfig, Config, Limits
from harness.records import Status
from tests.conftest import QUICK
from tests.links import lies

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.tanh()

def get_inputs():
    return [torch.randn(64, 96)]

def get_init_inputs():
    return []
"""
HONEST = '''"""Honest."""
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x)
'''
LIAR = '''"""Lies."""
import json, os, socket, sys, time
import msgspec, torch
from harness.wire import channel
{imports}

LIES = json.loads({lies!r})
# How many of each message this process has sent.
COUNTS = {{}}
stock = channel.Channel.send


def told_by_a_liar(self, message, fds=(), timeout_s=30.0):
    name = type(message).__name__
    COUNTS[name] = COUNTS.get(name, -1) + 1
    lie = LIES.get(f"{{name}} {{COUNTS[name]}}")
    if lie is None:
        return stock(self, message, fds, timeout_s)
    how, what = lie
    wire = socket.socket(fileno=os.dup(self.fileno()))
    wire.setblocking(True)

    def send(body, fds=()):
        socket.send_fds(wire, [len(body).to_bytes(4, "little")], list(fds))
        wire.sendall(body)

    true = msgspec.json.encode(message)
    if how == "field":
        field, text = what
        told = json.loads(true)
        told[field] = "THE LIE"
        send(json.dumps(told).replace(json.dumps("THE LIE"), text).encode(), fds)
    elif how == "instead":
        send(what.encode(), fds)
    elif how == "before":
        send(what.encode())
        send(true, fds)
    elif how == "twice":
        send(true, fds)
        send(true)
    elif how == "torn":
        wire.sendall(len(true).to_bytes(4, "little") + true[: len(true) // 2])
        time.sleep(what)
    elif how == "descriptors":
        send(true, [*fds, *[0] * (8 - len(fds))])
    elif how == "hang up":
        wire.shutdown(socket.SHUT_RDWR)
    elif how == "late":
        time.sleep(what)
        send(true, fds)
    # And for "never", nothing.


channel.Channel.send = told_by_a_liar


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {answer}
'''
SENDERS = {
    "runner": {"Ready": 1, "Enqueued": 30, "Finished": 30},
    "builder": {"Built": 1},
}
OTHERS = {"runner": lies.names(lies.FromRunner), "builder": lies.names(lies.FromBuilder)}


def lie(rng, who, name):
    """How a message of this name is changed, and by what."""
    how = rng.choice(["field"] * 5 + ["instead"] * 3 + ["before", "twice", "torn", "descriptors"] + ["late", "never"])
    how = "hang up" if rng.random() < 0.05 else how
    if how == "field":
        field = rng.choice(lies.structs()[name].fields)
        return how, (field.encode_name, json.dumps(lies.value(rng, field.type, rng.choice((0.0, 0.1, 1.0)))))
    if how in ("instead", "before"):
        return how, json.dumps(lies.message(rng, rng.choice(OTHERS[who]), rng.choice((0.0, 0.05))))
    return how, rng.choice((0.1, 30.0))


def liar(rng, right):
    """A candidate's source: it lies once or twice, early or late."""
    who = "builder" if rng.random() < 0.25 else "runner"
    told = {}
    for _ in range(rng.choice((1, 1, 2))):
        name, most = rng.choice(list(SENDERS[who].items()))
        # With a wrong answer a conversation is over after its first burst.
        told[f"{name} {rng.randrange(most if right else min(most, 2))}"] = lie(rng, who, name)
    return LIAR.format(
        lies=json.dumps(told),
        imports="from torch.utils import cpp_extension" if who == "builder" else "",
        answer="torch.tanh(x)" if right else "torch.zeros_like(x)",
    )


@pytest.mark.slow
def test_no_lie_is_worth_anything_and_none_ends_a_run(tmp_path):
    seed = secrets.randbits(32)
    rng = random.Random(seed)
    sources = {"honest_first": HONEST, "zz_honest_last": HONEST}
    sources |= {f"liar_{number:02}_wrong": liar(rng, right=False) for number in range(16)}
    sources |= {f"liar_{number:02}_right": liar(rng, right=True) for number in range(8)}
    (tmp_path / "problems/toy").mkdir(parents=True)
    (tmp_path / "solutions/toy/one").mkdir(parents=True)
    (tmp_path / "problems/toy/one.py").write_text(PROBLEM)
    for name, source in sources.items():
        (tmp_path / f"solutions/toy/one/{name}.py").write_text(source)
    config = Config(
        problems=[str(tmp_path / "problems")],
        solutions=[str(tmp_path / "solutions")],
        device="cpu",
        timing=QUICK,
        limits=Limits(call_s=1.0, first_call_s=2.0, load_s=4.0, total_s=20.0),
        build=BuildConfig(timeout_s=8.0),
    )
    with open(tmp_path / "console", "w") as file:
        made = session.run(config, tmp_path / "run", Console(file=file), command=["test"])
    found = {record.candidate: record for record in made}
    assert found.keys() == sources.keys()
    ours = {Status.HARNESS_ERROR, Status.INVALID_REFERENCE}
    for name, record in found.items():
        about = f"seed {seed}, {name}: {record.status} {record.reason} {record.message[:300]}\n{sources[name]}"
        assert record.status not in ours, about
        assert not ("wrong" in name and record.status is Status.PASSED), about
        assert not ("honest" in name and record.status is not Status.PASSED), about
        assert len(records.encode(record)) < 1 << 18, about
        assert len(record.message) < 5000, about
