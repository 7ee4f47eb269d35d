"""Texts that would take a parser long are refused before it reads them; honest long ones are not."""

import time

import pytest

from harness.catalog import effort, modules
from harness.catalog.sources import LoadFault

HEAD = b"import torch\n"


@pytest.mark.parametrize(
    "source",
    [
        b"d = {" + b"1:2," * 400_000 + b"}\n",
        b"x = 1\n" * 125_000,
        b"\n" * 3_000_000,
        b"f(a)(b)(c)\n" * 100_000,
        b"s = f'" + b"{a}" * 300_000 + b"'\n",
        b"s = rf'''" + b"{a}\n" * 100_000 + b"'''\n",
    ],
    ids=["table", "lines", "empty", "calls", "fields", "lines_of_fields"],
)
def test_what_takes_a_parser_long_is_refused_in_a_moment(source):
    began = time.process_time()
    with pytest.raises(LoadFault, match="beside it") as refused:
        modules.parsed(HEAD + source, "long.py")
    assert (refused.value.reason, time.process_time() - began < 3.0) == ("source_too_large", True)


@pytest.mark.parametrize(
    "source",
    [
        b"s = '" + b"A" * 2_000_000 + b"'\n",
        b's = """' + b"for (int i = 0; i < n; ++i) { y[i] = x[i]; }\n" * 40_000 + b'"""\n',
        b"# a { remark }\n" * 100_000,
        b"x = 1\n" * 20_000,
        b's = f"""' + b"if (x) {{ y; }}\n" * 5000 + b'{a}"""\n',
        b"t = [" + b"0.125, " * 40_000 + b"]\n",
    ],
    ids=["data", "kernels", "remarks", "lines", "doubled_braces", "numbers"],
)
def test_what_a_parser_reads_quickly_is_not(source):
    modules.parsed(HEAD + source, "honest.py")


@pytest.mark.parametrize(
    "source", [b"# coding: klingon\n", b"x = '''\n", b"\xff\xfe\0", b"if x:\n    y\n  z\n", b"((("]
)
def test_what_is_no_python_is_left_to_the_parser(source):
    effort.check(source + b"# long\n" * 20_000, "broken.py")
