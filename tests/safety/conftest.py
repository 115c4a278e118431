from __future__ import annotations

import pytest
from hostile import Attacked, attacked_fleet

from tests.ingest.conftest import warehouse  # noqa: F401


@pytest.fixture(scope="session")
def attacked() -> Attacked:
    return attacked_fleet()
