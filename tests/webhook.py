"""A receiver of notifications on this machine, and the settings that name receivers."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from drivetail.service.settings import settings_file
from engine.warehouse import Warehouse


class Webhook(HTTPServer):
    """Answers with a status and keeps the paths and messages that it was sent, until its `with` ends."""

    def __init__(self, status: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.status = status
        self.taken: list[tuple[str, Any]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()


class _Answer(BaseHTTPRequestHandler):
    server: Webhook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.path, body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing on the terminal."""


def name_receivers(warehouse: Warehouse, **urls: str) -> None:
    text = "".join(f'[[notify]]\nname = "{name}"\nurl = "{url}"\n' for name, url in urls.items())
    settings_file(warehouse).write_text(text, encoding="utf-8")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
