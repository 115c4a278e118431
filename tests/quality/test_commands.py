"""`drivetail ingest --gate`, `release`, `drop` and what `status` says of them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest
from click.testing import CliRunner, Result

from drivetail.cli import main
from ingest import list_deliveries
from report.words import human
from tests.ingest.conftest import Warehouse
from tests.quality.conftest import DRIVES, fleet


def drivetail(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


@pytest.fixture
def held(warehouse: Warehouse) -> Result:
    """Message about a delivery in milliseconds."""
    folder = warehouse.put({"drive_hours.parquet": fleet(0, latency_us=4.0)})
    return drivetail("ingest", "bundle", folder, "--gate", "-w", warehouse.path)


def test_a_held_delivery_is_one_clear_line_and_a_problem(held: Result, warehouse: Warehouse) -> None:
    assert held.exit_code == 1
    (line,) = held.stderr.splitlines()
    assert line.startswith(
        "drivetail: 1 file held in quarantine 1: drive-hours of 2026-01-05 00:00: The median latency is not one of drives"
    )
    checked = drivetail("status", "--check", "-w", warehouse.path)
    assert (checked.exit_code, checked.stdout) == (1, "")
    listed = drivetail("status", "-w", warehouse.path).stdout
    status = json.loads(drivetail("status", "--json", "-w", warehouse.path).stdout)
    assert status["quarantined"]["count"] == 1
    (row,) = status["quarantined"]["rows"]
    assert list(row) == ["number", "source", "files", "quarantined_at", "age_hours", "reasons", "release", "drop"]
    for told in (row["release"], row["drop"], row["reasons"][0]):
        assert told in line and told in checked.stderr and told in listed.replace("\n", " ")
    assert row["files"][0] in listed
    page = next((warehouse.path / "docs" / "quality").iterdir())
    assert f"Checks: {page}" in held.stdout


@pytest.mark.parametrize("verb", ["release", "drop"])
def test_the_commands_that_status_names_work_as_they_stand(verb: str, held: Result, warehouse: Warehouse) -> None:
    (row,) = json.loads(drivetail("status", "--json", "-w", warehouse.path).stdout)["quarantined"]["rows"]
    command = shlex.split(row[verb].replace("NAME", "ada").replace("WHY", "'it is <so>'"))
    assert command[:2] == ["drivetail", verb]
    done = drivetail(*command[1:])
    assert done.exit_code == 0, done.output
    again = drivetail(*command[1:])
    assert again.exit_code == 0
    landed = list_deliveries(warehouse.path)
    assert len(landed) == (1 if verb == "release" else 0)
    if verb == "release":
        assert f"{human(DRIVES)} accepted" in done.output and "released by ada" in again.output
        assert json.loads((landed[0].path / "delivery.json").read_text())["released"]["by"] == "ada"
    status = json.loads(drivetail("status", "--json", "-w", warehouse.path).stdout)
    assert status["quarantined"] == {"count": 0, "rows": []}
    page = next((warehouse.path / "docs" / "quality").iterdir()).read_text()
    assert "by ada" in page and "it is &lt;so&gt;" in page


def test_a_number_that_is_not_held_is_named(warehouse: Warehouse, held: Result) -> None:
    for verb in ("release", "drop"):
        told = drivetail(verb, 7, "--by", "ada", "--note", "so", "-w", warehouse.path)
        assert told.exit_code == 1
        assert "no delivery is quarantined as 7" in told.stderr
        assert drivetail(verb, 1, "--by", "ada", "-w", warehouse.path).exit_code == 2


def test_a_wrong_suite_lands_nothing(warehouse: Warehouse) -> None:
    suite = warehouse.path / "suites" / "drives.json"
    suite.parent.mkdir(parents=True)
    suite.write_text('{"expectations": [{"type": "expect_column_to_exist", "kwargs": {"column": "colour"}, "meta": {"level": "batch"}}]}')
    told = drivetail("ingest", "bundle", warehouse.put({"drive_hours.parquet": fleet(0)}), "--gate", "-w", warehouse.path)
    assert told.exit_code == 1
    assert told.stderr.startswith(f"drivetail: {suite}: expectation 1 (expect_column_to_exist): no description")
    assert list_deliveries(warehouse.path) == []


def test_gates_that_start_together_load_great_expectations_once() -> None:
    program = (
        "import threading\nfrom quality.suites import great_expectations\nstart, found = threading.Barrier(3), []\n"
        "def load():\n    start.wait()\n    found.append(great_expectations()[0])\n"
        "threads = [threading.Thread(target=load) for _ in range(3)]\n"
        "[each.start() for each in threads]; [each.join() for each in threads]\nassert len(found) == 3, found\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


def test_a_plain_ingest_does_not_load_great_expectations() -> None:
    names = "[name for name in sys.modules if name.startswith(('great_ex', 'quality'))]"
    loaded = f"import sys, drivetail.cli, drivetail.ask.status, ingest; print({names})"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.strip() == "[]"
