"""A process's memory read from outside, and what lies behind its addresses."""

import ctypes
import mmap
import os
import tempfile

import pytest
import torch

from harness.wire.host_memory import NO_FILE, ForeignMemory, opened

PAGE = mmap.PAGESIZE
MAP_FIXED = 0x10
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]


@pytest.fixture(params=["pagemap", "maps only"])
def memory(request):
    """This process's own, with and without what some kernels lack."""
    fds = opened()
    if request.param == "maps only":
        os.close(fds.pop())
    made = ForeignMemory(*fds)
    yield made
    made.close()


@pytest.fixture
def file():
    """A memory file of four pages, each with a number of its own."""
    fd = os.memfd_create("test")
    os.write(fd, b"".join(bytes([number]) * PAGE for number in range(4)))
    yield fd
    os.close(fd)


@pytest.fixture
def room():
    """Addresses of eight pages that nobody has touched, to map things over; and how."""
    address = libc.mmap(None, 8 * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)

    def place(page, fd, offset, pages=1, kind=mmap.MAP_SHARED):
        at = address + page * PAGE
        assert at == libc.mmap(at, pages * PAGE, mmap.PROT_READ | mmap.PROT_WRITE, kind | MAP_FIXED, fd, offset * PAGE)
        return at

    yield address, place
    libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(8 * PAGE))


def parts(memory, address, nbytes):
    memory.stopped()
    memory.read(address, nbytes)
    return memory.parts(address, nbytes)


def test_memory_of_its_own_is_in_no_file(memory, room):
    address, _ = room
    assert parts(memory, address + 1, 5 * PAGE) == [(NO_FILE, address + 1, address + 1 + 5 * PAGE)]
    tensor = torch.ones(10_000)
    assert parts(memory, tensor.data_ptr(), 40_000) == [(NO_FILE, tensor.data_ptr(), tensor.data_ptr() + 40_000)]
    assert parts(memory, tensor.data_ptr(), 0) == []


def test_a_page_at_several_places_is_the_same_part_of_a_file(memory, room, file):
    address, place = room
    place(1, file, 3)
    place(2, file, 3)
    found = parts(memory, address + PAGE, 2 * PAGE)
    assert [part[1:] for part in found] == [(3 * PAGE, 4 * PAGE)] * 2
    assert found[0].file == found[1].file != NO_FILE


def test_a_place_may_lie_in_a_file_in_part(memory, room, file):
    address, place = room
    place(1, file, 2, pages=2)
    place(4, file, 0)
    before, middle, between, last, behind = parts(memory, address + 7, 8 * PAGE - 14)
    assert [part.file == NO_FILE for part in (before, middle, between, last, behind)] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert before[1:] == (address + 7, address + PAGE)
    assert (middle[1:], last[1:]) == ((2 * PAGE, 4 * PAGE), (0, PAGE))
    assert between[1:] == (address + 3 * PAGE, address + 4 * PAGE)
    assert behind[1:] == (address + 5 * PAGE, address + 8 * PAGE - 7)


def test_shared_memory_without_a_name_is_a_file_of_its_own(memory):
    first, second = (torch.frombuffer(mmap.mmap(-1, 2 * PAGE), dtype=torch.uint8) for _ in range(2))
    found = [parts(memory, one.data_ptr() + 5, 100) for one in (first, second)]
    assert [part[1:] for (part,) in found] == [(5, 105)] * 2
    assert found[0][0].file != found[1][0].file


def test_what_is_mapped_anew_is_looked_at_again(memory, room, file):
    address, place = room
    place(0, file, 0)
    assert parts(memory, address, PAGE)[0][1:] == (0, PAGE)
    place(0, file, 2)
    assert parts(memory, address, PAGE)[0][1:] == (2 * PAGE, 3 * PAGE)


def test_a_page_of_a_file_that_was_written_for_oneself_is_one_s_own(room):
    memory = ForeignMemory(*opened())
    with tempfile.TemporaryFile() as file:
        file.truncate(PAGE)
        address, place = room
        place(0, file.fileno(), 0, kind=mmap.MAP_PRIVATE)
        assert parts(memory, address, PAGE)[0].file != NO_FILE
        ctypes.memset(address, 1, PAGE)
        assert parts(memory, address, PAGE)[0].file == NO_FILE
    memory.close()
