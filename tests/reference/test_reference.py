"""The comparisons with the reference: fleets that reach every edge, intervals as published, and differences that are seen.

The rules themselves are proven by the unit tests of the models, which have the worked examples, and by these comparisons.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from jinja2 import Environment
from scipy.stats import beta, chi2, t

from engine.publish import PUBLISHED

from .compare import STUDY_RELATIONS, compare, compare_study
from .fleets import deliveries, random_fleet
from .reference import RELATIONS, compute
from .study import Study, Z, curve_rows, effective_size, is_in_scope, newcombe, read_references, student_limit, study, wilson

Marts = dict[str, list[dict[str, Any]]]
PROJECT = Path(__file__).parents[2]


def column(marts: Marts, relation: str, name: str) -> list[Any]:
    return [record[name] for record in marts[relation]]


@pytest.fixture(scope="module", params=[1, 3, 6])
def delivered(request, tmp_path_factory) -> Marts:
    """The marts of one random fleet."""
    return marts_of_seed(request.param, tmp_path_factory.mktemp("fleet"))


def marts_of_seed(seed: int, folder: Path) -> Marts:
    folders, _ = deliveries(random_fleet(seed), "at_once", folder, random.Random(seed))
    return compute(folders)


def test_fleets_reach_the_edges(delivered):
    """A fleet that never meets an edge tests nothing."""
    marts = delivered
    reasons = set(column(marts, "fct_drive_hours", "exclusion_reason"))
    assert reasons == {None, "low_coverage", "no_io", "too_few_drives", "zero_median"}
    slowdowns = column(marts, "fct_drive_hours", "slowdown")
    assert {1.5, 2.0, 0.0} <= set(slowdowns)
    assert set(column(marts, "fct_raid_hours", "transition")) == {
        None, "stable_to_stable", "stable_to_tail", "tail_to_stable", "tail_to_tail",
    }  # fmt: skip
    assert None in column(marts, "fct_raid_hours", "raid_io_count")
    assert any(value is not None for value in column(marts, "fct_raid_hours", "rio_degradation"))
    assert set(column(marts, "fct_drive_events", "slow_within_window")) == {None, True, False}
    assert set(column(marts, "fct_unplug_episodes", "is_replugged")) == {True, False}
    assert len(set(column(marts, "dim_drives", "kind"))) == 3
    of_groups = set(column(marts, "fct_raid_hours", "group_slowdown"))
    assert None in of_groups and len(of_groups) > 3
    alerts = marts["fct_slow_alerts"]
    assert {"drive", "raid_group"} < {row["subject_type"] for row in alerts} <= {"drive", "host", "enclosure", "raid_group"}
    assert {row["reason"] for row in alerts} == {"acute", "together", "whole_group", "chronic"}
    for edge in ("cleared_at", "part_of", "imbalanced_hours"):
        assert len({bool(row[edge]) for row in alerts if row["subject_type"] == "drive"}) == 2, edge


ARROW = {
    "varchar": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
}


def publish(rows: Marts, relations: dict[str, dict[str, str]], path: Path) -> None:
    """A published file with these rows, and a column more."""
    with duckdb.connect(str(path)) as connection:
        for schema in PUBLISHED:
            connection.execute(f"create schema {schema}")
        for relation, types in relations.items():
            schema = pa.schema([(name, ARROW[of]) for name, of in types.items()])
            connection.register("told", pa.Table.from_pylist(rows[relation], schema))
            connection.execute(f"create table marts.{relation} as select *, null as added_column from told")


def test_compare_sees_what_differs(tmp_path, delivered):
    marts = delivered
    path = tmp_path / "warehouse.duckdb"
    for row in marts["ingested_files"]:
        row["rows_accepted"] = row["rows_delivered"] - row["rows_rejected"]
    publish(marts, RELATIONS, path)
    assert compare(marts, path) == []
    with duckdb.connect(str(path)) as connection:
        connection.execute("update marts.fct_raid_hours set tail_1 = tail_1 + 1e-12")
        connection.execute("delete from marts.fct_slowdown_arrivals where gap_hours > 3")
        connection.execute("alter table marts.dim_raid_groups alter data_drive_count type double")
        connection.execute("alter table marts.dim_drives drop rpm")
        connection.execute("update marts.ingested_files set rows_duplicate = 1")
    differences = compare(marts, path)
    assert "dim_drives: columns missing: rpm" in differences
    for start in (
        "fct_raid_hours [", "fct_raid_hours: ... and", "fct_slowdown_arrivals [", "dim_raid_groups.data_drive_count: declared",
        "ingested_files ",
    ):  # fmt: skip
        assert any(difference.startswith(start) for difference in differences), start


@pytest.mark.parametrize(
    ("x", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718), (20, 20, 0.8389, 1.0)],
)
def test_wilson_as_published(x, n, low, high):
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert wilson(x / n, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("one", "two", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_as_published(one, two, low, high):
    """Newcombe 1998, Statistics in Medicine 17:873, table II, method 10."""
    found = newcombe(*((x / n, *wilson(x / n, n)) for x, n in (one, two)))
    assert found == pytest.approx((low, high), abs=5e-5)


def test_effective_size_at_the_edges():
    """N observations are worth so many, before Student's limit makes less of them."""

    def size(hits: int, total: int, clusters: list[tuple[int, int]]) -> float:
        return effective_size(hits, total, clusters) * (student_limit(len(clusters) - 1) / Z) ** 2

    assert size(0, 20, [(0, 4)] * 5) == size(20, 20, [(4, 4)] * 5) == pytest.approx(5)  # no event: the clusters
    assert size(100, 400, [(25, 100)] * 4) == pytest.approx(24)  # no variance, 100 events against 20 of 100 in one: 400 / (2000 / 120)
    # nothing but clusters
    assert size(100, 200, [(50, 50)] * 2 + [(0, 50)] * 2) == pytest.approx(200 / ((100 * 50 * 4 / 3 + 20 * 50) / 120))


@pytest.mark.parametrize("freedom", [3, 8, 19, 39])
def test_the_limit_of_student_is_that_of_tables(freedom):
    assert student_limit(freedom) == pytest.approx(t.ppf(0.975, freedom), rel=0.011)


def poisson_interval(count: int) -> tuple[float, float]:
    """The means at which this number of events or more, and this number or fewer, have a probability of 2.5%."""
    low, high = chi2.ppf(0.025, 2 * count) / 2 if count else 0.0, chi2.ppf(0.975, 2 * count + 2) / 2
    return float(low), float(high)


def test_poisson_intervals_are_exact_in_the_seed_and_near_it_above():
    with (PROJECT / "seeds/poisson_limits.csv").open() as file:
        seed = {int(row["event_count"]): (float(row["low"]), float(row["high"])) for row in csv.DictReader(file)}
    assert list(seed) == list(range(101))
    for count, limits in seed.items():
        assert limits == pytest.approx(poisson_interval(count), rel=1e-9)
    macros = Environment(autoescape=False).from_string((PROJECT / "macros/poisson_limits.sql").read_text()).module
    for count in (101, 500):
        ends = f"select {macros.poisson_low(f'{count}.0')}, {macros.poisson_high(f'{count}.0')}"
        assert duckdb.sql(ends).fetchall()[0] == pytest.approx(poisson_interval(count), rel=3e-5)


def test_intervals_of_shares_of_the_seed_are_exact():
    """At either end the tail of the binomial distribution is 2.5%."""
    with (PROJECT / "seeds/share_limits.csv").open() as file:
        seed = {(int(row["trial_count"]), int(row["event_count"])): (float(row["low"]), float(row["high"])) for row in csv.DictReader(file)}
    assert list(seed) == [(trials, events) for trials in range(1, 30) for events in range(trials + 1)]

    for (trials, events), limits in seed.items():
        low = beta.ppf(0.025, events, trials - events + 1) if events else 0
        high = beta.ppf(0.975, events + 1, trials - events) if events < trials else 1
        assert limits == pytest.approx((low, high), rel=1e-6)


WITHOUT_NUMBER = (
    *("T2-01", "T2-02", "T2-03", "T3X-01", "VST-04", "F09-03", "F09-04", "F8A-ORDER", "F8B-ORDER"),
    *(f"FG1-0{number}" for number in range(1, 5)),
    *(f"REL-0{number}" for number in range(1, 4)),
    *(f"TXT-0{number}" for number in (13, *range(16, 38))),
)
"""Definitions, anecdotes and rankings: every other id of the paper has its measure."""


@pytest.fixture(scope="module")
def study_6(tmp_path_factory) -> Study:
    return study(marts_of_seed(6, tmp_path_factory.mktemp("fleet")), read_references())


def test_every_reference_has_a_row_per_kind_and_a_measure(study_6):
    results = study_6.results
    wanted = [
        (one.id, kind)
        for one in read_references()
        if is_in_scope(one.id)
        for kind in (("disk", "ssd") if one.subject == "both" else (one.subject,))
    ]
    assert [(one["id"], one["kind"]) for one in results] == wanted
    unmeasured = {one["id"] for one in results if one["numerator"] is one["denominator"] is one["value"] is None}
    assert unmeasured == set(WITHOUT_NUMBER)


SLOW_DISKS = "where id = 'F01-01' and kind = 'disk'"
CURVE = "from marts.study_curves where figure = '4a' and curve = 'Si'"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select 1", None),
        # a bound may come 5e-15 off where its terms cancel, a curve at an x that no drive has; figure 12 is nobody's here
        ("update marts.study_results set ci_low = 5e-15 where ci_low = 0", None),
        (f"insert into marts.study_curves select * replace (1e18 as x, 1 as y, 1 as y_left) {CURVE} and x = 1", None),
        ("insert into marts.study_results by name select 'F12A-1' as id, 'disk' as kind", None),
        (f"update marts.study_results set numerator = numerator + 1 {SLOW_DISKS}", "study_results [F01-01, disk] numerator: expected "),
        (f"update marts.study_results set ci_high = ci_high * (1 + 1e-8) {SLOW_DISKS}", "study_results [F01-01, disk] ci_high: expected "),
        (f"update marts.study_results set value = null {SLOW_DISKS}", "study_results [F01-01, disk] value: expected "),
        ("delete from marts.study_results where id = 'F01-02'", "study_results [F01-02, ssd]: 1 row(s) expected, got 0"),
        ("insert into marts.study_results by name select 'F99' as id, 'ssd' as kind", "study_results [F99, ssd]: 0 row(s) expected, got 1"),
        ("update marts.study_curves set y_left = 0.5 where x = 16", "study_curves [4a, Si, 16.0] y_left: expected 0.99"),
        ("update marts.study_curves set population = 99 where figure = '2a'", "study_curves [2a, Disk, 4.0] population: expected "),
        ("delete from marts.study_curves where figure = '6a' and curve = 'Disk'", "study_curves [6a, Disk]: not in the file"),
        (f"insert into marts.study_curves select * {CURVE} and x = 1", "study_curves [4a, Si, 1.0]: 1 row(s) expected, got 2"),
    ],
)  # fmt: skip
def test_compare_study(statement, expected, study_6, tmp_path):
    published = tmp_path / "warehouse.duckdb"
    publish({"study_results": study_6.results, "study_curves": curve_rows(study_6.curves)}, STUDY_RELATIONS, published)
    with duckdb.connect(str(published)) as connection:
        connection.execute(statement)
    differences = compare_study(study_6, published)
    if expected is None:
        assert differences == []
    else:
        assert any(one.startswith(expected) for one in differences), differences
