"""Rows per second of each parser beside a plain Polars read of the same bytes: a part of `make bench`.

CPU seconds of this process. The plain read splits the bytes into lines and does nothing with them.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl

from ingest import ingest
from ingest.reading.clocks import zone_of
from ingest.sources.kernel_log import Reading, read_log
from ingest.sources.prometheus.text import Labels, read_samples
from ingest.sources.sysstat import read_intervals

START = datetime(2026, 1, 5)
UNIX = int(START.replace(tzinfo=UTC).timestamp())
WEEK = [START + timedelta(minutes=10 * n) for n in range(1, 7 * 144 + 1)]
"""The ends of a week's ten minutes."""


def samples(folder: Path) -> tuple[Path, int]:
    """Four days of 60 drives, scraped every five minutes, as a dump: six counters each."""
    metrics = ("reads_completed", "writes_completed", "read_time_seconds", "write_time_seconds", "read_bytes", "written_bytes")
    path = folder / "fleet.dump"
    with path.open("w") as out:
        for drive in range(60):
            series = [
                f'{{__name__="node_disk_{metric}_total", device="sd{chr(97 + drive % 12)}", instance="h{drive // 12}:9100"}}'
                for metric in metrics
            ]
            for one in series:
                out.writelines(f"{one} {scrape * 7} {UNIX + 300 * scrape}000\n" for scrape in range(4 * 288))
    return path, 60 * 4 * 288 * len(metrics)


def sadf(folder: Path) -> tuple[Path, int]:
    """A week of 12 drives, every ten minutes, as sadf -d."""
    path = folder / "sadf.csv"
    with path.open("w") as out:
        out.write("# hostname;interval;timestamp;DEV;tps;rkB/s;wkB/s;dkB/s;areq-sz;aqu-sz;await;%util\n")
        for end in WEEK:
            out.writelines(f"web1;600;{end} UTC;sd{chr(97 + n)};10.00;1.00;1.00;0.00;0.20;0.01;2.00;1.00\n" for n in range(12))
    return path, 12 * len(WEEK)


def sadf_json(folder: Path) -> tuple[Path, int]:
    """A week of 12 drives, every ten minutes, as sadf -j."""
    path = folder / "sadf.json"
    disks = [{"disk-device": f"sd{chr(97 + n)}", "tps": 10.0, "rkB": 1.0, "wkB": 1.0, "await": 2.0} for n in range(12)]
    elements = [
        {"timestamp": {"date": f"{end:%Y-%m-%d}", "time": f"{end:%H:%M:%S}", "utc": 1, "interval": 600}, "disk": disks} for end in WEEK
    ]
    host = {"nodename": "web1", "file-date": "2026-01-05", "statistics": elements}
    path.write_text(json.dumps({"sysstat": {"hosts": [host]}}, indent=1))
    return path, 12 * len(WEEK)


def iostat(folder: Path) -> tuple[Path, int]:
    """Three hours of 12 drives, every ten seconds, as iostat's JSON."""
    path = folder / "iostat.json"
    disk = {"r/s": 1.0, "w/s": 2.0, "rkB/s": 3.0, "wkB/s": 4.0, "r_await": 5.0, "w_await": 6.0}
    disks = [{"disk_device": f"sd{chr(97 + n)}", **disk} for n in range(12)]
    elements = [{"timestamp": f"{START + timedelta(seconds=10 * n):%Y-%m-%dT%H:%M:%S}+0000", "disk": disks} for n in range(1081)]
    path.write_text(json.dumps({"sysstat": {"hosts": [{"nodename": "web1", "date": "2026-01-05", "statistics": elements}]}}, indent=1))
    return path, 12 * 1080


def message(n: int) -> str:
    """A message of the kernel: one in a hundred is about a drive."""
    if n % 100:
        return "usb 3-9: new device number 14"
    return "sd 1:0:0:0: [sdb] tag#9 FAILED Result: hostbyte=DID_TIME_OUT driverbyte=DRIVER_OK cmd_age=30s"


def log(folder: Path) -> tuple[Path, int]:
    """50,000 lines of a log, one in a hundred about a drive."""
    path = folder / "kern.log"
    with path.open("w") as out:
        for n in range(50_000):
            out.write(f"{START + timedelta(seconds=n):%Y-%m-%dT%H:%M:%S}+00:00 web1 kernel: {message(n)}\n")
    return path, 50_000


def journal(folder: Path) -> tuple[Path, int]:
    """20,000 records of journald as JSON, one in a hundred about a drive."""
    path = folder / "kern.ndjson.log"
    with path.open("w") as out:
        for n in range(20_000):
            about = {"__REALTIME_TIMESTAMP": str((UNIX + n) * 1_000_000), "_HOSTNAME": "web1", "_TRANSPORT": "kernel", "PRIORITY": "6"}
            out.write(json.dumps({**about, "MESSAGE": message(n)}) + "\n")
    return path, 20_000


def table(path: Path, header: str, rows: list[str]) -> tuple[Path, int]:
    """A CSV file."""
    path.write_text("\n".join([header, *rows, ""]))
    return path, len(rows)


def mapping(folder: Path) -> tuple[Path, int]:
    """Where 20,000 drives are, as an operator gives it."""
    return table(
        folder / "mapping.csv",
        "drive_id,raid_group_id,host,slot,valid_from",
        [f"S{n},g{n // 8},host{n // 24},e{n % 24},2026-01-05" for n in range(20_000)],
    )


def tickets(folder: Path) -> tuple[Path, int]:
    """20,000 trouble tickets."""
    return table(
        folder / "tickets.csv",
        "serial,opened_at,host,type,summary",
        [f"S{n},{START + timedelta(seconds=n)},host{n % 500},media_error,clicks" for n in range(20_000)],
    )


def labels(folder: Path) -> tuple[Path, int]:
    """20,000 labels."""
    return table(
        folder / "labels.csv",
        "drive_id,verdict,labelled_by,labelled_on",
        [f"S{n},{'slow' if n % 9 == 0 else 'healthy'},ann,2026-01-05" for n in range(20_000)],
    )


def drive_days(folder: Path) -> tuple[Path, int]:
    """A day of 60,000 drives."""
    return table(
        folder / "2026-01-05.csv",
        "date,serial_number,model,capacity_bytes,failure,smart_9_raw",
        [f"2026-01-05,S{n},M{n % 40},4000787030016,0,{n % 50_000}" for n in range(60_000)],
    )


def snapshots(folder: Path) -> tuple[Path, int]:
    """Four hours of 60 drives' counters, every minute, as /proc/diskstats shows them."""
    path = folder / "web1" / "diskstats"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as out:
        for minute in range(240):
            counters = " ".join(str(minute * (10 + column)) for column in range(17))
            out.write(f"TS {UNIX + 60 * minute}\n")
            out.writelines(f"   8 {16 * n} sd{chr(97 + n // 26)}{chr(97 + n % 26)} {counters}\n" for n in range(60))
    return path, 60 * 240


def arrays(folder: Path) -> tuple[Path, int]:
    """2,000 looks at /proc/mdstat with five arrays of six drives; what a member is counts as a row."""
    path = folder / "web2" / "mdstat"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as out:
        for look in range(2000):
            out.write(f"TS {UNIX + 60 * look}\nPersonalities : [raid6]\n")
            for md in range(5):
                members = " ".join(f"sd{chr(97 + md)}{chr(97 + n)}[{n}]" for n in range(6))
                out.write(f"md{md} : active raid6 {members}\n      3906764800 blocks level 6, 512k chunk, algorithm 2 [6/6] [UUUUUU]\n\n")
            out.write("unused devices: <none>\n")
    return path, 2000 * 5 * 6


def documents(folder: Path) -> tuple[Path, int]:
    """500 drives' smartctl documents, a file each."""
    path = folder / "web3"
    path.mkdir()
    attributes = [{"id": n, "name": f"Attribute_{n}", "value": 100, "worst": 100, "thresh": 0, "raw": {"value": n}} for n in range(1, 31)]
    for n in range(500):
        document = {
            "smartctl": {"version": [7, 3], "exit_status": 0}, "device": {"name": f"/dev/sd{n}", "type": "sat", "protocol": "ATA"},
            "model_name": "A_DISK", "serial_number": f"S{n}", "firmware_version": "1", "rotation_rate": 7200,
            "user_capacity": {"bytes": 4_000_787_030_016}, "local_time": {"time_t": UNIX}, "power_on_time": {"hours": 20_000},
            "ata_smart_attributes": {"table": attributes},
        }  # fmt: skip
        (path / f"smartctl-{n}.json").write_text(json.dumps(document, indent=2))
    return path, 500


def devices(folder: Path) -> tuple[Path, int]:
    """lsblk's output for 60 drives, 200 times."""
    path = folder / "web4"
    path.mkdir()
    about = {"type": "disk", "model": "A_DISK", "rev": "1", "vendor": "ATA", "size": 4_000_787_030_016, "rota": True, "tran": "sata"}
    drives = [
        {"name": f"sd{chr(97 + n // 26)}{chr(97 + n % 26)}", "serial": f"S{n}", "wwn": f"0x5000c500{n:08x}", **about} for n in range(60)
    ]
    for look in range(200):
        (path / f"lsblk-{look:03}.json").write_text(json.dumps({"blockdevices": drives, "TS": UNIX + 60 * look}, indent=3))
    return path, 60 * 200


def landed(source: str, path: Path) -> None:
    """The whole way to raw, in a warehouse that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        ingest(source, [path], Path(folder))


def dumped(path: Path) -> None:
    """A file of samples, as readings."""
    with tempfile.TemporaryDirectory() as folder:
        for _ in read_samples(path, "host", Labels(), Path(folder)).pieces():
            pass


def plain(path: Path) -> None:
    """The same bytes as lines."""
    for file in files(path):
        pl.read_csv(file, has_header=False, separator="\x01", quote_char=None, new_columns=["line"])


def files(path: Path) -> list[Path]:
    """A file, or those of a folder."""
    return [path] if path.is_file() else sorted(path.iterdir())


def seconds(run: Callable[[], object], repetitions: int) -> float:
    """CPU seconds, the best of several runs."""
    taken = []
    for _ in range(repetitions):
        begun = time.process_time()
        run()
        taken.append(time.process_time() - begun)
    return min(taken)


def bench_parsers(work: Path, repetitions: int) -> list[str]:
    """Each parser beside a plain read: lines of the result."""
    utc = zone_of("UTC")
    lines = [
        "## Parsers",
        "",
        f"CPU seconds of one process, the best of {repetitions}. The plain read is Polars splitting the same bytes into lines.",
        "",
        "| source | rows | MB | rows per CPU second | times a plain read |",
        "|---|--:|--:|--:|--:|",
    ]
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name)
        for what, (path, rows), run in (
            ("prometheus, tsdb dump (lines)", samples(folder), dumped),
            ("sysstat, sadf -d (drives in an interval)", sadf(folder), partial(read_intervals, zone=utc)),
            ("sysstat, sadf -j (drives in an interval)", sadf_json(folder), partial(read_intervals, zone=utc)),
            ("sysstat, iostat JSON (drives in an interval)", iostat(folder), partial(read_intervals, zone=utc)),
            ("kernel-log (lines)", log(folder), partial(read_log, reading=Reading(utc, None, None, "host"))),
            ("kernel-log, journald JSON (records)", journal(folder), partial(read_log, reading=Reading(utc, None, None, "host"))),
            ("diskstats, landed (drives in a snapshot)", snapshots(folder), partial(landed, "diskstats")),
            ("mdadm, mdstat, landed (members in a look)", arrays(folder), partial(landed, "mdadm")),
            ("smartctl, landed (documents)", documents(folder), partial(landed, "smartctl")),
            ("lsblk, landed (drives in a document)", devices(folder), partial(landed, "lsblk")),
            ("mapping, landed (rows)", mapping(folder), partial(landed, "mapping")),
            ("tickets, landed (rows)", tickets(folder), partial(landed, "tickets")),
            ("labels, landed (rows)", labels(folder), partial(landed, "labels")),
            ("backblaze, landed (drive-days)", drive_days(folder), partial(landed, "backblaze")),
        ):
            own, bare = (seconds(partial(read, path), repetitions) for read in (run, plain))
            lines.append(
                f"| {what} | {rows:,} | {sum(file.stat().st_size for file in files(path)) / 1e6:.0f} | {rows / own:,.0f} | {own / bare:.0f} |"
            )
            print(lines[-1], flush=True)
    return [*lines, ""]
