"""The checks find what is wrong, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pytest

from drivetail.ask.export import export
from drivetail.service.maintenance import check_sums, expire, rebuild_check, reconcile
from engine.build import Build, build
from engine.compiled import models_of
from engine.errors import ModelError, RetryableError
from engine.opening import drop_build_database
from engine.warehouse import Warehouse
from ingest import ingest, list_deliveries
from simulate import simulate
from tests.proof.support import asked, marts_differences

pytestmark = pytest.mark.xdist_group("maintenance")


@pytest.fixture(scope="module")
def hourly(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Hours 20 and 21 of a day, 23 with the first hour of the next, and a late correction of 21; a build each."""
    folder = tmp_path_factory.mktemp("maintenance")
    fleet = folder / "fleet"
    simulate(fleet, disk_groups=1, ssd_groups=1, hours=25, seed=5)
    rows = pl.concat([pl.read_parquet(path) for path in sorted(fleet.glob("drive_hours*"))])
    start = rows["hour_utc"].min()
    warehouse = Warehouse(folder / "warehouse")
    pieces = [
        rows.filter(pl.col("hour_utc") == start + timedelta(hours=20)),
        rows.filter(pl.col("hour_utc") == start + timedelta(hours=21)),
        rows.filter(pl.col("hour_utc") >= start + timedelta(hours=23)),
        rows.filter(pl.col("hour_utc") == start + timedelta(hours=21)).with_columns(
            pl.col("read_latency_us") * 2, collected_at=pl.lit(start + timedelta(days=2))
        ),
    ]
    for number, piece in enumerate(pieces):
        delivery = folder / f"delivery-{number}"
        delivery.mkdir()
        piece.write_parquet(delivery / "drive_hours.parquet")
        if not number:
            for path in fleet.glob("drives*"):
                shutil.copy(path, delivery)
        ingest("bundle", [delivery], warehouse.root)
        build(warehouse)
    return warehouse


@contextmanager
def restored(*paths: Path) -> Iterator[None]:
    contents = [path.read_bytes() for path in paths]
    try:
        yield
    finally:
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)


def test_expiry_leaves_one_file_of_a_day_and_changes_no_number(hourly: Warehouse, tmp_path: Path):
    """Day one was computed by each build; a reader of an earlier publication keeps its files until that goes."""
    before, after = tmp_path / "before.duckdb", tmp_path / "after.duckdb"
    export(hourly, before)
    assert expire(hourly) == 0  # replaced a moment ago
    files = sorted(hourly.store.glob("int_drive_hours/*/*.parquet"))
    published = len(list(hourly.publications.glob("*.duckdb")))
    assert published == 4
    for path in hourly.publications.glob("*.duckdb"):
        os.utime(path, (0, 0))
    assert expire(hourly) == published - 1
    left = sorted(hourly.store.glob("int_drive_hours/*/*.parquet"))
    assert len(files) > len(left) == 2 == len({path.parent for path in left})
    export(hourly, after)
    assert marts_differences(before, after) == []


def test_each_day_of_a_fleet_that_delivers_by_day_is_rebuilt_as_published(tmp_path: Path) -> None:
    """The first delivery holds nothing of the third day, nor of the day before it."""
    simulate(tmp_path / "fleet", disk_groups=1, ssd_groups=0, days=3, seed=5)
    warehouse = Warehouse(tmp_path / "warehouse")
    for file in sorted((tmp_path / "fleet").glob("drive_hours*")):
        ingest("bundle", [file], warehouse.root)
    build(warehouse)
    days = [date(2026, 1, day) for day in (5, 6, 7)]
    assert [rebuild_check(warehouse, day) for day in days] == [(day, []) for day in days]


def test_a_failed_build_is_reported_and_its_sums_are_not_checked(
    hourly: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deliveries that wait for their build break no law, and neither does half a build. Planning is whole again."""
    rows = pl.read_parquet(next(tmp_path.parent.glob("maintenance*/delivery-1/drive_hours.parquet")))
    rows.with_columns(pl.col("hour_utc") + timedelta(hours=1), collected_at=None).write_parquet(tmp_path / "drive_hours.parquet")
    ingest("bundle", [tmp_path], hourly.root)
    check_sums(hourly)
    (landed,) = list_deliveries(hourly.root)[-1].path.glob("drive_hours/*.parquet")
    whole = landed.read_bytes()
    left_off = []

    def close(self: Build, *_: object) -> None:
        left_off.append(self.connection.execute("select current_setting('disabled_optimizers')").fetchall())
        self.connection.close()

    with monkeypatch.context() as patched:
        patched.setattr(Build, "__exit__", close)
        # its footer is whole: it is found when a stored model reads its rows
        landed.write_bytes(whole[:4] + bytes(len(whole) // 3) + whole[4 + len(whole) // 3 :])
        with pytest.raises(ModelError, match="cannot be read"):
            build(hourly)
        landed.write_bytes(whole)
    assert left_off == [[("",)]]
    with pytest.raises(RetryableError, match="the last build has not finished, so nothing was compared; run `drivetail build`"):
        check_sums(hourly)
    build(hourly)
    check_sums(hourly)


def test_days_that_follow_each_other_are_read_as_one_range(hourly: Warehouse) -> None:
    first, second, third = (date(2026, 1, number) for number in (5, 6, 8))
    with hourly.only_builder(), Build(hourly) as made:
        for days, ranges in (([second, first], 1), ([first, third], 2)):
            made.executor.show_raw(made.files, days)
            query = "select sql from duckdb_views() where schema_name = 'raw' and view_name = 'drive_hours'"
            ((text,),) = made.connection.execute(query).fetchall()
            assert text.count("hour_utc >=") == ranges, text
        made.executor.show_raw(made.files)


def test_a_day_that_vanished_breaks_a_law(hourly: Warehouse) -> None:
    """Every stored model has lost the newest day, so that they agree with each other."""
    _, day = newest_drive_hours(hourly)
    with duckdb.connect(str(hourly.build_database)) as connection:
        connection.execute("create table kept_files as select * from plan.files")
        connection.execute("delete from plan.files where day_utc = ?", [day])
    try:
        with pytest.raises(
            ModelError, match=f"test assert_accepted_drive_hours_are_measured_or_left_out of .*: 1 row breaks it: day_utc {day}"
        ):
            check_sums(hourly)
    finally:
        with duckdb.connect(str(hourly.build_database)) as connection:
            connection.execute("create or replace table plan.files as select * from kept_files; drop table kept_files")
    check_sums(hourly)


def test_a_law_that_does_not_hold_is_named(hourly: Warehouse) -> None:
    """The stored latencies of a day, and so its slowdowns, are moved by a hundredth."""
    check_sums(hourly)
    path, _ = newest_drive_hours(hourly)
    broken = r"^test assert_raid_hour_median_slowdown_is_one of .*: [0-9,]+ rows break it, such as: .*hour_utc"
    with restored(path):
        pl.read_parquet(path).with_columns(latency_us=pl.col("latency_us") * 1.01).write_parquet(path)
        with pytest.raises(ModelError, match=broken):
            check_sums(hourly)
    check_sums(hourly)


def test_no_law_holds_where_there_is_nothing_to_hold_it_against(hourly: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("engine.projects.models_of", lambda *which: replace(models_of(*which), tests=[]))
        with pytest.raises(ModelError, match=r"tests: holds no assert_\*\.sql"):
            check_sums(hourly)
    kept = hourly.build / "kept.duckdb"
    hourly.build_database.rename(kept)
    try:
        with pytest.raises(ModelError, match=r"build\.duckdb: holds no RAID-hour, though some are published; run `drivetail build`"):
            check_sums(hourly)
    finally:
        drop_build_database(hourly)
        kept.rename(hourly.build_database)


def newest_drive_hours(warehouse: Warehouse) -> tuple[Path, date]:
    query = "select file, day_utc from plan.files where model = 'int_drive_hours' order by day_utc desc limit 1"
    ((file, day),) = asked(warehouse.build_database, query)
    return warehouse.store / file, day


def test_stored_file_that_lost_a_row_is_found(hourly: Warehouse):
    path, day = newest_drive_hours(hourly)
    with restored(path):
        pl.read_parquet(path).head(-1).write_parquet(path)
        (told, *_) = reconcile(hourly)
        assert str(day) in told and "are stored; run `drivetail build --full-refresh`" in told
        assert len(rebuild_check(hourly, day)[1]) == 1


@pytest.mark.parametrize("column", ["io_bytes", "latency_us"])
def test_stored_value_that_changed_is_found_by_comparing_with_raw(hourly: Warehouse, column: str) -> None:
    """One value of one drive-hour; every count is as it was."""
    said: list[str] = []
    assert reconcile(hourly, said.append) == []
    assert "Raw and store agree: " in said[0] and " of 2 days, by a sum over what they measured" in said[0]
    path, day = newest_drive_hours(hourly)
    changed = pl.when(pl.int_range(pl.len()) == 3).then(pl.col(column) + 1).otherwise(pl.col(column))
    with restored(path):
        pl.read_parquet(path).with_columns(changed).write_parquet(path)
        of_day, of_file = reconcile(hourly, said.append)
        assert str(day) in of_day and "have other values than raw" in of_day
        assert of_file.startswith(f"{path}: its values have changed")
        assert said[-2].startswith("Raw and store differ on 1 day")
    assert reconcile(hourly) == []


def test_two_days_of_a_stored_model_that_changed_places_are_found(hourly: Warehouse) -> None:
    """RAID-hours are computed, so raw has none: their files are compared with what they were the night before."""
    assert reconcile(hourly) == []
    files = asked(hourly.build_database, "select file from plan.files where model = 'int_raid_hours' order by file")
    first, second = (hourly.store / file for (file,) in files)
    with restored(first, second):
        contents = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(contents)
        assert [line.split(": ")[0] for line in reconcile(hourly)] == [str(first), str(second)]
    assert reconcile(hourly) == []
