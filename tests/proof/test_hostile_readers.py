"""Fifty readers for an hour (DRIVETAIL_READER_MINUTES), hostile questions beside them, and builds that swap the publication below them."""

from __future__ import annotations

import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from engine.warehouse import Warehouse
from tests.console.conftest import running, session_of
from tests.console.test_console import ALL_PAGES
from tests.golden import copied
from tests.report.conftest import demo_fleet
from workbench.parts.console import cpu_seconds

pytestmark = [pytest.mark.soak, pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read in /proc")]

MINUTES = float(os.environ.get("DRIVETAIL_READER_MINUTES", "60"))
READERS, ASKERS = 50, 6
THINKING_SECONDS = 60.0
"""Between two pages of a reader, at most."""

PAGE_SECONDS = 1.0
"""Longest page, on a machine that has time for it; and CPU that the server spends, at most, before it answers somebody at the door."""

BUSY = 2.0
"""Times as long as work takes from which on the seconds of pages say more about the machine than about the server."""

GROWTH = 1.15
"""Memory of the server in the last third, by that of the second."""

PAGES = [page for page in ALL_PAGES if not page.startswith("/ask?")]

PACE = """
import time
while True:
    began, cpu = time.monotonic(), time.process_time()
    while time.process_time() - cpu < 0.02:
        pass
    print(began, (time.monotonic() - began) / 0.02, flush=True)
    time.sleep(0.1)
"""
"""A process that does 20 ms of work, again and again, and how many times as long each took because the machine was busy."""


def question(draw: random.Random, depth: int = 0) -> str:
    """A question that nobody asks who wants an answer: nested, joined, recursive, with lists and lambdas; some are not even SQL."""
    if depth > 6 or draw.random() < 0.1:
        return draw.choice(
            ["select 1 as a", "from range(1000000000) as t(a)", "from marts.fct_drive_hours", "select a from (values (1)) t(a)"]
        )

    def inner() -> str:
        return question(draw, depth + 1)

    times, form = draw.choice([1, 3, 30, 300]), draw.randrange(12)
    return [
        lambda: f"select * from ({inner()}) as x, ({inner()}) as y",
        lambda: f"with recursive r as (select 1 as a union all select a + 1 from r where a < {10**times}) select * from r, ({inner()})",
        lambda: (
            f"select list_transform(range({10 ** draw.randrange(9)}), x -> list_transform(range(1000), y -> x * y)) as a from ({inner()})"
        ),
        lambda: f"select repeat('x', {10 ** draw.randrange(10)}) as a from ({inner()})",
        lambda: "(with a as (" * times + inner(),
        lambda: "from " + "(" * times + "a" + " join a on 1)" * times,
        lambda: "select " + "(" * times + "1" + ")" * times,
        lambda: "select " + "[" * times + "1" + "]" * times,
        lambda: "select * from " + "(select * from " * times + f"({inner()})" + ")" * times,
        lambda: f"select count(*) over (order by random()) as a from ({inner()}) as x join ({inner()}) as y on true order by all",
        lambda: f"{inner()} union all by name {inner()}",
        lambda: inner()[: draw.randrange(1, 200)],
    ][form]()


@dataclass
class Seen:
    """Pages with their begin and seconds, questions by status, faults, CPU seconds before an answer, memory of the server in MiB."""

    pages: list[tuple[float, float, str]] = field(default_factory=list)
    questions: dict[int, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    held: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    swaps: int = 0


def read(client: httpx.Client, draw: random.Random, seen: Seen, stop: threading.Event) -> None:
    """One reader, until the end."""
    while not stop.wait(draw.uniform(0, THINKING_SECONDS)):
        page, began = draw.choice(PAGES), time.monotonic()
        try:
            answer = client.get(page)
        except httpx.HTTPError as error:
            seen.faults.append(f"{page}: {error!r}")
            continue
        seen.pages.append((began, time.monotonic() - began, page))
        if answer.status_code != 200:
            seen.faults.append(f"{page}: {answer.status_code} {re.findall(r'role=.alert.>(.*?)</p>', answer.text)}")


def ask(client: httpx.Client, draw: random.Random, seen: Seen, stop: threading.Event) -> None:
    """One who means harm: asks, and goes away before the answer now and then."""
    while not stop.is_set():
        sql = question(draw)
        more = draw.choice([{}, {}, {"as": "chart"}, {"download": "csv"}, {"download": "parquet"}, {"download": "json"}])
        try:
            status = client.get("/ask", params={"sql": sql[:20_000], **more}, timeout=draw.choice([1, 90, 90])).status_code
        except httpx.TimeoutException:
            status = 0
        except httpx.HTTPError as error:
            status = -1
            seen.faults.append(f"{sql[:200]}: {error!r}")
        seen.questions[status] = seen.questions.get(status, 0) + 1
        if status >= 500:
            seen.faults.append(f"{status}: {sql[:2_000]}")
        stop.wait(0.05)


def publish(warehouse: Warehouse, seen: Seen, stop: threading.Event) -> None:
    """Swap the publication, again and again."""
    program = (
        "import sys\nfrom pathlib import Path\nfrom engine.build import publish_store\nfrom engine.warehouse import Warehouse\n"
        "publish_store(Warehouse(Path(sys.argv[1])))"
    )
    while not stop.wait(20):
        subprocess.run([sys.executable, "-c", program, str(warehouse.root)], check=True)
        seen.swaps += 1


def resident(pid: int) -> float:
    """MiB of a process that are in memory."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0]) / 1024


def test_hostile_questions_and_builds_slow_no_page_and_keep_no_memory(tmp_path: Path):
    seed = int(os.environ.get("DRIVETAIL_READER_SEED", "0")) or random.randrange(1, 1_000_000)
    warehouse, seen, stop = copied(demo_fleet(), tmp_path / "warehouse"), Seen(), threading.Event()
    with (tmp_path / "pace").open("w") as file:
        pace = subprocess.Popen([sys.executable, "-c", PACE], stdout=file)
    try:
        with running(warehouse) as (server, first), ThreadPoolExecutor(READERS + ASKERS + 1) as pool:
            clients = [httpx.Client(base_url=first.base_url, cookies=first.cookies, timeout=300) for _ in range(READERS + ASKERS)]
            for page in PAGES:  # a reader comes to a server that is ready
                first.get(page)
            for number, client in enumerate(clients):
                pool.submit(read if number < READERS else ask, client, random.Random(seed + number), seen, stop)
            publishing = pool.submit(publish, warehouse, seen, stop)
            ends = time.monotonic() + 60 * MINUTES
            try:
                with httpx.Client(base_url=first.base_url, timeout=300) as stranger:
                    while time.monotonic() < ends:
                        time.sleep(1)
                        before = cpu_seconds(server.pid)
                        assert stranger.get("/").status_code == 401
                        seen.held.append(cpu_seconds(server.pid) - before)
                        seen.memory.append(resident(server.pid))
            finally:
                stop.set()
                pool.shutdown()
            publishing.result()
            for client in clients:
                client.close()
            time.sleep(2)
            left = len(session_of(server))
    finally:
        pace.kill()
        pace.wait()
    paces = [tuple(map(float, line.split())) for line in (tmp_path / "pace").read_text().splitlines()[:-1]]
    late = []
    for began, seconds, page in seen.pages:
        busy = max((times for at, times in paces if began - 1 < at < began + seconds), default=1.0)
        if seconds > PAGE_SECONDS * max(1.0, busy):
            late.append(f"{page}: {seconds:.2f} s, where work took {busy:.1f} times as long as on an idle machine")
    third = len(seen.memory) // 3
    before, after = max(seen.memory[third : 2 * third]), max(seen.memory[2 * third :])
    spent = [seconds for _, seconds, _ in seen.pages]
    rates = [times for _, times in paces]
    is_judged = statistics.median(rates) < BUSY
    print(
        f"\nDRIVETAIL_READER_SEED={seed}: {len(spent)} pages, median {statistics.median(spent):.2f} s, slowest {max(spent):.2f} s, "
        f"{'judged' if is_judged else 'not judged'}; {max(seen.held):.2f} CPU seconds before somebody is answered, at most; "
        f"work took {statistics.median(rates):.1f} times as long as on an idle machine, at most {max(rates):.0f}; "
        f"questions by status {seen.questions} (0: gone before); {seen.swaps} swaps; memory {before:.0f} to {after:.0f} MiB; "
        f"{left} processes left"
    )
    assert seen.faults == [] and (late == [] or not is_judged)
    assert max(seen.held) < PAGE_SECONDS
    assert after < before * GROWTH and left <= 3, "server, fork server and the resource tracker stay"
    assert seen.swaps and seen.questions.get(422) and seen.questions.get(200)
