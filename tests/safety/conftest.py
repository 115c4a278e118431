from __future__ import annotations

import pytest
from hostile import Attacked, attacked_fleet


@pytest.fixture(scope="session")
def attacked() -> Attacked:
    return attacked_fleet()
