"""Commands without dbt, which only those need who write models, and without the lab and the study, projects of their own."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import duckdb
import pytest

from tests.proof.support import command, compile_models, environment, refusing

COMMANDS = (
    "simulate --out fleet --disk-groups 2 --ssd-groups 1 --days 8 --seed 3", "ingest bundle fleet", "build", "report", "status",
    "sql 'select count(*) from marts.dim_drives'", "--help",
)  # fmt: skip
PRODUCTION = (
    "build --daily", "build --full-refresh", "alerts", "candidates", "metrics", "maintain", "export fleet.duckdb",
    "what-if --worst 1", "serve --help", "prune --older-than 100d --dry-run",
)  # fmt: skip
"""Commands of every hour or day, too."""


@pytest.mark.proof
@pytest.mark.parametrize(
    ("packages", "commands", "need_them"),
    [
        (("dbt",), (*PRODUCTION, "study"), ("docs --out tables.html",)),
        (("lab",), ("study",), ("lab status", "toleraid run --requests 1000")),
        (("lab", "study"), PRODUCTION, ("lab status", "study")),
        (("study",), ("toleraid run --requests 1000", "toleraid report"), ("study",)),
    ],
    ids=["dbt", "lab", "lab and study", "study"],
)
def test_commands_work_where_a_package_cannot_be_imported(
    packages: tuple[str, ...], commands: tuple[str, ...], need_them: tuple[str, ...], tmp_path: Path
) -> None:
    compile_models()
    path = os.pathsep.join([str(refusing(packages, tmp_path / "missing")), environment()["PYTHONPATH"]])
    variables = {**environment(), "PYTHONPATH": path, "DRIVETAIL_WAREHOUSE": "warehouse"}

    def run(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*shlex.split(line)), cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=600)

    for line in (*COMMANDS, *commands):
        if line == "build --daily":  # with thresholds of its own, too
            (tmp_path / "warehouse" / "drivetail.toml").write_text("[thresholds]\nalert_slow_hours = 4\n")
        done = run(line)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        assert line != "--help" or [name for name in ("lab", "study") if f"\n  {name} " in done.stdout] == [
            name for name in ("lab", "study") if name not in packages
        ]
    with duckdb.connect(str(tmp_path / "warehouse" / "warehouse.duckdb"), read_only=True) as connection:
        schemas = {name for (name,) in connection.execute("select schema_name from duckdb_schemas()").fetchall()}
    assert schemas & {"lab", "study"} == {"lab", "study"} - set(packages)
    for line in need_them:
        assert run(line).returncode != 0, "else nothing was missing"
