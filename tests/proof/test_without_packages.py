"""Commands without dbt, which only those need who write models, and without the lab, a project of its own."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import duckdb
import pytest

from tests.proof.support import command, compile_models, environment, refusing

COMMANDS = (
    "simulate --out fleet --disk-groups 2 --ssd-groups 1 --days 8 --seed 3", "ingest bundle fleet", "build", "report", "status", "study",
    "sql 'select count(*) from marts.dim_drives'", "--help",
)  # fmt: skip
PRODUCTION = (
    "build --daily", "build --full-refresh", "alerts", "candidates", "metrics", "maintain", "export fleet.duckdb",
    "prune --older-than 100d --dry-run",
)  # fmt: skip
"""Commands of every hour or day, too."""


@pytest.mark.proof
@pytest.mark.parametrize(("package", "commands", "needs_it"), [("dbt", PRODUCTION, "docs --out tables.html"), ("lab", (), "lab status")])
def test_commands_work_where_a_package_cannot_be_imported(package: str, commands: tuple[str, ...], needs_it: str, tmp_path: Path) -> None:
    compile_models()
    path = os.pathsep.join([str(refusing(package, tmp_path / "missing")), environment()["PYTHONPATH"]])
    variables = {**environment(), "PYTHONPATH": path, "DRIVETAIL_WAREHOUSE": "warehouse"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*shlex.split(line)), cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    for line in (*COMMANDS, *commands):
        if line == "build --daily":  # with thresholds of its own, too
            (tmp_path / "warehouse" / "drivetail.toml").write_text("[thresholds]\nalert_slow_hours = 4\n")
        done = run(line)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert package == "dbt" or "toleraid" not in done.stdout, line
    if package == "lab":
        with duckdb.connect(str(tmp_path / "warehouse" / "warehouse.duckdb"), read_only=True) as connection:
            assert connection.execute("select count(*) from duckdb_schemas() where schema_name = 'lab'").fetchall() == [(0,)]
    assert run(needs_it).returncode != 0, "else nothing was missing"
