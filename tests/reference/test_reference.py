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
from scipy.stats import beta, chi2

from engine.projects import published_schemas

from .compare import compare
from .fleets import deliveries, random_fleet
from .reference import RELATIONS, compute

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
        for schema in published_schemas():
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
