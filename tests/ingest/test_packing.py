"""Packs of deliveries: raw says the same with them and without, after a kill at any operation on files, and few folders count."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow.parquet as pq
import pytest

from drivetail.service.maintenance import rebuild_check
from engine.build import build, publish_store
from engine.prune import prune
from engine.warehouse import Warehouse
from ingest import drop_landed, ingest, list_deliveries, release_landed
from ingest.raw import packing
from ingest.raw.store import list_folders, names_in
from tests.ingest.conftest import HOURS_HEADER
from tests.proof.support import marts_differences

OPERATIONS = ((os, ("rename", "replace", "link", "mkdir", "unlink", "rmdir", "fsync")), (pq, ("write_table",)))
OF_THE_CLOCK = ("ingested_at", "rejected_at")


class Killed(BaseException):
    """A process that has died does nothing more."""


@contextmanager
def killed_before(step: int) -> Iterator[None]:
    """Let the process die before its `step`-th operation on files, from 1 on."""
    left = step

    def guarded(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return operation(*arguments, **options)

        return run

    patches = [patch.object(module, name, guarded(getattr(module, name))) for module, names in OPERATIONS for name in names]
    for each in patches:
        each.start()
    try:
        yield
    except Killed:
        pass
    finally:
        for each in patches:
            each.stop()


def delivery(folder: Path, number: int, rng: random.Random) -> Path:
    """An hour of five drives with inventory; now and then a bad row, or other values of an hour that has landed."""
    own = folder / f"{number:03d}"
    own.mkdir(parents=True)
    hours = {number} | ({rng.randrange(number)} if number and rng.random() < 0.4 else set())
    rows = [
        f"{(datetime(2026, 1, 5) + timedelta(hours=5 * hour)).isoformat()},d{drive},g1,{10 + number},5,{100.0 + rng.randrange(50)},50.0"
        for hour in sorted(hours)
        for drive in range(5)
    ]
    bad = [rows[0].replace(",5,", ",-5,")] if rng.random() < 0.3 else []
    (own / "drive_hours.csv").write_text("\n".join([HOURS_HEADER, *rows, *bad]) + "\n")
    drives = [f"d{drive},g1,data,disk,2026-01-{1 + number % 20:02d}" for drive in range(5)]
    (own / "drives.csv").write_text("\n".join(["drive_id,raid_group_id,role,kind,deployed_on", *drives]) + "\n")
    return own


def raw_of(warehouse: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of raw by table, without when it came, and the deliveries."""
    found: dict[str, list[tuple[Any, ...]]] = {
        "deliveries": [(each.seq, each.first_hour, each.last_hour) for each in list_deliveries(warehouse)]
    }
    for folder in list_folders(warehouse):
        for name in names_in(folder.path):
            rows = pl.read_parquet(folder.path / name, glob=False).drop(OF_THE_CLOCK, strict=False)
            found.setdefault(name.partition("/")[0].partition(".")[0], []).extend(rows.rows())
    return {table: sorted(rows, key=repr) for table, rows in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_kills_and_packs_change_no_row_of_raw(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    folders = [delivery(tmp_path / "in", number, rng) for number in range(14)]
    sides = {name: tmp_path / name for name in ("plain", "packed")}
    for folder in folders:
        monkeypatch.setattr(packing, "FOLDERS", 1000)
        ingest("bundle", folder, sides["plain"])
        monkeypatch.setattr(packing, "FOLDERS", rng.choice((2, 3)))
        if rng.random() < 0.7:
            with killed_before(rng.randrange(1, 120)):
                ingest("bundle", folder, sides["packed"])
        ingest("bundle", folder, sides["packed"])
        # what a pack has left may be removed at any time
        if rng.random() < 0.3:
            with killed_before(rng.randrange(1, 20)):
                packing.remove_replaced(sides["packed"], -1)
    assert raw_of(sides["packed"]) == raw_of(sides["plain"])
    assert any(each.level > 1 for each in list_folders(sides["packed"])) and not any(each.level for each in list_folders(sides["plain"]))


def test_a_packed_delivery_is_taken_out_and_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    monkeypatch.setattr(packing, "FOLDERS", 3)
    warehouse = tmp_path / "w"
    for number in range(7):
        ingest("bundle", delivery(tmp_path / "in", number, rng), warehouse)
    before, digests = raw_of(warehouse), {each.seq: each.digest() for each in list_deliveries(warehouse)}
    for number in (1, 5):
        for step in (*range(1, 200, 7), 10_000):
            with killed_before(step):
                drop_landed(warehouse, number, by="me", note="wrong")
        left = raw_of(warehouse)
        assert number not in [seq for seq, *_ in left["deliveries"]] and len(left["deliveries"]) == 6
        assert [each.seq for each in list_deliveries(warehouse, place="dropped")] == [number]
        assert len(left["ingested_files"]) == len(before["ingested_files"]) - 2
        assert release_landed(warehouse, number) and raw_of(warehouse) == before
    assert {each.seq: each.digest() for each in list_deliveries(warehouse)} == digests
    assert not ingest("bundle", tmp_path / "in" / "003", warehouse).delivery_seq, "what is packed has landed"
    assert [each.record()["delivery_seq"] for each in list_deliveries(warehouse)] == list(digests)


def test_few_folders_count_however_many_deliveries_landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "FOLDERS", 3)
    rng = random.Random(6)
    for number in range(30):
        ingest("bundle", delivery(tmp_path / "in", number, rng), tmp_path / "w")
    folders = list_folders(tmp_path / "w")
    assert [number for folder in folders for number in folder.numbers()] == list(range(1, 31))
    assert [(each.seq, each.last_seq, each.level) for each in folders] == [(1, 27, 3), (28, 30, 1)]
    days = {name: sum(name in names_in(each.path) for each in folders) for name in names_in(folders[0].path)}
    assert set(days.values()) <= {1, 2}, "a day has one file in a pack"


@pytest.mark.proof
def test_packs_change_no_mart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    sides = {name: Warehouse(tmp_path / name) for name in ("plain", "packed")}
    for number in range(9):
        folder = delivery(tmp_path / "in", number * 40, rng)
        for name, warehouse in sides.items():
            monkeypatch.setattr(packing, "FOLDERS", 2 if name == "packed" else 1000)
            ingest("bundle", folder, warehouse.root)
            if number == 5:
                build(warehouse)
    for warehouse in sides.values():
        publish_store(warehouse)  # seven to nine wait, in packs or not
        assert all(rebuild_check(warehouse, day)[1] == [] for day in (date(2026, 1, 5), date(2026, 2, 7)))
    assert marts_differences(sides["plain"].published, sides["packed"].published) == []
    for warehouse in sides.values():
        drop_landed(warehouse.root, 8, by="me", note="wrong")
        build(warehouse)
    assert marts_differences(sides["plain"].published, sides["packed"].published) == []
    for warehouse in sides.values():
        assert prune(warehouse, 35).raw_row_count
        assert release_landed(warehouse.root, 8)
        build(warehouse)
    assert marts_differences(sides["plain"].published, sides["packed"].published) == []
