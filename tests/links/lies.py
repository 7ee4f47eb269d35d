"""What an untrusted process may send, read off the messages' own types, and lies made from it.

A new field of a message is walked, lied about and asked for in docs/messages.md without anybody thinking of it.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from harness.wire.channel import MAX_FRAME_BYTES
from harness.wire.messages import BuildTried, FromBuilder, FromRunner, Inspected

UNTRUSTED = FromRunner | FromBuilder | BuildTried | Inspected
DEEP: Any = 1
TALL: Any = {"type": "scalar", "value": 1}
for _ in range(400):
    DEEP, TALL = [DEEP], {"type": "sequence", "kind": "list", "items": [TALL]}
# Of any type, and some that JSON has no word for.
NONSENSE = [
    *(None, True, False, 0, 1, -1, 7, 2**31, 2**63, -(2**63), 10**30, 10**4000),
    *(0.5, -1e300, 1e300, float("nan"), float("inf"), float("-inf")),
    *("", "x", "passed", "float32", "\0", "../../../../etc/passwd", "\x1b[2J\n", "\ud800", "=1+1", "x" * 5000),
    *([], {}, [[]], {"": None}, {"type": "tensor"}, {"type": "Verdict"}, DEEP, TALL, [TALL]),
]
HUGE = "x" * (MAX_FRAME_BYTES - (1 << 20))


def structs() -> dict[str, inspect.StructType]:
    """Every message that an untrusted process may send, and every struct inside one, by name."""
    found: dict[str, inspect.StructType] = {}
    waiting: list[Any] = [inspect.type_info(UNTRUSTED)]
    while waiting:
        info = waiting.pop()
        if isinstance(info, inspect.StructType):
            if info.cls.__name__ in found:
                continue
            found[info.cls.__name__] = info
        waiting += parts(info)
    return found


def parts(info: Any) -> Iterator[Any]:
    """The types that a type is made of."""
    match info:
        case inspect.StructType():
            yield from (field.type for field in info.fields)
        case inspect.UnionType():
            yield from info.types
        case inspect.ListType() | inspect.VarTupleType():
            yield info.item_type
        case inspect.TupleType():
            yield from info.item_types
        case inspect.DictType():
            yield from (info.key_type, info.value_type)


def message(rng: random.Random, name: str, lying: float) -> Any:
    """A message of this name as JSON has it; each value is nonsense with the probability `lying`."""
    return value(rng, structs()[name], lying)


def value(rng: random.Random, info: Any, lying: float, depth: int = 0) -> Any:
    """One of this type within its bounds, or nonsense."""
    if rng.random() < lying:
        return HUGE if rng.random() < 0.01 else rng.choice(NONSENSE)

    def inner(part: Any) -> Any:
        return value(rng, part, lying, depth + 1)

    match info:
        case inspect.StructType():
            fields = [field for field in info.fields if field.required or rng.random() < 0.7]
            told = {field.encode_name: inner(field.type) for field in fields}
            return told | ({info.tag_field: info.tag} if info.tag_field else {})
        case inspect.UnionType():
            # Leaves only, when a tree has become tall.
            kinds = [kind for kind in info.types if depth < 6 or not isinstance(kind, inspect.StructType)]
            return inner(rng.choice(kinds or list(info.types)))
        case inspect.ListType() | inspect.VarTupleType():
            return [inner(info.item_type) for _ in range(rng.choice((0, 1, 1, 2, 3)) if depth < 6 else 0)]
        case inspect.TupleType():
            return [inner(part) for part in info.item_types]
        case inspect.DictType():
            return {str(inner(info.key_type)): inner(info.value_type) for _ in range(rng.randrange(3))}
        case inspect.LiteralType():
            return rng.choice(info.values)
        case inspect.EnumType():
            return rng.choice([member.value for member in info.cls])
        case inspect.BoolType():
            return rng.random() < 0.5
        case inspect.IntType():
            most = info.le if info.le is not None else 1 << 40
            return rng.choice((info.ge or 0, 0, 1, 2, rng.randrange(1000), most))
        case inspect.FloatType():
            return rng.choice((info.ge or 0.0, 0.0, 1.5, rng.uniform(0, 1e6), 1e12))
        case inspect.BytesType():
            return "AAAA" * rng.randrange(3)
        case inspect.StrType():
            words = ("", "0", "abc", "float32", "cpu", "Tensor", "LoadFault:", "tail", "f" * 64)
            return rng.choice((*words, "y" * (info.max_length or 100)))
        case inspect.NoneType():
            return None
        case inspect.AnyType():
            return rng.choice(NONSENSE)
    raise NotImplementedError(f"no lie is known of {info}")


def frame(told: Any) -> bytes:
    """As it lies on the wire, whatever JSON says to it."""
    body = json.dumps(told).encode()
    return len(body).to_bytes(4, "little") + body


def altered(rng: random.Random, true: msgspec.Struct) -> list[bytes]:
    """What a liar sends in place of this message: it with one field changed, something else, more, or less."""
    name, told = type(true).__name__, plain(true)
    how = rng.choice(["field"] * 6 + ["other", "before", "twice", "torn", "never"])
    if how == "field":
        field = rng.choice(structs()[name].fields)
        return [frame(told | {field.encode_name: value(rng, field.type, rng.choice((0.0, 0.1, 1.0)))})]
    other = frame(message(rng, rng.choice(names(FromRunner)), rng.choice((0.0, 0.05))))
    own = frame(told)
    return {"other": [other], "before": [other, own], "twice": [own, own], "torn": [own[:-3]], "never": []}[how]


def plain(true: msgspec.Struct) -> Any:
    """A message as JSON has it."""
    return json.loads(msgspec.json.encode(true))


def names(kind: Any) -> list[str]:
    """The messages of a union."""
    return [one.__name__ for one in getattr(kind, "__args__", (kind,)) if issubclass(one, msgspec.Struct)]
