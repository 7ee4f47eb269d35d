import pytest


@pytest.fixture(autouse=True)
def _cold(cold_zygotes) -> None:
    """What begins as it does in use."""
