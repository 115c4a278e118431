"""One fleet, told by its arrays and counted by node_exporter into a real Prometheus: the same drive-hours, within what counters can tell.

How far the two may be apart. Counts and bytes are whole numbers in both: equal. The kernel's time counters are cut to whole
milliseconds, so the time of n I/Os between two scrapes is off by less than 1 ms, and the latency by less than 1000 us / n. Their 32 bits
hold 4.3 million seconds, which as a double are off by 0.0005 us at either end, and what is added where they run over by as much;
nanoseconds cut off in the making add 0.0005 us. So a direction's latency is off by less than RESOLUTION_US / n.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from drivetail.cli import main
from engine.build import build
from engine.warehouse import Warehouse
from ingest import ingest, list_deliveries
from ingest.contract.findings import MISSING, OK, WEAK, Finding
from ingest.raw.store import drive_hour_files, table_files
from ingest.sources.prometheus.doctor import diagnose
from ingest.sources.prometheus.pull import Selection
from ingest.sources.prometheus.text import Labels
from simulate import simulate
from tests.ingest.prometheus_server import counted_drives
from tests.proof.prometheus_fleet import HOUR, prometheus, write_openmetrics
from tests.proof.support import SHARED, asked_soundly

START = datetime(2026, 1, 5)
RESOLUTION_US = 1000.003
SAMPLES = SHARED / "samples/qemu_md_raid6_throttled"
pytestmark = [
    pytest.mark.needs("prometheus"),
    pytest.mark.xdist_group("prometheus"),
]


def counted_fleet(folder: Path, hours: int, scrapes_per_hour: int, **fleet: int) -> int:
    """A fleet as `bundle` and as what a server holds of it; how often a counter of time ran over its 32 bits."""
    simulate(folder / "bundle", hours=hours, **fleet)
    return write_openmetrics(folder / "bundle", folder, scrapes_per_hour)


def both_ways(folder: Path, url: str, hours: int) -> tuple[Path, Path]:
    """Warehouses of the fleet: as its arrays reported it, and as the server counted it."""
    told, counted = folder / "told", folder / "counted"
    ingest("bundle", folder / "bundle", told)
    summary = ingest("prometheus", url, counted, first=START, end=START + timedelta(hours=hours))
    assert summary.rows_rejected == 0
    return told, counted


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Two groups over 30 hours, scraped every 15 minutes, and the server that holds them."""
    folder = tmp_path_factory.mktemp("counted")
    counted_fleet(folder, 30, 4, disk_groups=1, ssd_groups=1, seed=11)
    with prometheus(folder) as url:
        yield folder, url


def landed(warehouse: Path) -> pl.DataFrame:
    """The drive-hours of raw by the serial of each drive: a server's are named HOST/DEVICE, and aliases name the serial."""
    deliveries = list_deliveries(warehouse)
    files = [path for delivery in deliveries for path in drive_hour_files(delivery)]
    rows = pl.concat([pl.read_parquet(path, glob=False) for path in files], how="diagonal")
    aliases = [pl.read_parquet(path, glob=False).select("alias", "drive_id") for path in table_files(deliveries, "drive_aliases")]
    if aliases:
        serials = dict(pl.concat(aliases).unique().iter_rows())
        rows = rows.with_columns(pl.col("drive_id").replace(serials))
    return rows.sort("drive_id", "hour_utc")


def check_drive_hours(folder: Path, url: str, hours: int) -> None:
    """Drive-hours of the server are those of the bundle."""
    told, counted = (landed(warehouse) for warehouse in both_ways(folder, url, hours))
    same = ["drive_id", "hour_utc", "raid_group_id", "read_ios", "write_ios"]
    assert told.height == counted.height > 600
    assert counted.select(same).equals(told.select(same))
    size = [pl.col(f"{way}_blocks") * pl.col("block_bytes") for way in ("read", "write")]
    assert counted.select(size).equals(told.select(size))
    for way in ("read", "write"):
        off = (counted[f"{way}_latency_us"] - told[f"{way}_latency_us"]).abs() * told[f"{way}_ios"]
        assert RESOLUTION_US / 2 < off.max() < RESOLUTION_US  # near: the bound is no room to hide in
    assert counted["coverage"].is_between(3599 / 3600, 1.0).all()


def test_drive_hours_of_a_server_are_those_of_the_arrays(day: tuple[Path, str]) -> None:
    check_drive_hours(*day, 30)


@pytest.mark.parametrize("written", ["dump", "openmetrics"])
def test_a_promtool_dump_lands_as_the_servers_answers_do(day: tuple[Path, str], written: str, tmp_path: Path) -> None:
    folder, url = day
    files = sorted(folder.glob("*.om"))
    if written == "dump":
        files = [tmp_path / "dump.txt"]
        with files[0].open("w") as out:
            subprocess.run(["promtool", "tsdb", "dump", folder / "data"], stdout=out, check=True, timeout=60)
    assert ingest("prometheus", files, tmp_path / "read").rows_rejected == 0
    ingest("prometheus", url, tmp_path / "pulled", first=START, end=START + timedelta(hours=30))
    pulled, read = (landed(tmp_path / name).drop("delivery_seq", "file_no", "row_no") for name in ("pulled", "read"))
    assert read.height > 600
    assert read.equals(pulled.select(read.columns))


def states(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.state for finding in findings}


def test_the_doctor_finds_the_data_of_the_server(day: tuple[Path, str]) -> None:
    _, url = day
    now = START + timedelta(hours=30)
    found = diagnose(url, Selection(), 3, now, replace_days=5, chronic_days=28)
    assert states(found) == {
        "server": OK,
        "counters": OK,
        "hosts": OK,
        "scrapes": WEAK,
        "history": WEAK,
        "serials": OK,
        "groups": OK,
        "peers": OK,
    }
    said = {finding.check: finding.said for finding in found}
    assert "drives on 2 hosts" in said["hosts"]
    assert "every 900 s" in said["scrapes"]
    (history,) = (finding for finding in found if finding.check == "history")
    assert (
        history.first_hour_utc == START
        and "1 day, to 2026-01-05 00:00 UTC" in history.said
        and "replace needs slow hours on 5 days" in history.said
    )
    assert states(diagnose(url, Selection(), 30, now))["peers"] == MISSING


@pytest.mark.parametrize(
    ("selection", "check", "said"),
    [
        (Selection(labels=Labels(device="disk")), "counters", "has the labels"),
        (Selection(match=('job="nobody"',)), "counters", "name the label of the device"),
        (Selection(labels=Labels(host="node")), "hosts", "there are instance, job"),
        (Selection(match=("job=node",)), "answers", "bad_data"),
    ],
)
def test_the_doctor_says_what_is_missing(day: tuple[Path, str], selection: Selection, check: str, said: str) -> None:
    found = diagnose(day[1], selection, 3, START + timedelta(hours=30))
    (missing,) = (finding for finding in found if finding.state == MISSING)
    assert missing.check == check and said in f"{missing.said}; {missing.todo}"


@pytest.mark.parametrize("days", [2, 40, 4000])
def test_the_doctor_asks_later_than_the_data(days: int, day: tuple[Path, str]) -> None:
    (missing,) = (finding for finding in diagnose(day[1], Selection(), 3, START + timedelta(days=days)) if finding.state == MISSING)
    assert missing.said.startswith("no node_disk_reads_completed_total")
    assert ("now, but of hours before: nothing is scraped any more" in missing.said) == (days < 4000)


@pytest.mark.parametrize("days", [0.3, 10])
def test_the_doctors_last_line_pulls_all_there_is(days: float, tmp_path: Path) -> None:
    """Three drives, and a server that was down in the hours of 8 days ago."""
    now = int(time.time()) // 300 * 300
    begins = now // HOUR * HOUR - int(days * 24) * HOUR
    gap = range(now - 8 * 24 * HOUR - 3 * HOUR, now - 8 * 24 * HOUR + HOUR)
    for day in range(begins // 86_400, now // 86_400 + 1):
        with (tmp_path / f"{day}.om").open("w") as out:
            for key, samples in sorted(counted_drives(begins, now, every=300).items()):
                given = dict(key)
                metric, shown = given.pop("__name__"), ",".join(f'{name}="{value}"' for name, value in given.items())
                of_day = [(value, at) for at, value in samples if at // 86_400 == day and at not in gap]
                out.writelines(f"{metric}{{{shown}}} {value} {at:.0f}\n" for value, at in of_day)
            out.write("# EOF\n")
    with prometheus(tmp_path) as url:
        arguments = ["prometheus", url, "--match", 'job="node"', "-w", str(tmp_path / "warehouse")]
        done = CliRunner().invoke(main, ["doctor", *arguments])
        assert done.exit_code == 0, done.output
        line = done.output.splitlines()[-1]
        assert line.startswith(f"Next: drivetail ingest prometheus {url} --match 'job=\"node\"' --warehouse ")
        assert CliRunner().invoke(main, shlex.split(line)[2:]).exit_code == 0
    assert landed(tmp_path / "warehouse")["hour_utc"].min() == datetime.fromtimestamp(begins, UTC).replace(tzinfo=None)


@pytest.mark.soak
def test_a_month_of_a_server_is_that_of_the_arrays(tmp_path: Path) -> None:
    """With 62 drives, whose counters of time run over."""
    assert counted_fleet(tmp_path, 24 * 30, 1, disk_groups=3, ssd_groups=2, seed=12) > 10
    with prometheus(tmp_path) as url:
        check_drive_hours(tmp_path, url, 24 * 30)


@pytest.mark.skipif(not SAMPLES.exists(), reason=f"the samples are not here ({SAMPLES}); they are not ours to distribute")
def test_a_throttled_drive_of_a_real_array_is_the_slow_one(tmp_path: Path) -> None:
    """Each source's own files: node_exporter knows the serials, smartctl two drives' models, the operator the array,
    iostat and the kernel letters."""
    warehouse, host = Warehouse(tmp_path / "warehouse"), tmp_path / "(none)"
    host.mkdir()
    for name in ("ne_0.txt", "ne_1.txt"):
        shutil.copyfile(SAMPLES / name, host / name)
    ingest("prometheus", host, warehouse.root, min_coverage=0.001)
    build(warehouse)

    asked = partial(asked_soundly, warehouse.published)
    slow = "select drive_id, slowdown > 100, raid_group_id from marts.fct_drive_hours where is_slow"
    assert asked(slow) == [("SER0003", True, "(none)")]

    kernel_log, mapped = tmp_path / "kern.log", tmp_path / "mapped.csv"
    # the first look was at 01:41:10: what sdb was before is not known
    error = "2026-11-21T01:{}+00:00 (none) kernel: blk_update_request: critical medium error, dev sdb, sector 2048\n"
    kernel_log.write_text(error.format("20:00") + error.format("41:20"))
    mapped.write_text("drive_id,raid_group_id\n" + "".join(f"SER000{number},array\n" for number in range(6)))
    ingest("sysstat", SAMPLES / "iostat_throttled.json", warehouse.root, min_coverage=0.001)
    ingest("smartctl", sorted((SAMPLES.parent / "qemu_md_raid6").glob("smartctl_sd*.json")), warehouse.root)
    ingest("kernel-log", kernel_log, warehouse.root)
    ingest("mapping", mapped, warehouse.root)
    build(warehouse, daily=True)
    assert asked(slow) == [("SER0003", True, "array")]
    # the NVMe drive is left alone
    assert asked("select raid_group_id, count(*), count(slowdown) from marts.fct_drive_hours group by all") == [("array", 6, 6)]
    assert asked("select drive_id, raid_group_id, event_type, slow_within_window from marts.fct_drive_events order by occurred_at") == [
        ("(none)/sdb", None, "media_error", None), ("SER0003", "array", "media_error", True),
    ]  # fmt: skip
    assert asked("select drive_id, kind, model from marts.dim_drives where drive_id > 'N' and drive_id < 'SER0003' order by 1") == [
        ("NVME0001", "ssd", "QEMU NVMe Ctrl"), ("SER0000", "disk", "QEMU HARDDISK"), ("SER0001", "disk", "QEMU HARDDISK"),
        ("SER0002", "unknown", "QEMU HARDDISK"),
    ]  # fmt: skip
