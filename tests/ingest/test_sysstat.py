"""Intervals of sar and iostat become drive-hours, in UTC, whatever clock and locale wrote them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from ingest import IngestError, IngestSummary, ingest, list_deliveries
from tests.ingest.conftest import SAMPLES, Warehouse, counts, needs_shared

H = datetime(2026, 1, 5, 10)


def land(warehouse: Warehouse, *texts: str, timezone: str | None = "UTC", **options: Any) -> IngestSummary:
    return warehouse.land("sysstat", {f"{number}.txt": text for number, text in enumerate(texts)}, timezone=timezone, **options)


def hours(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return warehouse.rows("drive_hours", "drive_id hour_utc io_count latency_us coverage")


def sadf(*intervals: dict[str, object], **host: object) -> str:
    header = {"nodename": "web1", "file-date": "2026-01-05", "timezone": "UTC", **host}
    return json.dumps({"sysstat": {"hosts": [{**header, "statistics": list(intervals), "restarts": []}]}}, indent=1)


def interval(ends: datetime, seconds: int = 600, tps: object = 10.0, wait: object = 2.0, **stamp: object) -> dict[str, object]:
    when = {"date": f"{ends:%Y-%m-%d}", "time": f"{ends:%H:%M:%S}", "utc": 1, "interval": seconds, **stamp}
    disk = [{"disk-device": name, "tps": tps, "rkB": 4.0, "wkB": 8.0, "await": wait} for name in ("sda", "sda1", "dm-0")]
    return {"timestamp": when, "cpu-load": [], "disk": disk}


def test_sadf_json_fills_merged_hours(warehouse: Warehouse) -> None:
    # sar starts a second late: six intervals belong to ten o'clock, the last of them ends at 11:00:01
    made = [interval(H + timedelta(seconds=600 * n + 1), wait=n, tps=n) for n in range(1, 8)]
    assert counts(land(warehouse, sadf(*made))) == (7, 7, 0, 0, 0)
    ios, weighted = 600 * 21, sum(n * n for n in range(1, 7)) * 600
    assert hours(warehouse) == [
        ("web1/sda", H, ios, pytest.approx(1000 * weighted / ios), 1.0),
        ("web1/sda", H + timedelta(hours=1), 4200, 7000.0, pytest.approx(1 / 6)),
    ]
    assert warehouse.live()["bytes"].to_list() == [12 * 1024 * 3600, 12 * 1024 * 600]
    assert warehouse.rows("drives", "drive_id raid_group_id host role") == [("web1/sda", "web1", "web1", "data")]


def iostat(*intervals: list[dict[str, Any]] | dict[str, Any], minutes: int = 30) -> str:
    """JSON of iostat from H on, of some minutes each: disks, or a whole element; its first figures are since boot."""
    elements = [
        {"timestamp": f"{H + timedelta(minutes=minutes * n):%Y-%m-%dT%H:%M:%S}+0000", "disk": disks} if isinstance(disks, list) else disks
        for n, disks in enumerate(intervals)
    ]
    return sadf(*elements).replace('"file-date"', '"date"')


def of_iostat(device: str = "sda", reads: float = 1.0, wait: float = 1.0, **more: object) -> dict[str, Any]:
    return {"disk_device": device, "r/s": reads, "w/s": 0.0, "r_await": wait, "w_await": 0.0, **more}


@pytest.mark.parametrize(
    ("figures", "bytes_per_second"),
    [
        ({"rMB/s": 0.08, "wMB/s": 0.0, "rareq-sz": 8.0, "wareq-sz": 0.0}, 0.08 * 2**20),
        ({"rMB/s": 160.0, "wMB/s": 0.0, "rareq-sz": 8.0, "wareq-sz": 0.0}, None),  # sectors
        ({"rkB/s": 80.0, "wkB/s": 4000.0, "rareq-sz": 8.0, "wareq-sz": 0.0}, None),
        ({"rkB/s": 80.0, "wkB/s": 0.0, "rareq-sz": 8.0, "wareq-sz": 0.0}, 80 * 1024),
        ({"rkB/s": 80.0, "wkB/s": 0.0}, 80 * 1024),
    ],
)
def test_bytes_that_contradict_requests_and_their_size_are_unknown(
    figures: dict[str, object], bytes_per_second: float | None, warehouse: Warehouse
) -> None:
    summary = land(warehouse, iostat(*[[of_iostat(reads=10.0, **figures)]] * 3))
    known = None if bytes_per_second is None else round(bytes_per_second * 3600)
    assert warehouse.rows("drive_hours", "read_ios read_blocks") == [(36_000, known)]
    assert ("2 intervals have no bytes" in (summary.files[0].note or "")) == (known is None)


def test_merged_bytes_count_discards_among_the_requests(warehouse: Warehouse) -> None:
    head = "Linux 6.1.0 (web1) 2026-01-05 _x86_64_ (4 CPU)\n\n10:00:01 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n"
    lines = "10:10:01 sda 10.00 40.00 20.00 60.00 12.00 0.02 1.50 1.00\n10:20:01 sda 10.00 40.00 20.00 0.00 99.00 0.02 1.50 1.00\n"
    land(warehouse, head + lines)
    assert warehouse.live()["bytes"].to_list() == [None]  # of the second interval


def test_a_record_that_lost_one_key_is_rejected_for_that_key(warehouse: Warehouse) -> None:
    whole = of_iostat()
    lost = [{name: value for name, value in whole.items() if name != key} for key in ("r/s", "w/s", "r_await")]
    bare = {"disk_device": "sda", "tps": 5.0, "kB_read/s": 1.0}
    rejected = land(warehouse, iostat([whole], *([each] for each in (*lost, bare)))).rejected
    assert [(row["column"], "without -x" in str(row["reason"])) for row in rejected] == [
        ("r/s", False), ("w/s", False), ("r_await", False), ("await", True),
    ]  # fmt: skip


def test_a_hidden_path_counts_where_its_head_counts_nothing(warehouse: Warehouse) -> None:
    idle = [of_iostat("nvme1n1", 0.0, 0.0), of_iostat("nvme1c0n1", 1.0, 4.0), of_iostat("nvme1c3n1", 3.0, 8.0)]
    land(warehouse, iostat(idle, idle, idle))
    assert warehouse.rows("drive_hours", "drive_id read_ios read_latency_us coverage") == [("web1/nvme1n1", 14_400, 7000.0, 1.0)]


@pytest.mark.parametrize(
    ("begins", "ends", "day", "hours_on"),
    [
        ("10時00分01秒", "10時10分01秒", "2026年01月05日", 0),
        ("10时00分01秒", "10时10分01秒", "2026年01月05日", 0),
        ("10시 00분 01초", "10시 10분 01초", "2026-01-05", 0),
        ("上午 10:00:01", "上午 10:10:01", "2026-01-05", 0),
        ("午前 10:00:01", "午前 10:10:01", "2026-01-05", 0),
        ("오전 10:00:01", "오전 10:10:01", "2026-01-05", 0),
        ("10:00:01 a.m.", "10:10:01 a. m.", "2026-01-05", 0),
        ("下午 10:00:01", "下午 10:10:01", "2026-01-05", 12),
    ],
)
def test_clocks_of_chinese_japanese_korean_and_twelve_hours_are_read(
    begins: str, ends: str, day: str, hours_on: int, warehouse: Warehouse
) -> None:
    text = f"Linux 6.1.0 (web1) \t{day} \t_x86_64_\t(4 CPU)\n\n{begins} DEV tps await\n{ends} sda 10.00 1.50\n"
    assert counts(land(warehouse, text)) == (1, 1, 0, 0, 0)
    assert hours(warehouse) == [("web1/sda", H + timedelta(hours=hours_on), 6000, 1500.0, pytest.approx(1 / 6))]


def test_iostat_splits_directions_and_its_first_figures_are_since_boot(warehouse: Warehouse) -> None:
    reads = {0: 1e6, 30: 10.0, 59: 20.0}
    disks = [of_iostat(reads=each, wait=5.0, **{"rkB/s": 8.0, "wkB/s": 0.0}) for each in reads.values()]
    looks = [{"timestamp": f"2026-01-05T11:{minute:02}:00+0100", "disk": [disk]} for minute, disk in zip(reads, disks, strict=True)]
    land(warehouse, iostat(*looks), timezone=None)
    columns = "hour_utc read_ios write_ios read_latency_us write_latency_us read_blocks coverage latency_us"
    assert warehouse.rows("drive_hours", columns) == [(H, 18_000 + 34_800, 0, 5000.0, None, 8192 * 3540, 3540 / 3600, None)]


def test_devices_of_unknown_names_are_named(warehouse: Warehouse) -> None:
    """A vendor's, and a partition of Xen's without its whole disk; not those that are known to be no drive."""
    names = ["sda", "sda1", "dm-0", "md127", "xvda1", "xvdb", "xvdb1", "VxDMP3", "vg0-root"]
    summary = land(warehouse, iostat(*[[of_iostat(name) for name in names]] * 3))
    assert summary.files[0].note == "left out 3 devices that are no whole drive: VxDMP3, vg0-root, xvda1"
    assert {drive for drive, *_ in hours(warehouse)} == {"web1/sda", "web1/xvdb"}
    alone = land(warehouse, iostat(*[[of_iostat("ata-ST4000DM004_ZX1"), of_iostat("dm-0")]] * 3))
    assert "left out ata-ST4000DM004_ZX1; print the kernel's names" in (alone.files[0].note or "")


def test_an_interval_of_iostat_in_which_the_clock_was_set_has_no_length(warehouse: Warehouse) -> None:
    # every 5 minutes, and between the third and fourth look 20 more; the last sleep was a minute longer
    minutes = (0, 5, 10, 35, 40, 46)
    looks = [{"timestamp": f"2026-01-05T10:{minute:02}:00+0000", "disk": [of_iostat(reads=10.0)]} for minute in minutes]
    assert counts(land(warehouse, iostat(*looks))) == (5, 4, 1, 0, 0)
    assert warehouse.live().select("from_utc", "to_utc", "read_ios").sort("to_utc", nulls_last=True).rows() == [
        (None, H + timedelta(minutes=10), 6000), (H + timedelta(minutes=35), H + timedelta(minutes=46), 6600)
    ]  # fmt: skip
    # of two the shorter may be the usual one
    looks = [{"timestamp": f"2026-01-05T12:{minute:02}:00+0000", "disk": [of_iostat(reads=10.0)]} for minute in (0, 5, 35)]
    assert counts(land(warehouse, iostat(*looks))) == (2, 1, 1, 0, 0)


BANNER = "Linux 6.1.0-56 (web1) \t2026-01-05 \t_x86_64_\t(2 CPU)\n\n"


def test_sar_with_a_twelve_hour_clock_averages_and_a_restart(warehouse: Warehouse) -> None:
    text = BANNER + (
        "12:50:01 PM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"
        "01:00:01 PM       sda     10,00      1,00      1,00      0,00      0,20      0,01      2,00      1,00\n"
        "Average:          sda     10,00      1,00      1,00      0,00      0,20      0,01      2,00      1,00\n\n"
        "01:05:00 PM     LINUX RESTART\t(2 CPU)\n\n"
        "01:05:00 PM       CPU     %user\n01:10:00 PM       all      1,00\n\n"
        "01:20:00 PM       DEV       tps  rd_sec/s  wr_sec/s  avgrq-sz  avgqu-sz     await     svctm     %util\n"
        "01:30:00 PM       sda     20.00      2.00      2.00      0.20      0.01      4.00      1.00      1.00\n"
        "01:30:00 PM       sda1    20.00      2.00\n01:30:00 PM       sdb     20.00      2.00\n"
    )
    assert counts(land(warehouse, text)) == (4, 2, 2, 0, 0)
    assert hours(warehouse) == [
        ("web1/sda", datetime(2026, 1, 5, 12), 6000, 2000.0, pytest.approx(1 / 6)),
        ("web1/sda", datetime(2026, 1, 5, 13), 12_000, 4000.0, pytest.approx(599 / 3600, abs=1e-3)),
    ]
    assert warehouse.live()["bytes"].sort().to_list() == [2048 * 600, 2048 * 600]


def test_the_hour_that_comes_twice_when_summer_ends_and_midnight(warehouse: Warehouse) -> None:
    # Berlin, 25 October 2026: 02:30 comes twice, at 00:30 and at 01:30 UTC
    times = ["02:00:00", "02:30:00", "02:00:00", "02:30:00", "03:00:00", "23:30:00", "23:59:59", "00:29:59"]
    lines = [f"{time} sda {n}.00 1.00 1.00 0.00 0.00 0.00 1.00 0.00\n" for n, time in enumerate(times)]
    text = BANNER.replace("2026-01-05", "2026-10-25") + "01:30:00 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n" + "".join(lines)
    land(warehouse, text, timezone="Europe/Berlin")
    day = datetime(2026, 10, 24)
    assert [(hour, ios) for _, hour, ios, _, _ in hours(warehouse)] == [
        (day + timedelta(hours=23), 0), (day + timedelta(hours=24), 1800 * (1 + 2)), (day + timedelta(hours=25), 1800 * (3 + 4)),
        (day + timedelta(hours=46), 6 * 1799), (day + timedelta(hours=47), 7 * 1800),
    ]  # fmt: skip


def test_sadf_lines_upright_and_lying(warehouse: Warehouse) -> None:
    upright = (
        "# hostname;interval;timestamp;CPU;%user\nweb1;600;2026-01-05 10:10:00 UTC;-1;1.00\n"
        "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n"
        "web1;600;2026-01-05 10:10:00 UTC;sda;10.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n"
        "web1;-1;2026-01-05 10:15:00 UTC;LINUX-RESTART\t(2 CPU)\n"
        "web1;600;whenever;sda;10.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n"
        "web1;600;2026-01-05 10:20-01 UTC;sda;10.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n"
        "web1;600;2026-01-05 10:30:00 UTC;sda;-1.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n"
        "web1;7200;2026-01-05 12:30:00 UTC;sda;1.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n"
    )
    lying = (
        "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;await[...]\n"
        f"web2;600;{1_767_607_800};sda;5.00;1.00;1.00;2.00;sdb;6.00;1.00;1.00;2.00\n"
    )
    assert counts(land(warehouse, upright, lying)) == (7, 3, 4, 0, 0)
    assert [(drive, ios) for drive, _, ios, _, _ in hours(warehouse)] == [("web1/sda", 6000), ("web2/sda", 3000), ("web2/sdb", 3600)]
    rejected = warehouse.rejected("row column")
    assert rejected == [(2, "timestamp"), (3, "timestamp"), (4, "tps"), (5, "interval")]


def test_cut_off_and_repeated_input_costs_itself(warehouse: Warehouse) -> None:
    whole = sadf(interval(H + timedelta(minutes=10)), interval(H + timedelta(minutes=20)))
    summary = land(warehouse, whole[: whole.rindex('"wkB"')], whole)
    assert counts(summary) == (4, 2, 1, 1, 0)
    assert "cut off" in str(summary.rejected[0]["reason"])
    bad = sadf(interval(H, tps="NaN"), interval(H + timedelta(minutes=1), wait=None), interval(H, seconds=0))
    rejected = land(warehouse, bad).rejected
    assert [(record["row"], record["column"]) for record in rejected] == [(1, "tps"), (2, "await"), (3, "interval")]


def test_where_both_tools_saw_an_hour_the_one_that_saw_more_counts(warehouse: Warehouse) -> None:
    split = iostat([of_iostat()], [of_iostat()], minutes=20)
    assert counts(land(warehouse, sadf(interval(H + timedelta(minutes=20))), split)) == (2, 1, 0, 0, 1)
    assert warehouse.live()["read_ios"].to_list() == [1200]


def spans(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    """The spans of the hour at H: begin and end in minutes, null with the hour, and the seconds measured."""
    rows = warehouse.live().filter(hour_utc=H).sort("collected_at").select("from_utc", "to_utc", "coverage").rows()
    return [(*(None if at is None else round((at - H).total_seconds() / 60) for at in span), round(3600 * share)) for *span, share in rows]


def test_each_tool_counts_for_what_only_it_saw(warehouse: Warehouse) -> None:
    # iostat from 10:00 to 10:30, sar from 10:20 to 11:00
    split = iostat(*[[of_iostat()]] * 4, minutes=10)
    merged = sadf(*(interval(H + timedelta(minutes=n)) for n in (30, 40, 50, 60)))
    assert counts(land(warehouse, merged, split)) == (7, 6, 0, 0, 1)
    assert spans(warehouse) == [(None, 20, 1200), (20, None, 2400)]
    assert warehouse.rows("drive_hours", "read_ios io_count") == [(None, 24_000), (1200, None)]


RESTARTED = "2026-01-05 10:25:00"
SAR_RESTART = "\n10:25:00     LINUX RESTART\t(2 CPU)\n\n"
LATER = "10:30:00          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"


@pytest.mark.parametrize("tool", ["sar", "sadf -d", "sadf -j"])
def test_a_restart_cuts_and_its_devices_have_to_be_seen_again(tool: str, warehouse: Warehouse) -> None:
    before, after = (10, 20), (40, 50)
    if tool == "sar":
        text = BANNER + SAR_HEADER + "".join(map(sar_line, before)) + SAR_RESTART + LATER + "".join(map(sar_line, after))
    elif tool == "sadf -d":
        restart = f"web1;-1;{RESTARTED} UTC;LINUX-RESTART\t(2 CPU)\n"
        text = SADF_HEADER + "".join(map(sadf_line, before)) + restart + "".join(map(sadf_line, after))
    else:
        boot = {"boot": {"date": RESTARTED[:10], "time": RESTARTED[11:], "utc": 1, "cpu_count": 2}}
        made = sadf(*(interval(H + timedelta(minutes=n)) for n in (*before, *after)))
        text = made.replace('"restarts": []', f'"restarts": [{json.dumps(boot)}]')
    land(warehouse, text)
    assert spans(warehouse) == [(None, 20, 1200), (30, 50, 1200)]
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from") == [("web1/sda", None, H + timedelta(minutes=25))]
    assert warehouse.rows("drives", "valid_from") == [(H,)]


@pytest.mark.parametrize(
    ("missing", "cut"),
    [((30,), []), ((30, 40), []), ((20, 30, 40), [(H + timedelta(minutes=10, microseconds=1), H + timedelta(minutes=35))])],
)
def test_missing_intervals_cut_and_a_long_gap_is_a_cut_of_the_name(
    missing: tuple[int, ...], cut: list[tuple[datetime, datetime]], warehouse: Warehouse
) -> None:
    land(warehouse, sadf(*(interval(H + timedelta(minutes=n)) for n in range(10, 130, 10) if n not in missing)))
    assert spans(warehouse) == [(None, min(missing) - 10, 60 * (min(missing) - 10)), (max(missing), None, 60 * (60 - max(missing)))]
    assert warehouse.rows("drive_aliases", "valid_from valid_to") == cut


@pytest.mark.parametrize("tool", ["sadf", "iostat"])
def test_a_drive_that_came_within_an_interval_was_there_at_its_end(tool: str, warehouse: Warehouse) -> None:
    if tool == "sadf":
        listed = [interval(H + timedelta(minutes=n)) for n in range(10, 70, 10)]
        for each in listed[1:]:
            each["disk"] += [{**each["disk"][0], "disk-device": "sdb"}]  # type: ignore[operator, index]
        land(warehouse, sadf(*listed))
    else:
        land(warehouse, iostat(*[[of_iostat()]] * 2, *[[of_iostat(), of_iostat("sdb", 10.0)]] * 5, minutes=10))
    # 10 I/Os a second from 10:10 to 10:20, or more in less time; of the first interval nobody knows what was there before
    assert warehouse.rows("drive_hours", "drive_id from_utc coverage") == [
        ("web1/sda", None, 1.0), ("web1/sdb", H + timedelta(minutes=19, seconds=59), pytest.approx(2401 / 3600)),
    ]  # fmt: skip
    assert warehouse.rows("drive_hours", "read_ios io_count", drive_id="web1/sdb") in ([(30_000, None)], [(None, 30_000)])
    # another drive may have been sdb before
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to") == [("web1/sdb", None, H + timedelta(minutes=10), None)]


@pytest.mark.parametrize("damage", ["a wild figure", "a lost figure", "a name cut off", "a line cut off"])
def test_a_drive_whose_row_is_turned_away_has_not_come(damage: str, warehouse: Warehouse) -> None:
    listed = [interval(H + timedelta(minutes=n)) for n in range(10, 70, 10)]
    for each in listed:
        each["disk"] = [{**each["disk"][0], "disk-device": name} for name in ("sda", "sdb", "sdc")]  # type: ignore[index]
    bad = listed[2]["disk"][1]  # type: ignore[index]
    match damage:
        case "a wild figure":
            bad["tps"] = 3e16
        case "a lost figure":
            del bad["await"]
        case "a name cut off":
            bad["disk-device"] = ""
    text = sadf(*listed)
    if damage == "a line cut off":
        lines = [f"{BANNER}{SAR_HEADER}", *(sar_line(n, device=name) for n in range(10, 70, 10) for name in ("sda", "sdb", "sdc"))]
        lines[8] = f"{lines[8][:40]}\n"
        text = "".join(lines).replace("10:60", "11:00")
    assert land(warehouse, text).rows_rejected == 1
    assert warehouse.rows("drive_hours", "from_utc to_utc coverage", drive_id="web1/sdb") == [
        (None, H + timedelta(minutes=20), pytest.approx(1 / 3)), (H + timedelta(minutes=30), None, pytest.approx(1 / 2)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "unit"), [(("rkB", "wkB"), 1024), (("rMB", "wMB"), 1 << 20), (("rsec", "wsec"), 512), (("rkB/s", "wkB/s"), 1024)]
)
def test_iostat_of_sysstat_11_5_and_11_6_has_other_keys(sizes: tuple[str, str], unit: int, warehouse: Warehouse) -> None:
    disk = {"disk_device": "sda", "rrqm": 0.0, "wrqm": 2.0, "r": 20.0, "w": 10.0, sizes[0]: 160.0, sizes[1]: 40.0, "avgrq-sz": 13.3}
    disk |= {"avgqu-sz": 0.1, "await": 2.0, "r_await": 2.5, "w_await": 1.0, "svctm": 0.3, "util": 1.5}
    lost = {name: value for name, value in disk.items() if name != "r"}
    land(warehouse, iostat([disk], [disk], [disk, {**lost, "disk_device": "sdb"}]))
    columns = "read_ios write_ios read_latency_us write_latency_us read_blocks write_blocks coverage"
    assert warehouse.rows("drive_hours", columns) == [(72_000, 36_000, 2500.0, 1000.0, 160 * unit * 3600, 40 * unit * 3600, 1.0)]
    assert warehouse.rejected("column") == [("r/s",)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is in it"),
        ("{}", "without statistics"),
        (sadf(), "no interval of a drive"),
        (iostat({"disk": []}), "run iostat with -t"),
        (sadf(interval(H, utc=0)), "give --timezone"),
        (BANNER + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n", "give --timezone"),
        (BANNER.replace("2026-01-05", "5 janv. 26") + "10:00:00 DEV tps await\n", "not a known day"),
        ("hello\nworld\n", "no line of a drive"),
        ("db7\t600\t2026-01-05 10:10:00 UTC\tsda\t%util\t1.00\n", "use sadf -j"),
        ('<?xml version="1.0" encoding="UTF-8"?>\n<sysstat>\n', "use sadf -j"),
        (BANNER + "avg-cpu:  %user\n           1.0\n\nDevice            r/s     w/s\nsda  1.0 2.0\n", "-o JSON"),
    ],
)
def test_a_file_that_is_none_is_unreadable(text: str, said: str, warehouse: Warehouse) -> None:
    (file,) = land(warehouse, text, timezone=None).files
    assert file.status == "unreadable" and said in (file.note or "")


@pytest.mark.parametrize(
    ("dates", "order", "days"),
    [
        (["01/05/2026"], None, None),
        (["05/01/26", "06/01/26"], None, None),
        (["13/01/26", "01/13/26"], None, None),
        (["01/05/26"], "mdy", [H]),  # LC_ALL=C
        (["05/01/2026"], "dmy", [H]),  # en_GB
        (["05/01/26", "13/01/26"], None, [H, datetime(2026, 1, 13, 10)]),
        (["01/05/26", "01/13/26"], None, [H, datetime(2026, 1, 13, 10)]),
        (["04/04/26"], None, [datetime(2026, 4, 4, 10)]),
        (["31/01/26"], "mdy", None),
    ],
)
@pytest.mark.parametrize("tool", ["sar", "iostat"])
def test_a_day_that_may_be_another_is_refused(
    tool: str, dates: list[str], order: str | None, days: list[datetime] | None, warehouse: Warehouse
) -> None:
    if tool == "sar":
        text = "".join(BANNER.replace("2026-01-05", date) + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n" for date in dates)
    else:
        text = iostat(*({"timestamp": f"{date} 10:{minute}:00", "disk": [of_iostat()]} for date in dates for minute in (10, 20)))
    (file,) = land(warehouse, text, date_order=order).files
    if days is None:
        assert file.status == "unreadable" and ("--date-order" in (file.note or "") or "is not a known" in (file.note or ""))
    else:
        assert sorted(warehouse.live()["hour_utc"]) == days


SADF_HEADER = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n"
SAR_HEADER = "10:00:00          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"


def sadf_line(minute: int, device: str = "sda") -> str:
    return f"web1;600;2026-01-05 10:{minute}:00 UTC;{device};10.00;1.00;1.00;0.00;0.20;0.01;25.43;1.00\n"


def sar_line(minute: int, device: str = "sda") -> str:
    return f"10:{minute}:00          {device}     10.00      1.00      1.00      0.00      0.20      0.01     25.43      1.00\n"


MESSAGE = "[ 1234.5] sd 1:0:0:0: [sda] tag#9 FAILED Result: hostbyte=DID_TIME_OUT"


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        # a last line that ends within await, within its name, or within %util, which nobody reads
        (SADF_HEADER + sadf_line(10) + sadf_line(20)[:-9], (2, 1, 1)),
        (SADF_HEADER + sadf_line(10) + "web1;600;2026-01-05 10:20", (2, 1, 1)),
        (SADF_HEADER + sadf_line(10) + sadf_line(20)[:-3], (2, 1, 1)),
        (sadf_line(10) + SADF_HEADER + sadf_line(20), (2, 1, 1)),
        (SADF_HEADER.replace("DEV", "D") + sadf_line(10) + SADF_HEADER + sadf_line(20), (2, 1, 1)),
        (SADF_HEADER.replace(";%util", "") + sadf_line(10) + SADF_HEADER + sadf_line(20), (2, 1, 1)),
        (SADF_HEADER + sadf_line(10) + sadf_line(20, "sd") + sadf_line(20, "centos-root") + sadf_line(20, MESSAGE), (3, 1, 2)),
        (SADF_HEADER + sadf_line(10)[:60] + MESSAGE + "\n" + sadf_line(10)[60:] + sadf_line(20), (3, 1, 2)),
        (sadf_line(10)[:19] + MESSAGE + "\n" + sadf_line(10)[19:] + SADF_HEADER + sadf_line(20), (3, 1, 2)),
        (BANNER + SAR_HEADER + sar_line(10) + sar_line(20)[:-3], (2, 1, 1)),
        (BANNER + sar_line(10) + SAR_HEADER + sar_line(20), (2, 1, 1)),
        (BANNER + SAR_HEADER.replace("tps", MESSAGE) + sar_line(10) + SAR_HEADER + sar_line(20), (3, 1, 2)),
        (BANNER + SAR_HEADER + sar_line(10)[:40] + MESSAGE + "\n" + sar_line(10)[40:] + sar_line(20), (3, 1, 2)),
        (BANNER + SAR_HEADER + sar_line(10) + sar_line(20)[3:] + "10:20:00 sda\n" + "25:20:00" + sar_line(20)[8:], (4, 1, 3)),
        (BANNER + "10:00:00 tps rtps\n10:10:00 1.00 2.00\nAverage: 1.00 2.00\n" + SAR_HEADER + sar_line(10), (1, 1, 0)),
    ],
)  # fmt: skip
def test_incomplete_input_is_rejected(text: str, counted: tuple[int, int, int], warehouse: Warehouse) -> None:
    assert counts(land(warehouse, text)) == (*counted, 0, 0)
    assert warehouse.live()["latency_us"].to_list() == [25_430.0]


def test_a_message_of_the_kernel_within_json_costs_its_interval(warehouse: Warehouse) -> None:
    made = [interval(H + timedelta(minutes=10 * n)) for n in range(1, 6)]
    text = sadf(*made)
    at = text.index("10:20:00")
    assert counts(land(warehouse, text[:at] + MESSAGE + "\n" + text[at:])) == (5, 4, 1, 0, 0)
    split = iostat(*({"timestamp": f"2026-01-05T12:{n}0:00+0000", "disk": [of_iostat()]} for n in range(5)))
    at = split.index("12:20:00")
    # of the one after it nobody knows how long it was
    assert counts(land(warehouse, split[:at] + '\n"' + split[at:])) == (4, 2, 2, 0, 0)


def test_drives_by_number_and_older_columns(warehouse: Warehouse) -> None:
    numbers = ("8-0", "8-16", "8-17", "65-0", "8-256", "9-0", "253-0", "259-0")
    summary = land(warehouse, SADF_HEADER + "".join(sadf_line(10, f"dev{number}") for number in numbers))
    assert counts(summary) == (6, 4, 2, 0, 0)
    assert {row["value"] for row in summary.rejected} == {"dev253-0", "dev259-0"} and "sar -p" in str(summary.rejected[0]["reason"])
    assert [row[0] for row in hours(warehouse)] == ["web1/sda", "web1/sdb", "web1/sdiw", "web1/sdq"]
    old = {"disk-device": "sdx", "tps": 10, "rd_sec": 4.0, "wr_sec": 8.0, "await": 1.0}
    mega = of_iostat("sdy", **{"w/s": 1, "rMB/s": 2.0, "wMB/s": 0.5})
    land(warehouse, sadf({**interval(H + timedelta(minutes=10)), "disk": [old]}), iostat([mega], [mega], minutes=10))
    rows = {row["drive_id"]: row for row in warehouse.live().iter_rows(named=True)}
    assert rows["web1/sdx"]["bytes"] == 12 * 512 * 600
    assert (rows["web1/sdy"]["read_blocks"], rows["web1/sdy"]["write_blocks"]) == (2 * 600 << 20, 300 << 20)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"interval": "10s"}, "needs --began"),
        ({"began": "2026-01-05"}, "needs --interval"),
        ({"interval": "2h", "began": "x"}, "--interval 2h"),
        ({"interval": "0", "began": "x"}, "--interval 0"),
        ({"interval": "10s", "began": "soon"}, "--began soon"),
        ({"date_order": "ymd"}, "give mdy"),
        ({"timezone": "Mars/Olympus"}, "no such time zone"),
    ],
)
def test_incomplete_or_unknown_options_are_refused(given: dict[str, str], said: str, warehouse: Warehouse) -> None:
    with pytest.raises(IngestError, match=said):
        land(warehouse, "x", **given)


@pytest.mark.parametrize(
    ("began", "zone"), [("2026-01-05T11:50:00+01:00", None), ("2026-01-05T10:50:00", None), ("2026-01-05 11:50", "Europe/Berlin")]
)
def test_iostat_without_times_takes_them_from_options(began: str, zone: str | None, warehouse: Warehouse) -> None:
    land(warehouse, iostat(*[{"disk": [of_iostat(wait=3.0)]}] * 4), interval="10m", began=began, timezone=zone)
    rows = warehouse.rows("drive_hours", "hour_utc read_ios read_latency_us coverage")
    assert rows == [(H, 600, 3000.0, 1 / 6), (H + timedelta(hours=1), 1200, 3000.0, 1 / 3)]


@needs_shared
def test_a_throttled_drive_stands_out_in_iostat_alone(warehouse: Warehouse) -> None:
    names = ("qemu_md_raid6_throttled/iostat_throttled.json", "qemu_md_raid6/iostat_healthy.json", "iostat_x_p_ALL_oJSON.json")
    for n, name in enumerate(names):
        summary = warehouse.land("sysstat", SAMPLES / name, min_coverage=0.001, interval="5s", began=f"2026-01-05T1{n}:00:00Z")
        assert not summary.unreadable and summary.rows_accepted and not summary.rows_rejected
    assert warehouse.live()["hour_utc"].unique().sort().to_list() == [H + timedelta(hours=n) for n in range(3)]
    throttled = warehouse.live().filter(hour_utc=H).drop_nulls("read_latency_us")
    median = throttled["read_latency_us"].median()
    assert throttled.filter(throttled["read_latency_us"] >= 2 * median)["drive_id"].to_list() == ["(none)/sdb"]


@needs_shared
def test_real_output_of_every_tool(warehouse: Warehouse) -> None:
    names = ("sysstat/sadf_disk.json", "sysstat/iostat_x.json", "sar_dev.txt", "sadf_j_A.json", "sar_A_dec.txt")
    summary = ingest("sysstat", [SAMPLES / name for name in names], warehouse.path, source_options={"timezone": "UTC"})
    assert {file.status for file in summary.files} == {"landed"} and summary.rows_rejected == 0
    # and iostat the two seconds before
    (vda,) = [row for row in hours(warehouse) if row[0] == "vm/vda" and row[2] is not None]
    # 306, 269, 101 and 31 I/Os in four seconds, 1.55, 0.92, 0.27 and 0.52 ms each
    assert vda[2:4] == (707, pytest.approx(1000 * (306 * 1.55 + 269 * 0.92 + 101 * 0.27 + 31 * 0.52) / 707))


def test_a_refused_file_is_read_once_its_order_is_given(warehouse: Warehouse) -> None:
    text = BANNER.replace("2026-01-05", "01/05/26") + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n"
    told = [land(warehouse, text, date_order=order).files[0].status for order in (None, None, "dmy", None)]
    assert told == ["unreadable", "unreadable", "landed", "already landed"]
    assert len(list_deliveries(warehouse.path)) == 2
    assert warehouse.live()["hour_utc"].to_list() == [datetime(2026, 5, 1, 10)]
