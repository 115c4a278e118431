"""A sum over a published relation is the fleet's, or the relation says which of its rows hold others (`marts.relations.overlap`)."""

from __future__ import annotations

import re

import pytest

from engine.projects import published_schemas
from engine.read import open_published
from engine.warehouse import Warehouse

pytestmark = pytest.mark.xdist_group("report")

HOURS = "marts.fct_drive_hours"
RAID_HOURS = "marts.fct_raid_hours"
TOTALS = {
    "reported_hours": f"select count(*) from {HOURS}",
    "reported_drive_hours": f"select count(*) from {HOURS}",
    "drive_hours": f"select count(slowdown) from {HOURS}",
    "slow_hours": f"select count(*) from {HOURS} where is_slow",
    "slow_drive_hours": f"select count(*) from {HOURS} where is_slow",
    "interval_hours": f"select count(*) from {HOURS} where is_slow",
    "raid_hours": f"select count(*) from {RAID_HOURS}",
    "tail_hours": f"select count(*) from {RAID_HOURS} where is_tail_hour",
}
"""Columns that add up, by name, and what they add up to."""
PARTS = {
    "marts.fct_drive_costs": "slow hours that are evidence",
    "marts.fct_drive_health": "days with health attributes",
    "marts.fct_model_months": "drives whose model is known",
    "marts.fct_slow_alerts": "slow hours that raised an alert",
    "marts.fct_weekly_drives": "slow hours that are evidence",
    "report.fct_weekly_costs": "slow hours that are evidence",
    "status.fct_held_alerts": "slow hours that are held back",
    "status.fct_recent_slowness": "the last hours",
    "status.fct_recent_tails": "the last hours",
    "study.latency_tails": "hours with a histogram",
    "study.study_tolerance": "computed when the study is asked for",
}
"""Relations of a part of the fleet's hours -> which part."""
FILTER = re.compile(r"(?:total|overlap): .+; filter (?:one (?P<one>\w+)|(?P<where>.+))")


def test_a_relation_adds_up_or_says_which_rows_overlap(demo: Warehouse) -> None:
    with open_published(demo) as connection:
        totals = {column: connection.execute(query).fetchall()[0][0] for column, query in TOTALS.items()}
        said = dict(connection.execute("select relation, overlap from marts.relations").fetchall())
        asked = (
            "select table_schema || '.' || table_name, column_name from information_schema.columns "
            f"where table_schema in {published_schemas()}"
        )
        columns = [(relation, column) for relation, column in connection.execute(asked).fetchall() if column in totals]
        wrong, needed = [], set()
        for relation, column in columns:
            found = FILTER.fullmatch(said[relation] or "")
            group = f"group by {found['one']}" if found and found["one"] else ""
            where = f"where {found['where']}" if found and found["where"] else ""
            sums = [value or 0 for (value,) in connection.execute(f"select sum({column}) from {relation} {where} {group}").fetchall()]
            holds = all(value <= totals[column] if relation in PARTS else value == totals[column] for value in sums)
            if not holds or (said[relation] and not found):
                wrong.append(f"{relation}.{column}: {sums}, and all are {totals[column]}: {said[relation] or 'say `overlap` in its meta'}")
            if connection.execute(f"select sum({column}) from {relation}").fetchall() != [(totals[column],)]:
                needed.add(relation)
    assert wrong == []
    assert {relation for relation, _ in columns if said[relation]} <= needed, "says overlap, and adds up"
    assert len(columns) > 40 and {"marts.cause_shares", "marts.fct_slowdown_intervals"} <= needed
