"""What is code, comment and literal, and that no text takes long."""

import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.cpp_tokens import Kind, tokens, without_comments

PIECES = [
    *('"', "'", "\\", "\n", "\r\n", "\\\n", "/", "*", "//", "/*", "*/", "(", ")", 'R"', 'R"a(', ')a"', 'u8R"(', ')"'),
    *(
        "R",
        "u8",
        "L",
        "1",
        "1'000",
        "0x",
        "a",
        "é",
        " ",
        "#",
        "#include ",
        "%:include <a",
        "<a//b>",
        "{",
        "}",
        ".",
        "\0",
    ),
]


def kinds(text):
    return [(kind.name, piece) for kind, piece in tokens(text) if piece.strip()]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=80))
def test_joined_the_tokens_are_the_text(text):
    found = list(tokens(text))
    assert "".join(piece for _, piece in found) == text
    assert all(piece for _, piece in found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "a /* b */ c // d\ne",
            [("CODE", "a "), ("COMMENT", "/* b */"), ("CODE", " c "), ("COMMENT", "// d"), ("CODE", "\ne")],
        ),
        ('"a\\"//" b', [("STRING", '"a\\"//"'), ("CODE", " b")]),
        ("'\"' '\\'' x", [("CHARACTER", "'\"'"), ("CHARACTER", "'\\''"), ("CODE", " x")]),
        ("1'000 + 0xFF'FF", [("CODE", "1'000 + 0xFF'FF")]),
        ("a1'0'", [("CODE", "a1"), ("CHARACTER", "'0'")]),
        ('R"a()" )a" b', [("RAW_STRING", 'R"a()" )a"'), ("CODE", " b")]),
        ('u8R"(/*)" LR"()"', [("RAW_STRING", 'u8R"(/*)"'), ("RAW_STRING", 'LR"()"')]),
        # A macro's name, and no prefix.
        ('FOR"(" c', [("CODE", "FOR"), ("STRING", '"("'), ("CODE", " c")]),
        ('R"a( "b"', [("CODE", "R"), ("STRING", '"a( "'), ("CODE", "b"), ("UNCLOSED", '"')]),
        ("don't // x\ny", [("CODE", "don"), ("UNCLOSED", "'t // x"), ("CODE", "\ny")]),
        ("// a \\\nb\nc", [("COMMENT", "// a \\\nb"), ("CODE", "\nc")]),
        ("/\\\n/ a\n/\\\n* b *\\\n/ c", [("COMMENT", "/\\\n/ a"), ("COMMENT", "/\\\n* b *\\\n/"), ("CODE", " c")]),
        ('"a\\\n" "b\\\\\n" c"', [("STRING", '"a\\\n"'), ("STRING", '"b\\\\\n" c"')]),
        ('R"(\\\n)" R\\\n"(//)"', [("RAW_STRING", 'R"(\\\n)"'), ("RAW_STRING", 'R\\\n"(//)"')]),
        (
            '#include <a//b.h> // c\n # include "d/*.h"\nint x;',
            [
                ("HEADER", "#include <a//b.h>"),
                ("COMMENT", "// c"),
                ("HEADER", ' # include "d/*.h"'),
                ("CODE", "\nint x;"),
            ],
        ),
        ("/* never closed", [("COMMENT", "/* never closed")]),
    ],
)
def test_each_piece_is_what_it_is_to_a_compiler(text, found):
    assert kinds(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "a b 1'000 // c\n/* d */ \"e//f\\\\\" 'g' '\\'' u8'/' x / y\n",
        'const char* s = R"x(// /* )" )x" "tail" LR"(\\)"; // gone\n',
        "int a = 1\\\n'000; // one \\\ntwo\nint b = 0b1'0; /\\\n* c */ int d;\n",
        'auto u = "http://x"; char c = \'"\'; // "\nint e = FOR"(" /* ) */ ")";\n',
    ],
)
def test_comments_go_as_a_compiler_has_them_go(text):
    """Of the preprocessor's output, all but blanks."""
    command = ["c++", "-E", "-P", "-x", "c++", "-"]
    said = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    assert "".join(without_comments(text).split()) == "".join(said.split())


LONG = ('R"a(', " ", '"', "'", "/*")
HOSTILE = [
    *(')a"', "/", "\\\n", "1'", "(", "u8R", "\n \t", "#include <", "\n#include <a", '"\\', '\\\n"', "/\\\n", "*\\\n"),
    *("u\\\n", "a\\\n", "1\\\n'", 'R"()', "'a", "a\n", '"a\\\n', 'R\\\n"', "\n#", "x y "),
]


@pytest.mark.parametrize("piece", LONG, ids=repr)
def test_a_megabyte_takes_no_longer_than_its_length(piece):
    taken(piece * ((1 << 20) // len(piece)))


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_no_text_takes_long(piece):
    for before in ("", "/*", '"'):
        taken(before + piece * (100_000 // len(piece)))


def taken(text):
    started = time.process_time()
    assert sum(len(found) for _, found in tokens(text)) == len(text)
    # A quadratic one takes minutes for the shorter texts.
    assert time.process_time() - started < 10.0


def test_many_raw_strings_that_are_never_closed():
    text = "".join(f'R"{number}(' for number in range(100_000))
    taken(text)
    assert Kind.RAW_STRING not in {kind for kind, _ in tokens(text + ')x"')}
