"""The lab is a project beside the fleet's: where it is missing, all else works."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import duckdb

from tests.proof.support import command, compile_models, environment, refusing

COMMANDS = (
    "--help",
    "simulate --out fleet --disk-groups 2 --ssd-groups 1 --days 8 --seed 3",
    "ingest bundle fleet",
    "build",
    "report",
    "status",
    "study",
    "sql 'select count(*) from marts.dim_drives'",
)


def test_all_but_the_lab_works_where_the_lab_cannot_be_imported(tmp_path: Path) -> None:
    compile_models()
    path = os.pathsep.join([str(refusing("lab", tmp_path / "no-lab")), environment()["PYTHONPATH"]])
    variables = {**environment(), "PYTHONPATH": path, "DRIVETAIL_WAREHOUSE": "warehouse"}

    def run(*line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*line), cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    for line in COMMANDS:
        done = run(*shlex.split(line))
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert "toleraid" not in done.stdout, line
    with duckdb.connect(str(tmp_path / "warehouse" / "warehouse.duckdb"), read_only=True) as connection:
        assert connection.execute("select count(*) from duckdb_schemas() where schema_name = 'lab'").fetchall() == [(0,)]
    assert run("lab", "status").returncode == 2, "else nothing was missing"
