"""One fleet from many sources: whatever order they deliver in, and however late a name is explained, the marts are the same."""

from __future__ import annotations

import itertools
import random
from datetime import datetime, timedelta
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pytest

import ingest.run
from drivetail.ask.explain.drive import explain_drive
from drivetail.ask.explain.hour import explain_hour
from drivetail.ask.status import collect_status
from drivetail.service.maintenance import reconcile
from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest as land
from ingest.contract.fleet import CONTRACT, IDENTITY
from ingest.contract.values import RAW_KINDS
from ingest.raw.landing import Landing
from ingest.reading.files import SourceFile
from ingest.sources import reader_of
from tests.proof.support import asked_soundly, broken_sums, drivetail, marts_differences

START = datetime(2026, 1, 5)
HOURS = 8
SOURCES = ("prometheus", "sysstat", "mdadm", "smartctl", "mapping")

Row = dict[str, Any]


def hour(number: int, minute: int = 0) -> datetime:
    return START + timedelta(hours=number, minutes=minute)


def written(root: Path, **records: list[Row]) -> Path:
    """A delivery of records, one NDJSON file per kind, in a new folder."""
    folder = root / f"{len(list(root.iterdir())):02d}"
    folder.mkdir()
    for kind, rows in records.items():
        flags = {name: dtype for name, dtype in IDENTITY[kind].items() if name != "source"}
        pl.DataFrame(rows, schema={**CONTRACT[kind], **flags}).write_parquet(folder / f"{kind}.parquet")
    return folder


def _land(files: list[SourceFile], landing: Landing) -> None:
    for file in files:
        result = landing.start(file)
        if result is not None and file.record_kind is not None:
            rows = pl.read_parquet(file.path).with_row_index("row_no", 1)
            result.rows_delivered = rows.height
            landing.accept(file.record_kind, rows, result)


def _kind(relative: PurePosixPath, absolute: PurePosixPath) -> str | None:
    return relative.stem if relative.stem in RAW_KINDS else None


@pytest.fixture(autouse=True)
def plain_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that deliver their records as they are: what is looked at here is what becomes of them."""
    module: Any = SimpleNamespace(EXPECTED="", recognise=_kind, land=_land)
    monkeypatch.setattr(ingest.run, "reader_of", lambda source: module if source in SOURCES else reader_of(source))


def seen(number: int, drive: str, us: float, group: str = "web1", *, alias: bool = True, merged: bool = False) -> Row:
    """A drive-hour that a host saw."""
    row = {"hour_utc": hour(number), "drive_id": drive, "raid_group_id": group, "is_alias": alias, "is_group_guessed": group == "web1"}
    return {**row, "latency_us": us} if merged else {**row, "read_ios": 10, "write_ios": 0, "read_latency_us": us}


def member(device: str, at: datetime, role: str = "data", slot: int = 0) -> Row:
    return {
        "drive_id": f"web1/{device}", "raid_group_id": "md0", "role": role, "slot": str(slot), "raid_level": "raid6", "host": "web1",
        "valid_from": at, "is_alias": True, "is_group_guessed": False,
    }  # fmt: skip


def named(device: str, serial: str, at: datetime | None) -> Row:
    return {"alias": f"web1/{device}", "drive_id": serial, "valid_from": at}


def wwn(serial: str) -> Row:
    return {"alias": "wwn:0x5000", "drive_id": serial, "valid_from": hour(1)}


def described(serial: str, at: datetime, **attributes: Any) -> Row:
    return {
        "drive_id": serial,
        "raid_group_id": "web1",
        "host": "web1",
        "valid_from": at,
        "is_alias": False,
        "is_group_guessed": True,
        **attributes,
    }


def deliveries(root: Path) -> list[tuple[str, Path]]:
    """web1's six drives; sdf is swapped at 04:00. Prometheus knows no serials and missed an hour that sysstat saw."""
    devices = [f"sd{letter}" for letter in "abcdef"]
    usual = {device: 1000.0 + 10 * place for place, device in enumerate(devices)}
    scraped = [seen(n, f"web1/{d}", 5000.0 if (d, n) == ("sdc", 3) else usual[d]) for n in range(HOURS) for d in devices if n != 5]
    sampled = [seen(n, f"web1/{d}", 9.0 * usual[d], merged=True) for n in (3, 5) for d in devices]
    by_serial = [seen(6, "S-b", 4000.0, alias=False)]
    own = [{"hour_utc": hour(7), "drive_id": "S-a", "raid_group_id": "md0", "read_ios": 5, "write_ios": 0, "read_latency_us": 3000.0}]
    event = {"occurred_at": hour(3, 10), "drive_id": "web1/sdc", "event_type": "media_error", "is_alias": True}
    return [
        (
            "prometheus",
            written(root, drive_hours=scraped[: len(scraped) // 2], drive_aliases=[wwn("S-A"), named("sdd", "S-X", hour(0, 45))]),
        ),
        ("prometheus", written(root, drive_hours=scraped[len(scraped) // 2 :], drive_events=[event])),
        ("sysstat", written(root, drive_hours=sampled)),
        ("sysstat", written(root, drive_hours=by_serial)),
        ("mdadm", written(root, drives=[member(d, hour(1, 5), "parity_p" if d == "sda" else "data") for d in devices])),
        ("mdadm", written(root, drives=[member(d, hour(6, 5), slot=1) for d in devices[:5]])),
        ("smartctl", written(root, drive_aliases=[named(d, "S-" + d[-1], hour(0, 30)) for d in devices])),
        (
            "smartctl",
            written(root, drive_aliases=[named("sdf", "S-new", hour(4))], drives=[described("S-f", hour(0), model="M2", kind="disk")]),
        ),
        (
            "smartctl",
            written(
                root,
                drives=[described("S-c", hour(2), model="M1", kind="disk", deployed_on=START.date())],
                drive_aliases=[wwn("S-a"), named("sdb", "S-b", hour(1))],
            ),
        ),
        ("mapping", written(root, drives=[{**member("sde", hour(2)), "drive_id": "S-e", "raid_group_id": "md9", "is_alias": False}])),
        ("smartctl", written(root, drives=[described(f"S-{name}", hour(0), kind="disk") for name in ("a", "b", "D", "e", "new")])),
        ("mapping", written(root, drive_aliases=[named("sdd", "S-D", None)])),
        ("bundle", written(root, drive_hours=own)),
    ]


def built(path: Path, order: list[tuple[str, Path]], builds_after: set[int]) -> Warehouse:
    """A warehouse in which those deliveries landed in that order, built after some of them and at the end."""
    warehouse = Warehouse(path)
    for number, (source, folder) in enumerate(order):
        land(source, [folder], path)
        if number in builds_after:
            build(warehouse)
    build(warehouse, daily=True)
    return warehouse


def assert_as_the_serials_say(warehouse: Warehouse) -> None:
    """Expected rows of the published marts in any order: worked out by hand from `deliveries`."""
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        rows = connection.execute(
            """
            select hour(hour_utc), drive_id, raid_group_id, latency_us, age_year from marts.fct_drive_hours
            where drive_id in ('S-c', 'S-f', 'S-new', 'S-b') order by all
            """
        ).fetchall()
        drives = connection.execute("select drive_id, kind, model from marts.dim_drives order by 1").fetchall()
        events = connection.execute("select drive_id, raid_group_id, event_type, slow_within_window from marts.fct_drive_events").fetchall()
        assert broken_sums(connection) == []
    # mdadm first looked at 01:05, so that 00:00 is of the host; it looked again at 06:05, when sdf was no member any more
    groups = ["web1"] + ["md0"] * (HOURS - 1)
    latencies = {
        "S-b": [1010.0, 1010.0, 1010.0, 1010.0, 1010.0, 9090.0, 1010.0, 1010.0],
        "S-c": [1020.0, 1020.0, 1020.0, 5000.0, 1020.0, 9180.0, 1020.0, 1020.0],
    }
    for drive, values in latencies.items():
        ages = [1 if drive == "S-c" else None] * HOURS
        assert [row for row in rows if row[1] == drive] == list(
            zip(range(HOURS), itertools.repeat(drive), groups, values, ages, strict=False)
        )
    # somebody looked at 00:30 and at 04:00, and in between sdf was swapped: whose these hours are, nobody knows
    assert [row for row in rows if row[1] == "S-f"] == []
    assert [row[:3] for row in rows if row[1] == "S-new"] == [(n, "S-new", "md0") for n in (4, 5)]
    without_model = [(drive, "disk", None) for drive in ("S-D", "S-a", "S-b", "S-e", "S-new")]
    assert drives == sorted([*without_model, ("S-c", "disk", "M1"), ("S-f", "disk", "M2")])
    assert events == [("S-c", "md0", "media_error", True)]
    assert reconcile(warehouse) == []
    inventory = collect_status(warehouse).inventory or {}
    # sdf's successor has joined no array by the last look; what mdadm and the operator say of S-e cannot both be
    assert [row["drive_id"] for row in inventory["guessed_groups"]["rows"]] == ["S-new"]
    assert inventory["unnamed_drives"]["count"] == 0
    # both say something of 03:00: what drivetail explain walks back to
    explained = explain_hour(warehouse, "S-c", "2026-01-05 03:00")
    assert "delivered as web1/sdc, which names S-c in this hour" in explained
    assert "set aside: source prometheus takes precedence over sysstat" in explained
    assert "5000" in explained
    assert "web1, only its host" in explain_drive(warehouse, "S-new")
    of_c = explain_drive(warehouse, "S-c")
    assert "only its host" not in of_c and "2026-01-05, counted back by smartctl" in of_c
    page = warehouse.root / "report.html"
    drivetail("report", "--week", "2026-W02", "--out", page, "--warehouse", warehouse.root)
    assert (
        "Of 1 RAID group no source says which drives belong together: each is all drives of one host (web1), each kind by itself."
        in page.read_text()
    )
    said = {"drive_id": "S-e", "attribute": "raid_group_id", "believed": "md9", "said": "mapping: md9; mdadm: md0"}
    shared = {"drive_id": "wwn:0x5000", "attribute": "serial", "believed": "S-a", "said": "prometheus: S-A; smartctl: S-a"}
    letter = {"drive_id": "web1/sdd", "attribute": "serial", "believed": "S-D", "said": "prometheus: S-X; smartctl: S-d"}
    place = {"drive_id": "S-e", "attribute": "slot", "believed": "0", "said": "mapping: 0; mdadm: 1"}
    assert inventory["disagreements"]["rows"] == [said, place, letter, shared]


def measured(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Every drive-hour that counts: drive, hour, RAID group, latency."""
    query = "select drive_id, hour(hour_utc), raid_group_id, latency_us from intermediate.int_drive_hours order by all"
    return asked_soundly(warehouse.published, query)


@pytest.mark.proof
def test_an_operators_word_and_an_hour_hardly_seen_move_what_was_built(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    root = tmp_path / "in"
    drives = [f"S-{n}" for n in range(6)]
    scraped = [seen(n, d, 1000.0, "pool-a", alias=False) for n in range(3) for d in drives]
    # sysstat knows S-5 by another serial
    sampled = [seen(1, d, 9000.0, alias=False) for d in drives[:5]] + [seen(n, "S-9", 9000.0, alias=False) for n in (1, 3)]
    first = [("prometheus", written(root, drive_hours=scraped)), ("sysstat", written(root, drive_hours=sampled))]
    warehouse = built(tmp_path / "warehouse", first, set())
    pools = [(d, n, "pool-a", 1000.0) for d in drives for n in range(3)]
    assert measured(warehouse) == [*pools, ("S-9", 1, "web1", 9000.0), ("S-9", 3, "web1", 9000.0)]
    mapped = [{"drive_id": d, "raid_group_id": "pool-b", "is_alias": False, "is_group_guessed": False} for d in drives[3:]]
    # Prometheus was down for nearly all of the hour, after all
    thin = {**seen(1, "S-0", 1000.0, "pool-a", alias=False), "coverage": 0.02, "collected_at": hour(9)}
    land("mapping", [written(root, drives=mapped, drive_aliases=[{"alias": "S-9", "drive_id": "S-5"}])], warehouse.root)
    land("prometheus", [written(root, drive_hours=[thin])], warehouse.root)
    build(warehouse)
    moved = [(d, n, "pool-b" if d in drives[3:] else "pool-a", us) for d, n, _, us in pools if (d, n) != ("S-0", 1)]
    expected = sorted([*moved, ("S-0", 1, "web1", 9000.0), ("S-5", 3, "pool-b", 9000.0)])
    assert measured(warehouse) == expected
    assert reconcile(warehouse) == []
    explained = explain_hour(warehouse, "S-0", "2026-01-05 01:00")
    assert "its coverage 0.02 is below the 0.5, the least that counts" in explained
    build(warehouse, full_refresh=True)
    assert measured(warehouse) == expected


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_sources_names_and_mappings_ends_in_the_same_marts(seed: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    order = deliveries(tmp_path / "in")
    at_once = built(tmp_path / "at_once", order, set())
    assert_as_the_serials_say(at_once)
    random.Random(seed).shuffle(order)
    shuffled = built(tmp_path / "shuffled", order, {0, 3, 5, 7, 9})
    assert marts_differences(at_once.published, shuffled.published) == []
    assert reconcile(shuffled) == []
