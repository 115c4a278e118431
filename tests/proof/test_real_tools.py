"""Real sadc, sadf, sar, iostat and fio on this machine: what is ingested of them is what the kernel counted meanwhile.

A tool takes a first and a last reading of the kernel's counters. `watched` looks at them before the tool starts, after its first
reading, before its last one and after its end, so each figure lies between two that the kernel gave (`Bracket`). To that comes what
printing costs: rates with two digits (off by 0.005), of an interval from a clock of hundredths of a second, at times in whole seconds.

fio's results are those of md arrays, and the work is done on none. So one entry is put above the drives that fio lists, as that of
an array of which they are the members.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ingest import ingest
from tests.ingest.conftest import Warehouse
from tests.proof.disk_counters import SECTOR_BYTES, Bracket, look, skip_without_drives

SADC = next((path for path in ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc") if Path(path).exists()), None)
pytestmark = [
    pytest.mark.needs("sadf", "fio"),
    pytest.mark.xdist_group("real tools"),
]
SECONDS = 4
DIGIT = 0.005
"""Half of the last digit that sysstat prints."""
CLOCK_SECONDS = 0.01
PLAIN = {**os.environ, "LC_ALL": "C", "TZ": "UTC", "S_TIME_FORMAT": "ISO"}


def watched(command: list[str], output: Path, readings: Callable[[], int]) -> Bracket:
    """Run a tool to its end; `readings`: how many times it is known to have read the counters by now."""
    before = look()
    with output.open("w") as out:
        # fio leaves files where it runs
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=PLAIN, cwd=output.parent)
    while not readings():
        assert process.poll() is None, f"{command[0]}: {output.read_text()}"
        time.sleep(0.01)
    began = ends = look()
    while process.poll() is None:
        now = look()
        if readings() == 1:
            ends = now
        time.sleep(0.02)
    assert process.returncode == 0, f"{command[0]}: {output.read_text()}"
    return Bracket(before, began, ends, look())


def growths(path: Path) -> Callable[[], int]:
    """How often a file that is written by and by has grown and then stood still: sadc writes a record at once and then waits."""
    sizes: list[int] = []
    seen = [0, time.monotonic()]

    def count() -> int:
        size, now = path.stat().st_size if path.exists() else 0, time.monotonic()
        if size != seen[0]:
            seen[:] = [size, now]
        if size and size not in sizes and (sizes or now - seen[1] > SECONDS / 10):
            sizes.append(size)
        return len(sizes)

    return count


@dataclass(frozen=True)
class Measured:
    """Where the tools' output lies, and what the kernel counted around each."""

    folder: Path
    sadc: Bracket
    iostat: Bracket
    fio: Bracket


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """All three at once, fio making the work that the others see."""
    skip_without_drives()
    folder = tmp_path_factory.mktemp("tools")
    sar, iostat, begun, done = folder / "sa", folder / "iostat.json", folder / "begun", folder / "done"
    # fio looks every 250 ms while a file is open and not once more at its end: a second job holds it open and does next to nothing
    fio = ["fio", f"--output={folder / 'fio.json'}", "--output-format=json", f"--filename={folder / 'work'}", "--bs=4k", "--size=8M",
           "--name=work", "--rw=randrw", "--fsync=1", "--time_based", f"--runtime={SECONDS - 1}",
           f"--exec_prerun=touch {begun}", f"--exec_postrun=touch {done}",
           "--name=wait", "--stonewall", "--rw=read", "--number_ios=2", "--thinktime=500000"]  # fmt: skip
    assert SADC is not None, "sadc is not installed"
    with ThreadPoolExecutor(3) as pool:
        runs = [
            pool.submit(watched, [SADC, "-F", "-S", "DISK", str(SECONDS), "2", str(sar)], folder / "sadc.out", growths(sar)),
            pool.submit(
                watched, ["stdbuf", "-oL", "iostat", "-xt", "-o", "JSON", str(SECONDS), "2"], iostat,
                lambda: iostat.read_text().count('"avg-cpu"'),
            ),
            pool.submit(watched, fio, folder / "fio.out", lambda: begun.exists() + done.exists()),
        ]  # fmt: skip
        return Measured(folder, *(run.result() for run in runs))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


def row_of(warehouse: Warehouse, drive: str) -> dict[str, Any]:
    (row,) = warehouse.live().filter(pl.col("drive_id").str.ends_with(f"/{drive}")).to_dicts()
    return row


def assert_rates(row: dict[str, Any], kernel: Bracket, drive: str, ways: dict[str, tuple[str, ...]]) -> None:
    """A row of sysstat against the kernel. `ways`: prefix of the row's columns ("" for merged ones) -> prefixes of the counters in it."""
    shortest, longest = kernel.seconds()
    seconds = row["coverage"] * 3600
    assert shortest - 1 <= seconds <= longest + 1
    for prefix, counted in ways.items():
        least, most = kernel.limits(drive, *(f"{way}_ios" for way in counted))
        rates = least / (longest + CLOCK_SECONDS) - DIGIT, most / (shortest - CLOCK_SECONDS) + DIGIT
        ios = row[f"{prefix}_ios" if prefix else "io_count"]
        assert rates[0] * seconds - 0.5 <= ios <= rates[1] * seconds + 0.5, f"{prefix} I/Os"
        quickest, slowest = kernel.limits(drive, *(f"{way}_ms" for way in counted))
        latency_us = row[f"{prefix}_latency_us" if prefix else "latency_us"]
        if ios:
            assert 1000 * (quickest / most - DIGIT) <= latency_us <= 1000 * ((slowest / least if least else math.inf) + DIGIT), prefix
        moved = row["bytes"] if not prefix else row[f"{prefix}_blocks"] * row["block_bytes"]
        sizes = [way for way in counted if way != "discard"]  # what was discarded was not moved
        fewest, largest = (sectors * SECTOR_BYTES for sectors in kernel.limits(drive, *(f"{way}_sectors" for way in sizes)))
        digits = len(sizes) * DIGIT * 1024
        rates = fewest / (longest + CLOCK_SECONDS) - digits, largest / (shortest - CLOCK_SECONDS) + digits
        assert rates[0] * seconds - 0.5 <= moved <= rates[1] * seconds + 0.5, f"{prefix} bytes"


@pytest.mark.parametrize("tool", ["sadf -j", "sadf -d", "sar"])
def test_sar_gives_the_kernels_counts(tool: str, measured: Measured, warehouse: Warehouse) -> None:
    kept = str(measured.folder / "sa")
    command = ["sar", "-d", "-f", kept] if tool == "sar" else [*tool.split(), kept, "--", "-d"]
    told = warehouse.path.with_name("told.txt")
    told.write_text(subprocess.run(command, env=PLAIN, check=True, capture_output=True, text=True).stdout)
    summary = ingest("sysstat", told, warehouse.path, source_options={"timezone": "UTC"})
    assert summary.rows_accepted == summary.rows_delivered >= 1
    drive = measured.sadc.busiest()
    assert_rates(row_of(warehouse, drive), measured.sadc, drive, {"": ("read", "write", "discard")})


def test_iostat_gives_the_kernels_counts(measured: Measured, warehouse: Warehouse) -> None:
    ingest("sysstat", measured.folder / "iostat.json", warehouse.path)
    drive = measured.iostat.busiest()
    assert_rates(row_of(warehouse, drive), measured.iostat, drive, {"read": ("read",), "write": ("write",)})


def test_the_ticks_of_fio_are_what_the_kernel_counted(measured: Measured, warehouse: Warehouse, tmp_path: Path) -> None:
    result = measured.folder / "fio.json"
    (record,) = ingest("fio", result, warehouse.path).rejected
    drive = measured.fio.busiest()
    assert "no md array" in str(record["reason"]) and drive in str(record["value"])
    document = json.loads(result.read_text())
    below = document["disk_util"]
    sums = {f"aggr_{name}": sum(device[name] for device in below) // len(below) for name in ("read_ios", "write_ios")}
    document["disk_util"] = [{"name": "md0", **sums}, *below]
    (tmp_path / "md.json").write_text(json.dumps(document))
    assert ingest("fio", tmp_path / "md.json", warehouse.path).rows_rejected == 0
    row = row_of(warehouse, drive)
    for way in ("read", "write"):
        told = {"ios": row[f"{way}_ios"], "ms": round(row[f"{way}_ios"] * (row[f"{way}_latency_us"] or 0.0) / 1000)}
        for name, value in told.items():
            least, most = measured.fio.limits(drive, f"{way}_{name}")
            assert least <= value <= most, f"{way}_{name}"
