"""The process that reads what others wrote: parsers, the screen, regular expressions. It runs nothing, and may be lost.

It gets bytes and descriptors, no paths, and is held to whatever layers of the sandbox this machine has. No torch.
"""

from __future__ import annotations

import ast
import os
import resource
import sys
import warnings

import msgspec

from harness import wording
from harness.catalog import declared, modules
from harness.catalog.facts import (
    LONGEST_TEXT,
    CandidateFacts,
    HeadersWanted,
    ProblemFacts,
    TextFacts,
    Unparsed,
    mentions_compiler,
)
from harness.compile import prepare
from harness.integrity import own_names
from harness.integrity.screen import TOO_DEEP, screen
from harness.reading.reading import FindKernels, Found, Listening, ReadCandidate, ReadProblem, ReadText, ToReader
from harness.sandbox import enforcement, visible
from harness.sandbox.enforcement import LAYERS, Confinement
from harness.wire.channel import Channel, PeerGone

# A tree takes some hundred bytes for each byte of a source. Mapped libraries do not count.
DATA_BYTES = 1 << 30
# By these a candidate's file may find out where it lies.
PLACE_WORDS = (b"__file__", b"environ", b"getcwd", b"getenv", b"gethostname", b"resolve(", b"abspath")


def candidate(source: bytes, file: str) -> CandidateFacts:
    """Everything that the session has to know of a candidate's file."""
    known = CandidateFacts(
        needs_build=mentions_compiler(source),
        native=b"native" in source,
        asks_its_place=any(word in source for word in PLACE_WORDS),
        headers=prepare.wanted(source) if mentions_compiler(source) else HeadersWanted(),
    )
    try:
        tree = modules.parsed(source, file)
        nodes = list(ast.walk(tree))
        entry = declared.entry(nodes)
        return msgspec.structs.replace(
            known,
            parsed=True,
            # Cleaned, one of many empty lines takes a minute.
            caption=_first_line((ast.get_docstring(tree, clean=False) or "").lstrip()),
            entry=entry,
            methods=declared.methods(tree, entry) if entry else {},
            compiles_later=known.needs_build and declared.compiles_later(tree),
            findings=screen(nodes),
            kernels=own_names.written_kernels(nodes),
            without_half=declared.without_half(nodes),
        )
    except modules.LoadFault as fault:
        text = wording.plain(str(fault), LONGEST_TEXT, kept="")
        known = msgspec.structs.replace(known, unparsed=Unparsed(reason=fault.reason, text=text, line=fault.line))
        too_deep = fault.reason == "nested_too_deeply"
    except (RecursionError, MemoryError):
        too_deep = True
    return msgspec.structs.replace(known, findings=[TOO_DEEP]) if too_deep else known


def problem(source: bytes, file: str) -> ProblemFacts:
    """What a problem's file declares, or why it is none."""
    try:
        facts = declared.problem(modules.parsed(source, file), file)
    except (modules.LoadFault, RecursionError, MemoryError) as error:
        facts = ProblemFacts(fault=str(error) or f"{file}: too deeply nested, or too large")
    return msgspec.structs.replace(facts, fault=wording.plain(facts.fault, 500))


def text(source: bytes) -> TextFacts:
    """What a piece of a foreign text is; a `fault` if it is no Python."""
    try:
        return declared.text(modules.parsed(source, "text"))
    except modules.LoadFault as error:
        fault = str(error).replace("text:", "line " if error.line else "", 1).strip()
    except (RecursionError, MemoryError):
        fault = "too deeply nested, or too large"
    return TextFacts(fault=wording.plain(fault, LONGEST_TEXT, kept=""))


def serve(channel: Channel) -> None:
    """Answer until the session hangs up."""
    channel.send(Listening())
    while True:
        try:
            request, descriptors = channel.receive(None)
        except PeerGone:
            return
        channel.send(_answer(request, descriptors))
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(request: ToReader, descriptors: list[int]) -> CandidateFacts | ProblemFacts | TextFacts | Found:
    match request:
        case ReadCandidate():
            return candidate(request.source, request.file)
        case ReadProblem():
            return problem(request.source, request.file)
        case ReadText():
            return text(request.source)
        case FindKernels():
            return Found(places=own_names.among(request.names, descriptors, request.written))


def _first_line(docstring: str) -> str:
    return wording.plain(docstring.partition("\n")[0].strip(), LONGEST_TEXT, kept="")


def main(channel_fd: int) -> None:
    """Entry of the process: `python -m harness.reading.reader FD`."""
    # What Python thinks of a candidate's escapes is nobody's concern here.
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    # Codecs for a source's encoding are imported late; nothing is essential, so that no closed folder costs a layer.
    enforcement.attempt(Confinement(layers=tuple(LAYERS), readable=tuple(visible.essential())))
    serve(Channel.from_fd(channel_fd, ToReader))


if __name__ == "__main__":
    main(int(sys.argv[1]))
