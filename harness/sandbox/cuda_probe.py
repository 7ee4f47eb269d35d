"""Does CUDA still work inside? A confined process opens memory that an unconfined one hands over, and exports its own,
as runners do. No torch.

`python -m harness.sandbox.cuda_probe FOLDER` with layers as JSON on its standard input prints what went
wrong, or nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

import msgspec

from harness import environment
from harness.sandbox import enforcement, visible
from harness.sandbox.enforcement import Confinement

NBYTES = 1 << 21
FILL = 0x5A
HANDLE_BYTES = 64
# Tried in this order: what CUDA is least likely to need comes last.
SUSPECTS = ("namespaces", "seccomp", "card", "landlock", "user", "limits", "signals")


class Rehearsal(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined process of a run would be held to, on a card whose device file has the number `minor`.

    `environment` keeps both processes to that card.
    """

    layers: tuple[str, ...]
    environment: dict[str, str] = {}
    minor: int = -1


def kept_working(layers: tuple[str, ...], rehearse: Callable[[tuple[str, ...]], str]) -> dict[str, str]:
    """Which of `layers` have to go for CUDA to work, and why: layer -> what went wrong under it.

    `rehearse` tries a set of layers and says what went wrong, if anything. As few go as it takes; none where CUDA works
    without a sandbox no better.
    """
    dropped: dict[str, str] = {}

    def without(*others: str) -> str:
        return rehearse(tuple(layer for layer in layers if layer not in others))

    # What fails once may have met something else.
    fault = without() and without()
    if not fault or without(*layers):
        return {}
    for suspect in (layer for layer in SUSPECTS if layer in layers):
        dropped[suspect] = fault
        fault = without(*dropped)
        if not fault:
            break
    # The last one to go was needed; of those before it, some may have gone for nothing.
    for layer in list(dropped)[:-1]:
        if not without(*(other for other in dropped if other != layer)):
            del dropped[layer]
    return dropped


class Handle(ctypes.Structure):
    """CUipcMemHandle: passed by value."""

    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


class Location(ctypes.Structure):
    """CUmemLocation: the first card."""

    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp: plain memory that can be handed over as a descriptor."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", Location),
        ("reserved", ctypes.c_uint64 * 2),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", Location), ("flags", ctypes.c_int)]


PINNED = DESCRIPTOR = ON_DEVICE = 1
READ_AND_WRITE = 3


class Driver:
    """The few functions of libcuda that a rehearsal needs. Raises OSError for whatever goes wrong."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def create(self) -> int:
        """A descriptor of fresh memory of NBYTES bytes of FILL, for another process to open."""
        allocation, descriptor = ctypes.c_uint64(), ctypes.c_int()
        properties = Properties(PINNED, DESCRIPTOR, Location(ON_DEVICE, 0))
        size = ctypes.c_size_t(NBYTES)
        self._call("cuMemCreate", ctypes.byref(allocation), size, ctypes.byref(properties), ctypes.c_uint64(0))
        self._call("cuMemsetD8_v2", self._mapped(allocation), ctypes.c_ubyte(FILL), size)
        self._call("cuCtxSynchronize")
        self._call(
            "cuMemExportToShareableHandle",
            ctypes.byref(descriptor),
            allocation,
            ctypes.c_int(DESCRIPTOR),
            ctypes.c_uint64(0),
        )
        return descriptor.value

    def opened(self, descriptor: int) -> bytes:
        """What lies in memory that another process created."""
        allocation, content = ctypes.c_uint64(), ctypes.create_string_buffer(NBYTES)
        self._call(
            "cuMemImportFromShareableHandle",
            ctypes.byref(allocation),
            ctypes.c_void_p(descriptor),
            ctypes.c_int(DESCRIPTOR),
        )
        self._call("cuMemcpyDtoH_v2", content, self._mapped(allocation), ctypes.c_size_t(NBYTES))
        return content.raw

    def export(self) -> None:
        """Offer memory of this process's own to others, as an output is."""
        pointer, handle = ctypes.c_uint64(), Handle()
        self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(NBYTES))
        self._call("cuIpcGetMemHandle", ctypes.byref(handle), pointer)

    def _mapped(self, allocation: ctypes.c_uint64) -> ctypes.c_uint64:
        pointer, size, none = ctypes.c_uint64(), ctypes.c_size_t(NBYTES), ctypes.c_uint64(0)
        access = Access(Location(ON_DEVICE, 0), READ_AND_WRITE)
        self._call("cuMemAddressReserve", ctypes.byref(pointer), size, ctypes.c_size_t(0), none, none)
        self._call("cuMemMap", pointer, size, ctypes.c_size_t(0), allocation, none)
        self._call("cuMemSetAccess", pointer, size, ctypes.byref(access), ctypes.c_size_t(1))
        return pointer

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise OSError(code, f"{name} fails with CUDA error {code}")


def main(folder: str, rehearsal: Rehearsal) -> str:
    """What went wrong, or nothing. The child is forked before either process touches CUDA."""
    environment.make_device_nodes()
    os.environ.update(rehearsal.environment)
    ours, its = socket.socketpair()
    words = os.pipe()
    child = os.fork()
    if child == 0:
        ours.close()
        _confined(folder, rehearsal, its, words[1])
    its.close()
    os.close(words[1])
    with ours, os.fdopen(words[0]) as file:
        try:
            # Alive until the child has read what it holds.
            driver = Driver()
            socket.send_fds(ours, [b"."], [driver.create()])
        except (OSError, AttributeError) as error:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"already outside the sandbox: {error}"
        said = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return said or (f"a confined process ended with {status}" if status else "")


def _confined(folder: str, rehearsal: Rehearsal, handed: socket.socket, words: int) -> NoReturn:
    fault, code = "", 1
    try:
        confinement = Confinement(
            layers=rehearsal.layers,
            folder=folder,
            readable=tuple(visible.common([])),
            essential=tuple(visible.essential()),
            nodes=tuple(visible.nodes(rehearsal.layers, rehearsal.minor)),
        )
        enforcement.enter(confinement)
        _, descriptors, _, _ = socket.recv_fds(handed, 1, 1)
        driver = Driver()
        if driver.opened(descriptors[0]) != bytes([FILL]) * NBYTES:
            fault = "inside the sandbox, another process's memory has a different content"
        driver.export()
        code = 0
    except (OSError, AttributeError, IndexError, enforcement.SandboxFailed) as error:
        fault = str(error)
    os.write(words, fault.encode())
    os._exit(code)


if __name__ == "__main__":
    signal.alarm(60)
    print(main(sys.argv[1], msgspec.json.decode(sys.stdin.buffer.read(), type=Rehearsal)), end="")
