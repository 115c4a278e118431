"""The DAGs that run drivetail's commands in its own environment, for an Airflow with other packages."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from ingest.raw.register import Register
from tests.dags.hours import HOURS, WEEK, make_site
from tests.proof.support import ROOT, environment

FOLDER = ROOT / "deploy" / "airflow"

pytestmark = pytest.mark.xdist_group("airflow")


@pytest.mark.soak
def test_a_command_of_the_hour_does_what_the_dag_does(tmp_path: Path):
    """In an Airflow of its own, which has only this file."""
    site = make_site(tmp_path, HOURS[-1] + timedelta(hours=1))
    for hour in HOURS:
        site.deliver(hour)
    command = tmp_path / "drivetail"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m drivetail "$@"\n')
    command.chmod(0o755)
    variables = environment() | {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(FOLDER),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DRIVETAIL_BIN": str(command),
        "DRIVETAIL_WAREHOUSE": str(site.warehouse.root),
        "PYTHONPATH": str(ROOT),
    }
    call = "from airflow.utils import db; db.initdb(); from airflow.models.dagbag import DagBag; import sys; "
    call += f"print('ended', *(str(DagBag({str(FOLDER)!r}).dags[name].test().state) for name in sys.argv[1:]))"
    names = ("drivetail_hourly_command", "drivetail_maintenance_command")
    done = subprocess.run([sys.executable, "-c", call, *names], env=variables, capture_output=True, text=True, timeout=900)
    assert "ended success success" in done.stdout.replace("DagRunState.", "").lower(), done.stdout + done.stderr
    assert (site.warehouse.root / "reports" / f"{WEEK}.html").exists()
    assert [record["subject_id"] for record in Register(site.warehouse.raw, "alerts").read()] == [site.slow_drive]


def test_the_file_imports_nothing_of_drivetail():
    code = "import drivetail_commands, sys; assert not {'drivetail', 'engine', 'ingest', 'duckdb', 'polars'} & set(sys.modules)"
    variables = environment() | {"PYTHONPATH": ""}
    subprocess.run([sys.executable, "-c", code], cwd=FOLDER, env=variables, check=True, capture_output=True)
