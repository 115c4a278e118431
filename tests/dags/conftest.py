"""A throwaway Airflow for the DAG tests; they skip where Airflow is not installed (`make test` installs it)."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.warehouse import Warehouse
from tests.proof.support import ROOT

if importlib.util.find_spec("airflow") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    # Airflow reads its environment once, when it is first imported
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="drivetail-airflow-")
    os.environ |= {
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "SCARF_ANALYTICS": "false",
        "DO_NOT_TRACK": "1",
    }
    sys.path.insert(0, str(ROOT / "dags"))


# Airflow is imported in fixtures and tests, so that collecting all tests does not wait for it
@pytest.fixture(scope="session")
def airflow_database() -> Iterator[None]:
    import shutil

    from airflow.models.pool import Pool
    from airflow.utils import db

    import drivetail_shared as shared

    db.initdb()
    Pool.create_or_update_pool(shared.WRITER, slots=1, description="", include_deferred=False)
    yield
    shutil.rmtree(Path(os.environ["AIRFLOW_HOME"]), ignore_errors=True)


@pytest.fixture(scope="session")
def bag(airflow_database: None) -> Any:
    from airflow.models.dagbag import DagBag

    return DagBag(ROOT / "dags")


@pytest.fixture(scope="session")
def tasks(bag: Any) -> Callable[[str], Callable[..., Any]]:
    """The function that a task of the hourly run calls."""
    return lambda name: bag.dags["drivetail_hourly"].get_task(name).python_callable


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """That of the DAGs, empty."""
    monkeypatch.setenv("DRIVETAIL_WAREHOUSE", str(tmp_path))
    return Warehouse(tmp_path)


@pytest.fixture
def task_context(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    told = SimpleNamespace(dag_id="drivetail_hourly", task_id="by hand", map_index=-1, run_id="by hand")
    context: dict[str, Any] = {"ti": told}
    monkeypatch.setattr("airflow.sdk.get_current_context", lambda: context)
    return context
