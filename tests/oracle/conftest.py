"""One thread: the sizes here are small, and other work shares the cores."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    torch.set_num_threads(threads)
