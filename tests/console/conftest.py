"""A console over the golden demo, and one over the fleet of hostile names, each a server on a port of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile import attacked_fleet

from console.app import Console
from console.guard import Access, addresses_of
from console.serve import listen, server_of
from engine.warehouse import Warehouse
from tests.golden import copied
from tests.report.conftest import demo_fleet

TOKEN = "-".join(["tests"] * 4)


@dataclass(frozen=True)
class Served:
    """A console that listens."""

    warehouse: Warehouse
    address: str
    access: Access

    def client(self, *, signed_in: bool = True) -> httpx.Client:
        cookies = {f"drivetail_{httpx.URL(self.address).port}": self.access.signed("cookie")} if signed_in else {}
        return httpx.Client(base_url=self.address, follow_redirects=True, timeout=300, headers={"origin": self.address}, cookies=cookies)


@contextmanager
def served(warehouse: Warehouse, **options: Any) -> Iterator[Served]:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        access = Access(TOKEN, "ada", addresses_of("127.0.0.1", port, "https://drives.example.org"), **options)
        server = server_of(Console(warehouse, access).application(), timeout_keep_alive=60)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        yield Served(warehouse, f"http://127.0.0.1:{port}", access)
        server.should_exit = True
        thread.join(10)


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(copied(demo_fleet(), tmp_path_factory.mktemp("demo") / "warehouse")) as found:
        yield found


@pytest.fixture(scope="session")
def client(console: Served) -> Iterator[httpx.Client]:
    """A reader who has signed in."""
    with console.client() as found:
        yield found


@pytest.fixture(scope="session")
def hostile_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The console over a copy of the demo: tests decide on its drives."""
    root: Path = tmp_path_factory.mktemp("hostile") / "ware'house"
    with served(copied(attacked_fleet().warehouse, root)) as found:
        yield found


@contextmanager
def running(warehouse: Warehouse, *options: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """`drivetail serve` as a process of its own, and a reader who has signed in."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [Path(sys.executable).with_name("drivetail"), "serve", "--port", port, "-w", warehouse.root, *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout
        address = process.stdout.readline().strip()
        with httpx.Client(base_url=address.partition("/?")[0], follow_redirects=True, timeout=60) as client:
            assert client.get(address).status_code == 200
            yield process, client
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def session_of(process: subprocess.Popen[str]) -> set[int]:
    """The processes of a server that still run."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if int(session) == process.pid and state != "Z":
            found.add(int(stat.parent.name))
    return found
