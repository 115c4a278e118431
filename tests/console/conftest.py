"""A console over the golden demo, and one over the fleet of hostile names, each a server on a port of its own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn
from hostile import attacked_fleet

from console.app import Console
from console.guard import Access, addresses_of
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
        cookies = {f"drivetail_{httpx.URL(self.address).port}": self.access.cookie} if signed_in else {}
        return httpx.Client(base_url=self.address, follow_redirects=True, timeout=300, headers={"origin": self.address}, cookies=cookies)


@contextmanager
def served(warehouse: Warehouse, user_header: str | None = None) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        access = Access(TOKEN, "ada", addresses_of("127.0.0.1", port, "https://drives.example.org"), user_header)
        server = uvicorn.Server(
            uvicorn.Config(Console(warehouse, access).application(), log_level="warning", access_log=False, timeout_keep_alive=60)
        )
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
