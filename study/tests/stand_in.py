"""A publication that holds nothing but a study, written by hand: every verdict, both kinds, text that is markup, a figure without data."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import duckdb

from engine.compiled import models_version
from engine.warehouse import Warehouse

PUBLICATION_ID = "000007-20260202T030000Z"
HOSTILE = "<script>alert(1)</script> & </td></table>"

# id, kind of reference, subject, metric, operator, value, unit
REFERENCES = [
    ("F01-01", "finding", "disk", "Finding 1: drive-hours with S_i>=2 / all disk drive-hours", "=", "0.22", "percent"),
    ("F01-02", "finding", "ssd", "Finding 1: drive-hours with S_i>=2 / all SSD drive-hours", "=", "0.58", "percent"),
    ("F01-03", "finding", "disk", "Finding 1: percentile of S_i=2 over disk drive-hours", "=", "99.8", "percentile"),
    ("F01-09", "finding", "disk", "S_i at the 99.99th percentile (four nines)", ">=", "9", "ratio"),
    ("F02-07", "finding", "disk", "abstract rounding of F02-01", "~", "1.5", "percent"),
    ("F04-01", "finding", "disk", "Finding 4: slowdown intervals lasting more than 1 hour / all slowdown intervals", "~", "40", "percent"),
    ("F08-01", "finding", "both", "Finding 8: slow drive-hours that cannot be attributed / slow drive-hours", ">", "95", "percent"),
    ("F09-01", "finding", "both", 'Finding 9 ("silent" fault): number of explicit drive events observed', "~", "hundreds", "events"),
    ("F10-06", "finding", "disk", "share of disk population in its 9th year (outlier)", "=", "0.11", "percent"),
    ("F12-03", "finding", "ssd", "Finding 12: percentile of S_i=1.5 over drive-hours of Vendor B", "=", "94.3", "percentile"),
    ("F13-02", "finding", "ssd", "Fig 10b: (stable-to-tail) minus (stable-to-stable)", "~", "23", "percentage points"),
    ("T1-13", "table", "disk", "Table 1 Drive hours: count of S_i values", "=", "857183442", "drive-hours"),
    ("T3A-03", "table", "disk", "Table 3a: slowdown S_i at the 99th percentile; population all disk drive-hours", "=", "1.4", "ratio"),
    ("F4A-S-2", "figure", "disk", "Figure 4a: share of drive-hours with S_i < 2", "=", "99.78", "percent"),
    ("F4A-S-10", "figure", "disk", "Figure 4a: share of drive-hours with S_i < 10", "=", "99.99", "percent"),
    ("UPD-01", "text", "disk", "unplug-to-replug duration <= 2 hours / unplugged-then-replugged disks", "=", "54", "percent"),
]

# id, kind, numerator, denominator, value, ci_low, ci_high, paper_value, verdict, reason
RESULTS = [
    ("F01-01", "disk", 2412, 1155470, 0.2087461, 0.1733, 0.2514, 0.22, "agrees", None),
    ("F01-02", "ssd", 111, 23959, 0.4632915, 0.2104, 0.5633, 0.58, "differs", HOSTILE),
    ("F01-03", "disk", 1153058, 1155470, 99.7912538, 99.7486, 99.8267, 99.8, "agrees", None),
    ("F01-09", "disk", None, 1155470, 4.2750101, 3.1, 6.5, 9, "differs", "the interval does not meet the paper's value"),
    ("F02-07", "disk", 400, 99030, 0.4039180, 0.3, 1.5, 1.5, "cannot tell", None),
    ("F04-01", "disk", 4, 13, 30.7692308, 12.7, 57.6, 40, "no data", "5.2 events are expected at the paper's value, fewer than 10"),
    ("F08-01", "disk", 2300, 2412, 95.3565506, 93.0, 97.0, 95, "agrees", None),
    ("F08-01", "ssd", None, 0, None, None, None, 95, "no data", "no I/O counts"),
    ("F09-01", "disk", 0, None, 0, None, None, None, "not comparable", "no number in the paper"),
    ("F10-06", "disk", 0, 188, 0, 0, 2.0026, 0.11, "no data", None),
    ("F12-03", "ssd", 8122, 8203, 99.0125564, 97.2, 99.7, 94.3, "differs", None),
    ("F13-02", "ssd", None, None, 21.5, 14.0, 30.25, 23, "agrees", None),
    ("T1-13", "disk", 1155470, None, 1155470, None, None, 857183442, "not comparable", "size of the paper's data set"),
    ("T3A-03", "disk", None, 1155470, 1.41, 1.38, 1.44, 1.4, "agrees", None),
    ("F4A-S-2", "disk", 1153058, 1155470, 99.7912538, 99.7486, 99.8267, 99.78, "agrees", None),
    ("F4A-S-10", "disk", 1155400, 1155470, 99.9939419, 99.98, 99.999, 99.99, "agrees", None),
    ("UPD-01", "disk", None, 0, None, None, None, 54, "no data", "no unplug"),
]

# measured in the same way
SAME_AS = {"F4A-S-2": "F01-03"}

# variant, id, kind, numerator, denominator, value, ci_low, ci_high
VARIANTS = [
    ("threshold 3", "F01-01", "disk", 800, 1155470, 0.0692359, 0.05, 0.09),
    ("threshold 3", "F01-02", "ssd", 40, 23959, 0.1669519, 0.1, 0.3),
    ("read only", "F01-01", "disk", 3000, 1100000, 0.2727273, 0.2, 0.35),
]

# figure, curve, kind, x, y, y_left, population
CURVES = [
    ("2a", "Disk", "disk", 6.0, 0.25, 0.0, 16),
    ("2a", "Disk", "disk", 12.0, 0.75, 0.25, 16),
    ("2a", "Disk", "disk", 14.0, 1.0, 0.75, 16),
    ("2a", "SSD", "ssd", 8.0, 1.0, 0.0, 8),
    ("4a", "Si", "disk", 1.5, 0.993, 0.993, 1155470),
    ("4a", "Si", "disk", 2.0, 0.998, 0.9979, 1155470),
    ("4a", "T1", "disk", 2.0, 0.9851, 0.9846, 99030),
    ("6a", "Disk", "disk", 2.0, 0.8, 0.75, 188),
    ("6a", "Disk", "disk", 16.0, 1.0, 0.98, 188),
    ("11b", "2x+", "ssd", 5.0, 0.125, 0.0, 8),
]

# figure, curve, x, y
PAPER_CURVES = [
    ("2a", "Disk", 3.0, 0.0),
    ("2a", "Disk", 14.0, 0.6),
    ("2a", "SSD", 3.0, 0.0),
    ("2a", "SSD", 22.0, 1.0),
    ("4a", "Si", 1.5, 0.993),
    ("4a", "Si", 2.0, 0.9978),
    ("4a", "T1", 2.0, 0.9846),
    ("4a", "T1", 2.0, 0.985),
    ("6a", "Disk", 2.0, 0.2553),
    ("6a", "Disk", 16.0, 0.0162),
    ("6a", "SSD", 2.0, 0.2902),
    ("9", "SLC", 1.2, 0.98),
    ("9", "SLC", 4.0, 0.9999),
]

NUMBERS = "unit varchar, numerator bigint, denominator bigint, value double, ci_low double, ci_high double"
HEALTH = [
    ("disk", "all", None, "media_errors", "raw_change", 0.61, 0.42, 0.8, True),
    ("disk", "all", None, "temperature_celsius", "raw_value", 0.02, -0.1, 0.14, False),
    ("ssd", "all", None, "percentage_used", "raw_value", 0.3, None, None, None),
    ("ssd", "model", HOSTILE, HOSTILE, "raw_value", 0.1, None, None, None),
]
HEALTH_WARNINGS = [
    ("disk", "attribute", "media_errors", "raw_change", 0.25, 0.75, 0.3, 0.5),
    ("disk", "slow_history", None, None, None, 0.0, 0.375, 0.48),
    ("ssd", "slow_history", None, None, None, 0.0, 0.375, 0.49),
]


def tables(*, is_empty: bool) -> dict[str, list[tuple[object, ...]]]:
    """Published relations, but for the publication itself: `name (columns)` -> rows. `is_empty`: of a study of which nothing is known."""
    units = {name: (metric, unit) for name, _, _, metric, _, _, unit in REFERENCES}
    results = [(name, kind, *units[name], *rest, SAME_AS.get(name)) for name, kind, *rest in RESULTS]
    measured: dict[str, list[tuple[object, ...]]] = {
        "study.fct_fleet_coverage (kind varchar, expected_drive_hours bigint, reported_drive_hours bigint, reported_ratio double, "
        "drive_hours bigint, measured_ratio double)":
            [("disk", 1200000, 1180000, 0.9833, 1155470, 0.9629), ("ssd", 25000, 24000, 0.96, 23959, 0.9584)],
        f"study.study_variants (variant varchar, id varchar, kind varchar, {NUMBERS})":
            [(variant, name, kind, units[name][1], *rest) for variant, name, kind, *rest in VARIANTS],
        "marts.study_curves (figure varchar, curve varchar, kind varchar, x double, y double, y_left double, population bigint, "
        "y_low double, y_high double, raid_group_count bigint)":
            [(*row, row[4] / 2, (1 + row[4]) / 2, 8) if row[0] != "11b" else (*row, None, None, 3) for row in CURVES],
        "study.health_comparison (kind varchar, scope varchar, model varchar, attribute varchar, measure varchar, effect double, "
        "effect_low double, effect_high double, is_different boolean)": HEALTH,
        "study.health_warnings (kind varchar, rule varchar, attribute varchar, measure varchar, first_precision double, "
        "first_recall double, precision_ratio double, recall double)": HEALTH_WARNINGS,
    }  # fmt: skip
    return {
        **({table: [] for table in measured} if is_empty else measured),
        "study.study_references (id varchar, place varchar, subject varchar, metric varchar, operator varchar, value varchar, "
        "unit varchar)":
            REFERENCES,
        f"marts.study_results (id varchar, kind varchar, metric varchar, {NUMBERS}, paper_value double, verdict varchar, reason varchar, "
        "same_as varchar)":
            [(*row[:4], None, 0, *[None] * 3, row[9], "no data", "nothing measured", None) for row in results] if is_empty else results,
        "marts.thresholds (name varchar, kind varchar, value double, unit varchar, description varchar)": [],
        "marts.dim_weeks (week_utc timestamp, is_complete boolean)": [],
        "report.fct_weekly_percentiles (week_utc timestamp, kind varchar, series varchar, percentile double)": [],
        "report.fct_duration_shares (measure varchar, kind varchar, hours bigint)": [],
        "report.fct_duration_summary (measure varchar, kind varchar)": [],
        "study.study_tolerance (kind varchar, tail_hours bigint)": [],
        "report.detector_agreement (detector varchar, other_detector varchar, span varchar, drive_count bigint)": [],
        "study.latency_tails (percentile double, drive_hours bigint, slow_by_mean_hours bigint, slow_by_percentile_hours bigint, "
        "slow_by_both_hours bigint, drives_only_the_percentile_sees bigint)":
            [(50.0, 0, 0, 0, 0, 0), *([] if is_empty else [(99.9, 5480, 58, 62, 50, 1)])],
        "study.study_paper_curves (figure varchar, curve varchar, seq bigint, x double, y double)":
            [(figure, curve, seq, x, y) for seq, (figure, curve, x, y) in enumerate(PAPER_CURVES)],
    }  # fmt: skip


def publish_study(root: Path, *, is_empty: bool = False) -> Warehouse:
    """A warehouse whose publication, of these models, holds the study above, or, `is_empty`, one of which nothing is known."""
    warehouse = Warehouse(root.resolve())
    warehouse.publications.mkdir(parents=True)
    publication = (PUBLICATION_ID, datetime(2026, 2, 2, 3), datetime(2026, 2, 1, 23))
    with duckdb.connect(str(warehouse.published)) as connection:
        for schema in ("plan", "marts", "report", "study", "raw"):
            connection.execute(f"create schema {schema}")
        connection.execute("create table plan.root as select ? as root", [str(warehouse.root)])
        for name in ("marts", "raw"):
            fill(connection, f"{name}.publication (publication_id varchar, published_at timestamp, last_hour_utc timestamp)", [publication])
        for table, rows in tables(is_empty=is_empty).items():
            fill(connection, table, rows)
    (warehouse.publications / f"{PUBLICATION_ID}.json").write_text(json.dumps({"models": models_version()}))
    return warehouse


def fill(connection: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    """Create a published table, given as `name (columns)`, with these rows."""
    connection.execute(f"create table {table}")
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"insert into {table.split()[0]} values ({marks})", rows)
