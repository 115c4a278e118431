"""The publication of an hour is quick: relations that look at whole days follow in a later one."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import duckdb
import polars as pl
import pytest

from drivetail.service.maintenance import check_sums
from engine.build import build, built, publish_store
from engine.compiled import models_of
from engine.nodes import EACH_BUILD, WITH_INVENTORY
from engine.opening import drop_build_database
from engine.read import published_files
from engine.warehouse import Warehouse
from ingest import ingest
from report import due_weeks, write_report
from simulate import simulate
from tests.golden import copied, golden
from tests.proof.support import marts_differences

SUNDAY = datetime(2026, 1, 11)


def deliver(warehouse: Warehouse, folder: Path, rows: pl.DataFrame) -> None:
    folder.mkdir()
    rows.write_parquet(folder / "drive_hours.parquet")
    ingest("bundle", [folder], warehouse.root)


def as_of(warehouse: Warehouse) -> list[datetime]:
    """The hours as of which a relation of each build and one of each day were made, as their comments have it."""
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        query = "select regexp_extract(comment, 'As of (.*), UTC', 1)::timestamp from duckdb_tables() where table_name = ?"
        return [connection.execute(query, [name]).fetchall()[0][0] for name in ("dim_drives", "fct_drive_slowness")]


@pytest.fixture
def week(tmp_path: Path) -> tuple[Warehouse, pl.DataFrame]:
    """A warehouse with a week but for its last hour, and the rows of that hour and the next."""
    made = golden("week", build_week)
    return copied(Warehouse(made / "warehouse"), tmp_path / "warehouse"), pl.read_parquet(made / "rows.parquet")


def build_week(root: Path) -> None:
    fleet = root / "fleet"
    simulate(fleet, disk_groups=1, ssd_groups=1, hours=7 * 24 + 1, seed=5)
    rows = pl.concat([pl.read_parquet(path) for path in sorted(fleet.glob("drive_hours*"))])
    # slow in the last hour and the next: sums of what is made each build differ then from those of each day
    is_slow = (pl.col("drive_id") == rows["drive_id"][0]) & (pl.col("hour_utc") >= SUNDAY + timedelta(hours=22))
    rows = rows.with_columns(
        pl.when(is_slow).then(pl.col(name) * 9).otherwise(pl.col(name)) for name in ("read_latency_us", "write_latency_us")
    )
    for path in fleet.glob("drive_hours*"):
        path.unlink()
    warehouse = Warehouse(root / "warehouse")
    last = SUNDAY + timedelta(hours=23)
    rows.filter(pl.col("hour_utc") < last).write_parquet(fleet / "drive_hours.parquet")
    ingest("bundle", [fleet], warehouse.root)
    build(warehouse)
    rows.filter(pl.col("hour_utc") >= last).write_parquet(root / "rows.parquet")


def test_relations_of_each_day_are_left_to_the_next_build_and_made_by_it(week: tuple[Warehouse, pl.DataFrame], tmp_path: Path) -> None:
    warehouse, rows = week
    last = SUNDAY + timedelta(hours=23)
    deliver(warehouse, tmp_path / "last", rows.filter(pl.col("hour_utc") == last))
    first = build(warehouse, daily=False).publication
    assert as_of(warehouse) == [last, last - timedelta(hours=1)]
    assert built(warehouse) is None and due_weeks(warehouse) == []
    assert 'last-delivery" content="0"' in write_report(warehouse, week="2026-W02").read_text(encoding="utf-8"), "it is due again"
    check_sums(warehouse)
    assert build(warehouse, daily=False).publication == first, "it is left for as long as that is said"

    deliver(warehouse, tmp_path / "next", rows.filter(pl.col("hour_utc") > last))
    build(warehouse, daily=False)
    assert as_of(warehouse) == [last + timedelta(hours=1), last - timedelta(hours=1)]
    made = build(warehouse).publication
    assert built(warehouse) == made == build(warehouse).publication and due_weeks(warehouse) == ["2026-W02"]

    twin = Warehouse(tmp_path / "twin")
    shutil.copytree(warehouse.raw, twin.raw)
    build(twin)
    assert marts_differences(warehouse.published, twin.published) == []


@pytest.mark.proof
def test_labels_are_remembered_until_the_relations_of_each_day_are_made(week: tuple[Warehouse, pl.DataFrame], tmp_path: Path) -> None:
    warehouse, rows = week
    labels = tmp_path / "labels.csv"
    labels.write_text(f"drive_id,verdict,labelled_on\n{rows['drive_id'][0]},slow,2026-01-12\n")
    ingest("labels", [labels], warehouse.root)
    build(warehouse, daily=False)
    assert built(warehouse) is None
    build(warehouse)
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        assert connection.execute("select count(*) from report.detector_scores").fetchall() != [(0,)]


@pytest.mark.proof
def test_a_command_that_publishes_makes_what_was_left(week: tuple[Warehouse, pl.DataFrame], tmp_path: Path) -> None:
    warehouse, rows = week
    deliver(warehouse, tmp_path / "last", rows.filter(pl.col("hour_utc") < SUNDAY + timedelta(days=1)))
    build(warehouse, daily=False)
    publish_store(warehouse)
    assert built(warehouse) is not None and as_of(warehouse)[1] == SUNDAY + timedelta(hours=23)


def test_relations_made_in_parts_or_by_the_week_equal_the_whole(
    week: tuple[Warehouse, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, rows = week
    for days in (0, 7, 14, 28, 35, 42):  # a group is slow in the fifth week after, and a week is missing in its past
        times = [pl.col(name) + timedelta(days=days) for name in ("hour_utc", "collected_at")]
        slower = [pl.col(name) * (9 if days == 35 else 1) for name in ("read_latency_us", "write_latency_us")]
        deliver(warehouse, tmp_path / str(days), rows.with_columns(times + slower))
    whole = build(warehouse, daily=True).publication
    monkeypatch.setattr("engine.execute.DRIVES_OF_A_PART", 3)
    twin = Warehouse(tmp_path / "twin")
    shutil.copytree(warehouse.raw, twin.raw)
    in_parts = build(twin).publication
    with duckdb.connect(str(in_parts.path), read_only=True) as connection:
        query = "select distinct past_week_count from report.fct_slow_group_hours where is_above_usual"
        assert connection.execute(query).fetchall() == [(3,)]
    by_week = [node.relation for node in models_of() if node.week_column]
    assert marts_differences(whole.path, in_parts.path, only=["marts.fct_drive_slowness", *by_week]) == []


def test_builds_read_a_copy_of_a_month_until_one_of_its_days_changes(
    week: tuple[Warehouse, pl.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, rows = week
    sunday = rows.filter(pl.col("hour_utc") < SUNDAY + timedelta(days=1))
    in_february = [pl.col(name) + timedelta(days=28) for name in ("hour_utc", "collected_at")]
    deliver(warehouse, tmp_path / "february", sunday.with_columns(in_february))
    build(warehouse)
    copies = set((warehouse.build / "months").iterdir())
    assert {path.name.split(".")[1] for path in copies} == {"2026-01"}
    deliver(warehouse, tmp_path / "late", sunday)
    in_parts = build(warehouse, daily=False).publication
    assert not any("months/" in path.read_text() for path in warehouse.publications.glob("*.json")), (
        "publications read days, not copies of months"
    )
    shutil.rmtree(warehouse.build / "months")
    assert build(warehouse).is_new
    assert {path.name for path in copies}.isdisjoint(path.name for path in (warehouse.build / "months").iterdir())
    monkeypatch.setattr("engine.execute.SMALL_MONTH_BYTES", 0)
    twin = Warehouse(tmp_path / "twin")
    shutil.copytree(warehouse.raw, twin.raw)
    whole = build(twin).publication
    assert list((twin.build / "months").iterdir()) == []
    made_again = [node.relation for node in models_of().made(EACH_BUILD) if node.schema == "marts"]
    assert marts_differences(in_parts.path, whole.path, only=made_again) == []
    assert marts_differences(warehouse.published, whole.path) == []


def test_files_of_publications_that_go_are_removed_each_hour(week: tuple[Warehouse, pl.DataFrame], tmp_path: Path) -> None:
    warehouse, rows = week
    number = iter(range(100))

    def publish(hours: pl.Expr, daily: bool = False) -> set[Path]:
        """The files that the next publication shows."""
        deliver(warehouse, tmp_path / str(next(number)), rows.filter(hours))
        publication = build(warehouse, daily=daily).publication
        os.utime(publication.path, (0, 0))  # when the one before was replaced
        return set(published_files(warehouse, publication.publication_id))

    first = publish(pl.col("hour_utc") < SUNDAY + timedelta(days=1))
    rows = rows.with_columns(pl.col("read_latency_us") * 2, pl.col("collected_at") + timedelta(hours=1))
    again = publish(pl.col("hour_utc") < SUNDAY + timedelta(days=1))
    left = min(again).with_name("000999.0.parquet")  # by a build that was killed
    shutil.copyfile(min(again), left)
    publish(pl.col("hour_utc") >= SUNDAY + timedelta(days=1))
    assert first - again
    assert not [path for path in first - again if path.exists()]
    assert left.exists()
    drop_build_database(warehouse)
    made_again = publish(pl.col("hour_utc") >= SUNDAY + timedelta(days=1), daily=True)
    assert {path.name[:6] for path in made_again} <= {"001000", "001001"} and not left.exists()


def test_a_copy_of_a_warehouse_leaves_the_files_of_the_original(week: tuple[Warehouse, pl.DataFrame], tmp_path: Path) -> None:
    warehouse, rows = week
    copy = Warehouse(tmp_path / "copy")
    shutil.copytree(warehouse.root, copy.root)
    files = sorted(warehouse.store.rglob("*.parquet"))
    os.utime(build(copy).publication.path, (0, 0))
    deliver(copy, tmp_path / "hour", rows.filter(pl.col("hour_utc") < SUNDAY + timedelta(days=1)))
    build(copy, daily=False)
    assert len(list(copy.publications.glob("*.duckdb"))) == 2  # that of the other place is gone
    assert sorted(warehouse.store.rglob("*.parquet")) == files


def test_a_name_passes_in_hours_that_arrive_one_by_one_as_in_a_whole_day(tmp_path: Path) -> None:
    """Two looks come first. Between them one host's device is unmeasured at no time, the other's for half an hour."""
    noon = int(datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp())
    gaps = {"h1": range(0), "h2": range(noon + 4500, noon + 6300)}
    warehouse = Warehouse(tmp_path / "warehouse")

    def land(source: str, texts: dict[str, str]) -> None:
        folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        for host, text in texts.items():
            (folder / host).mkdir(parents=True)
            (folder / host / f"{source}.json").write_text(text)
        ingest(source, [folder], warehouse.root)

    for at, number in ((noon + 600, 1), (noon + 9600, 2)):
        disk = {"name": "sda", "type": "disk", "model": "M", "size": 10**12}
        land("lsblk", {host: json.dumps({"TS": at, "blockdevices": [disk | {"serial": f"{host}-{number}"}]}) for host in gaps})
    for hour in range(4):
        begin = noon + 3600 * hour
        looks = {host: [at for at in range(begin, begin + 3601, 300) if at not in gap] for host, gap in gaps.items()}
        line = "TS {0}\n 8 0 sda {1} 0 8 {1} 0 0 0 0 0 0 0\n"
        land("diskstats", {host: "".join(line.format(at, at - noon) for at in found) for host, found in looks.items()})
        build(warehouse, daily=False)
    build(warehouse)
    twin = Warehouse(tmp_path / "twin")
    shutil.copytree(warehouse.raw, twin.raw)
    assert marts_differences(warehouse.published, build(twin).publication.path) == []
    with duckdb.connect(str(warehouse.published), read_only=True) as connection:
        query = "select distinct drive_id from intermediate.int_drive_hours__identified order by all"
        named = [drive for (drive,) in connection.execute(query).fetchall()]
    assert named == ["h1-2", "h2-1", "h2-2"]


def test_hours_that_arrive_are_added_to_their_day_until_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet, monday = tmp_path / "fleet", datetime(2026, 1, 5)
    simulate(fleet, disk_groups=2, ssd_groups=1, hours=49, seed=5)
    rows = pl.concat([pl.read_parquet(path) for path in sorted(fleet.glob("drive_hours*"))])
    for path in fleet.glob("drive_hours*"):
        path.unlink()
    hour = (pl.col("hour_utc") - monday).dt.total_hours()
    slow, late, new, gone, *_ = rows["drive_id"].unique(maintain_order=True)
    # slow over midnight and over what is added; one begins and one ends within the second day
    is_slow = (pl.col("drive_id") == slow) & hour.is_between(22, 30)
    rows = rows.with_columns(
        pl.when(is_slow).then(pl.col(name) * 9).otherwise(pl.col(name)) for name in ("read_latency_us", "write_latency_us")
    ).filter(~((pl.col("drive_id") == new) & hour.is_between(24, 26)) & ~((pl.col("drive_id") == gone) & hour.is_between(27, 47)))
    is_late = (pl.col("drive_id") == late) & (hour == 29)
    warehouse = Warehouse(tmp_path / "warehouse")
    ingest("bundle", [fleet], warehouse.root)

    def files_of_tuesday(daily: bool | None = False) -> dict[str, int]:
        found = published_files(warehouse, build(warehouse, daily=daily).publication.publication_id)
        return Counter(path.parts[-3] for path in found if path.parent.name == "day_utc=2026-01-06")

    counts = []
    arrived = [hour < 24, hour == 24, hour == 25, hour.is_between(26, 28), (hour == 29) & ~is_late, (hour == 30) | is_late, hour == 31]
    for number, which in enumerate([*arrived, hour == 32, hour == 33]):
        deliver(warehouse, tmp_path / str(number), rows.filter(which))
        if number == 7:  # a build that does not finish has added the hour, and the next computes the day
            with monkeypatch.context() as patch:
                patch.setattr("engine.build.Build.make_relations", Mock(side_effect=RuntimeError))
                with pytest.raises(RuntimeError):
                    build(warehouse)
        counts.append(files_of_tuesday())
    assert [count["int_drive_hours"] for count in counts] == [0, 1, 2, 3, 4, 1, 2, 1, 2]
    assert all(count["int_drive_days"] == 1 for count in counts[1:]), "days are added up"
    deliver(warehouse, tmp_path / "rest", rows.filter(hour.is_between(34, 47)))
    with monkeypatch.context() as patch:
        patch.setattr("engine.publish.shutil.copyfile", copy := Mock(wraps=shutil.copyfile))
        assert files_of_tuesday()["int_drive_hours"] == 3
        deliver(warehouse, tmp_path / "wednesday", rows.filter(hour > 47))
        assert files_of_tuesday()["int_drive_hours"] == 3
        begun_as_a_copy = build(warehouse, daily=False).publication.path
        assert set(files_of_tuesday(daily=None).values()) == {1}, "the day is over, and one file"
        assert [Path(call.args[1]).name for call in copy.call_args_list].count("draft.duckdb") == 2, "only those of an hour begin as copies"
    made_again = [node.relation for node in models_of().made(EACH_BUILD, WITH_INVENTORY) if node.schema == "marts"]
    assert marts_differences(begun_as_a_copy, warehouse.published, only=made_again) == []
    twin = Warehouse(tmp_path / "twin")
    shutil.copytree(warehouse.raw, twin.raw)
    assert marts_differences(build(warehouse).publication.path, build(twin).publication.path) == []
