"""Runs of fio on md arrays: the members are the drives, a run is an hour."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.ingest.conftest import SHARED, Warehouse, counts, needs_shared

START = datetime(2020, 1, 31, 11, 58, 38, 256_000)
START_MS = 1_580_471_918_256
FIGURES = ("read_ios", "write_ios", "read_ticks", "write_ticks")

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


def runs(*contents: Any, folder: str = "host/array") -> dict[str, Any]:
    """Files 0.json, 1.json, ... of one array, each a result, text or bytes."""
    return {f"{folder}/{number}.json": content for number, content in enumerate(contents)}


def hours(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """Every live drive-hour but for where it came from."""
    return warehouse.live().drop("delivery_seq", "file_no", "row_no").sort("hour_utc", "drive_id").rows()


def test_members_are_drives_with_mean_latencies(warehouse: Warehouse) -> None:
    assert counts(warehouse.land("fio", runs(result()))) == (3, 3, 0, 0, 0)
    hour, group = datetime(2020, 1, 31, 11), "host/array/md0"
    assert warehouse.rows("drive_hours", "drive_id hour_utc read_ios write_ios read_latency_us write_latency_us row_no") == [
        # 400 ms over 100 reads are 4 ms each, 5 ms over 10 writes half a millisecond
        (f"{group}/sda", hour, 100, 10, 4000.0, 500.0, 2),
        (f"{group}/sdb", hour, 99, 11, 0.0, 4000.0, 4),
        (f"{group}/sdc", hour, 101, 0, 800_000 / 101, None, 3),
    ]
    unknown = "coverage read_blocks write_blocks block_bytes latency_us io_count bytes"
    assert set(warehouse.rows("drive_hours", f"raid_group_id collected_at {unknown}")) == {(group, START, *[None] * 7)}
    drives = warehouse.rows("drives", "drive_id raid_group_id role kind host valid_from")
    assert drives == [(f"{group}/{name}", group, "data", None, None, None) for name in ("sda", "sdb", "sdc")]


def job(drive: str, **bins: int) -> dict[str, Any]:
    """A job with a drive to itself; n1000=3: three reads took a thousand nanoseconds."""
    took = {name[1:]: count for name, count in bins.items()}
    return {"jobname": drive, "job options": {"filename": f"/dev/{drive}"}, "read": {"clat_ns": {"bins": took}}, "write": {}}


def test_drives_with_jobs_of_their_own_are_peers_with_histograms(warehouse: Warehouse) -> None:
    """1,000, 1,010 and 1,023 ns are in the range up to 1,024, 1,024 is in the next; two jobs of a drive add up."""
    jobs = [job("sda", n1000=3, n1010=2), job("sdb", n1024=7), job("sda", n1023=1, n5000=0), job("sdc")]
    assert counts(warehouse.land("fio", runs(result(devices=MEMBERS, jobs=jobs)))) == (3, 3, 0, 0, 0)
    assert warehouse.rows("drive_hours", "drive_id raid_group_id") == [(f"host/array/sd{x}", "host/array") for x in "abc"]
    hour = datetime(2020, 1, 31, 11)
    found = warehouse.rows("drive_latencies", "drive_id hour_utc upper_us io_count")
    assert found == [("host/array/sda", hour, 1.024, 6), ("host/array/sdb", hour, 2.048, 7)]


def test_a_drive_whose_tail_is_slow_by_its_bins_is_named(warehouse: Warehouse) -> None:
    """Two of a hundred reads of sdb take 80 ms, all others 1 ms."""
    jobs = [job("sda", n1000000=1000), job("sdb", n1000000=980, n80000000=20), job("sdc", n1000000=1000)]
    warehouse.land("fio", runs(result(devices=MEMBERS, jobs=jobs)))
    query = "select drive_id, round(p50_slowdown, 1), p99_slowdown > 50 from marts.fct_drive_hour_latency where is_p99_slow"
    assert warehouse.built(query) == [("host/array/sdb", 1.0, True)]


def test_a_drive_whose_bins_are_no_counts_is_rejected_alone(warehouse: Warehouse) -> None:
    jobs = [job("sda", n1000=-1), job("sdb", n1000=1), job("sdc", n1=1, total=2)]
    assert counts(warehouse.land("fio", runs(result(devices=MEMBERS, jobs=jobs)))) == (3, 1, 2, 0, 0)
    assert warehouse.rejected("column") == [("bins",)] * 2
    assert warehouse.live()["drive_id"].to_list() == ["host/array/sdb"]


def test_the_hour_of_a_run_is_its_rank_among_the_runs_of_its_array(warehouse: Warehouse) -> None:
    # 13 minutes apart at most and in no order of names; another array of the same host counts for itself
    warehouse.land("fio", runs(result(14), result(1), result(0)) | runs(result(300), result(2), folder="host/other"))
    array, other = "host/array/md0", "host/other/md0"
    ranks = [(array, 11, 3), (array, 12, 2), (array, 13, 1), (other, 12, 5), (other, 13, 4)]
    assert sorted(set(warehouse.rows("drive_hours", "raid_group_id hour_utc file_no"))) == [
        (group, datetime(2020, 1, 31, hour), file_no) for group, hour, file_no in ranks
    ]


def test_deliveries_in_order_of_time_end_as_one_delivery(tmp_path: Path, warehouse: Warehouse) -> None:
    results = [result(minute) for minute in (0, 1, 2, 3)]
    one = Warehouse(tmp_path / "one")
    one.land("fio", runs(*results))
    for part in (results[:1], results[:3], results):  # the first ones come again each time, under other names
        summary = warehouse.land("fio", runs(*reversed(part)))
        assert (summary.rows_rejected, summary.rows_superseded) == (0, 0)
    assert hours(warehouse) == hours(one)
    assert len(hours(one)) == 12
    assert warehouse.live("drives").height == 3


def test_a_run_before_the_last_one_landed_is_rejected(warehouse: Warehouse) -> None:
    warehouse.land("fio", runs(result(1), result(3)))
    before = hours(warehouse)
    late = warehouse.put(runs(result(0), result(2), result(4)) | runs(result(2), folder="host/other"))
    assert counts(warehouse.land("fio", late)) == (12, 6, 6, 0, 0)
    assert warehouse.rejected("value row column") == [
        (f"2020-01-31 {at}.256", row, "timestamp") for at in ("11:58:38", "12:00:38") for row in (2, 3, 4)
    ]
    assert warehouse.table("rejected_records")["reason"].str.contains("ingest all its runs together").all()
    kept = [row for row in hours(warehouse) if "/array/" in row[1]]
    assert kept[:6] == before
    assert {row[0] for row in kept[6:]} == {datetime(2020, 1, 31, 13)}
    assert warehouse.land("fio", late).delivery_seq is None


def test_a_run_is_known_by_its_array_and_its_end(warehouse: Warehouse) -> None:
    other = result(0, array(disk("sda", 200, 10, 400, 5), *MEMBERS[1:]))
    assert counts(warehouse.land("fio", runs(json.dumps(result(), indent=2), result(), result(1)))) == (9, 6, 0, 3, 0)
    assert counts(warehouse.land("fio", runs(other))) == (3, 1, 0, 2, 0)
    assert [reads for _, reads in warehouse.rows("drive_hours", "hour_utc read_ios", drive_id="host/array/md0/sda")] == [200, 100]
    assert warehouse.live().height == 6


def test_text_around_the_json_is_left_out_with_a_note(warehouse: Warehouse) -> None:
    text = json.dumps(result(devices=array(*MEMBERS)), indent=2)
    banner = "fio: this platform does not support {x}\niotest: (g=0): rw=randread, ...\n"
    files = [banner + text, "\ufeff" + text + "\nfio: terminating on signal 2\n", banner.encode() + b"\xff\n" + text.encode()]
    summary = warehouse.land("fio", runs(*files))
    assert counts(summary) == (9, 3, 0, 6, 0)
    noted = ["'fio: this platform does not support {x}'", "'fio: terminating on signal 2'", "'fio: this platform does not support {x}'"]
    assert [file.note for file in summary.files] == [f"left out the text around the JSON, which starts with {words}" for words in noted]


def test_several_jobs_are_one_run_and_old_results_have_seconds(warehouse: Warehouse) -> None:
    warehouse.land("fio", runs(result(jobs=result()["jobs"] * 3, timestamp_ms=None)))
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
def test_a_file_that_cannot_be_read_says_why_and_costs_no_other(case: str, warehouse: Warehouse) -> None:
    content, words = UNREADABLE[case]
    summary = warehouse.land("fio", runs(content, result()))
    assert [file.status for file in summary.files] == ["unreadable", "landed"]
    assert words in (summary.files[0].note or "")
    assert counts(summary) == (3, 3, 0, 0, 0)


def test_a_result_cut_off_anywhere_is_unreadable(warehouse: Warehouse) -> None:
    text = json.dumps(result())
    summary = warehouse.land("fio", runs(*(text[:end] for end in range(len(text)))))
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
def test_a_run_without_the_members_of_an_array_is_rejected(case: str, warehouse: Warehouse) -> None:
    run, shown, words = REJECTED[case]
    summary = warehouse.land("fio", runs(run, result()))
    assert [file.status for file in summary.files] == ["landed", "landed"]
    assert counts(summary) == (4, 3, 1, 0, 0)
    (record,) = summary.rejected
    assert (record["row"], record["column"], record["value"]) == shown
    assert words in record["reason"]


@pytest.mark.parametrize(
    ("figure", "value", "shown", "words"),
    [
        ("write_ticks", -4_294_967_000, "-4294967000", "32-bit"),
        ("write_ticks", None, None, "whole number"),
        ("write_ticks", 1.5, "1.5", "whole number"),
        ("write_ticks", True, "true", "whole number"),
        ("write_ticks", "7", '"7"', "whole number"),
        ("write_ticks", 2**53 + 1, str(2**53 + 1), "2^53"),
        ("write_ticks", float("nan"), "NaN", "whole number"),
        ("name", "sd\ud800", "sd?", "surrogate"),
    ],
)
def test_a_member_with_a_bad_figure_or_name_is_rejected_alone(
    figure: str, value: Any, shown: str, words: str, warehouse: Warehouse
) -> None:
    devices = array(*MEMBERS)
    devices[2][figure] = value
    summary = warehouse.land("fio", runs(result(devices=devices)))
    assert counts(summary) == (3, 2, 1, 0, 0)
    (record,) = summary.rejected
    assert (record["row"], record["column"], record["value"]) == (3, figure, shown)
    assert words in record["reason"]
    assert warehouse.rows("drive_hours", "drive_id") == [("host/array/md0/sda",), ("host/array/md0/sdb",)]


def test_a_run_of_which_nothing_is_accepted_takes_no_hour(warehouse: Warehouse) -> None:
    nothing = result(0, array(*({**member, "read_ticks": -1} for member in MEMBERS)))
    warehouse.land("fio", runs(nothing, result(70)))
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


@pytest.mark.parametrize(
    ("devices", "members"),
    [
        pytest.param(STACKED, "md0/dm-0 md0/sda md0/sdc", id="a member on another device"),
        pytest.param(VOLUME, "md0/sda md0/sdb md0/sdc", id="a volume on the array"),
        pytest.param([*array(*MEMBERS[:2]), *array(MEMBERS[2], name="md1")], "md0/sda md0/sdc md1/sdb", id="two arrays"),
        pytest.param([BUSY, *array(*MEMBERS), BUSY], "md0/sda md0/sdb md0/sdc", id="other disks of the run"),
        pytest.param(array(*IDLE), "md0/sda md0/sdb md0/sdc", id="idle members"),
        pytest.param(IDLE_STACKED, "md0/dm-0 md0/sda md0/sdc", id="an idle member on another device"),
        pytest.param(IDLE_ARRAYS, "md0/sda md0/sdb md1/sdc", id="two idle arrays"),
    ],
)
def test_members_are_those_whose_means_the_array_gives(devices: list[Device], members: str, warehouse: Warehouse) -> None:
    warehouse.land("fio", runs(result(devices=devices)))
    expected = [(f"host/array/{member}", f"host/array/{member.split('/')[0]}") for member in members.split()]
    assert warehouse.rows("drive_hours", "drive_id raid_group_id") == expected


@needs_shared
def test_real_runs_on_four_arrays(warehouse: Warehouse) -> None:
    summary = warehouse.land("fio", SHARED / "data/fio_md_arrays")
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
    assert rows.select("raid_group_id", "hour_utc", "collected_at").n_unique() == 343
    by_hour = rows.sort("raid_group_id", "hour_utc")
    assert by_hour.select((pl.col("collected_at") >= pl.col("collected_at").shift(1).over("raid_group_id")).all()).item()
    assert rows.filter(pl.col("read_ios") > 0)["read_latency_us"].is_not_null().all()
    # the first run on the RAID 5, one reader at queue depth 1: a disk seeks in 5 to 20 ms
    first = rows.filter(raid_group_id="IBM_M1015/8x2TBRAID5MDADM/md6", hour_utc=datetime(2020, 1, 31, 11))
    assert first["read_latency_us"].is_between(5_000, 20_000).all()
    assert warehouse.live("drives").select("kind", "role").unique().rows() == [(None, "data")]
    assert warehouse.live("drives").height == 18
    assert warehouse.land("fio", SHARED / "data/fio_md_arrays").delivery_seq is None
