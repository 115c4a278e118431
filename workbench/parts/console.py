"""The console: each page for one reader, then fifty readers at once, and the memory of its server."""

from __future__ import annotations

import os
import re
import secrets
import statistics
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.cookiejar import CookieJar
from pathlib import Path

import duckdb

from workbench.commit import ROOT
from workbench.parts import Bound

READERS = 50
ROUNDS = 4
PORT = 8097
TOKEN = secrets.token_hex(16)


def pages(warehouse: Path) -> list[str]:
    """Pages of the slowest drives and of where they are, and those of the fleet."""
    slowest = (
        "select drive_id, current_raid_group_id, host from marts.fct_drive_slowness join marts.dim_drives using (drive_id) "
        "order by slow_hours desc limit 12"
    )
    with duckdb.connect(str(warehouse / "warehouse.duckdb"), read_only=True) as connection:
        rows = connection.execute(slowest).fetchall()
    of_drives = [f"/{page}?id={name}" for row in rows for page, name in zip(("drive", "group", "host"), row, strict=True)]
    return ["/", "/alerts", "/candidates", "/decisions", "/model", "/tables", "/ask", "/search?q=00", *dict.fromkeys(of_drives)]


def read(address: str, asked: list[str]) -> list[float]:
    """One reader's seconds for each page. Raises: HTTPError for a page that is not shown."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.open(f"{address}/reports?token={TOKEN}").read()
    found = []
    for page in asked:
        began = time.perf_counter()
        opener.open(address + page).read()
        found.append(time.perf_counter() - began)
    return found


def cpu_seconds(process: int) -> float:
    """CPU seconds of a running process, user and system."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def served(warehouse: Path, repetitions: int, name: str, median: float, slowest: float) -> tuple[list[str], list[Bound]]:
    """`drivetail serve` in a process of its own: what was measured, and its bounds."""
    asked, began = pages(warehouse), time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "drivetail", "serve", "-w", str(warehouse), "--port", str(PORT)], cwd=ROOT,
        env={**os.environ, "DRIVETAIL_CONSOLE_TOKEN": TOKEN}, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = server.stdout.readline().partition("/?token")[0]
        while True:
            try:
                read(address, [])
                break
            except OSError:
                time.sleep(0.1)
        ready, before = time.perf_counter() - began, cpu_seconds(server.pid)
        first = read(address, asked)
        cpu = cpu_seconds(server.pid) - before
        again = [seconds for _ in range(repetitions) for seconds in read(address, asked)]
        with ThreadPoolExecutor(READERS) as pool:
            crowd = [seconds for one in pool.map(lambda _: read(address, asked[:ROUNDS] * 2), range(READERS)) for seconds in one]
        peak = int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{server.pid}/status").read_text())[0]) / 1024
    finally:
        server.terminate()
        server.wait(30)
    lines = [
        f"{len(asked)} pages of {name}. First reader: median {1000 * statistics.median(first):.0f} ms, slowest {1000 * max(first):.0f} ms "
        f"({asked[first.index(max(first))].partition('?')[0]}), {cpu / len(asked) * 1000:.0f} ms of CPU a page. Asked again: median "
        f"{1000 * statistics.median(again):.0f} ms. {READERS} readers at once, {len(crowd)} pages without an error: median "
        f"{1000 * statistics.median(crowd):.0f} ms, slowest {1000 * max(crowd):.0f} ms. From the start to the first answer: {ready:.1f} s.",
    ]
    return lines, [
        Bound(f"median page of the first reader, {name}", statistics.median(first), median),
        Bound(f"slowest page of one reader, {name}", max(*first, *again), slowest),
        Bound(f"memory of the server, {name}", peak, 500, "MiB"),
    ]
