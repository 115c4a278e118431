"""dbt's own commands work from the project root, on a copy of a build database, and make what the engine makes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from engine.build import make_asked
from engine.projects import projects
from engine.warehouse import PROJECT
from tests.golden import awkward_fleet, copied
from tests.proof.support import marts_differences
from workbench.dbt_database import write_dbt_database

DBT = PROJECT / ".venv/bin/dbt"


@pytest.mark.proof
@pytest.mark.xdist_group("models")
def test_dbt_build_from_the_root_makes_the_marts_of_the_engine(tmp_path: Path) -> None:
    warehouse = copied(awkward_fleet(), tmp_path / "warehouse")
    make_asked(warehouse)  # dbt makes all relations
    database = tmp_path / "dbt.duckdb"
    write_dbt_database(warehouse, database)
    with duckdb.connect(str(database)) as connection:  # what dbt makes is not what it found
        connection.execute("drop schema marts cascade")
    environment = os.environ | {"DRIVETAIL_DBT_DATABASE": str(database)}

    def dbt(*command: str, project: Path = PROJECT) -> str:
        options = ["--target-path", str(tmp_path / "target"), "--log-path", str(tmp_path / "logs")]
        done = subprocess.run(
            [DBT if DBT.exists() else shutil.which("dbt") or "dbt", *command, *options],
            cwd=project, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    assert "PASS=1 " in dbt("test", "--select", "unique_grain_int_drives_drive_id")
    assert "ERROR=0" in dbt("build")
    for project in projects():
        if project.READS_FLEET:
            assert "ERROR=0" in dbt("build", project=project.FOLDER)
    assert "PASS=" in dbt("test", "--select", "fct_raid_hours")
    dbt("docs", "generate")
    assert (tmp_path / "target" / "catalog.json").exists()
    # the publication itself writes its list of relations
    found = [difference for difference in marts_differences(warehouse.published, database) if not difference.startswith("marts.relations:")]
    assert found == []
