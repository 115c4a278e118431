"""A delivery lands rows and nothing else: it reads no other file, asks no other machine, runs nothing, and does not fill the disk."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from ingest import ingest
from ingest.reading.parse import completed
from quality import Gate
from tests.ingest.conftest import HOURS_HEADER, Warehouse, csv_text
from tests.ingest.test_malformed import packed, parquet_of

ROW = "2026-01-05T10:00:00,{},g1,10,0,100,"
GOOD = csv_text(ROW.format("d1"))
DELIVERY = {"drive_hours.csv": GOOD}
"""One good row, of drive d1."""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to the network fails the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a delivery has made the reader open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def landed(warehouse: Warehouse) -> list[str]:
    return sorted(warehouse.live()["drive_id"])


# Links


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A file beside the delivery that the sender would like to be read."""
    path = tmp_path / "foreign.csv"
    path.write_text(csv_text(ROW.format("a-foreign-secret")))
    return path


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("way", ["absolute", "relative", "chain", "passwd"])
def test_a_link_out_of_the_delivery_is_not_followed(warehouse: Warehouse, foreign: Path, way: str, gate: bool) -> None:
    bundle = warehouse.put(DELIVERY)
    link = bundle / "drive_hours_more.csv"
    if way == "chain":
        (bundle / "second.txt").symlink_to(foreign)
    link.symlink_to({"absolute": foreign, "relative": "../foreign.csv", "chain": "second.txt", "passwd": "/etc/passwd"}[way])
    for again in (False, True):
        summary = warehouse.land("bundle", bundle, gate=Gate(warehouse.path) if gate else None)
        note = "a link that leads out of the delivery, which is not followed; send the file itself"
        assert [(file.file, file.note) for file in summary.unreadable] == [(str(link), note)]
        assert (summary.delivery_seq is None) == again
    assert landed(warehouse) == ["d1"]
    for path in warehouse.path.rglob("*"):
        if path.is_file():
            kept = pl.read_parquet(path, glob=False).write_csv().encode() if path.suffix == ".parquet" else path.read_bytes()
            assert b"a-foreign-secret" not in kept and b"root:" not in kept, path


def test_a_link_within_the_delivery_is_a_file_of_it(tmp_path: Path, warehouse: Warehouse) -> None:
    real = warehouse.put({"old/of-monday.csv": GOOD})
    (real / "drive_hours.csv").symlink_to("old/of-monday.csv")
    (tmp_path / "bundle").symlink_to(real)  # what the operator names is the operator's choice
    assert warehouse.land("bundle", tmp_path / "bundle").rows_accepted == 1


def test_a_link_to_a_folder_is_not_entered(warehouse: Warehouse) -> None:
    bundle, other = warehouse.put(DELIVERY), warehouse.put({"drive_hours.csv": csv_text(ROW.format("d2"))})
    (bundle / "drive_hours_of_another").symlink_to(other)
    warehouse.land("bundle", bundle)
    assert landed(warehouse) == ["d1"]


def test_a_pipe_in_a_delivery_is_not_waited_for(warehouse: Warehouse) -> None:
    bundle = warehouse.put(DELIVERY)
    os.mkfifo(bundle / "drive_hours_pipe.csv")
    assert warehouse.land("bundle", bundle).rows_accepted == 1


# Archives: what leaves them, links and devices of a tar are tried in tests/ingest/test_malformed.py


def test_a_link_in_a_zip_is_refused(tmp_path: Path, warehouse: Warehouse) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        info = zipfile.ZipInfo("drive_hours.csv")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        zipped.writestr(info, "/etc/passwd")
    assert "link or device" in str(warehouse.land("bundle", tmp_path / "a.zip").unreadable[0].note)


# Bombs


LINES = b"drive_id,raid_group_id\n" + b"d1,g1\n" * 2_000_000
BOMBS: dict[str, Callable[[], bytes | pl.DataFrame]] = {
    "csv.gz": lambda: gzip.compress(LINES),
    "csv.zst": lambda: pa.Codec("zstd").compress(LINES, asbytes=True),
    "ndjson.gz": lambda: gzip.compress(b'{"drive_id":"d1","raid_group_id":"g1"}\n' * 400_000),
    "parquet": lambda: pl.DataFrame({"drive_id": ["d1"] * 2_000_000, "raid_group_id": ["g1"] * 2_000_000}),
}


@pytest.mark.parametrize("suffix", BOMBS)
def test_a_file_that_explodes_is_refused(suffix: str, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.reading.limits.EXPANSION_FLOOR_BYTES", 1 << 20)
    summary = warehouse.land("bundle", {**DELIVERY, f"drives_all.{suffix}": BOMBS[suffix]()})
    assert "200 times its size; unpack it yourself if it is sound" in str(summary.unreadable[0].note)
    assert summary.rows_accepted == 1


# What runs


class Runs:
    """Unpickled, it leaves a file."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("/tmp/drivetail_attacked",)


def test_a_type_that_carries_python_is_not_run(warehouse: Warehouse) -> None:
    marks = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Runs())}
    odd = ['x"; drop table drives; --', "read_csv('http://localhost:9/x')"]
    fields = [pa.field("drive_id", pa.string(), metadata=marks), *(pa.field(name, pa.string()) for name in ("raid_group_id", *odd))]
    table = pa.table([["d1"], ["g1"], ["x"], ["y"]], schema=pa.schema(fields))
    summary = warehouse.land("bundle", {"drives.parquet": parquet_of(table)})
    assert not Path("/tmp/drivetail_attacked").exists()
    assert f"left out unknown columns: {odd[0]!r}, {odd[1]!r}" in str(summary.files[0].note)
    assert warehouse.rows("drives", "drive_id") == [("d1",)]


@pytest.mark.parametrize(
    "value", ["http://localhost:9/x.csv", "s3://bucket/x", "read_csv('/etc/passwd')", "file:///etc/passwd", "${HOME}", "`id`"]
)
def test_a_value_that_names_a_file_is_text(warehouse: Warehouse, value: str) -> None:
    warehouse.land("bundle", {"s3:/drive_hours*.csv": GOOD.replace("d1", f'"{value}"')})
    assert landed(warehouse) == [value]


def test_an_address_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file or directory"):
        ingest("bundle", ["http://localhost:9/drive_hours.csv"], tmp_path / "warehouse")


# Secrets

MARKS = [
    "BEGIN [A-Z ]*PRIVATE KEY",
    "AKIA[0-9A-Z]{16}",
    "gh[pousr]_[A-Za-z0-9]{36}",
    "xox[abprs]-[0-9A-Za-z-]{10}",
    "AIza[0-9A-Za-z_-]{35}",
    "(password|passwd|secret|api_?key|token)[\"']? *[:=] *[\"'][^\"' {$]{8,}[\"']",
]


def test_no_secret_is_in_the_repository() -> None:
    found = subprocess.run(
        ["git", "grep", "-nIiE", "|".join(MARKS), "--", ".", ":!uv.lock", ":!tests/safety"], cwd=ROOT, capture_output=True, text=True
    )
    if found.returncode == 128:
        pytest.skip(f"not a git checkout: {found.stderr.strip()}")
    assert found.stdout == ""


def test_each_test_that_a_promise_names_is_there() -> None:
    tests = {name for file in (ROOT / "tests").rglob("test_*.py") for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)}
    text = (ROOT / "docs/safety.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(test_\w+)`", text)) <= tests
    promises = re.split(r"\n(?=[-*`])", text.partition("**Not defended")[0])[1:]
    assert [promise for promise in promises if "`test_" not in promise and not promise.endswith(":\n")] == []


def test_a_folder_that_holds_the_warehouse_is_ingested_without_it(warehouse: Warehouse) -> None:
    warehouse.land("bundle", warehouse.put(DELIVERY))
    (warehouse.path / "drive_hours.csv").write_text(csv_text(ROW.format("d9")))
    (warehouse.path.parent / "drive_hours.csv").write_text(csv_text(ROW.format("d2")))
    warehouse.land("bundle", warehouse.path.parent)
    assert landed(warehouse) == ["d1", "d2"]


# Names, headers and ids that no source writes


def test_file_whose_name_is_not_utf8_lands_under_an_escaped_one(warehouse: Warehouse) -> None:
    bundle = warehouse.put({**DELIVERY, "drive_hours_\udce4.csv": GOOD.replace("d1", "d2"), "notes_\udce4.md": "left out"})
    summary = warehouse.land("bundle", bundle)
    assert [Path(file.file).name for file in summary.files] == ["drive_hours.csv", "drive_hours_\\xe4.csv"]
    assert summary.notes == [f"{bundle}: left out files that do not belong to the source: notes_\\xe4.md"]
    assert landed(warehouse) == ["d1", "d2"]
    assert warehouse.land("bundle", bundle).delivery_seq is None  # it is known again


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_archive_member_with_an_odd_name_lands(tmp_path: Path, warehouse: Warehouse, compression: str) -> None:
    names = ["drive_hours_1.csv", "drive_hours_\udce4.csv", f"drive_hours/{'n' * 300}.csv"]
    members = {name: GOOD.replace("d1", f"d{number}").encode() for number, name in enumerate(names)}
    archive = packed(tmp_path / f"a.tar{'.gz' if compression == 'gz' else ''}", members, compression=compression)
    assert warehouse.land("bundle", archive).unreadable == []
    assert landed(warehouse) == ["d0", "d1", "d2"]


def test_archive_member_with_an_endless_name_is_refused(tmp_path: Path, warehouse: Warehouse) -> None:
    archive = packed(tmp_path / "a.tar", {f"drive_hours/{'n' * 100_000}.csv": b""}, compression="")
    (file,) = warehouse.land("bundle", archive).files
    assert file.note is not None and "has a name of 100016 characters" in file.note and len(file.note) < 300


@pytest.mark.parametrize(("suffix", "first"), [("tar.gz", "zeros"), ("tar.gz", "drive_hours_0.csv"), ("zip", "drive_hours_0.csv")])
def test_archive_is_measured_with_the_members_that_are_skipped(
    tmp_path: Path, warehouse: Warehouse, suffix: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zeros of another name come before a good file: unpacking them costs the same, but in a zip, where they can be passed over."""
    monkeypatch.setattr("ingest.reading.limits.EXPANSION_FLOOR_BYTES", 1 << 20)
    archive = packed(tmp_path / f"a.{suffix}", {first: bytes(4 << 20), "drive_hours.csv": GOOD.encode()})
    (file,) = warehouse.land("bundle", archive).files
    assert file.note is not None and file.note.startswith("the archive unpacks to more than 1 MiB")


@pytest.mark.parametrize("names", [100_000, 1_000_000])
def test_header_with_a_name_many_times_is_refused_at_once(warehouse: Warehouse, names: int) -> None:
    header = HOURS_HEADER + "," + ",".join(f"c{number // 2}" for number in range(names))
    bundle = warehouse.put({**DELIVERY, "drive_hours_wide.csv": f"{header}\n"})
    began = time.process_time()
    summary = warehouse.land("bundle", bundle)
    assert time.process_time() - began < names / 100_000
    (file,) = summary.unreadable
    assert file.note == "column 'c0' appears twice in the header; expected each name once"
    assert summary.rows_accepted == 1


LONG = "x" * 501


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_id_that_no_source_writes_is_rejected_and_its_neighbours_land(warehouse: Warehouse, form: str) -> None:
    ids = ["ok", LONG, "y" * 10_000, "z" * 500]
    numbers = {"read_ios": 10, "write_ios": 0, "read_latency_us": 100.0, "write_latency_us": None}
    frame = pl.DataFrame([{"hour_utc": "2026-01-05T10:00:00", "drive_id": each, "raid_group_id": "g1", **numbers} for each in ids])
    content = frame if form == "parquet" else frame.write_csv() if form == "csv" else frame.write_ndjson()
    rejected = warehouse.land("bundle", {f"drive_hours.{form}": content}).rejected
    said = ("drive_id", "longer than 500 bytes, more than any name has")
    assert [(each["column"], each["reason"], len(each["value"]) <= 200) for each in rejected] == [(*said, True)] * 2
    assert landed(warehouse) == ["ok", "z" * 500]


NESTED = "a nested value, expected one text or number"


@pytest.mark.parametrize(
    ("ids", "rows", "reason"),
    [
        (pa.array([b"a", b"\xff\xfe", b"\xff\xfd", b"b"], pa.binary()), (2, 3), "not valid UTF-8"),
        (pa.array([["a"], ["b", "c"], None, None]), (1, 2), NESTED),
        (pa.array([{"id": "a"}, {"id": "b"}, None, None]), (1, 2), NESTED),
    ],
)
def test_parquet_id_that_is_no_text_is_rejected_by_row(warehouse: Warehouse, ids: pa.Array, rows: tuple[int, int], reason: str) -> None:
    """Two broken names must not become one drive."""
    given = {"hour_utc": ["2026-01-05T10:00:00"] * 4, "drive_id": ids, "raid_group_id": ["g1"] * 4}
    numbers = {name: [10] * 4 for name in ("read_ios", "write_ios", "read_latency_us", "write_latency_us")}
    warehouse.land("bundle", {"drive_hours.parquet": parquet_of(pa.table({**given, **numbers}))})
    assert [row for row, said in warehouse.rejected("row reason") if said == reason] == list(rows)


def test_long_name_of_a_host_source_is_shortened_and_stays_its_own(tmp_path: Path) -> None:
    rows = pl.DataFrame({"drive_id": [f"h/{LONG}1", f"h/{LONG}2", "h/sda"], "file_no": [1, 1, 1], "row_no": [1, 2, 3]})
    names = completed(rows, "drive_hours")["drive_id"].to_list()
    assert names[2] == "h/sda" and len(set(names)) == 3 and max(map(len, names)) < 200


@pytest.mark.parametrize("suffix", ["zst", "gz"])
@pytest.mark.parametrize("content", ["rows", "zeros"])
def test_bomb_is_refused_before_the_memory_is_used_that_its_rows_need(tmp_path: Path, suffix: str, content: str) -> None:
    path = tmp_path / f"drive_hours.csv.{suffix}"
    block = bytes(4 << 20) if content == "zeros" else ROW.format("d1").encode() + b"\n" * 5
    block *= (4 << 20) // len(block) or 1
    with pa.CompressedOutputStream(str(path), {"zst": "zstd", "gz": "gzip"}[suffix]) as stream:
        stream.write(HOURS_HEADER.encode() + b"\n")
        for _ in range(70):
            stream.write(block)
    # the most that this process has taken; what getrusage says begins with its parent's
    land_it = "import sys, ingest; print(ingest.ingest('bundle', [sys.argv[1]], sys.argv[2]).files[0].note); "
    land_it += "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    arguments = [sys.executable, "-c", land_it, str(path), str(tmp_path / "warehouse")]
    note, most = subprocess.run(arguments, capture_output=True, check=True, cwd=ROOT, text=True).stdout.splitlines()
    assert note.startswith("the file unpacks to more than 256 MiB")
    assert int(most) < 400 << 10  # kB
