"""The reference against the worked examples of metrics.md section 14, and against the sums of contract section 4."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from math import comb
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from jinja2 import Environment

from engine.publish import PUBLISHED

from .compare import compare, compare_rows
from .fleets import FORMATS, HOWS, deliveries, random_fleet, write_bundle
from .reference import (
    KEYS,
    RELATIONS,
    Delivery,
    age_year,
    compute,
    median,
    nearest_rank,
    percentile_of,
    poisson_interval,
)

Record = dict[str, Any]
Marts = dict[str, list[Record]]
DAY = datetime(2026, 3, 1)
PROJECT = Path(__file__).parents[2]


def at(hour: float) -> datetime:
    """The instant a number of hours into the test's day."""
    return DAY + timedelta(hours=hour)


def row(drive: str, hour: int, latency: float | None, ios: int = 10, **more: Any) -> Record:
    """A drive-hour of group g with reads only; latency None = no I/O."""
    reads = 0 if latency is None else ios
    record = {"hour_utc": at(hour), "drive_id": drive, "raid_group_id": "g", "read_ios": reads, "write_ios": 0}
    return record | {"read_latency_us": latency, "write_latency_us": None} | more


@pytest.fixture
def marts_of(tmp_path: Path) -> Callable[..., Marts]:
    def build(hours: list[Record], drives: Sequence[Record] = (), events: Sequence[Record] = (), format: str = "parquet") -> Marts:
        return compute([Delivery(write_bundle((hours, list(drives), list(events)), tmp_path / "bundle", format))])

    return build


def column(marts: Marts, relation: str, name: str) -> list[Any]:
    return [record[name] for record in marts[relation]]


# --------------------------------------------------------------------------------------------------------------------
# Worked examples


def test_1_merge(marts_of):
    split = {"read_ios": 300, "write_ios": 100, "read_latency_us": 4000.0, "write_latency_us": 12000.0}
    marts = marts_of([row(drive, 0, 1.0) | split for drive in "abc"])
    assert column(marts, "fct_drive_hours", "latency_us") == [6000.0] * 3
    assert column(marts, "fct_drive_hours", "io_count") == [400] * 3


@pytest.mark.parametrize("format", FORMATS)
def test_2_figure_1(marts_of, format):
    marts = marts_of([row(drive, 0, latency) for drive, latency in zip("abcde", (10.0, 9.0, 22.0, 11.0, 8.0), strict=True)], format=format)
    assert column(marts, "fct_drive_hours", "slowdown") == [1.0, 0.9, 2.2, 1.1, 0.8]
    (hour,) = marts["fct_raid_hours"]
    assert hour["median_latency_us"] == 10.0
    assert (hour["tail_1"], hour["tail_2"], hour["tail_3"]) == (2.2, 1.1, 1.0)
    assert hour["is_tail_hour"] is True
    assert hour["slowest_drive_id"] == "c"


def test_3_even(marts_of):
    marts = marts_of([row(drive, 0, latency) for drive, latency in zip("abcd", (10.0, 20.0, 30.0, 60.0), strict=True)])
    assert column(marts, "fct_raid_hours", "median_latency_us") == [25.0]
    assert column(marts, "fct_drive_hours", "slowdown") == [0.4, 0.8, 1.2, 2.4]


def test_4_exact_boundary(marts_of):
    marts = marts_of([row(drive, 0, latency) for drive, latency in zip("abc", (500.0, 250.0, 250.0), strict=True)])
    assert column(marts, "fct_drive_hours", "slowdown") == [2.0, 1.0, 1.0]
    assert column(marts, "fct_drive_hours", "is_slow") == [True, False, False]
    assert column(marts, "fct_raid_hours", "is_tail_hour") == [True]


def test_5_zero_io(marts_of):
    hours = [row(drive, 0, latency) for drive, latency in zip("abcd", (10.0, 12.0, None, 40.0), strict=True)]
    hours += [row(drive, 1, latency) for drive, latency in zip("abcd", (10.0, None, None, 40.0), strict=True)]
    marts = marts_of(hours)
    first = [record for record in marts["fct_drive_hours"] if record["hour_utc"] == at(0)]
    second = [record for record in marts["fct_drive_hours"] if record["hour_utc"] == at(1)]
    assert [record["slowdown"] for record in first] == [10 / 12, 1.0, None, 40 / 12]
    assert [record["exclusion_reason"] for record in first] == [None, None, "no_io", None]
    assert [record["exclusion_reason"] for record in second] == ["too_few_drives", "no_io", "no_io", "too_few_drives"]
    (hour,) = marts["fct_raid_hours"]
    assert (hour["reporting_drive_count"], hour["data_drive_count"], hour["median_latency_us"]) == (3, 4, 12.0)


def test_6_intervals(marts_of):
    slowdowns = dict(enumerate((3, 2, 5, None, 2, 1, 1, 1, 1, 4)))
    hours = [row(peer, hour, 100.0) for hour in slowdowns for peer in "bcde"]
    hours += [row("a", hour, 100.0 * slowdown) for hour, slowdown in slowdowns.items() if slowdown]
    marts = marts_of(hours)
    found = [record for record in marts["fct_slowdown_intervals"] if record["threshold"] == 2.0]
    assert [(record["started_at"], record["ended_at"], record["interval_hours"]) for record in found] == [
        (at(0), at(2), 3),
        (at(4), at(4), 1),
        (at(9), at(9), 1),
    ]
    assert [(record["is_left_censored"], record["is_right_censored"]) for record in found] == [(True, True), (True, False), (False, True)]
    assert [record["hours_until_stable"] for record in found] == [4, 2, 2]
    assert [record["severity"] for record in found] == ["2-4x", "2-4x", "4-8x"]
    assert [record["mean_slowdown"] for record in found] == [10 / 3, 2.0, 4.0]
    assert column(marts, "fct_slowdown_arrivals", "gap_hours") == [0, 0, 1, 4]
    peers_pairs = 4 * 9
    (transitions,) = marts["fct_drive_transitions"]
    assert transitions == {"kind": "unknown", "normal": 3 + peers_pairs, "to_slow": 1, "slow_persist": 2, "back_to_stable": 1}
    slowness = {record["drive_id"]: record for record in marts["fct_drive_slowness"]}["a"]
    assert (slowness["slow_hours"], slowness["interval_count"], slowness["drive_hours"], slowness["max_slowdown"]) == (5, 3, 9, 5.0)
    assert (slowness["window_drive_hours"], slowness["median_slowdown"], slowness["is_chronic"]) == (9, 2.0, True)


def test_7_percentiles():
    values = range(1, 11)
    assert [nearest_rank(values, q) for q in ("0.90", "0.95", "0.05")] == [9, 10, 1]
    assert percentile_of(values, 9) == 80


def test_8_imbalance(marts_of):
    counts = (100, 100, 100, 250, 0)
    hours = [row(drive, 0, 5.0 if ios else None, ios=ios) for drive, ios in zip("abcde", counts, strict=True)]
    marts = marts_of(hours)
    assert median(counts) == 100.0
    assert column(marts, "fct_drive_hours", "rate_imbalance") == [1.0, 1.0, 1.0, 2.5, 0.0]


def test_9_rio(marts_of):
    hours = [row(drive, 0, 100.0, ios=400) for drive in "abc"]
    hours += [row("a", 1, 300.0, ios=100), row("b", 1, 100.0, ios=200), row("c", 1, 100.0, ios=200)]
    marts = marts_of(hours)
    assert column(marts, "fct_raid_hours", "raid_io_count") == [1200, 500]
    assert column(marts, "fct_raid_hours", "rio_degradation") == [None, 2.4]
    assert column(marts, "fct_raid_hours", "transition") == [None, "stable_to_tail"]


def test_10_unplug(marts_of):
    hours = [row(peer, hour, 100.0) for hour in range(8, 22) for peer in "bcd"]
    hours += [row("a", hour, 300.0 if hour in (10, 20) else 100.0) for hour in range(8, 22)]
    events = [
        {"drive_id": "a", "occurred_at": at(13) + timedelta(minutes=20), "event_type": "unplug"},
        {"drive_id": "a", "occurred_at": at(15) + timedelta(minutes=5), "event_type": "replug"},
    ]
    marts = marts_of(hours, events=events)
    interval = next(record for record in marts["fct_slowdown_intervals"] if record["threshold"] == 2.0)
    assert (interval["started_at"], interval["wait_hours"]) == (at(10), 3)
    (episode,) = marts["fct_unplug_episodes"]
    assert (episode["outage_hours"], episode["recur_hours"], episode["preceding_severity"]) == (1.75, 5, "2-4x")
    assert (episode["is_replugged"], episode["is_replaced"], episode["is_in_population"]) == (True, False, True)


def test_11_age():
    deployed = date(2020, 1, 1)
    assert age_year(datetime(2020, 12, 30), deployed) == 1
    assert age_year(datetime(2021, 1, 2), deployed) == 2
    assert age_year(datetime(2019, 12, 31), deployed) is None
    assert age_year(datetime(2019, 12, 31), None) is None


# --------------------------------------------------------------------------------------------------------------------
# Rules of the contract on which the examples are silent


def test_unplug_chains(marts_of):
    hours = [row(drive, 0, 100.0) for drive in "abc"]
    plan = [(1, "unplug"), (2, "unplug"), (3, "replug"), (3, "unplug"), (4, "unplug"), (4, "replug"), (9, "replacement")]
    events = [{"drive_id": "a", "occurred_at": at(hour), "event_type": kind} for hour, kind in plan]
    episodes = marts_of(hours, events=events)["fct_unplug_episodes"]
    found = [(e["unplugged_at"], e["replugged_at"], e["outage_hours"], e["is_replugged"], e["is_replaced"]) for e in episodes]
    assert found == [
        (at(1), None, None, True, False),  # implied by the second
        (at(2), at(3), 1.0, True, False),  # closed at the next unplug's instant
        (at(3), at(4), 1.0, True, False),
        (at(4), None, None, False, True),  # the replug at its own instant does not belong to it
    ]


def test_membership(marts_of):
    """The row wins over inventory; drives without a row count by their period; a spare of the row's group is out."""
    hours = [row("a", 0, 100.0), row("b", 0, 200.0), row("s", 0, 900.0), row("c", 0, 300.0)]
    listed = {"raid_group_id": "g", "role": "data", "kind": "disk"}
    drives = [
        {"drive_id": "a", **listed, "valid_from": at(-5)},
        {"drive_id": "b", **listed, "raid_group_id": "other", "valid_from": at(-5)},
        {"drive_id": "s", **listed, "role": "spare", "valid_from": None},
        {"drive_id": "s", **listed, "raid_group_id": "other", "valid_from": at(-1)},
        {"drive_id": "silent", **listed, "valid_from": at(0) + timedelta(minutes=59)},
        {"drive_id": "gone", **listed, "valid_from": at(-5), "valid_to": at(0) + timedelta(minutes=1)},
    ]
    marts = marts_of(hours, drives)
    assert column(marts, "fct_drive_hours", "drive_id") == ["a", "b", "c"]
    assert column(marts, "fct_drive_hours", "kind") == ["disk", "disk", "unknown"]
    assert column(marts, "fct_raid_hours", "data_drive_count") == [4]  # a, b, c and the silent one
    groups = {record["raid_group_id"]: record for record in marts["dim_raid_groups"]}
    assert (groups["g"]["kind"], groups["other"]["kind"], groups["other"]["data_drive_count"]) == ("disk", "disk", None)


def test_peers_are_of_one_kind(marts_of):
    """Three disks, three NVMe drives and an SSD of one array: disks and NVMe drives are compared among themselves, the SSD with nobody."""
    named = {"raid_group_id": "g", "role": "data", "valid_from": None}
    flash = {"kind": "ssd", "interface": "NVMe"}
    drives = [{"drive_id": drive, **named, "kind": "disk"} for drive in "abc"] + [{"drive_id": drive, **named, **flash} for drive in "xyz"]
    drives.append({"drive_id": "s", **named, "kind": "ssd", "interface": "SAS"})
    hours = [row(drive, 0, us) for drive, us in zip("abcxyzs", (8000.0, 8000.0, 16000.0, 100.0, 100.0, 300.0, 900.0), strict=True)]
    marts = marts_of(hours, drives)
    found = {(record["drive_id"], record["raid_group_id"], record["slowdown"]) for record in marts["fct_drive_hours"]}
    assert found == {
        ("a", "g", 1.0), ("b", "g", 1.0), ("c", "g", 2.0),
        ("x", "g (nvme)", 1.0), ("y", "g (nvme)", 1.0), ("z", "g (nvme)", 3.0),
    }  # fmt: skip


def test_conflicts_and_rejection(marts_of):
    late = {"collected_at": at(2)}
    hours = [row("b", 0, 100.0), row("c", 0, 100.0)]
    hours += [row("a", 0, 100.0), row("a", 0, 250.0, **late), row("a", 0, 150.0, **late), row("a", 0, 250.0, **late), row("a", 0, -1.0)]
    marts = marts_of(hours, format="csv")
    assert column(marts, "fct_drive_hours", "slowdown") == [2.5, 1.0, 1.0]
    assert marts["rejected_records"] == [{"file": "drive_hours_bundle_1.csv", "row": 7, "column": "read_latency_us"}]
    (account,) = marts["ingested_files"]
    assert (account["rows_delivered"], account["rows_rejected"], account["rows_duplicate"], account["rows_superseded"]) == (7, 1, 1, 1)


def test_chronic_window(marts_of):
    """Half of the group's valid hours are enough, and the hour exactly 28 days before the last is outside the window."""
    last = 28 * 24
    hours = [row(peer, hour, 1000.0) for hour in (0, 1, 2, last - 1, last) for peer in "bcde"]
    hours += [row("a", hour, 1200.0) for hour in (0, 1, last)]
    slowness = {record["drive_id"]: record for record in marts_of(hours)["fct_drive_slowness"]}
    drive = slowness["a"]  # 2 of the window's 4 valid hours, 3 hours altogether
    assert (drive["drive_hours"], drive["window_drive_hours"], drive["median_slowdown"], drive["is_chronic"]) == (3, 2, 1.2, True)
    assert (slowness["b"]["drive_hours"], slowness["b"]["window_drive_hours"], slowness["b"]["is_chronic"]) == (5, 4, False)


def test_alerts(marts_of):
    """Maintenance takes hours 1 and 2 from d0, which leaves 0, 27 and 28: no three within 24 hours. Of d1's, 0, 1 and 23 are the first
    three. The drives of host h raise theirs at 4, 9 and 23; d4 has no host. The group is known until hour 40: 24 quiet hours
    for all but d1."""
    slow = {"d0": (0, 1, 2, 27, 28), "d1": (0, 1, 23, 25, 30), "d2": (2, 3, 4), "d3": (7, 8, 9), "d4": (7, 8, 9, 10)}
    hours = [
        row(f"d{number}", h, 300.0 + h if h in slow.get(f"d{number}", ()) else 100.0, raid_group_id="g")
        for number in range(11)
        for h in range(41)
    ]
    drives = [{"drive_id": f"d{number}", "raid_group_id": "g", "role": "data", "host": "h" if number < 4 else None} for number in range(11)]
    events = [{"occurred_at": at(1.5), "ended_at": at(2) + timedelta(minutes=10), "drive_id": "d0", "event_type": "maintenance"}]
    alerts = {row["subject_id"]: row for row in marts_of(hours, drives, events)["fct_slow_alerts"]}
    told = {
        subject: (row["raised_at"], row["cleared_at"], row["slow_hours"], row["worst_hour_utc"], row["part_of"])
        for subject, row in alerts.items()
    }
    of_h = f"host h together {at(23)}"
    assert told == {
        "d1": (at(23), None, 5, at(30), of_h),
        "d2": (at(4), at(28), 3, at(4), of_h),
        "d3": (at(9), at(33), 3, at(9), of_h),
        "d4": (at(9), at(34), 4, at(10), None),
        "h": (at(23), None, 11, None, None),
    }
    assert (alerts["h"]["drive_count"], alerts["h"]["max_slowdown"], alerts["d2"]["latency_us"]) == (3, 3.3, 304.0)


@pytest.mark.parametrize(
    ("site", "slots", "places"),
    [("s", "0123", {"s/e"}), (None, "0123", set()), ("s", "0101", set())],
    ids=["one shelf", "no site", "two drives in a slot"],
)
def test_alerts_of_an_enclosure_that_hosts_share(marts_of, site: str | None, slots: str, places: set[str]):
    """d0 and d1 of host h0 and d2 and d3 of h1 are slow in hours 0, 1 and 2, all in an enclosure that either host calls e."""
    hours = [row(f"d{n}", h, 300.0 if n < 4 and h < 3 else 100.0, raid_group_id="g") for n in range(11) for h in range(4)]
    drives = [
        {"drive_id": f"d{n}", "raid_group_id": "g", "role": "data", "host": f"h{n // 2}", "enclosure": "e", "site": site, "slot": slots[n]}
        for n in range(4)
    ]
    alerts = marts_of(hours, drives)["fct_slow_alerts"]
    assert {alert["subject_id"] for alert in alerts if alert["reason"] == "together"} == places
    assert {alert["part_of"] is None for alert in alerts if alert["subject_type"] == "drive"} == {not places}


def test_alerts_of_a_whole_group(marts_of):
    """Hours 0, 1 and 5 took 100 a week before; the fourth, at 199 now, is no slow one. Drive d0's maintenance takes hour 6."""
    hours = [row(f"d{number}", h, 100.0, raid_group_id="g") for number in range(4) for h in (0, 1, 3, 5, 6)]
    hours += [
        row(f"d{number}", 168 + h, now, raid_group_id="g")
        for number in range(4)
        for h, now in ((0, 200.0), (1, 300.0), (3, 199.0), (5, 300.0), (6, 900.0))
    ]
    hours += [row(f"d{number}", 168 + 29, 100.0, raid_group_id="g") for number in range(4)]
    events = [{"occurred_at": at(168 + 6.5), "ended_at": None, "drive_id": "d0", "event_type": "maintenance"}]
    (alert,) = marts_of(hours, [], events)["fct_slow_alerts"]
    assert alert["alert_id"] == f"raid_group g whole_group {at(168 + 5)}"
    assert (alert["first_slow_hour_utc"], alert["last_slow_hour_utc"], alert["cleared_at"]) == (at(168), at(168 + 5), at(168 + 29))
    assert (alert["slow_hours"], alert["drive_count"], alert["max_slowdown"]) == (3, 4, 3.0)
    assert (alert["worst_hour_utc"], alert["latency_us"], alert["median_latency_us"]) == (at(168 + 1), 300.0, 100.0)


@pytest.mark.parametrize(
    ("left_out", "raised", "last_slow", "cleared", "slow_hours"),
    [(None, 24, 23, at(72), 18), (20, 48, 47, None, 24)],
    ids=["a whole day", "23 hours"],
)
def test_alerts_of_chronic_drives(marts_of, left_out: int | None, raised: int, last_slow: int, cleared: datetime | None, slow_hours: int):
    """Drive a is at 1.2 in 18 of 24 hours of the first day, in 24 of 48 with the second, of which 30 are at 1.1, in 24 of 60 with the
    third, of which 30 are: well. The fourth day is not over. Of a first day of 23 hours nothing is told; then 24 of 47
    are most, and 30 of 59 still."""
    latencies = [1200.0] * 17 + [1300.0] + [1000.0] * 6 + [1200.0] * 6 + [1100.0] * 6 + [1000.0] * 24
    seen = [h for h in range(73) if h != left_out]
    hours = [row(peer, h, 1000.0) for h in seen for peer in "bcde"]
    hours += [row("a", h, latencies[h]) for h in seen if h < len(latencies)] + [row("a", 72, 5000.0)]
    (alert,) = marts_of(hours)["fct_slow_alerts"]
    assert (alert["subject_id"], alert["reason"], alert["slow_hours"]) == ("a", "chronic", slow_hours)
    assert (alert["raised_at"], alert["cleared_at"]) == (at(raised), cleared)
    assert (alert["first_slow_hour_utc"], alert["last_slow_hour_utc"]) == (at(raised - 24), at(last_slow))


def test_event_places(marts_of):
    """Group of an event by row, own id, period; replacement by slot; events of drives without rows are of no population."""
    hours = [row(drive, 0, 100.0) for drive in "abc"]
    drives = [{"drive_id": "a", "raid_group_id": "g", "role": "data", "kind": "disk", "slot": "3", "valid_from": at(-9)}]
    drives += [{"drive_id": "new", "raid_group_id": "g", "role": "data", "kind": "disk", "slot": "3", "valid_from": at(1)}]
    events = [
        {"drive_id": "a", "occurred_at": at(0.5), "event_type": "unplug", "raid_group_id": "wrong"},
        {"drive_id": "a", "occurred_at": at(2.5), "event_type": "smoke", "raid_group_id": "own"},
        {"drive_id": "a", "occurred_at": at(3.5), "event_type": "scrub"},
        {"drive_id": "nobody", "occurred_at": at(0.5), "event_type": "scrub"},
    ]
    marts = marts_of(hours, drives, events)
    found = [(e["event_type"], e["raid_group_id"], e["is_in_population"], e["slow_within_window"]) for e in marts["fct_drive_events"]]
    assert found == [("unplug", "g", True, False), ("other", "own", False, None), ("scrub", "g", False, None), ("scrub", None, False, None)]
    assert column(marts, "fct_unplug_episodes", "is_replaced") == [True]
    assert column(marts, "dim_drives", "drive_id") == ["a", "b", "c", "new", "nobody"]


# --------------------------------------------------------------------------------------------------------------------
# Contract section 4, on random fleets

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module", params=SEEDS)
def delivered(request, tmp_path_factory) -> dict[str, Marts]:
    """{how: marts} of one random fleet."""
    fleet = random_fleet(request.param)
    folder = tmp_path_factory.mktemp(f"fleet{request.param}")
    result = {}
    for how in HOWS:
        folders, builds = deliveries(fleet, how, folder, random.Random(request.param))
        assert builds[-1] == len(folders) - 1
        result[how] = compute([Delivery(path) for path in folders])
    return result


def test_sums(delivered):
    marts = delivered["at_once"]
    hours, raid_hours = marts["fct_drive_hours"], marts["fct_raid_hours"]
    assert len(hours) > 1000
    # 1
    assert sum(record["slowdown"] is not None for record in hours) == sum(column(marts, "fct_raid_hours", "reporting_drive_count"))
    # 2
    slow = sum(record["is_slow"] for record in hours)
    assert slow == sum(column(marts, "fct_raid_hours", "slow_drive_count")) > 0
    assert sum(record["is_tail_hour"] for record in raid_hours) == sum(record["slow_drive_count"] >= 1 for record in raid_hours)
    # 3
    cells: dict[tuple, list[float]] = {}
    for record in hours:
        if record["slowdown"] is not None:
            cells.setdefault((record["raid_group_id"], record["hour_utc"]), []).append(record["slowdown"])
    assert len(cells) == len(raid_hours)
    assert all(median(values) == pytest.approx(1.0, rel=1e-12) for values in cells.values())
    # 4
    intervals = marts["fct_slowdown_intervals"]
    assert sum(record["interval_hours"] for record in intervals if record["threshold"] == 2.0) == slow
    slow_15 = sum(record["is_slow_15"] for record in hours)
    assert sum(record["interval_hours"] for record in intervals if record["threshold"] == 1.5) == slow_15
    # 5
    slow_drives = {record["drive_id"] for record in hours if record["is_slow"]}
    assert slow == len(marts["fct_slowdown_arrivals"]) + len(slow_drives)


def test_any_order_ends_in_the_same_marts(delivered):
    """Sum 6: the three ways of delivery agree, and so do the numbers of rejected records per column."""
    first = delivered["at_once"]
    for how in HOWS[1:]:
        for relation in RELATIONS:
            if relation not in ("rejected_records", "ingested_files"):
                assert compare_rows(relation, first[relation], delivered[how][relation]) == []
        assert Counter(column(first, "rejected_records", "column")) == Counter(column(delivered[how], "rejected_records", "column"))
        for account in delivered[how]["ingested_files"]:
            parts = [account[f"rows_{verdict}"] for verdict in ("accepted", "rejected", "duplicate", "superseded")]
            assert account["rows_delivered"] == sum(parts)


def test_keys_are_unique(delivered):
    for relation, rows in delivered["at_once"].items():
        keys = [tuple(record[name] for name in KEYS[relation]) for record in rows]
        assert len(keys) == len(set(keys)), relation


def test_fleets_reach_the_edges(delivered):
    """A fleet that never meets an edge tests nothing."""
    marts = delivered["at_once"]
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


# --------------------------------------------------------------------------------------------------------------------
# The comparison itself


ARROW = {
    "varchar": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
}


def test_compare_sees_what_differs(tmp_path, delivered):
    duckdb = pytest.importorskip("duckdb")
    marts = delivered["at_once"]
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        for schema in PUBLISHED:
            connection.execute(f"create schema {schema}")
        for relation, types in RELATIONS.items():
            table = pa.Table.from_pylist(marts[relation], schema=pa.schema([(name, ARROW[of]) for name, of in types.items()]))
            pq.write_table(table, tmp_path / f"{relation}.parquet")
            source = f"read_parquet('{tmp_path / relation}.parquet')"
            connection.execute(f'create table marts."{relation}" as select *, null as added_column from {source}')
    assert compare(marts, path) == []
    with duckdb.connect(str(path)) as connection:
        connection.execute("update marts.fct_raid_hours set tail_1 = tail_1 + 1e-12")
        connection.execute("delete from marts.fct_slowdown_arrivals where gap_hours > 3")
        connection.execute("alter table marts.dim_raid_groups alter data_drive_count type double")
        connection.execute("alter table marts.dim_drives drop rpm")
    differences = compare(marts, path)
    assert "dim_drives: columns missing: rpm" in differences
    for start in ("fct_raid_hours [", "fct_raid_hours: ... and", "fct_slowdown_arrivals: ", "dim_raid_groups.data_drive_count: declared"):
        assert any(difference.startswith(start) for difference in differences), start


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

    def chance(counts: range, trials: int, share: float) -> float:
        return sum(comb(trials, count) * share**count * (1 - share) ** (trials - count) for count in counts)

    for (trials, events), (low, high) in seed.items():
        assert low == 0 if events == 0 else chance(range(events, trials + 1), trials, low) == pytest.approx(0.025, rel=1e-6)
        assert high == 1 if events == trials else chance(range(events + 1), trials, high) == pytest.approx(0.025, rel=1e-6)
