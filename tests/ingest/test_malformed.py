"""Whatever a delivery holds, the call ends in a clear word and the good rows are kept; never in a traceback."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from ingest import IngestError, ingest
from ingest.raw import arrivals
from ingest.reading.thrift import BINARY, LIST, STRUCT, read_struct, write_struct
from ingest.sources import smartctl
from tests.ingest.conftest import GOOD_ROW, HOURS_HEADER, Warehouse, counts, csv_text

# One bad row beside a good one: the message about it, and that the good one stands.
BAD_ROWS = {
    "null drive_id": ("2026-01-05T10:00:00Z,,g1,10,5,1,1", "drive_id", "null", None),
    "null raid_group_id": ("2026-01-05T10:00:00Z,d2,,10,5,1,1", "raid_group_id", "null", None),
    "null hour": (",d2,g1,10,5,1,1", "hour_utc", "null", None),
    "unreadable hour": ("yesterday,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "yesterday"),
    "unknown zone": ("2026-01-05T10:00:00 Mars/Olympus,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "2026-01-05T10:00:00 Mars/Olympus"),
    "impossible offset": ("2026-01-05T10:00:00+99:00,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "2026-01-05T10:00:00+99:00"),
    "no such day": ("2026-02-30T10:00:00Z,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "2026-02-30T10:00:00Z"),
    "24 o'clock": ("2026-01-05T24:00:00Z,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "2026-01-05T24:00:00Z"),
    "epoch seconds": ("1767607200,d2,g1,10,5,1,1", "hour_utc", "not a timestamp", "1767607200"),
    "not on the hour": ("2026-01-05T10:30:00Z,d2,g1,10,5,1,1", "hour_utc", "not on the hour", "2026-01-05T10:30:00Z"),
    "a microsecond off": ("2026-01-05T10:00:00.000001Z,d2,g1,10,5,1,1", "hour_utc", "not on the hour", "2026-01-05T10:00:00.000001Z"),
    "half-hour offset": ("2026-01-05T10:00:00+05:30,d2,g1,10,5,1,1", "hour_utc", "not on the hour", "2026-01-05T10:00:00+05:30"),
    "negative latency": ("2026-01-05T10:00:00Z,d2,g1,10,5,-1.5,1", "read_latency_us", "negative", "-1.5"),
    "infinite latency": ("2026-01-05T10:00:00Z,d2,g1,10,5,1,inf", "write_latency_us", "infinite", "inf"),
    "minus infinite latency": ("2026-01-05T10:00:00Z,d2,g1,10,5,1,-Infinity", "write_latency_us", "infinite", "-Infinity"),
    "NaN latency": ("2026-01-05T10:00:00Z,d2,g1,10,5,NaN,1", "read_latency_us", "NaN", "NaN"),
    "overflowing latency": ("2026-01-05T10:00:00Z,d2,g1,10,5,1e999,1", "read_latency_us", "infinite", "1e999"),
    "null latency with I/Os": ("2026-01-05T10:00:00Z,d2,g1,10,5,,1", "read_latency_us", "null", None),
    "latency is a word": ("2026-01-05T10:00:00Z,d2,g1,10,5,fast,1", "read_latency_us", "not a number", "fast"),
    "negative count": ("2026-01-05T10:00:00Z,d2,g1,-1,5,1,1", "read_ios", "negative", "-1"),
    "fractional count": ("2026-01-05T10:00:00Z,d2,g1,10,5.5,1,1", "write_ios", "not an integer", "5.5"),
    "count beyond 64 bits": ("2026-01-05T10:00:00Z,d2,g1,99999999999999999999,5,1,1", "read_ios", "not an integer", "99999999999999999999"),
    "count is hex": ("2026-01-05T10:00:00Z,d2,g1,0x10,5,1,1", "read_ios", "not an integer", "0x10"),
    "read count null": ("2026-01-05T10:00:00Z,d2,g1,,5,1,1", "read_ios", "null where write_ios", None),
    "write count null": ("2026-01-05T10:00:00Z,d2,g1,5,,1,1", "write_ios", "null where read_ios", None),
    "too few fields": ("2026-01-05T10:00:00Z,d2,g1", None, "3 fields, expected 7", "2026-01-05T10:00:00Z,d2,g1"),
    "too many fields": ("2026-01-05T10:00:00Z,d2,g1,10,5,1,1,1,1", None, "9 fields, expected 7", "2026-01-05T10:00:00Z,d2,g1,10,5,1,1,1,1"),
    "open quote": ('2026-01-05T10:00:00Z,"d2,g1,10,5,1,1', None, "quote", '2026-01-05T10:00:00Z,"d2,g1,10,5,1,1'),
    "swapped columns": ("d2,2026-01-05T10:00:00Z,g1,10,5,1,1", "hour_utc", "not a timestamp", "d2"),
    "first failing column": ("2026-01-05T10:00:00Z,d2,g1,x,-5,NaN,inf", "read_ios", "not an integer", "x"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_a_bad_row_is_rejected_and_its_neighbours_stand(case: str, warehouse: Warehouse) -> None:
    row, column, reason, value = BAD_ROWS[case]
    summary = warehouse.land("bundle", {"drive_hours.csv": csv_text(GOOD_ROW, row, GOOD_ROW.replace("d1", "d3"))})
    assert counts(summary) == (3, 2, 1, 0, 0)
    ((*where, said),) = warehouse.rejected("row column value reason")
    assert where == [2, column, value] and reason in said
    assert warehouse.rows("drive_hours", "drive_id row_no") == [("d1", 1), ("d3", 3)]


OTHER_COLUMNS = {
    "coverage above 1": ({"coverage": 1.5}, "coverage"),
    "coverage NaN": ({"coverage": float("nan")}, "coverage"),
    "coverage below 0": ({"coverage": -0.1}, "coverage"),
    "blocks of one direction": ({"read_blocks": 5}, "write_blocks"),
    "negative blocks": ({"read_blocks": -5, "write_blocks": 1}, "read_blocks"),
    "negative bytes": ({"bytes": -1}, "bytes"),
    "negative block size": ({"block_bytes": -1}, "block_bytes"),
    "unreadable collected_at": ({"collected_at": "soon"}, "collected_at"),
    "merged latency null": ({"io_count": 3, "read_ios": None, "write_ios": None}, "latency_us"),
    "merged latency NaN": ({"latency_us": float("nan"), "read_ios": None, "write_ios": None}, "latency_us"),
    "merged latency negative": ({"latency_us": -1.0, "read_ios": None, "write_ios": None}, "latency_us"),
    "merged count negative": ({"io_count": -3, "latency_us": 1.0}, "io_count"),
}


@pytest.mark.parametrize("case", OTHER_COLUMNS)
def test_other_columns_are_checked_in_parquet_too(case: str, warehouse: Warehouse) -> None:
    changed, column = OTHER_COLUMNS[case]
    row = dict(hour_utc=datetime(2026, 1, 5, 10), drive_id="d1", raid_group_id="g1", read_ios=1, write_ios=0, read_latency_us=5.0)
    warehouse.land("bundle", {"drive_hours.parquet": pl.DataFrame([{**row, "write_latency_us": None, **changed}])})
    assert warehouse.rejected("row column") == [(1, column)]
    assert not warehouse.live().height


def test_an_idle_direction_may_hold_anything(warehouse: Warehouse) -> None:
    rows = [f"2026-01-05T10:00:00Z,d{n},g1,10,0,1,{junk}" for n, junk in enumerate(["-1", "NaN", "inf", "", "junk", "7"])]
    assert warehouse.land("bundle", {"drive_hours.csv": csv_text(*rows)}).rows_accepted == 6
    assert warehouse.live()["write_latency_us"].null_count() == 6


def test_merged_latency_where_the_split_is_not_given(warehouse: Warehouse) -> None:
    rows = ["2026-01-05T10,d1,g1,7.5,3", "2026-01-05T10,d2,g1,junk,0", "2026-01-05T10,d3,g1,,", "2026-01-05T10,d4,g1,7.5,"]
    warehouse.land("bundle", {"drive_hours.csv": csv_text(*rows, header="hour_utc,drive_id,raid_group_id,latency_us,io_count")})
    assert warehouse.rows("drive_hours", "drive_id latency_us io_count") == [
        ("d1", 7.5, 3), ("d2", None, 0), ("d3", None, None), ("d4", 7.5, None),
    ]  # fmt: skip


def test_timestamps_with_an_offset_are_converted(warehouse: Warehouse) -> None:
    same = ["10:00:00Z", "12:00:00+02:00", "12:00:00.000+0200", "05:00:00-05"]
    rows = [f"2026-01-05T{text},d{n},g1,10,5,1,1" for n, text in enumerate(same)]
    warehouse.land("bundle", {"drive_hours.csv": csv_text("2026-01-05 10:00:00,d9,g1,10,5,1,1", *rows)})
    assert warehouse.live()["hour_utc"].to_list() == [datetime(2026, 1, 5, 10)] * 5


def parquet_of(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def int96_of(table: pa.Table) -> bytes:
    """As older Spark, Hive and Impala write times."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, use_deprecated_int96_timestamps=True)
    return buffer.getvalue()


PERIODS = {
    "drives, no length": ("bundle", "drives.csv", "drive_id,raid_group_id,valid_from,valid_to", "p{},g,2026-02-03T04:05,2026-02-03T04:05"),
    "drives, backwards": ("bundle", "drives.csv", "drive_id,raid_group_id,valid_from,valid_to", "p{},g,2026-02-03,2026-02-02T23:59:59"),
    "events": ("bundle", "drive_events.csv", "drive_id,event_type,occurred_at,ended_at", "p{},rebuild,2026-02-03T04:00,2026-02-03T03:59"),
    "mapping": ("mapping", "map.csv", "host,device,slot,valid_from,valid_to", "h1,sd{},7,2026-02-03,2026-02-03"),
    "tickets": ("tickets", "t.csv", "serial,opened_at,closed_at", "p{},2026-02-03,2026-01-03"),
}


@pytest.mark.parametrize("case", PERIODS)
def test_a_period_that_does_not_last_is_refused(case: str, warehouse: Warehouse) -> None:
    source, name, header, row = PERIODS[case]
    *rest, _ = row.format("b").split(",")
    good = ",".join([*rest, "2026-02-04"])
    assert counts(warehouse.land(source, {name: csv_text(good, row.format("a"), header=header)})) == (2, 1, 1, 0, 0)
    ((file, number, column, value, reason),) = warehouse.rejected("file row column value reason")
    assert (file.endswith(name), number, value) == (True, 2, row.split(",")[-1])
    assert column == ("ended_at" if source == "tickets" or "events" in name else "valid_to") and "correct it, or leave it empty" in reason


def test_an_event_may_end_as_it_happens(warehouse: Warehouse) -> None:
    rows = csv_text("p1,scrub,2026-02-03T04:00,2026-02-03T04:00", header="drive_id,event_type,occurred_at,ended_at")
    assert warehouse.land("bundle", {"drive_events.csv": rows}).rows_accepted == 1


LAST = datetime(9999, 12, 31)
ENDS = ["9999-12-31", " 9999-12-31T00:00:00+02:00", "9999-12-31T23:59:59.999999", "9999-12-31 23:59:59-05:00", "infinity"]


@pytest.mark.parametrize("form", ["csv", "ndjson", "us", "us in the east", "ms", "s", "date32", "int96", "infinity", "mapping"])
def test_the_last_day_that_can_be_written_is_no_end(form: str, warehouse: Warehouse) -> None:
    """2999 is a date like others: only the last day, at any time of it, stands for ever."""
    ends: Any = [*ENDS, "2999-12-31"]
    if form in ("us", "us in the east", "ms", "s", "date32", "int96", "infinity"):
        kind = pa.date32() if form == "date32" else pa.timestamp(form if form in ("ms", "s") else "us")
        last = [LAST] if form in ("date32", "s") else [LAST, LAST.replace(hour=23, minute=59, second=59, microsecond=999_000)]
        ends = pa.array([*last, datetime(2999, 12, 31)], kind)
        if form == "infinity":  # of DuckDB
            ends = pa.array([2**63 - 1, 32_503_593_600_000_000], pa.int64()).cast(kind)
        if form == "us in the east":
            ends = pa.array([253_402_178_400_000_000, 32_503_593_600_000_000], pa.int64()).cast(pa.timestamp("us", "+10:00"))
    count = len(ends)
    names = [f"e{number}" for number in range(count)]
    if isinstance(ends, list):
        rows = [{"drive_id": name, "raid_group_id": "g", "valid_to": end} for name, end in zip(names, ends, strict=True)]
        lines = csv_text(*(",".join(row.values()) for row in rows), header=",".join(rows[0]))
        content, suffix = ("\n".join(map(json.dumps, rows)), "ndjson") if form == "ndjson" else (lines, "csv")
    else:
        table = pa.table({"drive_id": names, "raid_group_id": ["g"] * count, "valid_to": ends})
        content, suffix = (int96_of if form == "int96" else parquet_of)(table), "parquet"
    warehouse.land("mapping" if form == "mapping" else "bundle", {f"drives.{suffix}": content})
    assert warehouse.rejected("row reason") == []
    assert [end for _, end in warehouse.rows("drives", "drive_id valid_to")] == [None] * (count - 1) + [datetime(2999, 12, 31)]


@pytest.mark.parametrize("form", ["int96", "ms", "us", "date32"])
def test_a_time_beyond_all_calendars_costs_its_row(form: str, warehouse: Warehouse) -> None:
    """No overflow makes another year of it, and what can be read keeps its year."""
    days = [-171_737, 230_132]  # 1499-10-20, 2600-01-30
    if form == "int96":
        times = pa.array([*days, 2_932_896, -719_162], pa.int32()).cast(pa.date32()).cast(pa.timestamp("us"))
    elif form == "date32":
        times = pa.array([*days, 2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    else:
        a_day = 86_400 * {"ms": 1000, "us": 10**6}[form]
        times = pa.array([*(day * a_day for day in days), 2**62, -(2**62)], pa.int64()).cast(pa.timestamp(form))
    count = len(times)
    table = pa.table({"drive_id": [f"d{n}" for n in range(count)], "event_type": ["media_error"] * count, "occurred_at": times})
    warehouse.land("bundle", {"drive_events.parquet": int96_of(table) if form == "int96" else parquet_of(table)})
    assert [f"{at:%Y-%m-%d}" for (at,) in warehouse.rows("drive_events", "occurred_at")] == ["1499-10-20", "2600-01-30"]
    said = "outside the years 2 to 9998" if form == "int96" else "not a timestamp"
    assert warehouse.rejected("row column reason") == [(row, "occurred_at", said) for row in (3, 4)]


def test_parquet_types_of_every_sort(warehouse: Warehouse) -> None:
    hour = datetime(2026, 1, 5, 10)
    table = pa.table(
        {
            " Hour_UTC ": pa.array([hour, hour], pa.timestamp("ns", tz="Europe/Berlin")),
            "drive_id": pa.array(["d1", "d2"]).dictionary_encode(),
            "raid_group_id": pa.array([b"g1", b"g1"], pa.binary()),
            "read_ios": pa.array([10.0, 2.5], pa.float32()),
            "write_ios": pa.array(["3.0", "1e3"]),
            "read_latency_us": pa.array([5, 5], pa.int32()),
            "write_latency_us": pa.array(["1.5", "2"]),
            "nested": pa.array([[1], [2]]),
        }
    )
    summary = warehouse.land("bundle", {"drive_hours.parquet": parquet_of(table)})
    assert summary.files[0].note == "left out unknown columns: 'nested'"
    assert warehouse.rows("drive_hours", "hour_utc read_ios write_ios read_latency_us") == [(hour, 10, 3, 5.0)]
    assert warehouse.table("rejected_records")["value"].to_list() == ["2.5"]


def test_nested_values_and_broken_lines_in_ndjson(warehouse: Warehouse) -> None:
    good = '{"occurred_at":"2026-01-05T10:01:00Z","drive_id":"d1","event_type":"Unplug ","more":1}'
    nested = '{"occurred_at":"2026-01-05T10:01","drive_id":{"a":[1]},"event_type":"x"}'
    lines = [good, '{"occurred_at":"2026-01-05', nested, "[1]", good.replace("d1", "d\\ud800"), ""]
    assert counts(warehouse.land("bundle", {"drive_events.ndjson": "\n".join(lines)})) == (5, 1, 4, 0, 0)
    assert warehouse.rejected("row") == [(2,), (3,), (4,), (5,)]
    assert warehouse.rows("drive_events", "event_type") == [("unplug",)]


@pytest.mark.parametrize("key", ['"drive_id"', '"drive\\u005fid"', '"detail"'])
def test_a_record_that_has_a_key_twice_is_rejected_by_its_name(warehouse: Warehouse, key: str) -> None:
    good = '{"occurred_at":"2026-01-05T10:01:00Z","drive_id":"d1","event_type":"unplug","detail":"the \\"drive_id\\"","more":1,"more":2}'
    lacks_it = '{"occurred_at":"2026-01-05T10:02:00Z","drive_id":"d1","event_type":"unplug"}'
    text = "\n".join([good, good.replace('"more":1', f'{key}:"d2"'), lacks_it, ""])
    assert warehouse.land("bundle", {"drive_events.ndjson": text}).rows_accepted == 2
    assert warehouse.rejected("row column reason") == [(2, json.loads(key), "the record has this key twice; write it once")]


def test_unknown_event_type_becomes_other(warehouse: Warehouse) -> None:
    rows = ["2026-01-05T10:01,d1,Firmware Hang,code 7", "2026-01-05T10:02,d1,Oops,", "2026-01-05T10:03,d1,,x"]
    warehouse.land("bundle", {"drive_events.csv": csv_text(*rows, header="occurred_at,drive_id,event_type,detail")})
    assert warehouse.rows("drive_events", "event_type detail") == [("other", "Firmware Hang: code 7"), ("other", "Oops")]
    assert warehouse.rejected("column") == [("event_type",)]


def test_inventory_rules(warehouse: Warehouse) -> None:
    rows = [
        "d1,g1,DATA,,1000,2020-01-31,2026-01-01", "d2,g1,hotspare,ssd,1,,", "d3,g1,data,tape,1,,", "d4,g1,data,SSD,-1,,",
        "d5,g1,,SSD,1,31.1.2020,", "d6,,data,ssd,1,,", "d7,g1,data,ssd,1,,2026-01-01T10:17:00Z",
    ]  # fmt: skip
    header = "drive_id,raid_group_id,role,kind,capacity_bytes,deployed_on,valid_from"
    warehouse.land("bundle", {"drives.csv": csv_text(*rows, header=header)}, kind="disk")
    assert [column for _, column in warehouse.rejected("row column")] == ["role", "kind", "capacity_bytes", "deployed_on", "raid_group_id"]
    assert warehouse.rows("drives", "drive_id role kind") == [("d1", "data", "disk"), ("d7", "data", "ssd")]


def parquet_bytes() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"drive_id": ["d1"] * 1000, "raid_group_id": ["g1"] * 1000}).write_parquet(buffer)
    return buffer.getvalue()


def damaged_parquet() -> bytes:
    return parquet_bytes()[:8] + b"\xff" * 52 + parquet_bytes()[60:]


def encrypted_parquet(data: bytes | None = None) -> bytes:
    """A plain footer that says that its first column is encrypted: Arrow aborts over it."""
    data = data or parquet_bytes()
    end = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = read_struct(data[end:])
    column = footer[4][1][1][0][1][1][1][0]
    del column[3]
    column[8] = STRUCT, {2: (STRUCT, {1: (LIST, (BINARY, [b"drive_id"]))})}
    column[9] = BINARY, b"secret"
    written = write_struct(footer)
    return data[:end] + written + len(written).to_bytes(4, "little") + b"PAR1"


TWICE = parquet_of(pa.table([pa.array(["a"])] * 3, names=["drive_id", "raid_group_id", "drive_id"]))


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
    "empty file": ("drives.csv", b"", "empty (0 bytes)"),
    "empty Parquet": ("drives.parquet", b"", "empty (0 bytes)"),
    "blank lines only": ("drives.csv", b"\n\n\n", "blank lines"),
    "truncated Parquet": ("drives.parquet", parquet_bytes()[:-30], "cut off"),
    "not Parquet": ("drives.parquet", b"drive_id,raid_group_id\nd1,g1\n", "not a Parquet file"),
    "Parquet with a broken footer": ("drives.parquet", b"PAR1" + b"\xff" * 60 + b"PAR1", "the Parquet file's footer has"),
    "Parquet with an encrypted column": ("drives.parquet", encrypted_parquet(), "a column of the Parquet file is encrypted"),
    "Parquet called CSV": ("drives.csv", parquet_bytes(), "binary data"),
    "Parquet with a column twice": ("drives.parquet", TWICE, "appears twice"),
    "Parquet damaged in the middle": ("drives.parquet", damaged_parquet(), ""),
    "gz that is not gz": ("drives.csv.gz", b"drive_id,raid_group_id\nd1,g1\n", "gzip"),
    "gz called CSV": ("drives.csv", gzip.compress(b"drive_id,raid_group_id\n"), "binary data"),
    "truncated gz": ("drives.csv.gz", gzip.compress(b"drive_id,raid_group_id\n" + bytes(range(65, 91)) * 999)[:-20], "cannot be read"),
    "empty gz": ("drives.csv.gz", gzip.compress(b""), "nothing is in it"),
    "zst that is not zst": ("drives.csv.zst", b"drive_id,raid_group_id\n", "cannot be read"),
    "UTF-16": ("drives.csv", "drive_id,raid_group_id\n".encode("utf-16"), "UTF-16"),
    "header not UTF-8": ("drives.csv", b"drive_id,raid_group_id,\xff\xfe\xfa\nd1,g1,1\n", "UTF-8"),
    "missing column": ("drives.csv", b"drive_id,group\nd1,g1\n", "required column raid_group_id is missing; found drive_id, group"),
    "no header": ("drives.csv", b"d1,g1\nd2,g2\n", "missing"),
    "duplicate column": ("drives.csv", b"drive_id,raid_group_id,Drive_ID \nd1,g1,d2\n", "'drive_id' appears twice"),
    "random bytes": ("drives.csv", bytes(range(128, 256)) * 50, "cannot be read|UTF-8"),
    "NUL bytes only": ("drives.csv", b"\0" * 500, "missing|CSV"),
    "neither latency": ("drive_hours_2.csv", b"hour_utc,drive_id,raid_group_id,read_ios\n", "latency_us"),
    "ndjson without JSON": ("drives.ndjson", b"drive_id,raid_group_id\nd1,g1\n", "no line is a JSON object"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_unreadable_file_is_named_and_the_others_are_taken(case: str, warehouse: Warehouse) -> None:
    name, content, expected = UNREADABLE[case]
    folder = warehouse.put({name: content, "drive_hours.csv": csv_text(GOOD_ROW)})
    (bad,) = warehouse.land("bundle", folder).unreadable
    assert (bad.file, bad.rows_delivered) == (str(folder / name), 0)
    assert bad.note is not None and any(part in bad.note for part in expected.split("|")), bad.note
    assert "\n" not in bad.note
    assert warehouse.live()["drive_id"].to_list() == ["d1"]
    assert not warehouse.stored("drives").height
    again = warehouse.land("bundle", folder)
    assert again.delivery_seq is None and [file.note for file in again.unreadable] == [bad.note]
    assert warehouse.table("ingested_files").filter(pl.col("status") == "unreadable").height == 1


@pytest.mark.parametrize("name", ["drives.parquet", "drives.csv"])
def test_a_file_of_holes_is_refused_without_reading_it(name: str, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = warehouse.put({name: b"", "drive_hours.csv": csv_text(GOOD_ROW)})
    with (folder / name).open("wb") as file:
        file.truncate(10 << 30)
    monkeypatch.setattr(arrivals, "sha256_of", lambda path: "" if path.stat().st_size < 1 << 30 else pytest.fail("it is read"))
    (bad,) = warehouse.land("bundle", folder).unreadable
    assert bad.note is not None and "of 10,737,418,240 bytes only 0 are on the disk" in bad.note
    assert warehouse.live()["drive_id"].to_list() == ["d1"]


def test_bom_crlf_blanks_and_capitals_in_the_header(warehouse: Warehouse) -> None:
    text = csv_text(GOOD_ROW, header=HOURS_HEADER.replace("drive_id", " Drive_ID ")).replace("\n", "\r\n")
    warehouse.land("bundle", {"drive_hours.csv": b"\xef\xbb\xbf" + text.encode()})
    assert warehouse.live()["write_latency_us"].to_list() == [50.0]


def test_header_without_rows_is_landed(warehouse: Warehouse) -> None:
    no_drives = pl.DataFrame(schema={"drive_id": pl.String, "raid_group_id": pl.String})
    summary = warehouse.land("bundle", {"drive_hours.csv": HOURS_HEADER, "drives.parquet": no_drives})
    assert [(file.status, file.rows_delivered) for file in summary.files] == [("landed", 0), ("landed", 0)]
    assert summary.delivery_seq == 1


def test_a_line_of_ten_megabytes(warehouse: Warehouse) -> None:
    long = "x" * 10_000_000
    text = csv_text(GOOD_ROW, long, GOOD_ROW.replace("d1", "d2"), GOOD_ROW.replace("d1", long))
    summary = warehouse.land("bundle", {"drive_hours.csv": text})
    assert [len(each["value"]) <= 200 for each in summary.rejected] == [True, True]
    assert warehouse.rows("drive_hours", "row_no") == [(1,), (3,)]


def test_bytes_that_are_not_utf8_cost_their_row(warehouse: Warehouse) -> None:
    good = GOOD_ROW.encode()
    rows = [HOURS_HEADER.encode(), good, good.replace(b"d1", b"d2").replace(b"g1", b"g\xff"), good.replace(b"d1", b"d\0"), b"\xff,1"]
    warehouse.land("bundle", {"drive_hours.csv": b"\n".join(rows)})
    assert warehouse.rejected("row") == [(2,), (4,)]
    assert warehouse.rows("drive_hours", "drive_id") == [("d\0",), ("d1",)]


def test_quotes_with_commas_newlines_and_one_never_closed(warehouse: Warehouse) -> None:
    details = ['"a, b"', '"two\nlines ""here"""', '"open', "x"]
    rows = [f"2026-01-05T10:0{n},d1,unplug,{detail}" for n, detail in enumerate(details)]
    warehouse.land("bundle", {"drive_events.csv": csv_text(*rows, header="occurred_at,drive_id,event_type,detail")})
    assert warehouse.rows("drive_events", "row_no detail") == [(1, "a, b"), (2, 'two\nlines "here"'), (4, "x")]
    assert warehouse.rejected("row") == [(3,)]


@pytest.mark.parametrize(
    ("said", "source", "given", "options"),
    [
        ("no such file", "bundle", ["absent"], {}),
        ("unknown source 'smart'", "smart", ["in0"], {}),
        ("unknown kind 'tape'", "bundle", ["in0"], {"kind": "tape"}),
        ("min_coverage", "bundle", ["in0"], {"min_coverage": 1.5}),
        ("min_coverage", "bundle", ["in0"], {"min_coverage": float("nan")}),
        ("no path given", "bundle", [], {}),
        ("no file of source 'bundle'", "bundle", ["in1"], {}),
        ("no file of source 'bundle'", "bundle", ["in0/readme.txt"], {}),
        (r"cluster_\*/host_\*", "perseus", ["in0"], {}),
    ],
)
def test_usage_mistakes_are_one_clear_sentence(
    said: str, source: str, given: list[str], options: dict[str, Any], tmp_path: Path, warehouse: Warehouse
) -> None:
    for files in ({"drive_hours.csv": csv_text(GOOD_ROW), "readme.txt": "x"}, {}):
        warehouse.put(files)
    with pytest.raises(IngestError, match=said) as error:
        ingest(source, [tmp_path / name for name in given], warehouse.path, **options)
    assert "\n" not in str(error.value)


def test_a_wrong_extension_is_left_out_with_a_note(warehouse: Warehouse) -> None:
    summary = warehouse.land("bundle", {"drive_hours.csv": csv_text(GOOD_ROW), "drive_hours.xlsx": b"PK", ".drives.csv.tmp": b""})
    assert len(summary.files) == 1
    assert "drive_hours.xlsx" in summary.notes[0]


# Archives


def packed(path: Path, members: dict[str, bytes], special: dict[str, bytes] | None = None, compression: str = "gz") -> Path:
    """A .zip or, by any other name, a .tar; `special`: links and devices of a tar, by type."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, f"w:{compression}") as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for name, kind in (special or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tgz"])
def test_archives_are_read(name: str, tmp_path: Path, warehouse: Warehouse) -> None:
    archive = packed(tmp_path / name, {"week/drive_hours.csv": csv_text(GOOD_ROW).encode(), "week/readme.txt": b"hello"})
    summary = warehouse.land("bundle", archive)
    assert [file.file for file in summary.files] == [f"{archive}!week/drive_hours.csv"] and summary.rows_accepted == 1
    assert warehouse.land("bundle", archive).delivery_seq is None


@pytest.mark.parametrize("name", ["../drives.csv", "/tmp/drives.csv", "a/../../drives.csv", "C:\\drives.csv", "..\\drives.csv"])
@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_archive_members_that_leave_it_are_refused(name: str, suffix: str, tmp_path: Path, warehouse: Warehouse) -> None:
    members = {"drive_hours.csv": csv_text(GOOD_ROW).encode(), name: b"drive_id,raid_group_id\nd1,g1\n"}
    summary = warehouse.land("bundle", packed(tmp_path / f"a.{suffix}", members))
    assert "would be written outside the archive" in (summary.unreadable[0].note or "")
    assert not warehouse.stored().height
    assert not (tmp_path / "drives.csv").exists()


@pytest.mark.parametrize("again", ["week/drive_hours.csv", "./week/drive_hours.csv", "week//drive_hours.csv"])
@pytest.mark.parametrize("name", ["a.zip", "a.tar"])
def test_an_archive_with_a_name_twice_is_refused(name: str, again: str, tmp_path: Path, warehouse: Warehouse) -> None:
    path = packed(tmp_path / name, {"week/drive_hours.csv": csv_text(GOOD_ROW).encode(), "week/drives.csv": b"drive_id\n"}, compression="")
    if name == "a.zip":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(again, csv_text(GOOD_ROW))
    else:
        with tarfile.open(path, "a") as tar:
            tar.addfile(tarfile.TarInfo(again))
    (file,) = warehouse.land("bundle", path).files
    assert file.status == "unreadable" and "'week/drive_hours.csv' is there twice; pack each file once" in str(file.note)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_refused(kind: bytes, tmp_path: Path, warehouse: Warehouse) -> None:
    summary = warehouse.land("bundle", packed(tmp_path / "a.tgz", {}, {"drives.csv": kind}))
    assert "link or device" in (summary.unreadable[0].note or "")


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar"])
def test_a_broken_archive_is_unreadable(name: str, warehouse: Warehouse) -> None:
    (file,) = warehouse.land("bundle", warehouse.put({name: b"PK\x03\x04 or not"}) / name).unreadable
    assert "archive cannot be read" in (file.note or "")


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "csv.zst", "ndjson", "ndjson.gz", "parquet"])
def test_every_format_lands_the_same_records(suffix: str, warehouse: Warehouse) -> None:
    frame = pl.DataFrame({
        "hour_utc": ["2026-01-05T10:00:00Z"] * 20,
        "drive_id": [f"d{n:02d}" for n in range(20)],
        "raid_group_id": ["g1"] * 20,
        "read_ios": [10] * 19 + [None],
        "write_ios": [5] * 19 + [None],
        "read_latency_us": [0.1 * n for n in range(20)],
        "write_latency_us": [1 / 3] * 19 + [None],
        "collected_at": ["2026-01-05T11:00:00.25Z"] * 18 + [None, None],
    })  # fmt: skip
    text = frame.write_csv() if suffix.startswith("csv") else frame.write_ndjson()
    compress = {"gz": gzip.compress, "zst": pa.Codec("zstd").compress}.get(suffix.split(".")[-1], bytes)
    content = frame if suffix == "parquet" else bytes(compress(text.encode()))
    assert warehouse.land("bundle", {f"drive_hours.{suffix}": content}).rows_accepted == 20
    live = warehouse.live().sort("drive_id")
    assert live["read_latency_us"].to_list() == [0.1 * n for n in range(19)] + [None]
    assert live["write_latency_us"].to_list() == [1 / 3] * 19 + [None]
    assert live["collected_at"].to_list() == [datetime(2026, 1, 5, 11, 0, 0, 250_000)] * 18 + [None, None]
    assert live["row_no"].to_list() == list(range(1, 21))


def test_rows_are_numbered_across_blocks_and_chunks(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.reading.readers.BLOCK_BYTES", 100)
    monkeypatch.setattr("ingest.reading.readers.CHUNK_ROWS", 3)
    rows = [GOOD_ROW.replace("d1", f"d{n:02}") for n in range(1, 31)]
    rows[9], rows[19], rows[24] = "broken", '"2026-01-05T10:00:00Z",d20,g1,10', 'x"y'
    frame = pl.DataFrame({"drive_id": [f"d{n}" if n != 7 else None for n in range(1, 11)], "raid_group_id": ["g"] * 10})
    events = "".join(f'2026-01-05T10:{n:02d},d{n},unplug,"a\nb,""{n}"""\n\n' for n in range(1, 20))
    files = {"drive_hours.csv": csv_text(*rows), "drives.parquet": frame}
    warehouse.land("bundle", {**files, "drive_events.csv": f"occurred_at,drive_id,event_type,detail\n{events}"})
    assert warehouse.rows("drive_hours", "drive_id row_no") == [(f"d{n:02}", n) for n in range(1, 31) if n not in (10, 20, 25)]
    assert warehouse.rejected("row") == [(7,), (10,), (20,), (25,)]
    assert warehouse.rows("drive_events", "row_no detail") == [(n, f'a\nb,"{n}"') for n in range(1, 20)]


SADF = "# hostname;interval;timestamp;DEV;tps;await\nweb1;600;2026-01-05 10:10:00 UTC;sda;10;1\n"
SMARTCTL = {"smartctl": {}, "serial_number": "S1", "local_time": {"time_t": 1_767_608_400}, "device": {"name": "/dev/sda", "type": "sat"}}
LSBLK = {"TS": 1_767_608_400, "blockdevices": [{"name": "sda", "type": "disk", "serial": "S1"}]}
KERNEL = {"__REALTIME_TIMESTAMP": "1767607200000000", "_HOSTNAME": "web1", "MESSAGE": "md: unbind<sdb1>"}
STAMP = {"date": "2026-01-05", "time": "10:10:00", "utc": 1, "interval": 600}
STATISTICS = [{"timestamp": STAMP, "disk": [{"disk-device": "sda", "tps": 7777, "await": 1}]}]
SADF_JSON = json.dumps({"sysstat": {"hosts": [{"nodename": "web1", "file-date": "x", "statistics": STATISTICS}]}})
FIRST_DAY = SADF_JSON.replace('"utc": 1', '"utc": 0').replace("2026-01-05", "0001-01-01").replace('"10:', '"00:')


def bad_drive(**more: object) -> str:
    return json.dumps({"TS": 1_767_608_400, "blockdevices": [*LSBLK["blockdevices"], {"name": "sdb", "type": "disk", **more}]})  # type: ignore[misc]


# One value that no parser expected: source, the file, and what is rejected of it: row, column, how the value begins.
BAD_VALUES: dict[str, tuple[str, str, str, list[tuple[int, str, str]]]] = {
    "a timestamp of 20 digits": ("sysstat", "a.csv", SADF + "web1;600;" + "9" * 20 + ";sda;1;1\n", [(2, "timestamp", "web1;600;9999")]),
    "a timestamp of 400 digits": ("sysstat", "a.csv", SADF + "web1;600;" + "9" * 400 + ";sda;1;1\n", [(2, "timestamp", "web1;600;9999")]),
    "the year 1 with a zone": ("sysstat", "a.csv", SADF + "web1;600;0001-01-01 00:00:00;sda;1;1\n", [(2, "timestamp", "web1;600;0001")]),
    "the year 1": ("sysstat", "a.csv", SADF + "web1;600;0001-01-01 00:00:00 UTC;sda;1;1\n", [(2, "timestamp", "0001-01-01 00:00:00 UTC")]),
    "a number of 400 digits": ("sysstat", "a.json", SADF_JSON.replace("7777", "9" * 400), [(1, "tps", "inf")]),
    "a number of 5000 digits": ("sysstat", "a.json", SADF_JSON.replace("7777", "9" * 5000), [(1, "tps", "inf")]),
    "JSON of the year 1": ("sysstat", "a.json", FIRST_DAY, [(1, "timestamp", "{")]),
    "half a surrogate pair": (
        "smartctl", "a.json", json.dumps({**SMARTCTL, "serial_number": "\ud800"}), [(1, "drive_id", "?")],
    ),
    "a wwn of text": ("smartctl", "a.json", json.dumps({**SMARTCTL, "wwn": {"naa": "5", "oui": "1", "id": 2}}), []),
    "a size of 5000 digits": ("smartctl", "a.json", json.dumps(SMARTCTL)[:-1] + ', "user_capacity": {"bytes": ' + "9" * 5000 + "}}", []),
    "a rate of 5000 digits": ("smartctl", "a.json", json.dumps({**SMARTCTL, "rotation_rate": "9" * 5000}), []),
    "half a pair in lsblk": ("lsblk", "lsblk.json", bad_drive(serial="S2\ud800"), [(2, "drive_id", "S2?")]),
    "a size of 5000 digits in lsblk": ("lsblk", "lsblk.json", bad_drive(serial="S2", size="9" * 5000), []),
    "a repeated MESSAGE": ("kernel-log", "a.log", json.dumps({**KERNEL, "MESSAGE": ["md: unbind<sdb1>"] * 2}) + "\n", []),
    "a list of timestamps": ("kernel-log", "a.log", json.dumps({**KERNEL, "__REALTIME_TIMESTAMP": [1, 2]}) + "\n", [(1, "line", "{")]),
    "half a pair in a message": ("kernel-log", "a.log", json.dumps({**KERNEL, "MESSAGE": "\ud800 md: unbind<sdb1>"}) + "\n", []),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_value_that_no_parser_expects_costs_its_record(case: str, warehouse: Warehouse) -> None:
    source, name, text, expected = BAD_VALUES[case]
    file = warehouse.put({f"web1/{name}": text}) / "web1" / name
    summary = warehouse.land(source, file, timezone="Europe/Berlin" if source == "sysstat" else None)
    assert not summary.unreadable, summary.unreadable
    assert [(row["file"], row["row"], row["column"]) for row in summary.rejected] == [(str(file), *where) for *where, _ in expected]
    assert all(str(row["value"]).startswith(value) for row, (_, _, value) in zip(summary.rejected, expected, strict=True))


def test_an_error_that_nobody_foresaw_costs_its_file(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = warehouse.put({f"web1/{n}.json": {**SMARTCTL, "serial_number": n, "device": {"name": f"/dev/sd{n}"}} for n in "abc"}) / "web1"
    health = smartctl._health

    def fails(document: dict[str, Any]) -> Any:
        return document["no such key"] if document["serial_number"] == "b" else health(document)

    monkeypatch.setattr(smartctl, "_health", fails)
    done = CliRunner().invoke(main, ["ingest", "smartctl", str(folder), "-w", str(warehouse.path)])
    assert done.exit_code == 1 and isinstance(done.exception, SystemExit), done.output
    assert f"note: {folder / 'b.json'}: cannot be read: 'no such key' (KeyError)" in done.output.replace("\n", "")
    assert sorted(warehouse.live("drives")["drive_id"]) == ["web1/sda", "web1/sdc"]


def test_a_packed_file_that_is_cut_off_costs_itself(warehouse: Warehouse) -> None:
    whole = gzip.compress(b"TS 1767608400\nmd0 : active raid1 sdb[1] sda[0]\n      99 blocks [2/2] [UU]\n")
    (file,) = warehouse.land("mdadm", {"web1/mdstat.gz": whole, "web2/mdstat.gz": whole[:-12]}).unreadable
    assert file.file.endswith("web2/mdstat.gz")
    assert sorted(warehouse.live("drives")["drive_id"]) == ["web1/sda", "web1/sdb"]
