import pytest

from harness.catalog.claims import Left
from harness.config import PackConfig
from harness.packs import formats
from harness.packs.sample import Sample
from harness.reading import reader

MODEL = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8)]


def get_init_inputs():
    return []
"""
NEW = """\
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.clamp(min=0)
"""


class SameProcess:
    """The reader without a process of its own, for texts that are known to be harmless."""

    def text(self, source: bytes):
        return reader.text(source)


@pytest.fixture(scope="session")
def texts():
    return SameProcess()


@pytest.fixture
def checkout(tmp_path):
    for level, name in ((1, "1_Square"), (1, "19_ReLU"), (2, "19_Other")):
        place = tmp_path / "kb" / "KernelBench" / f"level{level}" / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f'"""{name} of level {level}."""\n{MODEL}')
    return tmp_path / "kb"


@pytest.fixture
def read(texts):
    """Samples and what was left, of a file or folder."""

    def both(source, **wishes) -> tuple[list[Sample], list[Left]]:
        found = list(formats.samples(source, PackConfig(**wishes), texts))
        return [one for one in found if isinstance(one, Sample)], [one for one in found if isinstance(one, Left)]

    return both
