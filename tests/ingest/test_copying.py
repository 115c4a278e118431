"""A sound, sorted Parquet file of one UTC day is copied into raw; whatever is not sound is read row by row, with the same result."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from ingest import ingest, list_deliveries
from ingest.contract.fleet import CONTRACT
from ingest.raw.landing import Landing
from ingest.reading.thrift import read_struct, write_struct
from tests.ingest.conftest import Warehouse

DAY = datetime(2026, 1, 5)
GIVEN = [
    "hour_utc", "drive_id", "raid_group_id", "read_ios", "write_ios", "read_latency_us", "write_latency_us", "block_bytes", "coverage",
    "collected_at",
]  # fmt: skip
TABLES = ("rejected_records", "ingested_files", "retired_drive_hours")


def day(seed: int, *, hours: int = 6, drives: int = 12) -> pl.DataFrame:
    """A sound day in order of time: some drives idle, some values null, drives in any order within an hour."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for hour in range(hours):
        for drive in chance.sample(range(drives), drives):
            counts = {side: chance.choice([0, 5, 400, 2**40]) for side in ("read", "write")}
            rows.append({
                "hour_utc": DAY + timedelta(hours=hour),
                "drive_id": f"dé{drive}",
                "raid_group_id": f"g{drive // 6}",
                **{f"{side}_ios": count for side, count in counts.items()},
                **{f"{side}_latency_us": chance.choice([0.0, 0.1, 1e7, 250.0]) if count else None for side, count in counts.items()},
                "block_bytes": chance.choice([512, 4096, None]),
                "coverage": chance.choice([None, 0.0, 0.4, 1.0]),
                "collected_at": DAY + timedelta(hours=hour + 1, microseconds=chance.randrange(10)),
            })  # fmt: skip
    return pl.DataFrame(rows, schema={name: CONTRACT["drive_hours"][name] for name in GIVEN})


def with_first(column: str, value: object, *, row: int = 40) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A frame with one value changed."""

    def change(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row] = value
        return frame.with_columns(pl.Series(column, values, dtype=frame[column].dtype))

    return change


UNSOUND: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "unsorted": lambda frame: frame.reverse(),
    "two hours exchanged in the middle": lambda frame: pl.concat([frame[:12], frame[24:36], frame[12:24], frame[36:]]),
    "a row twice": lambda frame: pl.concat([frame[:20], frame[19:]]),
    "two days": lambda frame: frame.with_columns(pl.col("hour_utc") + timedelta(hours=20)),
    "not on the hour": with_first("hour_utc", DAY + timedelta(hours=3, minutes=1), row=37),
    "an hour missing": with_first("hour_utc", None),
    "a drive missing": with_first("drive_id", None),
    "an empty name": with_first("drive_id", ""),
    "a negative count": with_first("read_ios", -1),
    "a count beyond 2^53": with_first("write_ios", 2**53 + 1),
    "a count of one direction alone": with_first("read_ios", None),
    "a coverage above 1": with_first("coverage", 1.5),
    "a coverage of -0.0": with_first("coverage", -0.0),
    "a coverage of NaN": with_first("coverage", float("nan")),
    "a latency without I/O": lambda frame: with_first("read_latency_us", 3.0)(with_first("read_ios", 0)(frame)),
    "an infinite latency": lambda frame: with_first("read_latency_us", float("inf"))(with_first("read_ios", 1)(frame)),
    "times in nanoseconds": lambda frame: frame.with_columns(pl.col("hour_utc").cast(pl.Datetime("ns"))),
    "times with a zone": lambda frame: frame.with_columns(pl.col("hour_utc").dt.replace_time_zone("UTC")),
    "counts of 32 bits": lambda frame: frame.with_columns(pl.col("block_bytes").cast(pl.Int32)),
    "counts as doubles": lambda frame: frame.with_columns(pl.col("block_bytes").cast(pl.Float64)),
    "coverage as text": lambda frame: frame.with_columns(pl.col("coverage").cast(pl.String)),
    "a further column": lambda frame: frame.with_columns(pl.lit(1).alias("shelf")),
    "a column of raw": lambda frame: frame.with_columns(pl.lit(9).alias("delivery_seq")),
    "a name in capitals": lambda frame: frame.rename({"coverage": "Coverage"}),
    "without a required column": lambda frame: frame.drop("raid_group_id"),
}  # fmt: skip


def landed(path: Path, into: Path, monkeypatch: pytest.MonkeyPatch, *, may_copy: bool = True) -> tuple[Warehouse, bool]:
    """Ingest a file, after another delivery of two of its hours. Returns: the warehouse, and whether the file lies in raw as it came."""
    earlier = path.parent / f"earlier-{path.stem}" / "drive_hours.csv"
    if not earlier.exists():
        earlier.parent.mkdir()
        day(3, hours=2).with_columns(pl.col("collected_at") - timedelta(minutes=1)).write_csv(earlier)
    with monkeypatch.context() as patch:
        if not may_copy:
            patch.setattr(Landing, "copy", lambda *_: False)
        ingest("bundle", [earlier], into)
        ingest("bundle", [path], into)
    stored = list_deliveries(into)[-1].path.glob("drive_hours/*.parquet")
    began = path.read_bytes()[:400]
    return Warehouse(into), any(file.read_bytes().startswith(began) for file in stored)


def content(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """All that raw says, but for when it was."""
    found = {"drive_hours": warehouse.stored(), **{table: warehouse.table(table) for table in TABLES}}
    frames = {table: frame.drop("ingested_at", "rejected_at", strict=False) for table, frame in found.items()}
    # NaN is itself here, and -0.0 not 0.0
    return {table: sorted((tuple(map(repr, row)) for row in frame.iter_rows()), key=repr) for table, frame in frames.items()}


def landed_alike(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, list[tuple[Any, ...]]], bool]:
    """Content of raw with a file in it, which is the same if it may not be copied; and whether it was."""
    found, is_copied = landed(path, path.parent / "warehouse", monkeypatch)
    expected, _ = landed(path, path.parent / "expected", monkeypatch, may_copy=False)
    raw = content(found)
    assert raw == content(expected)
    return raw, is_copied


@pytest.mark.parametrize(
    "options", [{}, {"row_group_size": 500_000, "compression": "snappy", "use_pyarrow": True}], ids=["polars", "pyarrow"]
)
@pytest.mark.parametrize("seed", range(3))
def test_sound_day_is_copied_and_raw_holds_what_it_would_of_csv(
    seed: int, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = day(seed)
    frame.write_parquet(tmp_path / "drive_hours.parquet", **options)
    frame.write_csv(tmp_path / "drive_hours.csv")
    copy, is_copied = landed(tmp_path / "drive_hours.parquet", tmp_path / "copied", monkeypatch)
    read, _ = landed(tmp_path / "drive_hours.csv", tmp_path / "read", monkeypatch)
    assert is_copied
    one, other = content(copy), content(read)
    assert [row[1:] for row in one["drive_hours"]] == [row[1:] for row in other["drive_hours"]]
    assert one["retired_drive_hours"] == other["retired_drive_hours"]
    # another reader than the one that checked it
    query = "select count(*), sum(read_ios), count(latency_us), max(drive_id), sum(row_no) from {} where hour_utc > ?"
    files = [f"read_parquet('{each.path}/raw/deliveries/*/drive_hours/*', union_by_name = true)" for each in (copy, read)]
    totals = [duckdb.execute(query.format(each), [DAY]).fetchall() for each in files]
    assert totals[0] == totals[1]


@pytest.mark.parametrize("fault", UNSOUND)
def test_day_that_is_not_sound_is_read_row_by_row(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    UNSOUND[fault](day(3)).write_parquet(tmp_path / "drive_hours.parquet")
    _, is_copied = landed_alike(tmp_path / "drive_hours.parquet", monkeypatch)
    assert not is_copied


def test_a_day_with_a_superseded_record_is_copied_and_judged_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = day(3)
    pl.concat([frame[:20], with_first("write_ios", 7, row=0)(frame[19:20]), frame[20:]]).write_parquet(tmp_path / "drive_hours.parquet")
    found, is_copied = landed_alike(tmp_path / "drive_hours.parquet", monkeypatch)
    assert is_copied and len(found["retired_drive_hours"]) > 1


def rewritten(path: Path, change: Callable[[dict[int, tuple[int, Any]]], None]) -> None:
    """Change the metadata of each column chunk in a Parquet footer."""
    data = path.read_bytes()
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = read_struct(data[begin:])
    for group in footer[4][1][1]:
        for column in group[1][1][1]:
            change(column[3][1])
    written = write_struct(footer)
    path.write_bytes(data[:begin] + written + len(written).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("column", ["hour_utc", "drive_id", "read_ios", "write_latency_us"])
@pytest.mark.parametrize("lie", ["least value", "greatest value", "nulls", "none at all"])
def test_statistics_that_lie_or_are_not_there_are_not_copied(
    column: str, lie: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "drive_hours.parquet"
    day(3).write_parquet(path)

    def change(metadata: dict[int, tuple[int, Any]]) -> None:
        if metadata[3][1][1] != [column.encode()]:
            return
        statistics = metadata[12][1]
        if lie == "none at all":
            del metadata[12]
        elif lie == "nulls":
            statistics[3] = (6, statistics[3][1] + 1)
        else:
            least, greatest = statistics[6], statistics[5]
            statistics.update({6: greatest} if lie == "least value" else {5: least})

    rewritten(path, change)
    found, is_copied = landed(path, tmp_path / "warehouse", monkeypatch)
    assert not is_copied
    (delivered,) = (row for row in found.table("ingested_files").iter_rows(named=True) if row["file"] == str(path))
    assert delivered["rows_delivered"] == day(3).height


@pytest.mark.parametrize("options", [{"row_group_size": 10}, {"compression": "gzip"}, {"compression": "uncompressed"}], ids=str)
def test_small_row_groups_and_slow_codecs_are_read_row_by_row(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day(3).write_parquet(tmp_path / "drive_hours.parquet", **options)
    assert not landed(tmp_path / "drive_hours.parquet", tmp_path / "warehouse", monkeypatch)[1]


def test_rows_that_a_later_look_drops_leave_a_copied_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.raw.copying.LEAST_GROUP_ROWS", 5)
    monkeypatch.setattr("ingest.raw.staging.CHUNK_ROWS", 25)  # the day is written again in pieces
    monkeypatch.setattr("ingest.run.pruned_before", lambda _: DAY + timedelta(hours=3))
    path = tmp_path / "drive_hours.parquet"
    day(3).write_parquet(path, row_group_size=12)
    found, is_copied = landed_alike(path, monkeypatch)
    assert not is_copied and len(found["drive_hours"]) == day(3).height // 2


@pytest.mark.proof
def test_marts_have_as_many_rows_of_a_copied_day_as_of_an_unsorted_one(tmp_path: Path) -> None:
    frame, counts = day(5, hours=24, drives=18), []
    for name, each in (("copied", frame), ("unsorted", frame.reverse())):
        warehouse = Warehouse(tmp_path / name)
        warehouse.land("bundle", {"drive_hours.parquet": each})
        names = warehouse.built("select table_name from duckdb_tables() where schema_name = 'marts' order by 1")
        counts.append({mart: warehouse.built(f"select count(*) from marts.{mart}") for (mart,) in names})
    assert counts[0] == counts[1]
