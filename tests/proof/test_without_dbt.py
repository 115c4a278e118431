"""dbt is for who writes models: nothing that runs every hour imports it, while the compiled models are those of the project."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.proof.support import command, compile_models, environment, refusing

COMMANDS = (
    "simulate --out fleet --disk-groups 2 --ssd-groups 1 --days 8 --seed 3",
    "ingest bundle fleet",
    "build",
    "build --daily",
    "build --full-refresh",
    "report",
    "alerts",
    "candidates",
    "status",
    "study",
    "metrics",
    "maintain",
    "export fleet.duckdb",
    "prune --older-than 100d --dry-run",
)


@pytest.fixture
def without_dbt(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which dbt cannot be imported."""
    path = os.pathsep.join([str(refusing("dbt", tmp_path / "no-dbt")), environment()["PYTHONPATH"]])
    return {**environment(), "PYTHONPATH": path, "DRIVETAIL_WAREHOUSE": "warehouse"}


def test_production_commands_work_where_dbt_cannot_be_imported(without_dbt: dict[str, str], tmp_path: Path) -> None:
    compile_models()
    for line in COMMANDS:
        done = subprocess.run(command(*line.split()), cwd=tmp_path, env=without_dbt, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"


def test_the_documentation_which_dbt_makes_fails_there(without_dbt: dict[str, str], tmp_path: Path) -> None:
    """Else the test above would prove nothing."""
    done = subprocess.run(
        command("docs", "--out", "tables.html"), cwd=tmp_path, env=without_dbt, capture_output=True, text=True, timeout=600
    )
    assert done.returncode != 0 and "as this test wants it" in done.stderr, done.stdout + done.stderr
