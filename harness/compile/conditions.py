"""What decides about a build beside the candidate's own files and our code: compilers, their variables, settings."""

from __future__ import annotations

import hashlib
import os
import shutil

import msgspec

from harness.compile import architectures, toolkit, tools
from harness.compile.tools import Tools
from harness.config import CompileConfig
from harness.environment import Device, torch_build

# Of the user's environment, what changes a compiler's output.
COMPILER_VARIABLES = (
    *("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS", "CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
    *("CUDAHOSTCXX", "CUDA_HOME", "CUDA_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"),
)


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """`tools` is None where there is no compiler; `arch` is empty where no CUDA is compiled."""

    arch: str
    tools: Tools | None
    headers: str
    # Two compilers may say the same version.
    cxx: str
    variables: tuple[str, ...]

    @property
    def digest(self) -> str:
        """In 64 hex digits. Our own code is not in it: PROTOCOL_VERSION says where that may change a verdict."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()


def find(device: Device, settings: CompileConfig) -> Conditions:
    """Those of this machine as it is now, for a kind of device."""
    arch = settings.arch or architectures.of_card(device.capability)
    cuda = toolkit.find() if arch and torch_build().cuda else None
    return Conditions(
        arch=arch,
        tools=tools.find_tools(cuda, arch),
        headers=settings.headers,
        cxx=shutil.which(tools.compiler()) or "",
        variables=tuple(os.environ.get(name, "") for name in COMPILER_VARIABLES),
    )
