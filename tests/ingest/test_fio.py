"""Runs of fio on md arrays: the members are the drives, a run is an hour."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest import ingest
from tests.ingest.conftest import SHARED, Warehouse, counts, needs_shared

START = datetime(2020, 1, 31, 11, 58, 38, 256_000)
START_MS = 1_580_471_918_256
FIGURES = ("read_ios", "write_ios", "read_ticks", "write_ticks")
HOURS = ["drive_id", "hour_utc", "read_ios", "write_ios", "read_latency_us", "write_latency_us"]

Device = dict[str, Any]


def disk(name: str, *figures: Any) -> Device:
    return {"name": name, **dict(zip(FIGURES, figures, strict=True)), "read_merges": 0, "write_merges": 0, "in_queue": 1, "util": 99.5}


def made_of(device: Device, *below: Device) -> list[Device]:
    """A device and the disks it is made of, in fio's order and with the means that fio gives for them."""
    means = {f"aggr_{name}": sum(other[name] for other in below) // len(below) for name in FIGURES}
    return [{**device, **means}, *({**other} for other in below)]


def array(*members: Device, name: str = "md0") -> list[Device]:
    return made_of(disk(name, 1, 1, 0, 0), *members)


MEMBERS = [disk("sda", 100, 10, 400, 5), disk("sdc", 101, 0, 800, 0), disk("sdb", 99, 11, 0, 44)]


def result(minute: int = 0, devices: object = None, **changes: Any) -> dict[str, Any]:
    """fio's output for a run that ended that many minutes after START; a change to null leaves the key out."""
    jobs = [{"jobname": "iotest", "error": 0, "elapsed": 61, "read": {"total_ios": 300, "clat_ns": {"bins": {"87552": 1}}}}]
    document = {
        "fio version": "fio-3.1",
        "timestamp": START_MS // 1000 + 60 * minute,
        "timestamp_ms": START_MS + 60_000 * minute,
        "time": "Fri Jan 31 12:58:38 2020",
        "jobs": jobs,
        "disk_util": array(*MEMBERS) if devices is None else devices,
    }
    return {name: value for name, value in {**document, **changes}.items() if value is not None}


def write(root: Path, *runs: object, folder: str = "host/array") -> Path:
    """Files 0.json, 1.json, ... of one array, each a result, text or bytes; returns the root."""
    for number, run in enumerate(runs):
        path = root / folder / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run if isinstance(run, bytes) else (run if isinstance(run, str) else json.dumps(run, indent=2)).encode())
    return root


def hours(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Every live drive-hour but for where it came from."""
    return warehouse.live().drop("delivery_seq", "file_no", "row_no").sort("hour_utc", "drive_id").rows()


def test_members_are_drives_with_mean_latencies(tmp_path: Path, warehouse: Warehouse) -> None:
    write(tmp_path / "in", result())
    summary = ingest("fio", tmp_path / "in", warehouse.path)
    assert counts(summary) == (3, 3, 0, 0, 0)
    rows = warehouse.live().sort("drive_id")
    hour = datetime(2020, 1, 31, 11)
    assert rows.select(HOURS).rows() == [
        # 400 ms over 100 reads are 4 ms each, 5 ms over 10 writes half a millisecond
        ("host/array/md0/sda", hour, 100, 10, 4000.0, 500.0),
        ("host/array/md0/sdb", hour, 99, 11, 0.0, 4000.0),
        ("host/array/md0/sdc", hour, 101, 0, 800_000 / 101, None),
    ]
    assert rows.select("raid_group_id", "collected_at", "row_no").rows() == [("host/array/md0", START, row) for row in (2, 4, 3)]
    unknown = ["coverage", "read_blocks", "write_blocks", "block_bytes", "latency_us", "io_count", "bytes"]
    assert rows.select(unknown).unique().rows() == [(None,) * len(unknown)]
    drives = warehouse.live("drives").sort("drive_id")
    assert drives.select("drive_id", "raid_group_id", "role", "kind", "host", "valid_from").rows() == [
        (f"host/array/md0/{name}", "host/array/md0", "data", None, None, None) for name in ("sda", "sdb", "sdc")
    ]


def job(drive: str, **bins: int) -> dict[str, Any]:
    """A job with a drive to itself; n1000=3: three reads took a thousand nanoseconds."""
    took = {name[1:]: count for name, count in bins.items()}
    return {"jobname": drive, "job options": {"filename": f"/dev/{drive}"}, "read": {"clat_ns": {"bins": took}}, "write": {}}


def test_drives_with_jobs_of_their_own_are_peers_with_histograms(tmp_path: Path, warehouse: Warehouse) -> None:
    """1,000, 1,010 and 1,023 ns are in the range up to 1,024, 1,024 is in the next; two jobs of a drive add up."""
    jobs = [job("sda", n1000=3, n1010=2), job("sdb", n1024=7), job("sda", n1023=1, n5000=0), job("sdc")]
    write(tmp_path / "in", result(devices=MEMBERS, jobs=jobs))
    assert counts(ingest("fio", tmp_path / "in", warehouse.path)) == (3, 3, 0, 0, 0)
    assert set(warehouse.live().select("drive_id", "raid_group_id").rows()) == {(f"host/array/sd{x}", "host/array") for x in "abc"}
    found = warehouse.live("drive_latencies").sort("drive_id").select("drive_id", "hour_utc", "upper_us", "io_count").rows()
    hour = datetime(2020, 1, 31, 11)
    assert found == [("host/array/sda", hour, 1.024, 6), ("host/array/sdb", hour, 2.048, 7)]


def test_a_drive_whose_bins_are_no_counts_is_rejected_alone(tmp_path: Path, warehouse: Warehouse) -> None:
    write(tmp_path / "in", result(devices=MEMBERS, jobs=[job("sda", n1000=-1), job("sdb", n1000=1), job("sdc", n1=1, total=2)]))
    summary = ingest("fio", tmp_path / "in", warehouse.path)
    assert counts(summary) == (3, 1, 2, 0, 0) and {row["column"] for row in summary.rejected} == {"bins"}
    assert warehouse.live()["drive_id"].to_list() == ["host/array/sdb"]


def test_the_hour_of_a_run_is_its_rank_among_the_runs_of_its_array(tmp_path: Path, warehouse: Warehouse) -> None:
    # 13 minutes apart at most and in no order of names; another array of the same host counts for itself
    write(tmp_path / "in", result(14), result(1), result(0))
    write(tmp_path / "in", result(300), result(2), folder="host/other")
    ingest("fio", tmp_path / "in", warehouse.path)
    ranks = warehouse.live().select("raid_group_id", "file_no", "hour_utc").unique().sort("raid_group_id", "hour_utc").rows()
    first, other = datetime(2020, 1, 31, 11), datetime(2020, 1, 31, 12)
    assert ranks == [
        ("host/array/md0", 3, first),
        ("host/array/md0", 2, first + timedelta(hours=1)),
        ("host/array/md0", 1, first + timedelta(hours=2)),
        ("host/other/md0", 5, other),
        ("host/other/md0", 4, other + timedelta(hours=1)),
    ]


def test_deliveries_in_order_of_time_end_as_one_delivery(tmp_path: Path, warehouse: Warehouse) -> None:
    runs = [result(minute) for minute in (0, 1, 2, 3)]
    one = Warehouse(tmp_path / "one")
    ingest("fio", write(tmp_path / "all", *runs), one.path)
    for number, part in enumerate((runs[:1], runs[:3], runs)):  # the first ones come again each time, under other names
        summary = ingest("fio", write(tmp_path / str(number), *reversed(part)), warehouse.path)
        assert (summary.rows_rejected, summary.rows_superseded) == (0, 0)
    assert hours(warehouse) == hours(one)
    assert len(hours(one)) == 12
    assert warehouse.live("drives").height == 3


def test_a_run_before_the_last_one_landed_is_rejected(tmp_path: Path, warehouse: Warehouse) -> None:
    ingest("fio", write(tmp_path / "first", result(1), result(3)), warehouse.path)
    before = hours(warehouse)
    late = write(tmp_path / "late", result(0), result(2), result(4))
    write(late, result(2), folder="host/other")
    summary = ingest("fio", late, warehouse.path)
    assert counts(summary) == (12, 6, 6, 0, 0)
    rejected = warehouse.table("rejected_records")
    assert rejected.select("row", "column", "value").unique().sort("value", "row").rows() == [
        (row, "timestamp", f"2020-01-31 {at}.256") for at in ("11:58:38", "12:00:38") for row in (2, 3, 4)
    ]
    assert rejected["reason"].str.contains("ingest all its runs together").all()
    kept = [row for row in hours(warehouse) if "/array/" in row[1]]
    assert kept[:6] == before
    assert {row[0] for row in kept[6:]} == {datetime(2020, 1, 31, 13)}
    assert ingest("fio", late, warehouse.path).delivery_seq is None


def test_a_run_is_known_by_its_array_and_its_end(tmp_path: Path, warehouse: Warehouse) -> None:
    other = result(0, array(disk("sda", 200, 10, 400, 5), *MEMBERS[1:]))
    summary = ingest("fio", write(tmp_path / "in", result(), json.dumps(result()), result(1)), warehouse.path)
    assert counts(summary) == (9, 6, 0, 3, 0)
    summary = ingest("fio", write(tmp_path / "again", other), warehouse.path)
    assert counts(summary) == (3, 1, 0, 2, 0)
    rows = warehouse.live().filter(drive_id="host/array/md0/sda").sort("hour_utc")
    assert rows["read_ios"].to_list() == [200, 100]
    assert warehouse.live().height == 6


def test_text_around_the_json_is_left_out_with_a_note(tmp_path: Path, warehouse: Warehouse) -> None:
    text = json.dumps(result(devices=array(*MEMBERS)), indent=2)
    banner = "fio: this platform does not support {x}\niotest: (g=0): rw=randread, ...\n"
    files = [banner + text, "\ufeff" + text + "\nfio: terminating on signal 2\n", banner.encode() + b"\xff\n" + text.encode()]
    summary = ingest("fio", write(tmp_path / "in", *files), warehouse.path)
    assert counts(summary) == (9, 3, 0, 6, 0)
    noted = ["'fio: this platform does not support {x}'", "'fio: terminating on signal 2'", "'fio: this platform does not support {x}'"]
    assert [file.note for file in summary.files] == [f"left out the text around the JSON, which starts with {words}" for words in noted]


def test_several_jobs_are_one_run_and_old_results_have_seconds(tmp_path: Path, warehouse: Warehouse) -> None:
    jobs = result()["jobs"] * 3
    ingest("fio", write(tmp_path / "in", result(jobs=jobs, timestamp_ms=None)), warehouse.path)
    assert warehouse.live().height == 3
    assert warehouse.live()["collected_at"].unique().to_list() == [START.replace(microsecond=0)]


UNREADABLE = {
    "empty": ("", "no JSON object in it, it is empty"),
    "blank": (" \n\n", "it is empty"),
    "not JSON": ("fio: failed parsing option\n", "starts with 'fio: failed parsing option'"),
    "UTF-16": (json.dumps(result()).encode("utf-16"), "no JSON object"),
    "cut off": (json.dumps(result(), indent=1)[:-40], "is it cut off?"),
    "broken": (json.dumps(result(), indent=1).replace(",", ";", 1), "line 2, column 26"),
    "two results": (json.dumps(result()) + "\n" + json.dumps(result(1)), "more than one JSON object"),
    "another tool's": ('{"sysstat": {"hosts": []}}', "found 'sysstat'"),
    "client mode": (result(jobs=None, client_stats=[]), "found 'fio version', 'timestamp'"),
    "no time": (result(timestamp_ms=None, timestamp=None), "timestamp is null"),
    "time as text": (result(timestamp_ms="soon"), 'timestamp_ms is "soon"'),
    "time in nanoseconds": (result(timestamp_ms=START_MS * 1_000_000), "expected milliseconds since 1970"),
    "endless number": ('{"fio version": ' + "9" * 5000 + "}", "cannot be read"),
    "deep": ('{"a":' * 200_000, "cannot be read"),
    "disks as a dict": (result(devices={"sda": {}}), "disk_util is not a list"),
    "disk without name": (result(devices=[{"read_ios": 1}]), "disk_util is not a list"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_says_why_and_costs_no_other(case: str, tmp_path: Path, warehouse: Warehouse) -> None:
    content, words = UNREADABLE[case]
    summary = ingest("fio", write(tmp_path / "in", content, result()), warehouse.path)
    assert [file.status for file in summary.files] == ["unreadable", "landed"]
    assert words in (summary.files[0].note or "")
    assert counts(summary) == (3, 3, 0, 0, 0)


def test_a_result_cut_off_anywhere_is_unreadable(tmp_path: Path, warehouse: Warehouse) -> None:
    text = json.dumps(result())
    summary = ingest("fio", write(tmp_path / "in", *(text[:end] for end in range(len(text)))), warehouse.path)
    assert {file.status for file in summary.files} == {"unreadable"}
    assert len(summary.files) == len(text)


REJECTED = {
    "no disk_util": (result(disk_util=[]), (1, "disk_util", None), "--disk_util=0"),
    "hardware RAID": (result(devices=[disk("sda", 1, 1, 1, 1)]), (1, "disk_util", "sda"), "no md array"),
    "group_reporting": (result(devices=MEMBERS, jobs=[job("sda", n1000=9)]), (1, "disk_util", "sda, sdc, sdb"), "no job for each drive"),
    "LVM on one disk": (result(devices=made_of(disk("dm-0", 1, 1, 1, 1), disk("sda", 1, 1, 1, 1))), (1, "disk_util", "dm-0, sda"), "no md"),
    "array alone": (result(devices=[disk("md127", 1, 1, 0, 0)]), (1, "name", "md127"), "without its members"),
    "array without means": (result(devices=[disk("md_d0", 1, 1, 0, 0), *MEMBERS]), (1, "name", "md_d0"), "without its members"),
    "not its members": (result(devices=[*array(*MEMBERS)[:1], *MEMBERS[1:]]), (1, "name", "md0"), "do not have the means"),
    "no counts": (result(devices=[*array(*MEMBERS)[:1], {"name": "sda"}]), (1, "name", "md0"), "do not have the means"),
}


@pytest.mark.parametrize("case", REJECTED)
def test_a_run_without_the_members_of_an_array_is_rejected(case: str, tmp_path: Path, warehouse: Warehouse) -> None:
    run, shown, words = REJECTED[case]
    summary = ingest("fio", write(tmp_path / "in", run, result()), warehouse.path)
    assert [file.status for file in summary.files] == ["landed", "landed"]
    assert counts(summary) == (4, 3, 1, 0, 0)
    (record,) = summary.rejected
    assert (record["row"], record["column"], record["value"]) == shown
    assert words in record["reason"]


@pytest.mark.parametrize(
    ("value", "shown", "words"),
    [
        (-4_294_967_000, "-4294967000", "32-bit"),
        (None, None, "whole number"),
        (1.5, "1.5", "whole number"),
        (True, "true", "whole number"),
        ("7", '"7"', "whole number"),
        (2**53 + 1, str(2**53 + 1), "2^53"),
        (float("nan"), "NaN", "whole number"),
    ],
)
def test_a_member_with_a_bad_figure_is_rejected_alone(value: Any, shown: str, words: str, tmp_path: Path, warehouse: Warehouse) -> None:
    devices = array(*MEMBERS)
    devices[2]["write_ticks"] = value
    summary = ingest("fio", write(tmp_path / "in", result(devices=devices)), warehouse.path)
    assert counts(summary) == (3, 2, 1, 0, 0)
    (record,) = summary.rejected
    assert (record["row"], record["column"], record["value"]) == (3, "write_ticks", shown)
    assert words in record["reason"]
    assert warehouse.live()["drive_id"].sort().to_list() == ["host/array/md0/sda", "host/array/md0/sdb"]


def test_a_member_with_half_a_surrogate_pair_in_its_name_is_rejected_alone(tmp_path: Path, warehouse: Warehouse) -> None:
    devices = array(*MEMBERS)
    devices[2]["name"] = "sd\ud800"
    summary = ingest("fio", write(tmp_path / "in", result(devices=devices)), warehouse.path)
    (record,) = summary.rejected
    assert (record["row"], record["column"], record["value"]) == (3, "name", "sd?") and "surrogate" in record["reason"]
    assert warehouse.live()["drive_id"].sort().to_list() == ["host/array/md0/sda", "host/array/md0/sdb"]


def test_a_run_of_which_nothing_is_accepted_takes_no_hour(tmp_path: Path, warehouse: Warehouse) -> None:
    nothing = result(0, array(*({**member, "read_ticks": -1} for member in MEMBERS)))
    ingest("fio", write(tmp_path / "in", nothing, result(70)), warehouse.path)
    assert warehouse.live()["hour_utc"].unique().to_list() == [datetime(2020, 1, 31, 13)]


IDLE = [disk(name, 0, 0, 0, 0) for name in ("sda", "sdb", "sdc")]
BUSY = disk("nvme0n1", 10_000, 0, 5, 0)
# a device of device mapper is slow, the disk it is on is not: fio lists sdf right after dm-0, before the next member
STACKED = array(MEMBERS[0], disk("dm-0", 50, 9, 9000, 9), MEMBERS[1])
STACKED[2:3] = made_of(STACKED[2], disk("sdf", 50, 9, 50, 9))
IDLE_STACKED = array(IDLE[0], disk("dm-0", 0, 0, 0, 0), IDLE[2])
IDLE_STACKED[2:3] = made_of(IDLE_STACKED[2], disk("sdf", 0, 0, 0, 0))
IDLE_ARRAYS = [*made_of(disk("md0", 0, 0, 0, 0), *IDLE[:2]), *made_of(disk("md1", 0, 0, 0, 0), IDLE[2])]
VOLUME = [{**disk("dm-7", 1, 1, 1, 1), "aggr_read_ios": 1, "aggr_write_ios": 1}, *array(*MEMBERS)]
ALL = ["sda", "sdb", "sdc"]


@pytest.mark.parametrize(
    ("devices", "members"),
    [
        pytest.param(STACKED, {"md0": ["dm-0", "sda", "sdc"]}, id="a member on another device"),
        pytest.param(VOLUME, {"md0": ALL}, id="a volume on the array"),
        pytest.param([*array(*MEMBERS[:2]), *array(MEMBERS[2], name="md1")], {"md0": ["sda", "sdc"], "md1": ["sdb"]}, id="two arrays"),
        pytest.param([BUSY, *array(*MEMBERS), BUSY], {"md0": ALL}, id="other disks of the run"),
        pytest.param(array(*IDLE), {"md0": ALL}, id="idle members"),
        pytest.param(IDLE_STACKED, {"md0": ["dm-0", "sda", "sdc"]}, id="an idle member on another device"),
        pytest.param(IDLE_ARRAYS, {"md0": ["sda", "sdb"], "md1": ["sdc"]}, id="two idle arrays"),
    ],
)
def test_members_are_those_whose_means_the_array_gives(
    devices: list[Device], members: dict[str, list[str]], tmp_path: Path, warehouse: Warehouse
) -> None:
    ingest("fio", write(tmp_path / "in", result(devices=devices)), warehouse.path)
    rows = warehouse.live().sort("drive_id")
    found: dict[str, list[str]] = {}
    for group, drive in rows.select("raid_group_id", "drive_id").iter_rows():
        found.setdefault(group.removeprefix("host/array/"), []).append(drive.removeprefix(f"{group}/"))
    assert found == members


@needs_shared
def test_real_runs_on_four_arrays(warehouse: Warehouse) -> None:
    summary = ingest("fio", SHARED / "data/fio_md_arrays", warehouse.path)
    assert {file.status for file in summary.files} == {"landed"}
    assert len(summary.files) == 343
    assert counts(summary) == (1617, 1617, 0, 0, 0)
    rows = warehouse.live()
    groups = rows.group_by("raid_group_id").agg(
        pl.col("hour_utc").n_unique().alias("runs"),
        pl.col("drive_id").n_unique().alias("members"),
        pl.len().alias("drive_hours"),
        pl.col("hour_utc").min().alias("first"),
        ((pl.col("hour_utc").max() - pl.col("hour_utc").min()).dt.total_hours() + 1).alias("hours"),
    )
    assert groups.sort("raid_group_id").rows() == [
        ("IBM_M1015/8x2TBRAID5MDADM/md6", 98, 8, 784, datetime(2020, 1, 31, 11), 98),
        ("NEW/P420i_3xSSD_MD0_RW/md0", 49, 3, 147, datetime(2019, 11, 17, 15), 49),
        ("RAID/P420i_CRUCIAL_MX200x3_RAIDO/md0", 98, 3, 294, datetime(2019, 8, 4, 16), 98),
        ("RAID/P420i_RAID0_4x_SSD/md0", 98, 4, 392, datetime(2019, 11, 27, 13), 98),
    ]
    # by time, whatever the names: randread before randwrite, and of each the smallest queue first
    assert (rows.select(pl.struct("raid_group_id", "hour_utc", "collected_at").n_unique()).item()) == 343
    assert (
        rows.sort("raid_group_id", "hour_utc")
        .select((pl.col("collected_at") >= pl.col("collected_at").shift(1).over("raid_group_id")).all())
        .item()
    )
    assert rows.filter(pl.col("read_ios") > 0)["read_latency_us"].is_not_null().all()
    # the first run on the RAID 5, one reader at queue depth 1: a disk seeks in 5 to 20 ms
    first = rows.filter(raid_group_id="IBM_M1015/8x2TBRAID5MDADM/md6", hour_utc=datetime(2020, 1, 31, 11))
    assert first["read_latency_us"].is_between(5_000, 20_000).all()
    assert warehouse.live("drives").select("kind", "role").unique().rows() == [(None, "data")]
    assert warehouse.live("drives").height == 18
    assert ingest("fio", SHARED / "data/fio_md_arrays", warehouse.path).delivery_seq is None
