"""Every expectation that drivetail comes with passes a good fleet and is broken once; a suite that is wrong is told, not obeyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest.contract.errors import GateError
from ingest.contract.fleet import CONTRACT
from quality.frames import FILES, PARAMETERS, columns, facts
from quality.suites import SHIPPED, TABLES, Check, Finding, load_suite, validate
from tests.quality.conftest import NOW, aliases, events, fleet, health, inventory, labels, latencies, probes, samples

NOWHERE = Path("/nonexistent")
FUTURE = NOW + timedelta(hours=2)
KNOWN = {"usual_rows": 48, "known_drives": 48}


def good(table: str) -> pl.DataFrame:
    if table == "ingested_files":
        return pl.DataFrame([("drive_hours", 1, 100, 1)], schema=FILES, orient="row")
    made = {"drive_hours": lambda: fleet(0), "drive_samples": samples, "drives": inventory, "drive_aliases": aliases, "labels": labels,
            "drive_events": events, "drive_health": health, "drive_latencies": latencies, "drive_probes": probes}  # fmt: skip
    rows = made[table]()
    if table == "drives":  # something in every column that a check looks at
        rows = rows.with_columns(pl.lit(datetime(2027, 1, 1)).alias("valid_to"))
    missing = [pl.lit(None, kind).alias(name) for name, kind in CONTRACT[table].items() if name not in rows.columns]
    rows = rows.with_columns(missing)
    if table == "drive_hours":
        rows = rows.with_columns(io_count=pl.lit(400, pl.Int64), latency_us=5000.0, usual_latency_us=5000.0, had_count=True)
    return rows


def put(**values: Any) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Write one value into every row of some columns, kept in their types."""
    return lambda rows: rows.with_columns(pl.lit(value).cast(rows.schema[name]).alias(name) for name, value in values.items())


def findings(checks: list[Check], table: str, rows: pl.DataFrame, **known: int) -> list[Finding]:
    return validate(checks, rows, {**facts(table, rows, NOW), **known}, NOW)


BETWEEN, MEDIAN, SET = "expect_column_values_to_be_between", "expect_column_median_to_be_between", "expect_column_values_to_be_in_set"
PAIR, UNIQUE = "expect_column_pair_values_a_to_be_greater_than_b", "expect_compound_columns_to_be_unique"
COUNT, DISTINCT = "expect_table_row_count_to_be_between", "expect_column_unique_value_count_to_be_between"
NO_IO = put(read_ios=0, write_ios=0, read_latency_us=None, write_latency_us=None, latency_us=None, io_count=None)
EMPTY = put(read_ios=None, write_ios=None, io_count=None, read_latency_us=None, write_latency_us=None, latency_us=None)
COUNTLESS = put(read_ios=None, write_ios=None, io_count=None)
ONE_DRIVE = put(drive_id="d1")

BREAKS: dict[tuple[str, str, str], Callable[[pl.DataFrame], pl.DataFrame]] = {
    ("drive_hours", BETWEEN, "ahead_hours"): put(hour_utc=FUTURE),
    ("drive_hours", BETWEEN, "year"): put(hour_utc=datetime(1970, 1, 1)),
    ("drive_hours", BETWEEN, "sent_ahead_hours"): put(collected_at=FUTURE),
    ("drive_hours", BETWEEN, "sent_after_hours"): put(collected_at=datetime(2026, 1, 4)),
    ("drive_hours", BETWEEN, "read_latency_us"): put(read_latency_us=4e9),
    ("drive_hours", BETWEEN, "write_latency_us"): put(write_latency_us=4e9),
    ("drive_hours", BETWEEN, "latency_us"): put(latency_us=4e9),
    ("drive_hours", BETWEEN, "read_ios"): put(read_ios=2**40),
    ("drive_hours", BETWEEN, "write_ios"): put(write_ios=2**40),
    ("drive_hours", BETWEEN, "io_count"): put(io_count=2**40),
    ("drive_hours", BETWEEN, "block_bytes"): put(block_bytes=2**25),
    ("drive_hours", "expect_column_to_exist", "reported"): EMPTY,
    ("drive_hours", SET, "block_bytes"): put(block_bytes=4097),
    ("drive_hours", MEDIAN, "merged_latency_us"): put(read_latency_us=4.0, write_latency_us=8.0),
    ("drive_hours", MEDIAN, "latency_ratio"): put(read_latency_us=4e6, write_latency_us=8e6),
    ("drive_hours", MEDIAN, "io_size_bytes"): put(read_blocks=0, write_blocks=1),
    ("drive_hours", COUNT, ""): lambda rows: rows.head(23),
    ("drive_hours", DISTINCT, "drive_id"): lambda rows: rows.head(3),
    ("drive_hours", UNIQUE, "drive_id hour_utc collected_at"): ONE_DRIVE,
    ("drive_hours", BETWEEN, "lost_latency"): NO_IO,
    ("drive_hours", BETWEEN, "lost_count"): COUNTLESS,
    ("drive_hours", MEDIAN, "sent_after_hours"): put(collected_at=datetime(2026, 1, 5)),
    ("drive_events", BETWEEN, "ahead_hours"): put(occurred_at=FUTURE),
    ("drive_events", BETWEEN, "year"): put(occurred_at=datetime(1970, 1, 1)),
    ("drive_events", BETWEEN, "sent_ahead_hours"): put(collected_at=FUTURE),
    ("drive_events", BETWEEN, "sent_after_hours"): put(collected_at=datetime(2026, 1, 4)),
    ("drive_events", PAIR, "ended_at occurred_at"): put(ended_at=datetime(2026, 1, 4)),
    ("drive_events", SET, "event_type"): put(event_type="other"),
    ("drive_events", UNIQUE, "drive_id occurred_at event_type collected_at"): put(drive_id="d1", occurred_at=datetime(2026, 1, 5)),
    ("drive_events", COUNT, ""): lambda rows: pl.concat([rows] * 401),
    ("drive_samples", BETWEEN, "ahead_hours"): put(from_utc=FUTURE),
    ("drive_samples", BETWEEN, "span_seconds"): put(to_utc=datetime(2026, 1, 5, 3)),
    ("drive_samples", "expect_column_to_exist", "reported"): EMPTY,
    ("drive_samples", MEDIAN, "merged_latency_us"): put(read_latency_us=4.0, write_latency_us=8.0),
    ("drive_samples", BETWEEN, "iops"): put(read_ios=2**40),
    ("drive_samples", UNIQUE, "drive_id from_utc to_utc collected_at"): ONE_DRIVE,
    ("drive_health", BETWEEN, "ahead_hours"): put(read_at=FUTURE),
    ("drive_health", UNIQUE, "drive_id read_at attribute collected_at"): ONE_DRIVE,
    ("drive_latencies", BETWEEN, "ahead_hours"): put(hour_utc=FUTURE),
    ("drive_latencies", MEDIAN, "upper_us"): put(upper_us=0.004),
    ("drive_aliases", PAIR, "valid_to valid_from"): put(valid_to=datetime(2023, 1, 1)),
    ("drive_aliases", BETWEEN, "year"): put(valid_from=datetime(1970, 1, 1)),
    ("drive_aliases", BETWEEN, "sent_ahead_hours"): put(collected_at=FUTURE),
    ("drive_aliases", UNIQUE, "alias valid_from collected_at"): put(alias="web1/sd"),
    ("drive_aliases", DISTINCT, "alias"): ONE_DRIVE,
    ("labels", BETWEEN, "labelled_days_ago"): put(labelled_on=datetime(2027, 1, 1).date()),
    ("labels", UNIQUE, "drive_id labelled_on"): ONE_DRIVE,
    ("drive_probes", BETWEEN, "ahead_hours"): put(probed_at=FUTURE),
    ("drives", PAIR, "valid_to valid_from"): put(valid_to=datetime(2023, 1, 1)),
    ("drives", BETWEEN, "sent_ahead_hours"): put(collected_at=FUTURE),
    ("drives", SET, "interface"): put(interface="USB"),
    ("drives", SET, "flash_cell"): put(flash_cell="3D"),
    ("drives", MEDIAN, "capacity_bytes"): put(capacity_bytes=4000),
    ("drives", MEDIAN, "spinning_rpm"): put(rpm=7),
    ("drives", BETWEEN, "deployed_days_ago"): put(deployed_on=datetime(2027, 1, 1).date()),
    ("drives", UNIQUE, "drive_id valid_from collected_at"): ONE_DRIVE,
    ("drives", DISTINCT, "raid_group_id"): lambda rows: rows.with_columns(pl.col("drive_id").alias("raid_group_id")),
    ("ingested_files", BETWEEN, "rejected_share"): put(rows_rejected=51),
}  # fmt: skip


def named(kwargs: dict[str, Any]) -> str:
    return " ".join(kwargs.get("column_list") or [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs])


def test_every_expectation_has_a_way_to_break_it() -> None:
    suites = {table: json.loads((SHIPPED / f"{table}.json").read_text())["expectations"] for table in TABLES}
    shipped = [(table, entry["type"], named(entry["kwargs"])) for table, entries in suites.items() for entry in entries]
    unequal = sorted(set(BREAKS) ^ set(shipped))
    assert sorted(BREAKS) == sorted(shipped), f"BREAKS: one way to break each rule of quality/suites, not for {unequal}"


@pytest.mark.parametrize("table", TABLES)
def test_every_expectation_is_broken_once(table: str) -> None:
    checks = load_suite(table, NOWHERE)
    rows = good(table)
    found = findings(checks, table, rows, **KNOWN)
    assert {finding.state for finding in found} == {"passed"}, [finding for finding in found if finding.state != "passed"]
    for check in checks:
        broken = BREAKS[check.table, check.type, " ".join(check.columns)](rows)
        (finding,) = findings([check], table, broken, **KNOWN)
        assert finding.state == "broken", (check.type, check.columns, finding)
        assert bool(finding.rows) == (check.level == "row")
        assert finding.observed


def test_planned_maintenance_is_announced_and_nothing_else_is() -> None:
    announced = put(occurred_at=NOW + timedelta(days=3), ended_at=NOW + timedelta(days=4))(good("drive_events"))
    types = ["maintenance"] * 40 + ["media_error"] * 40 + [None] * 40
    rows = announced.with_columns(pl.Series("event_type", types))
    checks = [check for check in load_suite("drive_events", NOWHERE) if {"ahead_hours", "sent_after_hours"} & set(check.columns)]
    assert len(checks) == 2
    for finding in findings(checks, "drive_events", rows):
        assert list(finding.rows) == list(range(40, 120)), finding.check.columns


def test_unknown_values_are_left_out_with_a_note() -> None:
    rows = good("drive_hours").head(3).with_columns(pl.lit(None, pl.Float64).alias("usual_latency_us"))
    found = {(f.check.type, f.check.columns): f for f in findings(load_suite("drive_hours", NOWHERE), "drive_hours", rows)}
    assert found[COUNT, ()].why == "usual_rows is not known"
    assert found[MEDIAN, ("merged_latency_us",)].why == "3 rows; asked from 20 on"
    assert found[MEDIAN, ("latency_ratio",)].why == "nothing is known of latency_ratio"
    assert not [finding for finding in found.values() if finding.state == "broken"]


def test_delivered_text_stays_in_one_line() -> None:
    (check,) = [each for each in load_suite("drives", NOWHERE) if each.columns == ("interface",)]
    rows = put(interface="a\n\x1b[31mb" + 200 * "c")(good("drives"))
    (finding,) = findings([check], "drives", rows)
    assert "such as a  [31mbcc" in finding.observed and finding.observed.isprintable() and len(finding.observed) < 300


ENTRY = {"type": BETWEEN, "kwargs": {"column": "coverage", "min_value": 0.1}, "meta": {"level": "row"}, "description": "Too little."}


def suite(table: str, *entries: dict[str, Any], into: Path) -> Path:
    """The file of a warehouse's own suite."""
    path = into / "suites" / f"{table}.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"expectations": entries}))
    return path


def test_no_row_of_samples_is_rejected(tmp_path: Path) -> None:
    suite("drive_samples", ENTRY, into=tmp_path)
    with pytest.raises(GateError, match="not of drive_samples or drive_health or drive_latencies or ingested_files; make it 'batch'"):
        load_suite("drive_samples", tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kwargs": {"column": "latencyus", "max_value": 1}}, "no column 'latencyus' in drive_hours; there are ahead_hours, block_bytes"),
        ({"kwargs": {"column": "coverage", "min_value": {"$PARAMETER": "0.5 * usual"}}}, "no parameter 'usual'; there are rows"),
        ({"meta": {}}, "meta.level is None; give 'row'"),
        ({"description": ""}, "no description"),
        ({"type": "expect_miracles"}, "(expect_miracles)"),
        ({"type": MEDIAN}, "does not check single rows"),
        ({"kwargs": {"column": "coverage", "max_value": 1, "mostly": 0.5}}, "without mostly"),
        ({"kwargs": {"column": "coverage", "at_most": 1}}, "at_most"),
    ],
)
def test_a_wrong_suite_names_file_expectation_and_remedy(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = suite("drive_hours", ENTRY, {**ENTRY, **change}, into=tmp_path)
    with pytest.raises(GateError) as caught:
        load_suite("drive_hours", tmp_path)
    assert str(caught.value).startswith(f"{path}: expectation 2 (")
    assert told in str(caught.value)
    path.write_text("{")
    with pytest.raises(GateError, match="not a suite"):
        load_suite("drive_hours", tmp_path)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"column": "drive_id", "min_value": 1},
        {"column": "read_ios", "min_value": {"$PARAMETER": "1 / (rows - rows)"}},
        {"column": "read_ios", "min_value": {"$PARAMETER": "rows +"}},
    ],
)
def test_a_check_that_cannot_be_computed_stops_the_ingest(kwargs: dict[str, Any], tmp_path: Path) -> None:
    path = suite("drive_hours", {**ENTRY, "meta": {"level": "batch"}, "type": MEDIAN, "kwargs": kwargs}, into=tmp_path)
    with pytest.raises(GateError, match="Great Expectations failed") as caught:
        findings(load_suite("drive_hours", tmp_path), "drive_hours", good("drive_hours"))
    assert str(caught.value).startswith(str(path))


def test_columns_that_a_suite_may_use_are_in_the_guide() -> None:
    guide = (SHIPPED.parents[1] / "docs" / "quality-gate.md").read_text()
    names = {name for table in TABLES for name in columns(table, NOW)} | set(PARAMETERS)
    assert not [name for name in sorted(names) if f"`{name}`" not in guide]


def test_pyspark_is_not_imported_where_it_is_installed(tmp_path: Path) -> None:
    """pyspark ends a process like this one with exit 0, as this stand-in does."""
    (tmp_path / "pyspark.py").write_text("raise SystemExit(0)")
    code = "from pathlib import Path; from quality.suites import load_suite; print(len(load_suite('labels', Path())))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and int(done.stdout) > 0, done


def test_scipy_is_imported_by_the_check_that_needs_it() -> None:
    """It takes two thirds of a second, and few suites have such a check."""
    code = """
import sys
import pandas as pd
from quality.suites import great_expectations
gx, definition = great_expectations()
print('scipy.stats._stats_py' in sys.modules)
weights = {'values': ['a', 'b'], 'weights': [0.6, 0.4]}
check = gx.expectations.ExpectColumnKLDivergenceToBeLessThan(column='x', partition_object=weights, threshold=1)
print(definition.get_batch({'dataframe': pd.DataFrame({'x': ['a', 'b', 'a']})}).validate(check).success)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"], done
