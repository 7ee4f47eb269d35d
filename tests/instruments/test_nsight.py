"""Nsight Compute's page `raw`, as written down by hand after its documentation."""

import pytest

from harness.instruments import nsight

NAMES = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size"]
NAMES += ["Device", "CC", "dram__bytes.sum.per_second", "gpu__time_duration.sum", "launch__registers_per_thread"]
NAMES += ["launch__shared_mem_per_block", "sm__throughput.avg.pct_of_peak_sustained_elapsed"]
UNITS = [*[""] * 11, "byte/second", "nsecond", "register/thread", "byte/block", "%"]
FIRST = ["0", "77", "python", "host", "void rows<8>(float *, int)", "1", "7", "(256, 1, 1)", "(4096, 1, 1)", "0", "9.0"]
FIRST += ["3,100,000,000,000", "12,345.6", "32", "1,024", "41.5"]
SECOND = ["1", "77", "python", "host", "tail(float *)", "1", "7", "(32, 1, 1)", "(1, 1, 1)", "0", "9.0"]
SECOND += ["n/a", "2000", "16", "0", ""]


def page(*rows: list[str]) -> str:
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows) + "\n"


def test_each_launch_has_its_figures_in_our_units():
    first, second = nsight.parse("==PROF== Connected to process 77\n" + page(NAMES, UNITS, FIRST, SECOND))
    assert (first.kernel, first.grid, first.block) == ("void rows<8>(float *, int)", "(4096, 1, 1)", "(256, 1, 1)")
    assert first.figures == {
        "time": pytest.approx(12.3456),
        "SM throughput": 41.5,
        "DRAM rate": pytest.approx(3.1e12),
        "registers a thread": 32.0,
        "shared memory a block": 1024.0,
    }
    # What was not measured is missing, and not zero.
    assert second.figures == {"time": 2.0, "registers a thread": 16.0, "shared memory a block": 0.0}


@pytest.mark.parametrize(("unit", "us"), [("ns", 0.0123), ("us", 12.3), ("usecond", 12.3), ("msecond", 12300.0)])
def test_the_time_is_in_microseconds_whatever_the_unit_of_the_page(unit, us):
    names, units, row = ["ID", "Kernel Name", "gpu__time_duration.sum"], ["", "", unit], ["0", "k", "12.3"]
    (launch,) = nsight.parse(page(names, units, row))
    assert launch.figures == {"time": pytest.approx(us)}


@pytest.mark.parametrize(
    "said", ["", "==ERROR== ERR_NVGPUCTRPERM", '"ID"', '"ID","Kernel Name"\n"",""\n"0"\n', '"ID\n"']
)
def test_a_page_without_launches_has_none(said):
    assert nsight.parse(said) == []


def test_a_kernel_of_any_name_is_one_cell():
    name = 'k<"a", 1>(float *)'.replace('"', '""')
    (launch,) = nsight.parse(page(["ID", "Kernel Name"], ["", ""], ["0", name]))
    assert launch.kernel == 'k<"a", 1>(float *)'
