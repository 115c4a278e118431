"""Incidents of small random fleets: SQL against the sentences of docs/candidates.md, and what a drive by itself may not change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import duckdb
import polars as pl
import pytest

from engine.compiled import models_of

from .actions import HOUR, Row, incidents, places_of

LAST = datetime(2026, 3, 1)
BEGINNING, END = datetime(1, 1, 1), datetime(9999, 12, 31)
TOGETHER, INCIDENTS = "intermediate.int_drive_hours__together", "intermediate.int_drives__incidents"
FLEETS = 100


@dataclass
class Fleet:
    """Slow hours of drives, where the drives are, and what is known of their groups."""

    slow: list[Row]
    places: list[Row]
    members: list[Row]

    def without(self, drive: str) -> Fleet:
        """The same fleet, but that a drive was never slow."""
        return replace(self, slow=[row for row in self.slow if row["drive_id"] != drive])


def fleet(number: int) -> Fleet:
    """Eight drives on three hosts, in shelves, arrays, a class over hosts and a guessed group; some move.

    Some take part in bursts, some are slow alone.
    """
    rng = random.Random(number)
    drives = [f"d{n}" for n in range(8)]
    is_moved = number % 3 == 0
    moved_at = LAST - timedelta(days=1, hours=rng.randint(0, 20))
    slow: dict[str, set[datetime]] = {drive: set() for drive in drives}
    for _ in range(rng.randint(2, 5)):
        begin = LAST - timedelta(hours=rng.choice((1, 9, 30, 31, 33, 60, 660, 672, 690)))
        for drive in rng.sample(drives, rng.randint(2, 5)):
            slow[drive] |= {begin - n * HOUR for n in range(rng.randint(1, 8)) if rng.random() < 0.8}
    for drive in rng.sample(drives, 3):
        slow[drive] |= {LAST - timedelta(hours=rng.randint(0, 680)) for _ in range(rng.randint(1, 12))}
    places: list[Row] = []
    members: list[Row] = []
    rows: list[Row] = []
    for drive in drives:
        group = rng.choice(("array", "array", "other", "prod/hdd", "h0"))
        stays = [(BEGINNING, END, f"h{rng.randint(0, 1)}")]
        if group == "prod/hdd":
            stays = [(BEGINNING, END, f"h{rng.randint(0, 2)}")]
        elif rng.random() < 0.1 or (group == "array" and is_moved):
            stays = [(BEGINNING, moved_at, "h0"), (moved_at, END, "h1")]
        elif rng.random() < 0.1:
            stays = []
        elif group in ("array", "h0"):
            stays = [(BEGINNING, END, "h0")]
        for begin, end, host in stays:
            shelf = rng.choice((None, "e1", "e2"))
            known = {"drive_id": drive, "from_hour_utc": begin, "to_hour_utc": end}
            places.append({**known, "place_type": "host", "place_id": host, "has_host": True})
            # a shelf may have the name of a host, and is another place
            named = {"place_id": rng.choice((f"{host}/{shelf}", "h1")), "has_host": True}
            places += [{**known, "place_type": "enclosure", **named}] if shelf else []
            members.append({"drive_id": drive, "raid_group_id": group, "is_group_guessed": group == "h0", "host": host,
                            "is_named_by_array": group == "other",
                            "since_hour_utc": begin, "to_hour_utc": end})  # fmt: skip
        rows += [{"drive_id": drive, "raid_group_id": group, "hour_utc": hour} for hour in sorted(slow[drive])]
    return Fleet(rows, places, members)


def found(given: Fleet, texts: Mapping[str, str]) -> tuple[list[Row], dict[str, tuple[str, str, int]]]:
    """Rows of the relation of what was slow together, and incidents, by SQL."""
    with duckdb.connect() as connection:
        connection.execute("create schema intermediate; create schema staging")
        for name, rows in (
            ("int_drive_hours__evidence", given.slow), ("int_drives__places", given.places), ("int_drives__described", given.members),
        ):  # fmt: skip
            connection.register("rows", pl.DataFrame(rows, infer_schema_length=None))
            connection.execute(f"create table intermediate.{name} as select * from rows")
        connection.execute(f"create table staging.stg_raw__publication as select timestamp '{LAST}' as last_hour_utc")
        for relation in (TOGETHER, INCIDENTS):
            connection.execute(f"create table {relation} as {texts[relation]}")
        together = connection.sql(f"select * from {TOGETHER}").to_arrow_table().to_pylist()
        rows = connection.sql(f"select * from {INCIDENTS}").to_arrow_table().to_pylist()
    return together, {row["drive_id"]: (row["place_type"], row["place_id"], row["shared_hours"]) for row in rows}


def expected(given: Fleet) -> tuple[Counter[tuple[object, ...]], dict[str, tuple[str, str, int]]]:
    """The same by the sentences. Drives that are alone in their RAID group in an hour share it with nobody."""
    began: dict[tuple[str, datetime], datetime] = {}
    for row in sorted(given.slow, key=lambda row: (row["drive_id"], row["hour_utc"])):
        drive, hour = row["drive_id"], row["hour_utc"]
        earlier = [at for (other, at) in began if other == drive and hour - at <= 24 * HOUR]
        began[drive, hour] = began[drive, max(earlier)] if earlier else hour
    rows: Counter[tuple[object, ...]] = Counter()
    for (kind, place), hours in places_of(given.slow, given.places, given.members).items():
        for drive, own in hours.items():
            for hour in own:
                others = [began[other, hour] for other, theirs in hours.items() if hour in theirs]
                near = [at for at in others if abs(at - began[drive, hour]) <= 24 * HOUR]
                if len(others) > 1:
                    rows[drive, hour, kind, place, len(others), len(near)] += 1
    recent = [row for row in given.slow if row["hour_utc"] > LAST - timedelta(days=28)]
    return rows, incidents(recent, given.places, given.members)


def differs(number: int, texts: Mapping[str, str]) -> bool:
    """Whether SQL and sentences differ about a fleet."""
    given = fleet(number)
    together, of_drive = found(given, texts)
    columns = ("drive_id", "hour_utc", "place_type", "place_id", "drive_count", "spell_drive_count")
    shared = Counter(tuple(row[name] for name in columns) for row in together if row["drive_count"] > 1)
    return (shared, of_drive) != expected(given)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {relation: models_of().by_relation[relation].sql for relation in (TOGETHER, INCIDENTS)}


def test_incidents_equal_the_sentences(texts: dict[str, str]) -> None:
    different = [number for number in range(FLEETS) if differs(number, texts)]
    assert not different
    kinds = Counter(kind for number in range(FLEETS) for kind, _, _ in expected(fleet(number))[1].values())
    assert min(kinds.values()) > 15 and len(kinds) == 3, kinds


def test_a_drive_that_is_slow_alone_changes_no_incident_of_others(texts: dict[str, str]) -> None:
    tried = 0
    for number in range(FLEETS // 4):
        given = fleet(number)
        _, before = found(given, texts)
        for drive in {row["drive_id"] for row in given.slow} - before.keys():
            tried += 1
            assert found(given.without(drive), texts)[1] == before, (number, drive)
    assert tried > 50


FAULTS = {
    "what was shared with drives that are left out counts": (INCIDENTS, "from shared_4", "from shared_1"),
    "half is most": (INCIDENTS, "having 2 * count(*) > slow_counts", "having 2 * count(*) >= slow_counts"),
    "a drive shares hours with itself": (INCIDENTS, "where crowds.drive_count >= 2", "where crowds.drive_count >= 1"),
    "the widest place counts": (
        INCIDENTS,
        "'enclosure' then 1 when 'raid_group' then 2 else 3 end",
        "'enclosure' then 3 when 'raid_group' then 2 else 1 end",
    ),
    "older hours count": (
        INCIDENTS,
        "together.hour_utc > publication.last_hour_utc - interval 28 day",
        "together.hour_utc > publication.last_hour_utc - interval 29 day",
    ),
    "a class of drives is a place": (TOGETHER, "min(members.host) <> max(members.host) and", "false and"),
    "an array over hosts is no place": (TOGETHER, "max(case when members.is_named_by_array then 1 else 0 end) = 0", "true"),
    "a guessed group is a place": (TOGETHER, "min(case when members.is_group_guessed then 1 else 0 end) = 1", "false"),
    "a drive is where it once was": (TOGETHER, "and slow_hours.hour_utc < places.to_hour_utc", ""),
    "the members of a group are those of any time": (TOGETHER, "and group_hours.hour_utc < members.to_hour_utc", ""),
    "places of one name are one": (
        TOGETHER,
        "count(*) over (partition by place_type, place_id, hour_utc) as",
        "count(*) over (partition by place_id, hour_utc) as",
    ),
    "a spell ends after a day without its last hour": (TOGETHER, "> 24\n", "> 23\n"),
    "spells are near within less than a day": (TOGETHER, "interval 24 hour following", "interval 23 hour following"),
}
"""By what is wrong: a relation, and text of its SQL for other text."""


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(texts: dict[str, str], fault: str) -> None:
    relation, text, other = FAULTS[fault]
    assert text in texts[relation], f"{relation} has another text now; write the fault again"
    planted = {**texts, relation: texts[relation].replace(text, other)}
    assert any(differs(number, planted) for number in range(FLEETS)), fault
