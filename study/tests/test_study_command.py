"""`drivetail study`: what it prints is what the marts hold, in a shape for eyes and in two for machines, and it says why when it cannot."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from click.testing import CliRunner, Result

from drivetail.cli import main
from engine.read import fetch, open_published
from engine.warehouse import Warehouse
from study.tests.stand_in import publish_study
from study.words import interval, number, verdict_counts
from tests.drivetail.conftest import HEADER, HOURS, built, drivetail, write_bundle
from tests.drivetail.conftest import row as drive_hour


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    return publish_study(tmp_path_factory.mktemp("study") / "warehouse")


def run(warehouse: Warehouse, *options: str) -> Result:
    """Message about a study that is computed already."""
    with patch("engine.build.make_asked"):
        return CliRunner().invoke(main, ["study", "-w", str(warehouse.root), *options])


def held(warehouse: Warehouse, where: str = "true") -> list[dict[str, Any]]:
    with open_published(warehouse) as connection:
        return fetch(connection, f"select * from marts.study_results where {where}")


def test_the_study_is_computed_when_asked_and_after_days_changed(settled: Warehouse, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    def published() -> Any:
        with open_published(settled) as connection:
            return connection.execute("select publication_id from marts.publication").fetchall()

    def slow_hours_of_disks() -> Any:
        asked = drivetail("study", "--format", "json", "-w", settled.root)
        assert asked.exit_code == 0, asked.output
        (row,) = (row for row in json.loads(asked.stdout) if (row["id"], row["kind"]) == ("F01-01", "disk"))
        return row["numerator"], row["denominator"]

    empty = drivetail("sql", "from marts.study_results", "-w", settled.root)
    assert empty.exit_code == 0 and "0 rows" in empty.stdout
    assert "study_results is empty: it is computed when it is asked for: run `drivetail study`" in caplog.text
    first, of_build = slow_hours_of_disks(), published()
    hours = "select sum(is_slow::int), count(slowdown) from marts.fct_drive_hours where kind = 'disk' and slowdown is not null"
    with open_published(settled) as connection:
        assert connection.execute(hours).fetchall() == [first]
    assert slow_hours_of_disks() == first and published() == of_build, "it is kept"

    rows = [drive_hour(HOURS, drive, "g1", us="8000,18000" if drive == "d11" else "4000,9000") for drive in ("d11", "d12", "d13", "d14")]
    late = write_bundle(tmp_path / "late", {"drive_hours.csv": "\n".join([HEADER, *rows]) + "\n"})
    assert drivetail("ingest", "bundle", late, "-w", settled.root).exit_code == 0
    assert slow_hours_of_disks() == first and published() == of_build, "what has landed waits for a build"
    built(settled)
    assert slow_hours_of_disks() == (first[0] + 1, first[1] + 4)


def test_json_and_csv_hold_every_column_of_every_row(warehouse: Warehouse):
    rows = json.loads(run(warehouse, "--format", "json").stdout)
    printed = {(row["id"], row["kind"]): row for row in rows}
    assert printed.keys() == {(row["id"], row["kind"]) for row in held(warehouse)}
    for row in held(warehouse):
        assert {name: printed[row["id"], row["kind"]][name] for name in row} == row
    assert printed["F01-09", "disk"]["operator"] == ">="
    assert printed["F09-01", "disk"]["paper"] == "hundreds"
    # null is empty in csv
    texts = list(csv.DictReader(io.StringIO(run(warehouse, "--format", "csv").stdout)))
    numbers = {"value", "ci_low", "ci_high", "paper_value"}
    for text, row in zip(texts, rows, strict=True):
        read = {name: float(value) if value and name in numbers else value for name, value in text.items()}
        assert read == {name: "" if value is None else value if name in numbers else str(value) for name, value in row.items()}


def test_one_kind_can_be_asked_for(warehouse: Warehouse):
    for kind in ("disk", "ssd"):
        rows = json.loads(run(warehouse, "--format", "json", "--kind", kind).stdout)
        assert {row["kind"] for row in rows} == {kind}
        assert len(rows) == len(held(warehouse, f"kind = '{kind}'"))


def test_the_summary_fits_a_screen(warehouse: Warehouse):
    lines = run(warehouse).stdout.splitlines()
    assert len(lines) <= 40
    assert re.split(r" {2,}", lines[0].strip()) == ["asks", "agrees", "differs", "cannot tell", "no data", "not comparable"]
    (first,) = (line for line in lines if line.startswith("Finding 1 "))
    assert "how often a drive is slow" in first
    of_the_first = verdict_counts([row for row in held(warehouse) if row["id"].startswith("F01")])
    assert re.findall(r"\d+", first)[1:] == [str(count) for count in of_the_first.values() if count]


def test_the_table_is_in_the_papers_order_and_lines_up(warehouse: Warehouse):
    result = run(warehouse, "--all")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    headings = [line.split("  ")[0] for line in lines if line.startswith(("Finding ", "Table ", "Figure ", "Text"))]
    assert headings == [*(f"Finding {number}" for number in (1, 2, 4, 8, 9, 10, 12, 13)), "Table 1", "Table 3a", "Figure 4a", "Text"]
    (first,) = (line for line in lines if line.startswith("F01-01"))
    assert re.split(r" {2,}", first) == [
        "F01-01", "disk", "drive-hours with S_i>=2 / all disk", "0.209%", "2,412 of 1,155,470", "0.173 to 0.251", "0.22%", "agrees",
    ]  # fmt: skip
    # every verdict stands in the column that the header names
    at = lines[0].index("verdict")
    for row in held(warehouse):
        (line,) = (line for line in lines if line.startswith(row["id"]) and f" {row['kind']} " in line)
        assert line[at:].startswith(row["verdict"])


def test_numbers_of_different_precision_are_written_in_full(warehouse: Warehouse):
    lines = {tuple(line.split()[:2]): line for line in run(warehouse, "--all").stdout.splitlines() if line.strip()}
    for key, parts in {
        ("F01-03", "disk"): ["P99.791", "1,153,058 of 1,155,470", "99.749 to 99.827", "P99.8"],
        ("F01-09", "disk"): ["4.28\u00d7", "of 1,155,470", "3.10 to 6.50", "\u2265 9\u00d7"],
        ("F13-02", "ssd"): ["21.5 points", "14.0 to 30.2", "~ 23 points"],
        ("T1-13", "disk"): ["1,155,470", "857,183,442", "not comparable"],
        ("F09-01", "disk"): ["~ hundreds"],
        ("F08-01", "ssd"): ["of 0", "> 95%", "no data", "no I/O counts"],
        ("F10-06", "disk"): ["0%", "0 of 188", "0.00 to 2.00", "0.11%"],
        ("F4A-S-10", "disk"): ["99.99394%"],
    }.items():
        for part in parts:
            assert part in lines[key], (key, part)


def test_a_closing_line_counts_the_verdicts(warehouse: Warehouse):
    assert run(warehouse).stdout.splitlines()[-1] == (
        "14 numbers: 5 agree, 3 differ, 1 cannot be told, 3 no data, 2 not comparable; each of them, and 3 of figures and text: --all"
    )
    everything = run(warehouse, "--all").stdout
    assert everything.splitlines()[-1] == "16 numbers: 6 agree, 3 differ, 1 cannot be told, 4 no data, 2 not comparable"
    assert "\nFigure 4a" in everything
    assert everything.index("F4A-S-2 ") < everything.index("F4A-S-10 ") < everything.index("\nText")


def test_html_is_written_and_named(warehouse: Warehouse, tmp_path: Path):
    page = tmp_path / "new" / "study.html"
    result = run(warehouse, "--html", str(page))
    assert result.exit_code == 0
    assert result.stdout == f"Study: {page}\n"
    assert page.stat().st_size > 200_000
    both = run(warehouse, "--html", str(page), "--format", "json")
    assert len(json.loads(both.stdout)) == 17
    assert both.stderr == f"Study: {page}\n"


def test_numbers_keep_the_digits_that_mean_something():
    percents = (0.0207708, 99.9939419, 54.0)
    assert [number(percent, "percent") for percent in percents] == ["0.0208", "99.99394", "54.0"]
    assert (number(100.0, "percentile"), number(2.3456, "ratio"), number(1470.0, "days")) == ("100", "2.35", "1,470")
    # an interval is as exact as its estimate, or, of an estimate of 0, as its ends
    assert interval({"value": 98.83, "ci_low": 98.6, "ci_high": 99.058, "unit": "percent"}) == "98.60 to 99.06"
    assert interval({"value": 0.0, "ci_low": 0.0, "ci_high": 0.684, "unit": "percent"}) == "0.000 to 0.684"
