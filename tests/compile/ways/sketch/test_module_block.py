"""What is taken out of a kernel file for the host compiler alone."""

import pytest

from harness.compile.ways.sketch import module_block
from harness.compile.ways.way import NotThisWay

KERNEL = "__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); }\n"
BLOCK = 'PYBIND11_MODULE(name, m) {\n  m.def("f", &f, "with a { and a \\" in it", py::arg("x") = \'}\');\n}'


def test_a_block_and_the_names_it_uses_are_cut_out_and_lines_keep_their_numbers():
    rest, block = module_block.cut(f"namespace py = pybind11;\n{KERNEL}{BLOCK}\nint last;\n")
    assert block == f"namespace py = pybind11;\n{BLOCK}\n"
    assert rest == f"\n{KERNEL}\n\n\nint last;\n"


def test_a_quote_between_digits_opens_no_literal():
    block = "PYBIND11_MODULE(name, m) {\n  m.def([] { return 1'000; }, py::arg('x'));\n}"
    rest, cut = module_block.cut(f"struct S {{ int n = 1'000; }};\n{block}\nint last = 2'000;\n")
    assert cut == f"{block}\n"
    assert rest == "struct S { int n = 1'000; };\n\n\n\nint last = 2'000;\n"


def test_a_block_that_only_a_literal_names_is_none():
    text = f'{KERNEL}const char* s = "PYBIND11_MODULE(";\n'
    assert module_block.cut(text) == (text, "")


def test_without_a_block_nothing_is_cut():
    text = f"namespace py = pybind11;\n{KERNEL}"
    assert module_block.cut(text) == (text, "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{BLOCK}\n{BLOCK}", "more than one"),
        (f"namespace mine {{\n{BLOCK}\n}}", "within something else"),
        ("PYBIND11_MODULE(name, m) {", "without an end"),
        ("PYBIND11_MODULE(name, m) { m.def([] { k<<<1, 1>>>(); }); }", "kernels"),
        ("PYBIND11_MODULE(name, m) { m.def([] __device__ () {}); }", "kernels"),
        ('PYBIND11_MODULE(name, m) { m.def("f", &launch<float>); }', "kernels"),
    ],
)
def test_what_is_no_plain_block_is_left_alone(text, why):
    with pytest.raises(NotThisWay, match=why):
        module_block.cut(text)


def test_of_all_macros_those_are_kept_that_the_block_expands_to():
    macros = """
#define PYBIND11_MODULE(name,variable) PYBIND11_INIT(name) void bind(variable)
#define PYBIND11_INIT(name) EXPORT int PyInit_ ##name()
#define EXPORT __attribute__((visibility("default")))
#define EXPORTED 1
#define __linux__ 1
"""
    kept = module_block.definitions(macros).splitlines()
    assert [line.split()[1].split("(")[0] for line in kept] == ["PYBIND11_MODULE", "PYBIND11_INIT", "EXPORT"]
    assert module_block.definitions("") == ""
