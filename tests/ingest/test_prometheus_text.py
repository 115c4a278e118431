"""Files of samples: the text format, OpenMetrics and tsdb dumps, and what broken ones cost."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from ingest import IngestSummary, ingest
from ingest.contract.errors import UnreadableFile
from ingest.sources.prometheus.text import Labels, read_samples
from tests.ingest.conftest import SAMPLES, Warehouse, counts, needs_shared

T = 1_767_607_200  # 2026-01-05 10:00 UTC
SHORT = {
    "reads_completed": "reads", "writes_completed": "writes", "read_time_seconds": "read_seconds",
    "write_time_seconds": "write_seconds", "read_bytes": "read_bytes", "written_bytes": "written_bytes",
}  # fmt: skip


def lines(at: str = "", device: str = "sda", labels: str = "", **counters: object) -> str:
    """The counters of a drive in the text format; one given as null is left out."""
    values = dict(zip(SHORT.values(), (100, 50, 0.2, 0.1, 409600, 204800), strict=True)) | counters
    known = ((metric, values[name]) for metric, name in SHORT.items() if values[name] is not None)
    return "".join(f'node_disk_{metric}_total{{device="{device}"{labels}}} {value}{at}\n' for metric, value in known)


def land(warehouse: Warehouse, *texts: str | bytes, name: str = "web1/{}.prom") -> IngestSummary:
    return warehouse.land("prometheus", {name.format(number): text for number, text in enumerate(texts)})


@pytest.mark.parametrize("clock", ["node_time_seconds", "node_time", "node_timex_offset_seconds 0\nnode_time"])
def test_two_scrapes_by_hand_are_part_of_an_hour(clock: str, warehouse: Warehouse) -> None:
    first = f"HTTP/1.0 200 OK\r\nDate: Mon, 05 Jan 2026 10:10:00 GMT\r\n\r\n# TYPE x counter\n{lines()}{clock} {T + 600}\n"
    second = f"{lines(reads=1100, read_seconds=4.2, read_bytes=4505600)}{lines(device='sda1')}{clock} {T + 2400}\n"
    assert counts(land(warehouse, first, second)) == (2, 2, 0, 0, 0)
    columns = "hour_utc drive_id raid_group_id read_ios write_ios read_latency_us write_latency_us read_blocks coverage"
    assert warehouse.rows("drive_hours", columns) == [
        (datetime(2026, 1, 5, 10), "web1/sda", "web1", 1000, 0, pytest.approx(4000.0, rel=1e-12), None, 4096000, 0.5)
    ]


def test_a_name_with_a_mark_for_a_slash_is_the_kernels(warehouse: Warehouse) -> None:
    land(warehouse, lines(f" {T}", device="cciss!c0d0") + lines(f" {T + 3600}", device="cciss!c0d0", reads=101) + "# EOF\n")
    assert warehouse.rows("drive_hours", "drive_id read_ios") == [("web1/cciss/c0d0", 1)]


@pytest.mark.parametrize(
    "times", [(f" {T}000", f" {T + 3600}000"), (f" {T}.000", f" {T + 3600}.0"), (f" {T}", f' {T + 3600} # {{a="b"}} 1')]
)
def test_milliseconds_seconds_and_exemplars_are_read(times: tuple[str, str], warehouse: Warehouse) -> None:
    land(warehouse, lines(times[0]) + lines(times[1], reads=101, read_seconds=0.25) + "# EOF\n")
    assert warehouse.rows("drive_hours", "hour_utc read_ios coverage") == [(datetime(2026, 1, 5, 10), 1, 1.0)]


def test_a_value_that_comes_twice_counts_once_and_two_of_them_for_none(warehouse: Warehouse) -> None:
    again = lines(f" {T}")
    other = 'node_disk_reads_completed_total{device="sda"} 999 ' + f"{T + 60}\n"
    text = lines(f" {T}") + again + lines(f" {T + 60}", reads=150) + other + lines(f" {T + 1800}", reads=200)
    summary = land(warehouse, text)
    # the scrape that is there twice is one and a duplicate; of the one with two values both lines, and nothing of it counts
    assert counts(summary) == (5, 2, 2, 1, 0)
    rejected = warehouse.rejected("reason value")
    assert rejected == [("one of several values of the same series at the same time", value) for value in ("150", "999")]
    assert warehouse.live()["read_ios"].to_list() == [100]


def test_a_dump_is_read_as_promtool_writes_it(warehouse: Warehouse) -> None:
    dumped = "".join(
        f'{{__name__="node_disk_{metric}_total", device="sda", instance="web{host}:9100", note="a \\"b\\" }} , c"}} {value} {at}000\n'
        for host in (1, 2) for metric in SHORT for at, value in ((T, 0), (T + 3600, 7))
    )  # fmt: skip
    land(warehouse, gzip.compress(dumped.encode()), name="{}.dump.gz")
    assert warehouse.rows("drive_hours", "drive_id read_ios read_latency_us") == [("web1/sda", 7, 1e6), ("web2/sda", 7, 1e6)]


def test_counters_that_wrap_or_start_again(warehouse: Warehouse) -> None:
    readings = [
        {"reads": 10, "read_seconds": 4294967.0},
        {"reads": 20, "read_seconds": 0.704},  # over 2^32 ms: 1 s of ten reads
        {"reads": 30, "read_seconds": 0.804},
        {"reads": 5, "read_seconds": 0.05},  # a boot: a quarter of the hour is not known
        {"reads": 15, "read_seconds": 0.15},
    ]
    land(warehouse, "".join(lines(f" {T + 900 * n}", **reading) for n, reading in enumerate(readings)))
    assert warehouse.rows("drive_hours", "from_utc to_utc read_ios read_latency_us coverage") == [
        (None, datetime(2026, 1, 5, 10, 30), 20, pytest.approx(1.1e6 / 20, rel=1e-9), 0.5),
        (datetime(2026, 1, 5, 10, 45), None, 10, pytest.approx(1e4, rel=1e-9), 0.25),
    ]
    cut = [("web1/sda", None, *(datetime(2026, 1, 5, 10, *after) for after in ((30, 0, 2), (45,))))]
    assert warehouse.rows("drive_aliases", "alias drive_id valid_from valid_to") == cut


def test_broken_lines_cost_themselves(warehouse: Warehouse) -> None:
    text = (
        "\ufeff\n"
        + lines(f" {T}")
        + "node_disk_reads_completed_total{device=\"sda\" 1\nrubbish\xff\n\n# a comment\n"
        + lines(f" {T + 60}", reads="many")
        + lines(f" {T + 120}", writes="NaN")
        + lines(f" {T + 180}", write_seconds=None)
        + lines(" 99999999999999999999", reads=1)
        + lines(f" {T + 3600}", reads=200, read_seconds=1.2)
        + 'node_disk_reads_completed_total{device="s'
    )  # fmt: skip
    summary = land(warehouse, text)
    untimed = [(row, "time") for row in range(29, 35)]
    alone = [(8, "line"), (9, "line"), (12, "value"), (13, "reads"), (18, "writes"), (24, "write_seconds")]
    assert warehouse.rejected("row column") == [*alone, *untimed, (41, "line")]
    assert counts(summary) == (15, 2, 13, 0, 0)
    assert warehouse.rows("drive_hours", "read_ios read_latency_us") == [(100, 10_000.0)]


def test_memory_grows_with_the_hours_and_not_with_their_square(warehouse: Warehouse) -> None:
    times = [hour + minute for hour in range(T, T + 2000 * 3600, 3600) for minute in (0, 59 * 60)]
    info = 'node_disk_info{device="sda",serial="S1"} 1 '
    text = "".join(lines(f" {at}", reads=at, read_seconds=at / 100) + f"{info}{at}\n" for at in times)
    folder = warehouse.put({"web1.prom": text})
    land = "import sys, pathlib; from ingest import ingest; ingest('prometheus', [pathlib.Path(sys.argv[1])], pathlib.Path(sys.argv[2]))"
    peak = "import resource as r, subprocess as s, sys; s.run(sys.argv[1:], check=True); print(r.getrusage(r.RUSAGE_CHILDREN).ru_maxrss)"
    command = [sys.executable, "-c", peak, sys.executable, "-c", land, folder, warehouse.path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000_000, "kilobytes"
    assert len(set(warehouse.rows("drive_hours", "hour_utc"))) == 2000


def test_files_that_overlap_count_once(warehouse: Warehouse) -> None:
    one = lines(f" {T}") + lines(f" {T + 1800}", reads=150)
    two = lines(f" {T + 1800}", reads=150) + lines(f" {T + 3600}", reads=300) + lines(f" {T}", reads=99)
    assert counts(land(warehouse, one, two)) == (5, 3, 0, 1, 1)
    assert warehouse.live()["read_ios"].to_list() == [200]


def test_labels_that_cannot_be_read_cost_their_line(warehouse: Warehouse) -> None:
    twice = f'node_disk_reads_completed_total{{device="sda",device="sdb"}} 5 {T}\n'
    summary = land(warehouse, lines(f" {T}") + twice + lines(f" {T + 3600}", reads=200, read_seconds=1.2))
    assert counts(summary) == (3, 2, 1, 0, 0)
    assert warehouse.rejected("row reason value") == [
        (7, "labels that cannot be read", 'node_disk_reads_completed_total{device="sda",device="sdb"}')
    ]


def test_a_clock_of_the_next_block_gives_the_time(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    # half a scrape, and a little
    monkeypatch.setattr("ingest.reading.readers.BLOCK_BYTES", 220)
    scrapes = [lines(reads=100 * n, read_seconds=n) + f"node_time_seconds {T + 1800 * n}\n" for n in range(3)]
    # the last one has no clock
    assert counts(land(warehouse, "".join(scrapes) + lines())) == (9, 3, 6, 0, 0)
    assert warehouse.rows("drive_hours", "read_ios coverage") == [(200, 1.0)]


@pytest.mark.parametrize("begin", [T + 12 * 3600, T + 14 * 3600 - 120, T + 14 * 3600])
def test_days_that_are_taken_one_by_one_come_to_what_they_come_to_together(
    begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def info(device: str, serial: str, at: int) -> str:
        return f'node_disk_info{{device="{device}",instance="web1:9100",serial="{serial}"}} 1 {at}\n'

    # three days; sda and sdb have swapped their letters 24 hours on, said once only; sdb was reset, after which nobody knows who it is,
    # and out for a night; of sdc and sdd nobody knows it from the scrape after those 24 hours on, and after a night out
    web1 = ',instance="web1:9100"'
    dumped = [info(f"sd{letter}", f"S{place}", begin) for place, letter in enumerate("abcd", 1)]
    dumped += [info("sda", "S2", begin + 86_400), info("sdb", "S1", begin + 86_400), info("sdc", "", begin + 87_000)]
    dumped += [info("sdd", "", begin + 150 * 600)]
    for n in range(3 * 144):
        at = begin + 600 * n
        dumped.append(lines(f" {at}", labels=web1, reads=7 * n * n, read_seconds=n * n / 64))
        dumped.append(lines(f" {at}", "sdc", web1, reads=9 * n, read_seconds=n / 8))
        if not 150 <= n < 200:
            dumped.append(lines(f" {at}", "sdb", web1, reads=(3 * n) % 900, read_seconds=((3 * n) % 900) / 8))
        if not 40 <= n < 150:
            dumped.append(lines(f" {at}", "sdd", web1, reads=5 * n, read_seconds=n / 8))
    by_series = sorted("".join(dumped).splitlines(keepends=True))
    files = ["".join(line for line in by_series if f'"{device}"' in line) for device in ("sda", "sdb", "sdc", "sdd")]
    together, apart = Warehouse(tmp_path / "together"), Warehouse(tmp_path / "apart")
    told = [counts(land(together, *files))]
    monkeypatch.setattr("ingest.sources.prometheus.text.LINES_AT_ONCE", 1)
    told.append(counts(land(apart, *files)))
    assert told[0] == told[1] and told[0][3] == 0
    for kind, order in (("drive_hours", "hour_utc"), ("drives", "valid_from"), ("drive_aliases", "valid_from")):
        # a day does not know that a break follows at its end
        known = pl.exclude("to_utc") if kind == "drive_hours" else pl.all()
        one, other = (each.live(kind).select(known).sort(order, "file_no", "row_no", pl.last()) for each in (together, apart))
        assert one.equals(other), kind
    assert together.live()["hour_utc"].n_unique() >= 72
    assert together.live("drives").height == 9


EMPTY = 'node_disk_info{device="sda",instance="web1:9100",serial=""}'
OLD, NEW = (f'node_disk_info{{device="sda",instance="web1:9100",serial="{serial}"}}' for serial in ("OLD", "NEW"))
MEMBER = 'drivetail_md_member{device="sda",instance="web1:9100",md="md0",serial="OLD"}'


@pytest.mark.parametrize("begin", [T, T + 14 * 3600 - 1800])
@pytest.mark.parametrize(
    ("before", "after", "later", "is_known"),
    [(OLD, EMPTY, EMPTY, False), (OLD, "", "", False), (MEMBER, "", "", False), (OLD, "", NEW, False), (OLD, OLD, OLD, True)],
)
def test_a_drive_not_named_after_its_counters_began_again_is_unknown(
    before: str, after: str, later: str, is_known: bool, begin: int, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another drive may be there from 30 minutes on. Once this is midnight, and each day is read by itself."""
    monkeypatch.setattr("ingest.sources.prometheus.text.LINES_AT_ONCE", 1)
    scrapes = []
    for minute in range(0, 61, 5):
        counted, at = minute if minute < 30 else minute - 29, f" {begin + 60 * minute}"
        said = before if minute < 30 else after if minute < 45 else later
        scrapes.append(lines(at, labels=',instance="web1:9100"', reads=counted, writes=counted) + (f"{said} 1{at}\n" if said else ""))
    land(warehouse, "".join(scrapes))
    started = datetime.fromtimestamp(begin, UTC).replace(tzinfo=None)
    claims = warehouse.rows("drive_aliases", "drive_id valid_from valid_to", alias="web1/sda")
    minutes = [(drive, *(None if at is None else (at - started).seconds // 60 for at in times)) for drive, *times in claims]
    old = [("OLD", 0, None if is_known else 25)]
    cuts = [(None, 30, None), ("OLD", 30, None)] if is_known else [(None, 25, 30)]
    assert sorted(minutes, key=str) == sorted([*old, *[("NEW", 45, None)] * (later == NEW), *cuts], key=str)


@pytest.mark.parametrize(("boot", "later"), [(True, [("OLD", 45), (None, 21)]), (False, [])])
def test_a_drive_keeps_its_name_beside_an_exporter_without_serials(
    boot: bool, later: list[tuple[str | None, int]], warehouse: Warehouse
) -> None:
    """Pod a tells, b never does. At 25 there is a boot, and a comes back long after b; or b alone has a gap of ten minutes."""
    texts = []
    for minute in range(61):
        pod = {0: "a", 1: "b"}.get(minute % 5, "")
        is_silent = 25 < minute < (45 if pod == "a" else 31) if boot else pod == "b" and 21 < minute < 31
        if pod and not is_silent:
            at, labels = f" {T + 60 * minute}", f',instance="web1:9100",pod="{pod}"'
            counted = minute - 29 if boot and minute > 25 else 1000 + minute
            texts.append(
                lines(at, labels=labels, reads=counted, writes=counted) + OLD.replace("}", f',pod="{pod}"}} 1{at}\n') * (pod == "a")
            )
    land(warehouse, "".join(texts))
    found = warehouse.rows("drive_aliases", "drive_id valid_from valid_to", alias="web1/sda")
    began = datetime.fromtimestamp(T, UTC).replace(tzinfo=None)
    minutes = [(drive, (since - began).seconds // 60) for drive, since, _ in found]
    assert sorted(minutes, key=str) == sorted([("OLD", 0), *later], key=str)
    assert all((until is not None) == (drive is None) for drive, _, until in found)


@pytest.mark.parametrize(("said", "cuts"), [("", [(60, 60)]), (EMPTY, [(60, 60)]), (NEW, []), ("begins with the others", [])])
def test_a_device_that_comes_late_is_unknown_until_named(said: str, cuts: list[tuple[int, int]], warehouse: Warehouse) -> None:
    """An earlier delivery named the drive that was there before."""
    web1 = ',instance="web1:9100"'
    land(warehouse, "".join(lines(f" {T + 60 * minute}", labels=web1) + f"{OLD} 1 {T + 60 * minute}\n" for minute in (0, 5)))
    later = []
    for minute in range(45, 76, 5):
        at = f" {T + 60 * minute}"
        later.append(lines(at, device="sdb", labels=web1))
        if minute >= 60 or said[:1] == "b":
            later.append(lines(at, labels=web1) + (f"{said} 1{at}\n" if said[:4] == "node" else ""))
    land(warehouse, "".join(later))
    found = warehouse.rows("drive_aliases", "drive_id valid_from valid_to", alias="web1/sda")
    began = datetime.fromtimestamp(T, UTC).replace(tzinfo=None)
    minutes = [tuple((at - began).seconds // 60 for at in times) for drive, *times in found if drive is None]
    assert minutes == cuts and {drive for drive, *_ in found if drive} == {"OLD", *(["NEW"] if said == NEW else [])}


def test_another_drive_of_one_model_under_a_name_is_described(warehouse: Warehouse) -> None:
    web1 = ',instance="web1:9100"'
    for hour, serials in enumerate([("S1", "S2"), ("S2", "S1"), ("S2", "S1"), ("S2", "S3")]):
        text = []
        for at in range(T + 3600 * hour, T + 3600 * (hour + 1), 600):
            for device, serial in zip(("sda", "sdb"), serials, strict=True):
                text.append(f'node_disk_info{{device="{device}",instance="web1:9100",serial="{serial}",model="M"}} 1 {at}\n')
                text.append(lines(f" {at}", device, web1, reads=at - T, read_seconds=(at - T) / 64))
        land(warehouse, "".join(text))
    for kind in ("drives", "drive_aliases"):
        begun = warehouse.live(kind).filter(pl.col("valid_from").dt.minute() == T % 3600 // 60)
        told = begun.select("alias" if kind == "drive_aliases" else "drive_id", pl.col("valid_from").dt.hour() - T // 3600 % 24)
        assert sorted(told.rows()) == [("web1/sda", 0), ("web1/sda", 1), ("web1/sdb", 0), ("web1/sdb", 1), ("web1/sdb", 3)], kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is in it"),
        ("\ufeff", "nothing is in it"),
        ("\ufeff\n\n", "no counter of a drive"),
        ("# only comments\n", "no counter of a drive"),
        ("<html><body>login</body></html>", "no counter of a drive"),
        ("go_goroutines 7\n", "no counter of a drive"),
        (lines(), "no node_time_seconds"),
        ("node_disk_reads_completed_total 7\n", "no node_time_seconds"),
        (b"PAR1\0\0", "binary data"),
        ("\ufeffx".encode("utf-16"), "UTF-16"),
    ],
)  # fmt: skip
def test_a_file_without_counters_or_time_is_unreadable(text: str | bytes, said: str, warehouse: Warehouse) -> None:
    (file,) = land(warehouse, text).files
    assert file.status == "unreadable" and said in (file.note or "")


@needs_shared
class TestSamples:
    def test_a_slow_drive_stands_out_between_two_scrapes(self, warehouse: Warehouse) -> None:
        folder = SAMPLES / "qemu_md_raid6_throttled"
        summary = ingest("prometheus", [folder / "ne_0.txt", folder / "ne_1.txt"], warehouse.path, min_coverage=0.001)
        assert counts(summary) == (14, 14, 0, 0, 0)
        serials = warehouse.live("drive_aliases").select("alias", pl.col("drive_id").alias("serial"))
        rows = warehouse.live().join(serials, left_on="drive_id", right_on="alias").sort("serial")
        assert rows.select("serial", "read_ios", pl.col("read_latency_us").round().cast(pl.Int64)).rows() == [
            ("NVME0001", 0, None), ("SER0000", 493, 2249), ("SER0001", 508, 2587), ("SER0002", 444, 2324),
            ("SER0003", 438, 288845), ("SER0004", 480, 2412), ("SER0005", 419, 2494),
        ]  # fmt: skip
        assert rows["coverage"].to_list() == pytest.approx([21.476702 / 3600] * 7, abs=1e-9)

    def test_every_line_of_a_real_dump_is_accounted_for(self, warehouse: Warehouse) -> None:
        # its I/Os are no whole numbers: nothing of it may count, and nothing may be lost
        (file,) = ingest("prometheus", SAMPLES / "prometheus/promtool_tsdb_dump.txt.gz", warehouse.path).files
        assert (file.rows_delivered, file.rows_rejected) == (10_020, 10_020)

    def test_real_answers_of_a_scrape(self, warehouse: Warehouse, tmp_path: Path) -> None:
        summary = ingest("prometheus", SAMPLES / "prometheus/node_exporter_metrics_host.txt", warehouse.path)
        assert counts(summary) == (1, 1, 0, 0, 0)
        with pytest.raises(UnreadableFile, match="no node_time_seconds"):
            read_samples(SAMPLES / "node_exporter_e2e_output.prom", "host", Labels(), tmp_path)
