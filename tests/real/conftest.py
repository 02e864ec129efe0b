"""The folder of shared real data; tests that use it are skipped if it is absent."""

from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def data():
    """Return the folder of real data."""
    if not DATA.is_dir():
        pytest.skip(f"no real data: {DATA} is absent")
    return DATA
