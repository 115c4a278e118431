"""A delivery lands rows and nothing else: it reads no other file, asks no other machine, runs nothing, and does not fill the disk."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest import IngestSummary, ingest, list_deliveries, table_files
from ingest.reading.parse import completed
from quality import Gate

HEADER = "hour_utc,drive_id,raid_group_id,read_ios,write_ios,read_latency_us,write_latency_us"
ROW = "2026-01-05T10:00:00,{},g1,10,0,100,"
GOOD = f"{HEADER}\n{ROW.format('d1')}\n"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to the network fails the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a delivery has made the reader open a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A delivery with one good row, of drive d1."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "drive_hours.csv").write_text(GOOD)
    return folder


def land(tmp_path: Path, source: Path) -> IngestSummary:
    return ingest("bundle", [source], tmp_path / "warehouse")


def landed(tmp_path: Path) -> pl.DataFrame:
    files = sorted((tmp_path / "warehouse").glob("raw/deliveries/*/drive_hours/*.parquet"))
    return pl.concat([pl.read_parquet(file, glob=False) for file in files])


def kept_bytes(tmp_path: Path) -> bytes:
    """Everything the warehouse keeps, unpacked where it is Parquet."""
    kept = b""
    for path in (tmp_path / "warehouse").rglob("*"):
        if path.is_file():
            kept += pl.read_parquet(path, glob=False).write_csv().encode() if path.suffix == ".parquet" else path.read_bytes()
    return kept


# Links


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A file beside the delivery that the sender would like to be read."""
    path = tmp_path / "foreign.csv"
    path.write_text(f"{HEADER}\n{ROW.format('a-foreign-secret')}\n")
    return path


@pytest.mark.parametrize("gate", [False, True])
@pytest.mark.parametrize("way", ["absolute", "relative", "chain", "passwd"])
def test_a_link_out_of_the_delivery_is_not_followed(tmp_path: Path, bundle: Path, foreign: Path, way: str, gate: bool) -> None:
    link = bundle / "drive_hours_more.csv"
    if way == "chain":
        (bundle / "second.txt").symlink_to(foreign)
    link.symlink_to({"absolute": foreign, "relative": "../foreign.csv", "chain": "second.txt", "passwd": "/etc/passwd"}[way])
    for again in (False, True):
        summary = ingest("bundle", [bundle], tmp_path / "warehouse", gate=Gate(tmp_path / "warehouse") if gate else None)
        assert [(file.file, file.note) for file in summary.unreadable] == [
            (str(link), "a link that leads out of the delivery, which is not followed; send the file itself")
        ]
        assert (summary.delivery_seq is None) == again
    assert landed(tmp_path)["drive_id"].to_list() == ["d1"]
    kept = kept_bytes(tmp_path)
    assert b"a-foreign-secret" not in kept
    assert b"root:" not in kept


def test_a_link_within_the_delivery_is_a_file_of_it(tmp_path: Path) -> None:
    real, bundle = tmp_path / "real", tmp_path / "bundle"
    (real / "old").mkdir(parents=True)
    bundle.symlink_to(real)  # what the operator names is the operator's choice
    (real / "old" / "of-monday.csv").write_text(GOOD)
    (real / "drive_hours.csv").symlink_to("old/of-monday.csv")
    assert land(tmp_path, bundle).rows_accepted == 1


def test_a_link_to_a_folder_is_not_entered(tmp_path: Path, bundle: Path, foreign: Path) -> None:
    (tmp_path / "other").mkdir()
    foreign.rename(tmp_path / "other" / "drive_hours.csv")
    (bundle / "drive_hours_of_another").symlink_to(tmp_path / "other")
    land(tmp_path, bundle)
    assert landed(tmp_path)["drive_id"].to_list() == ["d1"]


def test_a_pipe_in_a_delivery_is_not_waited_for(tmp_path: Path, bundle: Path) -> None:
    os.mkfifo(bundle / "drive_hours_pipe.csv")
    assert land(tmp_path, bundle).rows_accepted == 1


# Archives: what leaves them, links and devices of a tar are tried in tests/ingest/test_malformed.py


def test_a_link_in_a_zip_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zipped:
        info = zipfile.ZipInfo("drive_hours.csv")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        zipped.writestr(info, "/etc/passwd")
    assert "link or device" in str(land(tmp_path, tmp_path / "a.zip").unreadable[0].note)


# Bombs


@pytest.fixture
def low_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.reading.limits.EXPANSION_FLOOR_BYTES", 1 << 20)


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zst", "ndjson.gz", "parquet"])
@pytest.mark.usefixtures("low_floor")
def test_a_file_that_explodes_is_refused(tmp_path: Path, bundle: Path, suffix: str) -> None:
    bomb = bundle / f"drives_all.{suffix}"
    lines = b"drive_id,raid_group_id\n" + b"d1,g1\n" * 2_000_000
    if suffix.endswith("gz"):
        bomb.write_bytes(gzip.compress(lines if suffix.startswith("csv") else b'{"drive_id":"d1","raid_group_id":"g1"}\n' * 400_000))
    elif suffix.endswith("zst"):
        bomb.write_bytes(pa.Codec("zstd").compress(lines, asbytes=True))
    else:
        pl.DataFrame({"drive_id": ["d1"] * 2_000_000, "raid_group_id": ["g1"] * 2_000_000}).write_parquet(bomb)
    summary = land(tmp_path, bundle)
    assert "200 times its size; unpack it yourself if it is sound" in str(summary.unreadable[0].note)
    assert summary.rows_accepted == 1


# What runs


class Runs:
    """Unpickled, it leaves a file."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("/tmp/drivetail_attacked",)


def test_a_type_that_carries_python_is_not_run(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    marks = {b"ARROW:extension:name": b"arrow.py_extension_type", b"ARROW:extension:metadata": pickle.dumps(Runs())}
    schema = pa.schema([
        pa.field("drive_id", pa.string(), metadata=marks), pa.field('raid_group_id', pa.string()),
        pa.field('x"; drop table drives; --', pa.string()), pa.field("read_csv('http://localhost:9/x')", pa.string()),
    ])  # fmt: skip
    table = pa.table([["d1"], ["g1"], ["x"], ["y"]], schema=schema)
    pq.write_table(table, bundle / "drives.parquet")
    summary = land(tmp_path, bundle)
    assert not Path("/tmp/drivetail_attacked").exists()
    assert "left out unknown columns: 'x\"; drop table drives; --', \"read_csv('http://localhost:9/x')\"" in str(summary.files[0].note)
    (inventory,) = table_files(list_deliveries(tmp_path / "warehouse"), "drives")
    assert pl.read_parquet(inventory, glob=False)["drive_id"].to_list() == ["d1"]


@pytest.mark.parametrize(
    "value", ["http://localhost:9/x.csv", "s3://bucket/x", "read_csv('/etc/passwd')", "file:///etc/passwd", "${HOME}", "`id`"]
)
def test_a_value_that_names_a_file_is_text(tmp_path: Path, value: str) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "s3:").mkdir(parents=True)
    (bundle / "s3:" / "drive_hours*.csv").write_text(GOOD.replace("d1", f'"{value}"'))
    land(tmp_path, bundle)
    assert landed(tmp_path)["drive_id"].to_list() == [value]


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


# Names, headers and ids that no source writes


def test_file_whose_name_is_not_utf8_lands_under_an_escaped_one(tmp_path: Path, bundle: Path) -> None:
    Path(os.fsdecode(os.fsencode(bundle) + b"/drive_hours_\xe4.csv")).write_text(GOOD.replace("d1", "d2"))
    Path(os.fsdecode(os.fsencode(bundle) + b"/notes_\xe4.md")).write_text("left out")
    summary = land(tmp_path, bundle)
    assert [Path(file.file).name for file in summary.files] == ["drive_hours.csv", "drive_hours_\\xe4.csv"]
    assert summary.notes == [f"{bundle}: left out files that do not belong to the source: notes_\\xe4.md"]
    assert sorted(landed(tmp_path)["drive_id"]) == ["d1", "d2"]
    assert land(tmp_path, bundle).delivery_seq is None  # it is known again


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_archive_member_with_an_odd_name_lands(tmp_path: Path, compression: str) -> None:
    archive = tmp_path / f"a.tar{'.gz' if compression == 'gz' else ''}"
    with tarfile.open(archive, f"w:{compression}") as tarred:  # type: ignore[call-overload]
        for number, name in enumerate(["drive_hours_1.csv", "drive_hours_\udce4.csv", f"drive_hours/{'n' * 300}.csv"]):
            content = GOOD.replace("d1", f"d{number}").encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tarred.addfile(member, io.BytesIO(content))
    summary = land(tmp_path, archive)
    assert summary.unreadable == []
    assert sorted(landed(tmp_path)["drive_id"]) == ["d0", "d1", "d2"]


def test_archive_member_with_an_endless_name_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tarred:
        member = tarfile.TarInfo(f"drive_hours/{'n' * 100_000}.csv")
        tarred.addfile(member, io.BytesIO(b""))
    (file,) = land(tmp_path, archive).files
    assert file.note is not None and "has a name of 100016 characters" in file.note and len(file.note) < 300


@pytest.mark.parametrize("is_taken", [False, True])
def test_archive_is_measured_with_the_members_that_are_skipped(tmp_path: Path, is_taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros of another name come before a good file: unpacking them costs the same."""
    monkeypatch.setattr("ingest.reading.limits.EXPANSION_FLOOR_BYTES", 1 << 20)
    archive = tmp_path / "a.tar.gz"
    with tarfile.open(archive, "w:gz") as tarred:
        for name, content in (("drive_hours_0.csv" if is_taken else "zeros", bytes(4 << 20)), ("drive_hours.csv", GOOD.encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tarred.addfile(member, io.BytesIO(content))
    (file,) = land(tmp_path, archive).files
    assert file.note is not None and file.note.startswith("the archive unpacks to more than 1 MiB")


@pytest.mark.parametrize("names", [100_000, 1_000_000])
def test_header_with_a_name_many_times_is_refused_at_once(tmp_path: Path, bundle: Path, names: int) -> None:
    header = HEADER + "," + ",".join(f"c{number // 2}" for number in range(names))
    (bundle / "drive_hours_wide.csv").write_text(f"{header}\n")
    began = time.process_time()
    summary = land(tmp_path, bundle)
    assert time.process_time() - began < names / 100_000
    (file,) = summary.unreadable
    assert file.note == "column 'c0' appears twice in the header; expected each name once"
    assert summary.rows_accepted == 1


LONG = "x" * 501


@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_id_that_no_source_writes_is_rejected_and_its_neighbours_land(tmp_path: Path, form: str) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    ids = ["ok", LONG, "y" * 10_000, "z" * 500]
    path = bundle / f"drive_hours.{form}"
    if form == "csv":
        path.write_text("\n".join([HEADER, *(ROW.format(each) for each in ids)]) + "\n")
    else:
        numbers = {"read_ios": 10, "write_ios": 0, "read_latency_us": 100.0, "write_latency_us": None}
        rows = [{"hour_utc": "2026-01-05T10:00:00", "drive_id": each, "raid_group_id": "g1", **numbers} for each in ids]
        frame = pl.DataFrame(rows)
        frame.write_parquet(path) if form == "parquet" else frame.write_ndjson(path)
    summary = land(tmp_path, bundle)
    assert (summary.rows_delivered, summary.rows_accepted, summary.rows_rejected) == (4, 2, 2)
    assert {(each["column"], each["reason"]) for each in summary.rejected} == {
        ("drive_id", "longer than 500 bytes, more than any name has")
    }
    assert all(len(each["value"]) <= 200 for each in summary.rejected)
    assert sorted(landed(tmp_path)["drive_id"]) == ["ok", "z" * 500]


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        (pa.array([b"a", b"\xff\xfe", b"\xff\xfd", b"b"], pa.binary()), "not valid UTF-8"),
        (pa.array([["a"], ["b", "c"], None, None]), "a nested value, expected one text or number"),
        (pa.array([{"id": "a"}, {"id": "b"}, None, None]), "a nested value, expected one text or number"),
    ],
)
def test_parquet_id_that_is_no_text_is_rejected_by_row(tmp_path: Path, ids: pa.Array, reason: str) -> None:
    """Two broken names must not become one drive."""
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    table = pa.table(
        {
            "hour_utc": pa.array(["2026-01-05T10:00:00"] * 4),
            "drive_id": ids,
            "raid_group_id": pa.array(["g1"] * 4),
            **{name: pa.array([10] * 4) for name in ("read_ios", "write_ios", "read_latency_us", "write_latency_us")},
        }
    )
    pq.write_table(table, bundle / "drive_hours.parquet")
    summary = land(tmp_path, bundle)
    assert summary.rows_delivered == 4
    found = [(each["row"], each["reason"]) for each in summary.rejected]
    expected = [(2, reason), (3, reason)] if reason == "not valid UTF-8" else [(1, reason), (2, reason)]
    assert [each for each in found if each[1] == reason] == expected


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
        stream.write(HEADER.encode() + b"\n")
        for _ in range(70):
            stream.write(block)
    # the most that this process has taken; what getrusage says begins with its parent's
    land_it = "import sys, ingest; print(ingest.ingest('bundle', [sys.argv[1]], sys.argv[2]).files[0].note); "
    land_it += "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')][0])"
    arguments = [sys.executable, "-c", land_it, str(path), str(tmp_path / "warehouse")]
    note, most = subprocess.run(arguments, capture_output=True, check=True, cwd=ROOT, text=True).stdout.splitlines()
    assert note.startswith("the file unpacks to more than 256 MiB")
    assert int(most) < 400 << 10  # kB
