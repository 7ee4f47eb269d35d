"""Whether a text is so long for a parser that it would hold up others. Parses nothing, and takes a fraction of that."""

from __future__ import annotations

import io
import re
import tokenize

from harness.catalog.sources import LoadFault

# Shorter ones cannot be too much.
FREE_BYTES = 1 << 16
# Words, numbers and signs; a text in quotes is one. To read so many takes some seconds, of which most are the screen's.
MOST_TOKENS = 100_000
MOST_WITH_REMARKS = 4 * MOST_TOKENS
# Python's parser reads the rest of a text again for each field of an f-string: fields times bytes.
MOST_FIELD_BYTES = 5_000_000_000
FORMATTED = re.compile(r"[bru]?[ft][bru]?['\"]", re.IGNORECASE)
TOO_MANY = f"more than {MOST_TOKENS:,} words, numbers and signs, or {MOST_WITH_REMARKS:,} with remarks and empty lines"
MEND = "write it as a loop, or put data in a file beside it"


def check(source: bytes, file: str) -> None:
    """Raises LoadFault (`source_too_large`). Of a text that is no Python the parser will say so."""
    if len(source) <= FREE_BYTES:
        return
    count = fields = 0
    try:
        for number, token in enumerate(tokenize.tokenize(io.BytesIO(source).readline)):
            count += token.type not in (tokenize.COMMENT, tokenize.NL)
            if count > MOST_TOKENS or number > MOST_WITH_REMARKS:
                raise LoadFault("source_too_large", f"{file}: {TOO_MANY}; {MEND}")
            if token.type == tokenize.OP or FORMATTED.match(token.string):
                fields += token.string.count("{")
    except (SyntaxError, tokenize.TokenError, ValueError, LookupError, RecursionError):
        pass
    if fields * len(source) > MOST_FIELD_BYTES:
        raise LoadFault("source_too_large", f"{file}: {fields:,} braces and fields of f-strings in one text; {MEND}")
