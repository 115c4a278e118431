"""Start the console: one server process, an address with a token, no browser."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from console.app import Console
from console.ask import start_early
from console.guard import LOOPBACK, Access, addresses_of
from drivetail.service.settings import decides_here
from engine.read import QueryError
from engine.warehouse import Warehouse

VARIABLE = "DRIVETAIL_CONSOLE_TOKEN"
"""Names a token that stays the same from start to start."""

LEAST_TOKEN = 16

CONNECTIONS = 500
REQUEST_SECONDS = 10.0
"""Time in which a request is there with its head and its form, and the first one after a connection begins."""

STALLED_SECONDS = 30
"""Time after which a reader who takes nothing of an answer is let go."""


class Connection(H11Protocol):
    """A connection that nobody can hold without asking: uvicorn limits neither the time of a request nor the connections of one peer."""

    late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peers = [other.client[0] for other in self.connections if isinstance(other, Connection) and other.client]
        if self.client and peers.count(self.client[0]) > CONNECTIONS // 2:
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            transport.close()
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.late:
            self.late.cancel()

    def _expect_request(self) -> None:
        """Start the clock where a request is not whole, and stop it where it is."""
        is_expected = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_expected and self.late is None:
            self.late = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        elif self.late and not is_expected:
            self.late.cancel()
            self.late = None


def server_of(application: ASGIApp, **changed: Any) -> uvicorn.Server:
    """The server of an application. changed: options of uvicorn."""
    # no access log: addresses hold the token of a first visit, and questions
    return uvicorn.Server(
        uvicorn.Config(
            application, http=Connection, ws="none", log_level="warning", access_log=False, server_header=False,
            proxy_headers=False, timeout_graceful_shutdown=3, limit_concurrency=CONNECTIONS, **changed,
        )
    )  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, and lets go of readers who stop reading."""
    listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; its connections inherit it
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_SECONDS * 1000)
    return listening


def access_of(
    warehouse: Warehouse,
    host: str,
    port: int,
    *,
    user_header: str | None = None,
    public: str | None = None,
    deciders: frozenset[str] | None = None,
    session_hours: float = 24,
) -> Access:
    """Who may ask a server, and decide. Raises: QueryError for what would leave the door open."""
    token = os.environ.get(VARIABLE, "")
    if token and len(token) < LEAST_TOKEN:
        raise QueryError(f"{VARIABLE}: has fewer than {LEAST_TOKEN} characters; make one with `openssl rand -hex 16`, or unset it")
    if user_header and host not in LOOPBACK:
        raise QueryError(f"--user-header is trusted from a proxy of this machine alone: leave --host at 127.0.0.1, not {host}")
    if deciders and not user_header:
        raise QueryError("--decider names users of a proxy: give --user-header too; with a token there is --readers-only")
    addresses, is_encrypted = addresses_of(host, port, public), (public or "").lower().startswith("https://")
    token = token or secrets.token_hex(24)
    return Access(token, decides_here(warehouse), addresses, user_header, deciders, session_hours, is_encrypted)


def serve(warehouse: Warehouse, host: str, port: int, say: Callable[[str], None], **options: Any) -> None:
    """Serve until Ctrl-C. say: prints a line. options: of access_of.

    Raises: QueryError without a publication, or for an address that cannot be used.
    """
    access = access_of(warehouse, host, port, **options)
    console = Console(warehouse, access)
    console.publications.refresh()
    try:  # listens before the address is shown, so that a browser opened at once is not refused
        listening = listen(host, port)
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # after it Python names the address once more
        raise QueryError(f"--host {host} --port {port}: {reason}; give another") from error
    start_early()
    shown = (options.get("public") or f"http://{f'[{host}]' if ':' in host else host}:{port}").rstrip("/")
    # secrets of other programs do not belong in a journal
    token = f"${VARIABLE}" if os.environ.get(VARIABLE) else access.token
    say(f"{shown}/" + ("" if access.user_header else f"?token={token}"))
    say("Ctrl-C ends it.")
    if host not in LOOPBACK:
        say(f"{host}: others reach it, and nothing is encrypted; docs/console.md has a proxy that is")
    server_of(console.application()).run([listening])
