"""Intervals of sar and iostat become drive-hours, in UTC, whatever clock and locale wrote them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ingest import IngestError, IngestSummary, ingest, list_deliveries
from tests.ingest.conftest import SAMPLES, Warehouse, counts, needs_shared

H = datetime(2026, 1, 5, 10)


def land(warehouse: Warehouse, tmp_path: Path, *texts: str, timezone: str | None = "UTC") -> IngestSummary:
    folder = tmp_path / "in"
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"{number}.txt").write_text(text)
    return ingest("sysstat", folder, warehouse.path, source_options={"timezone": timezone})


def hours(warehouse: Warehouse) -> list[tuple[object, ...]]:
    return warehouse.live().sort("drive_id", "hour_utc").select("drive_id", "hour_utc", "io_count", "latency_us", "coverage").rows()


def sadf(*intervals: dict[str, object], **host: object) -> str:
    header = {"nodename": "web1", "file-date": "2026-01-05", "timezone": "UTC", **host}
    return json.dumps({"sysstat": {"hosts": [{**header, "statistics": list(intervals), "restarts": []}]}}, indent=1)


def interval(ends: datetime, seconds: int = 600, tps: object = 10.0, wait: object = 2.0, **stamp: object) -> dict[str, object]:
    when = {"date": f"{ends:%Y-%m-%d}", "time": f"{ends:%H:%M:%S}", "utc": 1, "interval": seconds, **stamp}
    disk = [{"disk-device": name, "tps": tps, "rkB": 4.0, "wkB": 8.0, "await": wait} for name in ("sda", "sda1", "dm-0")]
    return {"timestamp": when, "cpu-load": [], "disk": disk}


def test_sadf_json_fills_merged_hours(warehouse: Warehouse, tmp_path: Path) -> None:
    # sar starts a second late: six intervals belong to ten o'clock, the last of them ends at 11:00:01
    made = [interval(H + timedelta(seconds=600 * n + 1), wait=n, tps=n) for n in range(1, 8)]
    assert counts(land(warehouse, tmp_path, sadf(*made))) == (7, 7, 0, 0, 0)
    ios, weighted = 600 * 21, sum(n * n for n in range(1, 7)) * 600
    assert hours(warehouse) == [
        ("web1/sda", H, ios, pytest.approx(1000 * weighted / ios), 1.0),
        ("web1/sda", H + timedelta(hours=1), 4200, 7000.0, pytest.approx(1 / 6)),
    ]
    assert warehouse.live()["bytes"].to_list() == [12 * 1024 * 3600, 12 * 1024 * 600]
    assert warehouse.live("drives").select("drive_id", "raid_group_id", "host", "role").rows() == [("web1/sda", "web1", "web1", "data")]


def iostat(*intervals: list[dict[str, object]]) -> str:
    """JSON of iostat every half hour from H on; its first figures are since boot."""
    elements = [
        {"timestamp": f"{H + timedelta(minutes=30 * n):%Y-%m-%dT%H:%M:%S}+0000", "disk": disks} for n, disks in enumerate(intervals)
    ]
    return sadf(*elements).replace('"file-date"', '"date"')


def of_iostat(device: str, reads: float, wait: float = 2.0, **more: object) -> dict[str, object]:
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
    figures: dict[str, object], bytes_per_second: float | None, warehouse: Warehouse, tmp_path: Path
) -> None:
    summary = land(warehouse, tmp_path, iostat(*([of_iostat("sda", 10.0, **figures)] for _ in range(3))))
    known = None if bytes_per_second is None else round(bytes_per_second * 3600)
    assert warehouse.live().select("read_ios", "read_blocks").rows() == [(36_000, known)]
    assert ("2 intervals have no bytes" in (summary.files[0].note or "")) == (known is None)


def test_merged_bytes_count_discards_among_the_requests(warehouse: Warehouse, tmp_path: Path) -> None:
    line = "{} sda {tps} 40.00 20.00 {} {} 0.02 1.50 1.00\n"
    head = "Linux 6.1.0 (web1) 2026-01-05 _x86_64_ (4 CPU)\n\n10:00:01 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n"
    land(
        warehouse,
        tmp_path,
        head + line.format("10:10:01", "60.00", "12.00", tps="10.00") + line.format("10:20:01", "0.00", "99.00", tps="10.00"),
    )
    assert warehouse.live()["bytes"].to_list() == [None]  # of the second interval


def test_a_record_that_lost_one_key_is_rejected_for_that_key(warehouse: Warehouse, tmp_path: Path) -> None:
    whole = of_iostat("sda", 10.0)
    lost = [{name: value for name, value in whole.items() if name != key} for key in ("r/s", "w/s", "r_await")]
    bare = {"disk_device": "sda", "tps": 5.0, "kB_read/s": 1.0}
    summary = land(warehouse, tmp_path, iostat([whole], *([each] for each in (*lost, bare))))
    assert [row["column"] for row in summary.rejected] == ["r/s", "w/s", "r_await", "await"]
    assert [("without -x" in str(row["reason"])) for row in summary.rejected] == [False, False, False, True]


def test_a_hidden_path_counts_where_its_head_counts_nothing(warehouse: Warehouse, tmp_path: Path) -> None:
    idle = [of_iostat("nvme1n1", 0.0, 0.0), of_iostat("nvme1c0n1", 1.0, 4.0), of_iostat("nvme1c3n1", 3.0, 8.0)]
    land(warehouse, tmp_path, iostat(idle, idle, idle))
    assert warehouse.live().select("drive_id", "read_ios", "read_latency_us", "coverage").rows() == [("web1/nvme1n1", 14_400, 7000.0, 1.0)]


@pytest.mark.parametrize(
    ("times", "day"),
    [
        (("10時00分01秒", "10時10分01秒"), "2026年01月05日"),
        (("10时00分01秒", "10时10分01秒"), "2026年01月05日"),
        (("10시 00분 01초", "10시 10분 01초"), "2026-01-05"),
        (("上午 10:00:01", "上午 10:10:01"), "2026-01-05"),
        (("午前 10:00:01", "午前 10:10:01"), "2026-01-05"),
        (("오전 10:00:01", "오전 10:10:01"), "2026-01-05"),
        (("10:00:01 a.m.", "10:10:01 a. m."), "2026-01-05"),
    ],
)
def test_clocks_of_chinese_japanese_korean_and_twelve_hours_are_read(
    times: tuple[str, str], day: str, warehouse: Warehouse, tmp_path: Path
) -> None:
    text = f"Linux 6.1.0 (web1) \t{day} \t_x86_64_\t(4 CPU)\n\n{times[0]} DEV tps await\n{times[1]} sda 10.00 1.50\n"
    assert counts(land(warehouse, tmp_path, text)) == (1, 1, 0, 0, 0)
    assert hours(warehouse) == [("web1/sda", H, 6000, 1500.0, pytest.approx(1 / 6))]


def test_an_afternoon_before_its_time_is_an_afternoon(warehouse: Warehouse, tmp_path: Path) -> None:
    text = "Linux 6.1.0 (web1) 2026-01-05 _x86_64_ (4 CPU)\n\n下午 10:00:01 DEV tps await\n下午 10:10:01 sda 10.00 1.50\n"
    land(warehouse, tmp_path, text)
    assert warehouse.live()["hour_utc"].to_list() == [H + timedelta(hours=12)]


def test_iostat_splits_directions_and_its_first_figures_are_since_boot(warehouse: Warehouse, tmp_path: Path) -> None:
    def element(minute: int, reads: float) -> dict[str, object]:
        disk = {"disk_device": "sda", "r/s": reads, "w/s": 0.0, "rkB/s": 8.0, "wkB/s": 0.0, "r_await": 5.0, "w_await": 0.0}
        return {"timestamp": f"2026-01-05T11:{minute:02}:00+0100", "disk": [disk]}

    text = sadf(element(0, 1e6), element(30, 10.0), element(59, 20.0)).replace('"file-date"', '"date"')
    land(warehouse, tmp_path, text, timezone=None)
    columns = ["hour_utc", "read_ios", "write_ios", "read_latency_us", "write_latency_us", "read_blocks", "coverage", "latency_us"]
    assert warehouse.live().select(columns).rows() == [(H, 18_000 + 34_800, 0, 5000.0, None, 8192 * 3540, 3540 / 3600, None)]


BANNER = "Linux 6.1.0-56 (web1) \t2026-01-05 \t_x86_64_\t(2 CPU)\n\n"


def test_sar_with_a_twelve_hour_clock_averages_and_a_restart(warehouse: Warehouse, tmp_path: Path) -> None:
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
    assert counts(land(warehouse, tmp_path, text)) == (4, 2, 2, 0, 0)
    assert hours(warehouse) == [
        ("web1/sda", datetime(2026, 1, 5, 12), 6000, 2000.0, pytest.approx(1 / 6)),
        ("web1/sda", datetime(2026, 1, 5, 13), 12_000, 4000.0, pytest.approx(599 / 3600, abs=1e-3)),
    ]
    assert warehouse.live()["bytes"].sort().to_list() == [2048 * 600, 2048 * 600]


def test_the_hour_that_comes_twice_when_summer_ends_and_midnight(warehouse: Warehouse, tmp_path: Path) -> None:
    # Berlin, 25 October 2026: 02:30 comes twice, at 00:30 and at 01:30 UTC
    times = ["02:00:00", "02:30:00", "02:00:00", "02:30:00", "03:00:00", "23:30:00", "23:59:59", "00:29:59"]
    lines = [f"{time} sda {n}.00 1.00 1.00 0.00 0.00 0.00 1.00 0.00\n" for n, time in enumerate(times)]
    text = BANNER.replace("2026-01-05", "2026-10-25") + "01:30:00 DEV tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util\n" + "".join(lines)
    land(warehouse, tmp_path, text, timezone="Europe/Berlin")
    day = datetime(2026, 10, 24)
    assert [(hour, ios) for _, hour, ios, _, _ in hours(warehouse)] == [
        (day + timedelta(hours=23), 0), (day + timedelta(hours=24), 1800 * (1 + 2)), (day + timedelta(hours=25), 1800 * (3 + 4)),
        (day + timedelta(hours=46), 6 * 1799), (day + timedelta(hours=47), 7 * 1800),
    ]  # fmt: skip


def test_sadf_lines_upright_and_lying(warehouse: Warehouse, tmp_path: Path) -> None:
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
    assert counts(land(warehouse, tmp_path, upright, lying)) == (7, 3, 4, 0, 0)
    assert [(drive, ios) for drive, _, ios, _, _ in hours(warehouse)] == [("web1/sda", 6000), ("web2/sda", 3000), ("web2/sdb", 3600)]
    rejected = warehouse.table("rejected_records").select("row", "column").rows()
    assert rejected == [(2, "timestamp"), (3, "timestamp"), (4, "tps"), (5, "interval")]


def test_cut_off_and_repeated_input_costs_itself(warehouse: Warehouse, tmp_path: Path) -> None:
    whole = sadf(interval(H + timedelta(minutes=10)), interval(H + timedelta(minutes=20)))
    summary = land(warehouse, tmp_path, whole[: whole.rindex('"wkB"')], whole)
    assert counts(summary) == (4, 2, 1, 1, 0)
    assert "cut off" in str(summary.rejected[0]["reason"])
    bad = sadf(interval(H, tps="NaN"), interval(H + timedelta(minutes=1), wait=None), interval(H, seconds=0))
    assert [(record["row"], record["column"]) for record in land(warehouse, tmp_path, bad).rejected] == [
        (1, "tps"),
        (2, "await"),
        (3, "interval"),
    ]


def test_where_both_tools_saw_an_hour_the_one_that_saw_more_counts(warehouse: Warehouse, tmp_path: Path) -> None:
    split = [
        {"timestamp": f"2026-01-05T10:{n}:00+0000", "disk": [{"disk_device": "sda", "r/s": 1, "w/s": 1, "r_await": 1, "w_await": 1}]}
        for n in (10, 20)
    ]
    iostat = sadf(*split).replace('"file-date"', '"date"')
    assert counts(land(warehouse, tmp_path, sadf(interval(H + timedelta(minutes=20))), iostat)) == (2, 1, 0, 0, 1)
    assert warehouse.live()["read_ios"].to_list() == [600]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is in it"),
        ("{}", "without statistics"),
        (sadf(), "no interval of a drive"),
        (sadf({"disk": []}).replace('"file-date"', '"date"'), "run iostat with -t"),
        (sadf(interval(H, utc=0)), "give --timezone"),
        (BANNER + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n", "give --timezone"),
        (BANNER.replace("2026-01-05", "5 janv. 26") + "10:00:00 DEV tps await\n", "not a known day"),
        ("hello\nworld\n", "no line of a drive"),
    ],
)
def test_a_file_that_is_none_is_unreadable(text: str, said: str, warehouse: Warehouse, tmp_path: Path) -> None:
    (file,) = land(warehouse, tmp_path, text, timezone=None).files
    assert file.status == "unreadable" and said in (file.note or "")


@pytest.mark.parametrize(
    ("dates", "order", "days"),
    [
        (("01/05/2026",), None, None),
        (("05/01/26", "06/01/26"), None, None),
        (("13/01/26", "01/13/26"), None, None),
        (("01/05/26",), "mdy", [datetime(2026, 1, 5, 10)]),  # LC_ALL=C
        (("05/01/2026",), "dmy", [datetime(2026, 1, 5, 10)]),  # en_GB
        (("05/01/26", "13/01/26"), None, [datetime(2026, 1, 5, 10), datetime(2026, 1, 13, 10)]),
        (("01/05/26", "01/13/26"), None, [datetime(2026, 1, 5, 10), datetime(2026, 1, 13, 10)]),
        (("04/04/26",), None, [datetime(2026, 4, 4, 10)]),
        (("31/01/26",), "mdy", None),
    ],
)
@pytest.mark.parametrize("tool", ["sar", "iostat"])
def test_a_day_that_may_be_another_is_refused(
    tool: str, dates: tuple[str, ...], order: str | None, days: list[datetime] | None, warehouse: Warehouse, tmp_path: Path
) -> None:
    if tool == "sar":
        text = "".join(BANNER.replace("2026-01-05", date) + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n" for date in dates)
    else:
        disk = [{"disk_device": "sda", "r/s": 1, "w/s": 1, "r_await": 1, "w_await": 1}]
        stamps = [f"{date} 10:{minute}:00" for date in dates for minute in (10, 20)]
        text = sadf(*({"timestamp": stamp, "disk": disk} for stamp in stamps)).replace('"file-date"', '"date"')
    path = tmp_path / "web1.txt"
    path.write_text(text)
    (file,) = ingest("sysstat", path, warehouse.path, source_options={"timezone": "UTC", "date_order": order}).files
    if days is None:
        assert file.status == "unreadable" and ("--date-order" in (file.note or "") or "is not a known" in (file.note or ""))
    else:
        assert sorted(warehouse.live()["hour_utc"]) == days


def test_an_order_of_dates_must_be_one(warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(IngestError, match="give mdy"):
        ingest("sysstat", tmp_path / "a.txt", warehouse.path, source_options={"date_order": "ymd"})


def test_a_time_zone_must_exist(warehouse: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(IngestError, match="no such time zone"):
        land(warehouse, tmp_path, sadf(), timezone="Mars/Olympus")


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
def test_incomplete_input_is_rejected(text: str, counted: tuple[int, int, int], warehouse: Warehouse, tmp_path: Path) -> None:
    assert counts(land(warehouse, tmp_path, text)) == (*counted, 0, 0)
    assert warehouse.live()["latency_us"].to_list() == [25_430.0]


def test_a_message_of_the_kernel_within_json_costs_its_interval(warehouse: Warehouse, tmp_path: Path) -> None:
    made = [interval(H + timedelta(minutes=10 * n)) for n in range(1, 6)]
    text = sadf(*made)
    at = text.index("10:20:00")
    assert counts(land(warehouse, tmp_path, text[:at] + MESSAGE + "\n" + text[at:])) == (5, 4, 1, 0, 0)
    disk = [{"disk_device": "sda", "r/s": 1, "w/s": 1, "r_await": 1, "w_await": 1}]
    split = sadf(*({"timestamp": f"2026-01-05T12:{n}0:00+0000", "disk": disk} for n in range(5))).replace('"file-date"', '"date"')
    at = split.index("12:20:00")
    # of the one after it nobody knows how long it was
    assert counts(land(warehouse, tmp_path, split[:at] + '\n"' + split[at:])) == (4, 2, 2, 0, 0)


def test_drives_by_number_and_older_columns(warehouse: Warehouse, tmp_path: Path) -> None:
    numbers = ("8-0", "8-16", "8-17", "65-0", "8-256", "9-0", "253-0", "259-0")
    summary = land(warehouse, tmp_path, SADF_HEADER + "".join(sadf_line(10, f"dev{number}") for number in numbers))
    assert counts(summary) == (6, 4, 2, 0, 0)
    assert {row["value"] for row in summary.rejected} == {"dev253-0", "dev259-0"} and "sar -p" in str(summary.rejected[0]["reason"])
    assert [row[0] for row in hours(warehouse)] == ["web1/sda", "web1/sdb", "web1/sdiw", "web1/sdq"]
    old = {"disk-device": "sdx", "tps": 10, "rd_sec": 4.0, "wr_sec": 8.0, "await": 1.0}
    mega = {"disk_device": "sdy", "r/s": 1, "w/s": 1, "rMB/s": 2.0, "wMB/s": 0.5, "r_await": 1, "w_await": 1}
    text = sadf(*({"timestamp": f"2026-01-05T10:{n}0:00+0000", "disk": [mega]} for n in range(2))).replace('"file-date"', '"date"')
    land(warehouse, tmp_path, sadf({**interval(H + timedelta(minutes=10)), "disk": [old]}), text)
    rows = {row["drive_id"]: row for row in warehouse.live().iter_rows(named=True)}
    assert rows["web1/sdx"]["bytes"] == 12 * 512 * 600
    assert (rows["web1/sdy"]["read_blocks"], rows["web1/sdy"]["write_blocks"]) == (2 * 600 << 20, 300 << 20)


def test_iostats_own_text_is_named(warehouse: Warehouse, tmp_path: Path) -> None:
    text = BANNER + "avg-cpu:  %user\n           1.0\n\nDevice            r/s     w/s\nsda  1.0 2.0\n"
    (file,) = land(warehouse, tmp_path, text).files
    assert file.status == "unreadable" and "-o JSON" in (file.note or "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"interval": "10s"}, "needs --began"),
        ({"began": "2026-01-05"}, "needs --interval"),
        ({"interval": "2h", "began": "x"}, "--interval 2h"),
        ({"interval": "0", "began": "x"}, "--interval 0"),
        ({"interval": "10s", "began": "soon"}, "--began soon"),
    ],
)  # fmt: skip
def test_incomplete_iostat_options_are_refused(given: dict[str, str], said: str, warehouse: Warehouse, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(IngestError, match=said):
        ingest("sysstat", tmp_path / "a.txt", warehouse.path, source_options=given)


@pytest.mark.parametrize(
    ("began", "zone", "hour"),
    [("2026-01-05T11:50:00+01:00", None, H), ("2026-01-05T10:50:00", None, H), ("2026-01-05 11:50", "Europe/Berlin", H)],
)
def test_iostat_without_times_takes_them_from_options(
    began: str, zone: str | None, hour: datetime, warehouse: Warehouse, tmp_path: Path
) -> None:
    disk = [{"disk_device": "sda", "r/s": 1, "w/s": 0, "r_await": 3, "w_await": 0}]
    text = sadf(*[{"disk": disk}] * 4).replace('"file-date"', '"date"')
    path = tmp_path / "web1.json"
    path.write_text(text)
    ingest("sysstat", path, warehouse.path, source_options={"interval": "10m", "began": began, "timezone": zone})
    rows = warehouse.live().sort("hour_utc").select("hour_utc", "read_ios", "read_latency_us", "coverage").rows()
    assert rows == [(hour, 600, 3000.0, 1 / 6), (hour + timedelta(hours=1), 1200, 3000.0, 1 / 3)]


@needs_shared
def test_a_throttled_drive_stands_out_in_iostat_alone(warehouse: Warehouse) -> None:
    names = ("qemu_md_raid6_throttled/iostat_throttled.json", "qemu_md_raid6/iostat_healthy.json", "iostat_x_p_ALL_oJSON.json")
    for n, name in enumerate(names):
        options = {"interval": "5s", "began": f"2026-01-05T1{n}:00:00Z"}
        summary = ingest("sysstat", SAMPLES / name, warehouse.path, min_coverage=0.001, source_options=options)
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
    (vda,) = [row for row in hours(warehouse) if row[0] == "vm/vda"]
    # 306, 269, 101 and 31 I/Os in four seconds, 1.55, 0.92, 0.27 and 0.52 ms each
    assert vda[2:4] == (707, pytest.approx(1000 * (306 * 1.55 + 269 * 0.92 + 101 * 0.27 + 31 * 0.52) / 707))


def test_a_refused_file_is_read_once_its_order_is_given(warehouse: Warehouse, tmp_path: Path) -> None:
    path = tmp_path / "web1.txt"
    path.write_text(BANNER.replace("2026-01-05", "01/05/26") + "10:00:00 DEV tps await\n10:10:00 sda 1 1\n")
    given = [{"timezone": "UTC"}, {"timezone": "UTC"}, {"timezone": "UTC", "date_order": "dmy"}, {"timezone": "UTC"}]
    told = [ingest("sysstat", path, warehouse.path, source_options=options).files[0].status for options in given]
    assert told == ["unreadable", "unreadable", "landed", "already landed"]
    assert len(list_deliveries(warehouse.path)) == 2
    assert warehouse.live()["hour_utc"].to_list() == [datetime(2026, 5, 1, 10)]
