from __future__ import annotations

import pytest
from hostile import Attacked, attacked_fleet


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Attacked:
    return attacked_fleet(tmp_path_factory, worker_id)
