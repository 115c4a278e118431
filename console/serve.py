"""Start the console: one server process, an address with a token, no browser."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable

import uvicorn

from console.app import Console
from console.ask import start_early
from console.guard import LOOPBACK, Access, addresses_of
from drivetail.service.settings import decides_here
from engine.read import QueryError
from engine.warehouse import Warehouse

VARIABLE = "DRIVETAIL_CONSOLE_TOKEN"
"""Names a token that stays the same from start to start."""

LEAST_TOKEN = 16


def access_of(warehouse: Warehouse, host: str, port: int, user_header: str | None, public: str | None) -> Access:
    """Who may ask a server. Raises: QueryError for what would leave the door open."""
    token = os.environ.get(VARIABLE, "")
    if token and len(token) < LEAST_TOKEN:
        raise QueryError(f"{VARIABLE}: has fewer than {LEAST_TOKEN} characters; make one with `openssl rand -hex 16`, or unset it")
    if user_header and host not in LOOPBACK:
        raise QueryError(f"--user-header is trusted from a proxy of this machine alone: leave --host at 127.0.0.1, not {host}")
    return Access(token or secrets.token_hex(24), decides_here(warehouse), addresses_of(host, port, public), user_header)


def serve(warehouse: Warehouse, host: str, port: int, user_header: str | None, public: str | None, say: Callable[[str], None]) -> None:
    """Serve until Ctrl-C. say: prints a line. Raises: QueryError without a publication, or for an address that cannot be used."""
    access = access_of(warehouse, host, port, user_header, public)
    console = Console(warehouse, access)
    console.publications.refresh()
    try:  # listens before the address is shown, so that a browser opened at once is not refused
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        reason = str(error.strerror).partition(" (while ")[0]  # after it Python names the address once more
        raise QueryError(f"--host {host} --port {port}: {reason}; give another") from error
    start_early()
    shown = public or f"http://{f'[{host}]' if ':' in host else host}:{port}"
    say(f"{shown.rstrip('/')}/" + ("" if user_header else f"?token={access.token}"))
    say("Ctrl-C ends it.")
    if host not in LOOPBACK:
        say(f"{host}: others reach it, and nothing is encrypted; docs/console.md has a proxy that is")
    # no access log: addresses hold the token of a first visit, and questions
    config = uvicorn.Config(
        console.application(), log_level="warning", access_log=False, server_header=False,
        proxy_headers=False, timeout_graceful_shutdown=3, limit_concurrency=500,
    )  # fmt: skip
    uvicorn.Server(config).run([listening])
