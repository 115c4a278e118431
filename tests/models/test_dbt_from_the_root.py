"""dbt's own commands work from the project root: they read a raw folder, all its days, without a warehouse around it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.warehouse import PROJECT
from tests.drivetail.conftest import EVENTS, HEADER, INVENTORY, drivetail, first_delivery, write_bundle

DBT = PROJECT / ".venv/bin/dbt"


@pytest.mark.xdist_group("models")
def test_dbt_builds_tests_shows_and_documents_a_raw_folder(tmp_path: Path) -> None:
    files = {"drive_hours.csv": "\n".join([HEADER, *first_delivery()]), "drives.csv": INVENTORY, "drive_events.csv": EVENTS}
    assert drivetail("ingest", "bundle", write_bundle(tmp_path / "bundle", files), "--warehouse", tmp_path / "warehouse").exit_code == 0
    (tmp_path / "store").mkdir()
    environment = os.environ | {
        "DRIVETAIL_RAW": str(tmp_path / "warehouse" / "raw"),
        "DRIVETAIL_STORE": str(tmp_path / "store"),
        "DRIVETAIL_BUILD_DATABASE": str(tmp_path / "build.duckdb"),
    }
    for name in ("DRIVETAIL_DAYS", "DRIVETAIL_DELIVERIES", "DRIVETAIL_HORIZON", "DRIVETAIL_BUILD", "DRIVETAIL_CUSTOM_MODELS"):
        environment.pop(name, None)

    def dbt(*command: str) -> str:
        options = ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs")]
        done = subprocess.run(
            [DBT if DBT.exists() else shutil.which("dbt") or "dbt", *command, *options],
            cwd=PROJECT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    assert "ERROR=0" in dbt("build", "--exclude", "test_type:unit")
    assert "PASS=" in dbt("test", "--select", "fct_raid_hours,test_type:data")
    assert "d15" in dbt("show", "--select", "fct_drive_slowness", "--limit", "30")
    dbt("docs", "generate", "--no-compile")
    assert (tmp_path / "target" / "catalog.json").exists()
