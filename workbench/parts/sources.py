"""A month of 60 drives out of a Prometheus server and out of its files, and the rows per second of each parser."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl

from ingest import drive_hour_files, ingest, list_deliveries
from tests.proof.prometheus_fleet import prometheus, write_openmetrics
from workbench.measure import DRIVETAIL, measure, row_count, simulate
from workbench.parts import Section, Setting

START = datetime(2026, 1, 5)
UNIX = int(START.replace(tzinfo=UTC).timestamp())
COUNTERS = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds", "read_bytes", "written_bytes")
DISKS = [f"sd{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]
TIMEOUT = "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s"


def at(seconds: int) -> datetime:
    """An instant of the deliveries."""
    return START + timedelta(seconds=seconds)


def table(header: str, *rows: str) -> str:
    """A file's text."""
    return "\n".join([header, *rows, ""])


def deliveries() -> Iterator[tuple[str, str, int, dict[str, str]]]:
    """Source, what a row is, number of rows, and the texts of the files by name."""
    series = (f'__name__="node_disk_{name}_total", device="{disk}", instance="h1:9100"' for disk in DISKS for name in COUNTERS)
    samples = (f"{{{one}}} {scrape * 7} {UNIX + 300 * scrape}000" for one in series for scrape in range(4 * 288))
    yield "prometheus", "lines of a tsdb dump", 60 * 6 * 4 * 288, {"fleet.dump": table(*samples)}
    ends = [at(600 * n) for n in range(1, 7 * 144 + 1)]
    rows = (f"web1;600;{end} UTC;{disk};10.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00" for end in ends for disk in DISKS[:12])
    header = "# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util"
    yield "sysstat", "drives in an interval of sadf -d", 12 * len(ends), {"sadf.csv": table(header, *rows)}
    numbers = {"r/s": 1.0, "w/s": 2.0, "rkB/s": 3.0, "wkB/s": 4.0, "r_await": 5.0, "w_await": 6.0}
    disks = [{"disk_device": disk, **numbers} for disk in DISKS[:12]]
    elements = [{"timestamp": f"{at(10 * n):%Y-%m-%dT%H:%M:%S}+0000", "disk": disks} for n in range(1081)]
    host = {"nodename": "web1", "date": "2026-01-05", "statistics": elements}
    text = json.dumps({"sysstat": {"hosts": [host]}}, indent=1)
    yield "sysstat", "drives in an interval of iostat's JSON", 12 * 1080, {"iostat.json": text}
    messages = ("usb 3-9: new device number 14" if n % 100 else TIMEOUT for n in range(50_000))
    log = (f"{at(n):%Y-%m-%dT%H:%M:%S}+00:00 web1 kernel: {message}" for n, message in enumerate(messages))
    yield "kernel-log", "lines", 50_000, {"kern.log": table(*log)}
    looks = []
    for minute in range(240):
        counters = " ".join(str(minute * (10 + column)) for column in range(17))
        looks += [f"TS {UNIX + 60 * minute}", *(f"   8 {16 * n} {disk} {counters}" for n, disk in enumerate(DISKS))]
    yield "diskstats", "drives in a look", 60 * 240, {"web1/diskstats": table(*looks)}
    arrays = [
        f"md{md} : active raid6 {' '.join(f'sd{chr(97 + md)}{chr(97 + n)}[{n}]' for n in range(6))}\n"
        "      3906764800 blocks level 6, 512k chunk, algorithm 2 [6/6] [UUUUUU]\n"
        for md in range(5)
    ]
    looks = [table(f"TS {UNIX + 60 * look}\nPersonalities : [raid6]", *arrays, "unused devices: <none>") for look in range(2000)]
    yield "mdadm", "members in a look at /proc/mdstat", 2000 * 5 * 6, {"web2/mdstat": "".join(looks)}
    attributes = [{"id": n, "name": f"Attribute_{n}", "value": 100, "worst": 100, "thresh": 0, "raw": {"value": n}} for n in range(1, 31)]
    about = {
        "smartctl": {"version": [7, 3], "exit_status": 0}, "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": "A_DISK", "firmware_version": "1", "rotation_rate": 7200, "user_capacity": {"bytes": 4_000_787_030_016},
        "local_time": {"time_t": UNIX}, "power_on_time": {"hours": 20_000}, "ata_smart_attributes": {"table": attributes},
    }  # fmt: skip
    documents = {f"web3/smartctl-{n}.json": json.dumps({**about, "serial_number": f"S{n}"}, indent=2) for n in range(500)}
    yield "smartctl", "documents", 500, documents
    disk = {"type": "disk", "model": "A_DISK", "rev": "1", "vendor": "ATA", "size": 4_000_787_030_016, "rota": True, "tran": "sata"}
    devices = [{"name": name, "serial": f"S{n}", "wwn": f"0x5000c500{n:08x}", **disk} for n, name in enumerate(DISKS)]
    documents = {f"web4/lsblk-{n}.json": json.dumps({"blockdevices": devices, "TS": UNIX + 60 * n}, indent=3) for n in range(200)}
    yield "lsblk", "drives in a document", 60 * 200, documents
    rows = (f"S{n},g{n // 8},host{n // 24},e{n % 24},2026-01-05" for n in range(20_000))
    yield "mapping", "rows", 20_000, {"mapping.csv": table("drive_id,raid_group_id,host,slot,valid_from", *rows)}
    rows = (f"S{n},{at(n)},host{n % 500},media_error,clicks" for n in range(20_000))
    yield "tickets", "rows", 20_000, {"tickets.csv": table("serial,opened_at,host,type,summary", *rows)}
    rows = (f"S{n},{'healthy' if n % 9 else 'slow'},ann,2026-01-05" for n in range(20_000))
    yield "labels", "rows", 20_000, {"labels.csv": table("drive_id,verdict,labelled_by,labelled_on", *rows)}
    rows = (f"2026-01-05,S{n},M{n % 40},4000787030016,0,{n % 50_000}" for n in range(60_000))
    header = "date,serial_number,model,capacity_bytes,failure,smart_9_raw"
    yield "backblaze", "drive-days", 60_000, {"2026-01-05.csv": table(header, *rows)}


def plain(files: list[Path]) -> None:
    """Read files as lines."""
    for file in files:
        pl.read_csv(file, has_header=False, separator="\x01", quote_char=None, new_columns=["line"])


def cpu_seconds(run: Callable[..., object], *arguments: object) -> float:
    """CPU seconds of this process."""
    begun = time.process_time()
    run(*arguments)
    return time.process_time() - begun


def bench_parsers(setting: Setting) -> Section:
    """Each source's delivery, landed, beside a plain read of the same bytes."""
    lines = [
        f"CPU seconds of one process, the best of {setting.repetitions}. The plain read is Polars splitting the same bytes into lines.",
        "",
        "| source | rows | MB | rows per CPU second | times a plain read |",
        "|---|--:|--:|--:|--:|",
    ]
    for source, what, rows, texts in deliveries():
        with tempfile.TemporaryDirectory(dir=setting.work) as name:
            files = [Path(name) / "delivery" / each for each in texts]
            for file, text in zip(files, texts.values(), strict=True):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            repetitions = range(setting.repetitions)
            landed = min(cpu_seconds(ingest, source, [Path(name) / "delivery"], Path(name) / f"warehouse-{n}") for n in repetitions)
            bare = min(cpu_seconds(plain, files) for _ in repetitions)
            size = sum(file.stat().st_size for file in files) / 1e6
        lines.append(f"| {source} ({what}) | {rows:,} | {size:.0f} | {rows / landed:,.0f} | {landed / bare:.0f} |")
        print(lines[-1], flush=True)
    return Section("Parsers", lines)


def bench_sources(setting: Setting) -> list[Section]:
    """The server first: a process counts the memory of the one it is forked from, and the parsers are read in this one."""
    return [bench_server(setting), bench_parsers(setting)]


def bench_server(setting: Setting) -> Section:
    """A quarter of the month, then all of it, from either."""
    spans = (1, 2) if setting.small else (7, 30)
    lines = [
        "A simulated fleet, scraped every five minutes, in a real server and in OpenMetrics files of a day; `drivetail ingest prometheus`. "
        f"Medians of {setting.repetitions}. Peak memory is at least that of this bench, which simulates the fleet.",
        "",
        "| from | days | drive-hours | wall (s) | CPU (s) | peak memory (MiB) |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(dir=setting.work) as name:
        folder = Path(name)
        simulate(folder / "bundle", 3, 2, spans[-1])
        write_openmetrics(folder / "bundle", folder, 12)
        files = sorted(folder.glob("*.om"))
        with prometheus(folder) as url:
            for days in spans:
                span = "--from", "2026-01-05", "--to", f"{datetime(2026, 1, 5) + timedelta(days=days):%Y-%m-%d}"
                # the last full hour of a day is over at the first scrape of the next
                for given, asked in (("a server", (url, *span)), ("files", files[: days + 1])):
                    costs = []
                    for repetition in range(setting.repetitions):
                        warehouse = folder / f"{given}-{days}-{repetition}"
                        costs.append(measure(DRIVETAIL, "ingest", "prometheus", *asked, "--warehouse", warehouse))
                    rows = row_count(path for delivery in list_deliveries(warehouse) for path in drive_hour_files(delivery))
                    wall, cpu = statistics.median(cost.seconds for cost in costs), statistics.median(cost.cpu_seconds for cost in costs)
                    peak = max(cost.peak_mib for cost in costs)
                    lines.append(f"| {given} | {days} | {rows:,} | {wall:.1f} | {cpu:.1f} | {peak:,.0f} |")
                    print(lines[-1], flush=True)
    return Section("A month of 60 drives from Prometheus", lines)
