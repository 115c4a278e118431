"""A server that answers as Prometheus does, as far as a pull asks, and as badly as a test wants it to."""

from __future__ import annotations

import json
import math
import re
import ssl
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ingest.sources.prometheus.readings import COUNTERS

FEEDS = """
[[servers]]
name = "metrics"
url = "{url}"

[[inboxes]]
name = "fleet"
source = "bundle"
folder = "{folder}"
settle_minutes = 0
"""
"""Text of a drivetail.toml: such a server, and an inbox."""
LOOKBACK = 300
_QUERY = re.compile(r"(?:count\()?(?:(\w+)\()?(\{.*\})(?:\[(\d+)s\])?\)*( > 0)?")
_MATCHER = re.compile(r'(\w+)(=~|!~|=)("(?:[^"\\]|\\.)*")')

Samples = list[tuple[float, float]]
# (path, parameters, how often this was asked before) -> status, headers, body; null: answer as Prometheus would
Fault = Callable[[str, dict[str, str], int], tuple[int, dict[str, str], bytes] | None]


def labels(metric: str, **given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"__name__": metric, **given}.items()))


def counted_drives(begins: float, last: float, host: str = "web", every: int = 60) -> dict[tuple[tuple[str, str], ...], Samples]:
    """Three drives that work evenly, scraped every minute of [begins, last] (unix seconds): 8 reads, 8 writes, of about 2, 3 and 4 ms.

    every: seconds from scrape to scrape, where it is no minute.
    """
    series: dict[tuple[tuple[str, str], ...], Samples] = {}
    scrapes = [begins + every * number for number in range(int(last - begins) // every + 1)]
    for number, device in enumerate(("sda", "sdb", "sdc")):
        where = {"instance": f"{host}:9100", "job": "node", "device": device}
        for metric in COUNTERS:
            per_minute = {"seconds": (4 + 2 * number) * 2**-8, "bytes": 8 * 4096.0}.get(metric.split("_")[-2], 8.0)
            series[labels(metric, **where)] = [(at, per_minute * (at - begins) / 60) for at in scrapes]
        series[labels("node_disk_info", **where, serial=f"S{number}", model="A_DISK", rotational="1")] = [(at, 1.0) for at in scrapes]
    return series


@dataclass
class Server:
    """`series`: labels -> samples in order of time. `asked`: every request, path and parameters, in order. `byte_seconds`: per byte."""

    series: dict[tuple[tuple[str, str], ...], Samples]
    fault: Fault = lambda path, parameters, before: None
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    byte_seconds: float = 0.0

    def answer(self, path: str, parameters: dict[str, str]) -> Any:
        if path.endswith("/query_range"):
            start, end, step = (int(parameters[name]) for name in ("start", "end", "step"))
            times = list(range(start, end + 1, step))
        elif path.endswith("/query"):
            times = [int(parameters["time"])]
        else:
            return {}
        match = _QUERY.fullmatch(parameters["query"])
        assert match, parameters["query"]
        function, selector, seconds, positive = match.groups()
        result = []
        for given, samples in self._selected(selector):
            if function is None and seconds:
                (at,) = times
                values = [[t, text(v)] for t, v in samples if at - int(seconds) < t <= at]
            else:
                found = ((at, evaluate(function, int(seconds or LOOKBACK), samples, at)) for at in times)
                values = [[at, text(value)] for at, value in found if value is not None and (not positive or value > 0)]
            shown = {name: value for name, value in given.items() if not (function and name == "__name__")}
            if values:
                result.append({"metric": shown, "values": values})
        return {"resultType": "matrix", "result": result}

    def _selected(self, selector: str) -> Iterator[tuple[dict[str, str], Samples]]:
        matchers = [(name, how, json.loads(value)) for name, how, value in _MATCHER.findall(selector)]
        for key, samples in self.series.items():
            given = dict(key)
            if all(
                given.get(name, "") == value if how == "=" else (re.fullmatch(value, given.get(name, "")) is None) == (how == "!~")
                for name, how, value in matchers
            ):
                yield given, samples


def text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(str(value)) or format(value, ".17g")


def evaluate(function: str | None, seconds: int, samples: Samples, at: int) -> float | None:
    window = samples[bisect_right(samples, (at - seconds, math.inf)) : bisect_right(samples, (at, math.inf))]
    if not window:
        return None
    match function:
        case None:
            return window[-1][1]
        case "timestamp":
            return window[-1][0]
        case "count_over_time":
            return len(window)
        case "max_over_time":
            return max(value for _, value in window)
        case "resets":
            return sum(one[1] > other[1] for one, other in pairwise(window))
    raise AssertionError(function)


@contextmanager
def serving(server: Server, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """The server at 127.0.0.1, over https as `localhost` where `tls` says how."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
            before = server.asked.count((parts.path, parameters))
            server.asked.append((parts.path, parameters))
            server.headers.append(dict(self.headers))
            faulty = server.fault(parts.path, parameters, before)
            if faulty is None:
                body = json.dumps({"status": "success", "data": server.answer(parts.path, parameters)}).encode()
                faulty = (200, {"Content-Type": "application/json"}, body)
            status, headers, body = faulty
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for at in range(len(body)) if server.byte_seconds else ():
                self.wfile.write(body[at : at + 1])
                self.wfile.flush()
                time.sleep(server.byte_seconds)
            if not server.byte_seconds:
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            """A client that refuses the certificate is what some tests want."""

    http = Listener(("127.0.0.1", 0), Handler)
    if tls is not None:
        http.socket = tls.wrap_socket(http.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    server.url = f"https://localhost:{http.server_port}" if tls else f"http://127.0.0.1:{http.server_port}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
