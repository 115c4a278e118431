"""A reader who means harm: what the console is given, how long it waits, who may decide, and what is left when it is killed."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pyarrow.parquet as pq
import pytest
from fuzz import SECONDS, fuzz
from hypothesis import strategies as st

import console.serve
import drivetail.cli.ask as commands
from console.guard import addresses_of
from console.published import FORMS, Published
from console.serve import VARIABLE, access_of
from engine.read import QueryError
from engine.warehouse import PROJECT
from tests.console.conftest import TOKEN, Served, running, served, session_of
from tests.console.test_console import ALL_PAGES, DRIVE, decided, form_token
from tests.golden import copied
from tests.report.conftest import demo_fleet

SOURCES = "".join(file.read_text(encoding="utf-8") for file in (PROJECT / "console").glob("*.py"))
NAMED = re.findall(r"""(?:(?:query|query_params|form|fields|own)(?:\.get\(|\[)|(?=\S+ (?:not )?in query\b))"(\w+)["]""", SOURCES)
PARAMETERS = sorted({*NAMED, "download", *(f"{table}.{what}" for table in ("rows", "alerts", "actions") for what in ("q", "sort", "page"))})
"""Every parameter that the console reads, by its source."""

ODD = [
    "0001-01-01T00:00", "9999-12-31T23:00", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "\0", "a\0b", "x" * 5_000, "9" * 5_000,
    "\u00e9\u202e\U0001f600", "http://[", "\u00b2", "-1", "1e400", "'", '"', '-"', "$id", "%zz", "../..", "//evil.example/", "[1]", "nan",
    " ", "rows.csv", ".csv", "rows.parquet", "select 1", "marts.dim_drives", DRIVE, "-slowdown", "true", "disk", "replace", "0",
    "2026-01-05",
]  # fmt: skip


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A console of its own: some of what is tried decides."""
    with served(copied(demo_fleet(), tmp_path_factory.mktemp("target") / "warehouse")) as found:
        yield found


@pytest.fixture(scope="module")
def attacker(target: Served) -> Iterator[httpx.Client]:
    with target.client() as found:
        found.follow_redirects = False
        yield found


# ----------------------------------------------------------------------------------------------------------------------
# Parameters


def test_every_parameter_of_the_source_is_tried():
    assert {"id", "at", "since", "until", "q", "name", "sql", "as", "edit", "back", "note", "ticket", "sure", "drive"} <= set(PARAMETERS)


def test_no_parameter_of_any_page_ends_in_an_error_of_the_server(attacker: httpx.Client):
    pages = st.sampled_from(ALL_PAGES[:-1])
    odd = st.one_of(st.sampled_from(ODD), st.text(max_size=30))

    def check(given: tuple[str, dict[str, str], str]) -> None:
        page, changed, method = given
        url = httpx.URL(page)
        answer = attacker.request(method, url.copy_merge_params({name: value for name, value in changed.items() if name != "sql"}))
        assert answer.status_code < 500, (str(answer.url)[:500], answer.text[-300:])

    parameters = st.dictionaries(st.sampled_from(PARAMETERS), odd, min_size=1, max_size=3)
    methods = st.sampled_from(["GET", "GET", "GET", "GET", "HEAD", "POST", "PUT"])
    fuzz(st.tuples(pages, parameters, methods), check, "pages", 4 * SECONDS)


@pytest.mark.parametrize("page", [f"/hour?id={DRIVE}&at=", f"/drive?id={DRIVE}&since=", f"/drive?id={DRIVE}&until="])
@pytest.mark.parametrize("time", ODD[:4])
def test_a_time_at_the_end_of_the_calendar_is_no_error_of_the_server(attacker: httpx.Client, page: str, time: str):
    assert attacker.get(page + time.replace("+", "%2B")).status_code < 500


@pytest.mark.parametrize(
    "parameters",
    [{"rows.page": "\u00b2"}, {"rows.page": "9" * 900}, {"rows.sort": "nobody"}, {"rows.q": "\0"}, {"rows.q": "x" * 5_000}],
)  # fmt: skip
def test_an_odd_parameter_of_a_table_is_no_error_of_the_server(attacker: httpx.Client, parameters: dict[str, str]):
    assert attacker.get("/table", params={"name": "marts.dim_drives", **parameters}).status_code < 500


def test_no_field_of_a_form_ends_in_an_error_of_the_server(target: Served, attacker: httpx.Client):
    token = form_token(attacker.get(f"/drive?id={DRIVE}").text)
    fields = {"form_token": token, "drive": DRIVE, "verdict": "watch", "note": "n"}
    names = st.sampled_from(["drive", "verdict", "note", "ticket", "until", "sure", "back", "form_token"])

    def check(changed: dict[str, str]) -> None:
        answer = attacker.post("/decide", data={**fields, **changed})
        assert answer.status_code in (303, 422), (changed, answer.text[-300:])
        assert answer.headers.get("location", "/").startswith("/") and not answer.headers.get("location", "/").startswith("//")

    fuzz(st.dictionaries(names, st.sampled_from(ODD), min_size=1, max_size=2), check, "forms", 2 * SECONDS)
    for back in ("http://[", "http://[::1", "/drive?id=%00", "//evil.example", "/\\evil.example", "\x00"):
        before = len(decided(target.warehouse))
        note = f"back to {back!r}"
        answer = attacker.post("/decide", data={**fields, "note": note, "back": back})
        assert answer.status_code == 303 and len(decided(target.warehouse)) == before + 1
        assert attacker.get(answer.headers["location"]).status_code < 500
    assert attacker.get("/decisions").status_code == 200, "what was recorded can be read"


@pytest.mark.parametrize("name", ["origin", "host", "cookie", "sec-fetch-site", "accept-encoding"])
@pytest.mark.parametrize("value", ["http://[", "null", "", "[", "a" * 9_000, "\xff\xfe", "http://[::1]:x/", ";=;", "drivetail_1=_"])
def test_no_header_ends_in_an_error_of_the_server(target: Served, name: str, value: str):
    with target.client(signed_in=name != "cookie") as client:
        for method in ("GET", "POST"):
            headers = {**client.headers, name: value.encode("latin-1")}
            assert client.request(method, "/decide" if method == "POST" else "/alerts", headers=headers).status_code < 500


VALUES = [
    "'x'", "1", "-1.5", "[1, null]", "{'a': 'b'}", "map {'a': 1}", "null", "interval 3 month", "timestamp '0001-01-01'", "date 'infinity'",
    "timestamp 'infinity'", "timestamp '99999-01-01'", "'nan'::double", "'inf'::double", "'a'::blob", "uuid()",
    "170::hugeint * 10::hugeint^30", "time '24:00:00'", "timestamptz '2026-01-05 00:00+14'", "'101'::bit", "true", "'host x'",
    "''", "union_value(a := 1)", "'[1]'::json",
]  # fmt: skip
COLUMNS = (
    "drive_id", "hour_utc", "subject_type", "subject_id", "incident_id", "enclosure", "host", "alert_id", "raid_group_id", "capacity_bytes",
    "action", "relation", "slowdown", "good_ratio", "cause", "why", "successor_drive_id",
)  # fmt: skip


@pytest.mark.parametrize("look", [{}, {"as": "chart"}, *({"download": form} for form in FORMS)])
def test_an_answer_of_any_type_in_any_column_is_shown(attacker: httpx.Client, look: dict[str, str]):
    def check(values: list[str]) -> None:
        sql = "select " + ", ".join(f"{value} as {name}" for value, name in zip(values, COLUMNS, strict=True))
        answer = attacker.get("/ask", params={"sql": sql, **look})
        assert answer.status_code < 500, (sql, answer.text[-300:])
        assert "memory" not in "".join(re.findall(r'role="alert">(.*?)</p>', answer.text)), "the reason is another one"

    for number in range(0, len(VALUES), 9):  # each in each kind of column
        check([VALUES[(number + column * 7) % len(VALUES)] for column in range(len(COLUMNS))])
    check(["'host x'"] * len(COLUMNS))
    check(["'x'", "'x'", "[1]", *["'x'"] * (len(COLUMNS) - 3)])


def test_parquet_of_an_interval_gives_its_reason(attacker: httpx.Client):
    answer = attacker.get("/ask", params={"sql": "select interval 3 month as a", "download": "parquet"})
    assert answer.status_code == 422
    assert "month_day_nano_interval: cast that column to varchar" in re.findall(r'role="alert">(.*?)</p>', answer.text)[0]


def test_a_formula_in_csv_is_a_text_to_a_spreadsheet(attacker: httpx.Client):
    sql = "select '=1+1' as a, '@x' as b, '-x' as c, -1.5 as d, 'x=1' as e, '+1' as \"=f\""
    as_csv = attacker.get("/ask", params={"sql": sql, "download": "csv"}).text
    assert as_csv == "a,b,c,d,e,'=f\n'=1+1,'@x,'-x,-1.5,x=1,'+1\n"
    packed = attacker.get("/ask", params={"sql": sql, "download": "parquet"}).content
    assert pq.read_table(io.BytesIO(packed)).to_pylist()[0]["a"] == "=1+1"


@pytest.mark.parametrize("field", [{"note": "n" * 1_001}, {"ticket": "t" * 201}, {"note": "a\0b"}, {"drive": [DRIVE] * 1_001}])
def test_a_form_that_is_too_large_is_refused_whole(target: Served, attacker: httpx.Client, field: dict[str, Any]):
    before = decided(target.warehouse)
    fields = {"form_token": form_token(attacker.get(f"/drive?id={DRIVE}").text), "drive": DRIVE, "verdict": "watch", "note": "too large"}
    assert attacker.post("/decide", data={**fields, **field}).status_code == 422
    assert decided(target.warehouse) == before


class Recorded:
    """A connection that writes down what it is given."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, given: list[str]) -> None:
        self._connection, self._given = connection, given

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def execute(self, sql: str, *parameters: Any) -> Any:
        self._given.append(sql)
        return self._connection.execute(sql, *parameters)

    def sql(self, sql: str) -> Any:
        self._given.append(sql)
        return self._connection.sql(sql)


HARM = "zz') from read_text('zz') -- zz\" zz$$ zz; /* zz"


def test_the_server_reads_what_a_reader_types_as_a_text(target: Served, attacker: httpx.Client, monkeypatch: pytest.MonkeyPatch):
    given: list[str] = []
    connection = Published.connection
    monkeypatch.setattr(Published, "connection", lambda self: Recorded(connection(self), given))
    monkeypatch.setattr("console.ask.only_question", lambda sql: pytest.fail("parsed where every reader waits for it"))
    known: set[str] = set()
    for page in map(httpx.URL, ALL_PAGES):
        tables = set(re.findall(r"[?;](\w+)\.sort=", attacker.get(page).text)) - known
        known |= tables
        for name in (*page.params, *(f"{table}.{what}" for table in tables for what in ("q", "sort"))):
            attacker.get(page.copy_merge_params({name: HARM}))
    found = [sql for sql in given if "zz" in sql]
    assert len(found) > len(ALL_PAGES), "most of it is looked for"
    for sql in found:
        starts = [*(start for start, _ in duckdb.tokenize(sql)), len(sql.encode())]
        pieces = [sql.encode()[start:end] for start, end in pairwise(starts)]
        assert [piece for piece in pieces if b"zz" in piece and piece[:1] not in (b"'", b'"')] == [], sql


# ----------------------------------------------------------------------------------------------------------------------
# Who may ask, and decide


@pytest.mark.parametrize(
    "public", ["drives.example.org", "//x", "ftp://x", "https://", "https://x/y", "http://[", "https://a@x", "", "http:x"]
)
def test_an_address_without_a_scheme_is_refused(public: str):
    with pytest.raises(QueryError, match=re.escape(f"--address {public}: give the scheme and the host")):
        addresses_of("127.0.0.1", 8090, public)


@pytest.mark.parametrize(
    ("public", "name"), [("https://drives.example.org/", "drives.example.org"), ("HTTP://X:1", "x:1"), ("http://[::1]:5", "[::1]:5")]
)
def test_a_public_address_is_one_of_those_that_are_asked(public: str, name: str):
    found = addresses_of("127.0.0.1", 8090, public)
    assert name in found and "" not in found


@pytest.mark.parametrize("given", [TOKEN, None])
def test_a_token_that_others_keep_is_not_printed(target: Served, monkeypatch: pytest.MonkeyPatch, given: str | None):
    said = list[str]()
    monkeypatch.setattr("console.serve.server_of", lambda _: type("Server", (), {"run": lambda self, sockets: sockets[0].close()})())
    if given:
        monkeypatch.setenv(VARIABLE, given)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    console.serve.serve(target.warehouse, "127.0.0.1", port, said.append)
    assert given is None or given not in " ".join(said)
    assert said[0].endswith(f"?token=${VARIABLE}") if given else re.search(r"\?token=\w{48}$", said[0])


def test_a_session_ends_and_its_forms_with_it(target: Served, attacker: httpx.Client):
    (cookie,) = attacker.cookies.keys()
    ended = replace(target.access, session_hours=-0.01)
    with httpx.Client(base_url=target.address, cookies={cookie: ended.signed("cookie")}) as late:
        assert late.get("/alerts").status_code == 401
    for forged in (ended.signed("cookie").replace("_", "9_", 1), target.access.signed("form ada"), "9_9", "_", ""):
        with httpx.Client(base_url=target.address, cookies={cookie: forged}) as other:
            assert other.get("/alerts").status_code == 401
    form = {"drive": DRIVE, "verdict": "watch", "note": "n", "form_token": ended.signed("form ada")}
    assert attacker.post("/decide", data=form).status_code == 422


@pytest.mark.parametrize(("public", "is_encrypted"), [("https://drives.example.org", True), ("http://drives.example.org", False)])
def test_a_cookie_goes_over_tls_alone_where_the_address_has_it(target: Served, public: str, is_encrypted: bool):
    access = access_of(target.warehouse, "127.0.0.1", 8090, public=public, session_hours=2)
    assert access.is_encrypted == is_encrypted
    with served(target.warehouse, is_encrypted=is_encrypted, session_hours=2) as found:
        cookie = httpx.get(f"{found.address}/?token={TOKEN}").headers["set-cookie"]
    assert ("Secure" in cookie, "Max-Age=7200" in cookie) == (is_encrypted, True)


@pytest.mark.parametrize("name", ["É", "José Ñ", "пользователь", "李"])
def test_a_user_of_any_alphabet_is_let_in(target: Served, name: str):
    with served(target.warehouse, user_header="X-Remote-User") as found, found.client(signed_in=False) as client:
        page = client.get(f"/drive?id={DRIVE}", headers={"x-remote-user": name.encode()})
        assert page.status_code == 200 and f"Decide, as {name}" in page.text
        assert client.get("/", headers={"x-remote-user": b"\xff\xfe"}).status_code == 403


@pytest.mark.parametrize(("deciders", "may"), [(None, {"ada", "bob"}), (frozenset[str](), set[str]()), (frozenset({"ada"}), {"ada"})])
def test_only_a_decider_sees_forms_and_decides(target: Served, deciders: frozenset[str] | None, may: set[str]):
    with served(target.warehouse, user_header="X-Remote-User", deciders=deciders) as found, found.client(signed_in=False) as client:
        for user in ("ada", "bob"):
            client.headers["x-remote-user"] = user
            before = len(decided(target.warehouse))
            for page in (f"/drive?id={DRIVE}", "/candidates", "/"):
                assert ('action="/decide"' in client.get(page).text) == (user in may)
            note = f"{user} of {sorted(deciders or ())} at {before}"
            form = {"drive": DRIVE, "verdict": "watch", "note": note, "form_token": found.access.signed(f"form {user}")}
            answer = client.post("/decide", data=form)
            assert answer.status_code == (200 if user in may else 403)
            assert ("may read, and not decide" in answer.text) == (user not in may)
            assert len(decided(target.warehouse)) == before + (user in may)


def test_deciders_are_users_of_a_proxy(target: Served):
    with pytest.raises(QueryError, match="--user-header"):
        access_of(target.warehouse, "127.0.0.1", 8090, deciders=frozenset({"ada"}))
    assert access_of(target.warehouse, "127.0.0.1", 8090, deciders=frozenset()).may_decide("ada") is False


# ----------------------------------------------------------------------------------------------------------------------
# Connections


def test_the_console_listens_at_this_machine_alone():
    (host,) = (option.default for option in commands.serve.params if option.name == "host")
    with console.serve.listen(host, 0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"


def opened(target: Served, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    """A connection that has sent something."""
    connection = socket.create_connection(("127.0.0.1", httpx.URL(target.address).port or 0), 30, (source, 0))
    connection.sendall(sent)
    return connection


def is_closed(connection: socket.socket, drip: bytes = b"") -> bool:
    """Whether the server ends a connection, within ten seconds."""
    ends = time.monotonic() + 10
    connection.settimeout(0.2)
    while time.monotonic() < ends:
        try:
            connection.sendall(drip)
            if connection.recv(100_000) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def head(target: Served, method: str = "GET", path: str = "/static/console.css") -> bytes:
    """A whole request but for the line that ends it."""
    host = httpx.URL(target.address).netloc.decode()
    cookie = f"drivetail_{httpx.URL(target.address).port}={target.access.signed('cookie')}"
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {target.address}\r\nCookie: {cookie}\r\n".encode()


@pytest.mark.parametrize("shape", ["nothing", "half a head", "a head in drips", "half a form", "a second half"])
def test_a_request_that_is_not_whole_is_let_go(target: Served, monkeypatch: pytest.MonkeyPatch, shape: str):
    monkeypatch.setattr("console.serve.REQUEST_SECONDS", 1.0)
    whole = head(target) + b"\r\n"
    sent = {
        "half a form": head(target, "POST", "/decide") + b"Content-Length: 100\r\n\r\nnote=",
        "half a head": whole[:20],
        "a second half": whole,
    }
    with opened(target, sent.get(shape, b"")) as connection:
        if shape == "a second half":
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            connection.sendall(whole[:20])
        assert is_closed(connection, b"x" if "drips" in shape else b"")


def test_a_request_that_takes_long_to_answer_is_not_let_go(target: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.serve.REQUEST_SECONDS", 0.3)
    monkeypatch.setattr("console.ask.SECONDS", 2.0)
    with target.client() as client:
        late = client.get("/ask", params={"sql": "select sum(a.range * b.range) from range(10000000) a, range(10000000) b"})
    assert late.status_code == 422 and "stopped after 2 s" in late.text


def test_one_peer_holds_half_of_the_connections_at_most(target: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.serve.CONNECTIONS", 20)
    held = [opened(target, b"GET / HTTP/1.1\r\nHost: 127") for _ in range(15)]
    try:
        assert held[-1].recv(100).startswith(b"HTTP/1.1 503")
        with opened(target, head(target) + b"\r\n", "127.0.0.2") as other:
            assert other.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        for connection in held:
            connection.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no time limit for a reader who takes nothing")
def test_a_reader_who_takes_nothing_is_let_go(target: Served, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("console.serve.STALLED_SECONDS", 1)
    with served(target.warehouse) as found, socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", httpx.URL(found.address).port))
        connection.sendall(head(found, path="/static/plotly.js") + b"\r\n")
        time.sleep(8)
        taken = 0
        try:
            while piece := connection.recv(1 << 20):
                taken += len(piece)
        except OSError:
            pass
        assert taken < len(httpx.get(f"{found.address}/static/plotly.js?token={TOKEN}", follow_redirects=True).content) // 4


# ----------------------------------------------------------------------------------------------------------------------
# The end of a server


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.proof)])
def test_no_process_of_a_server_outlives_it_by_more_than_a_question(target: Served, end: signal.Signals):
    with running(target.warehouse) as (process, client):
        before = session_of(process)
        query = httpx.QueryParams({"sql": "select count(*) from range(100000000000000)"})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        asked = f"GET /ask?{query} HTTP/1.1\r\nHost: {client.base_url.netloc.decode()}\r\nCookie: {cookie}\r\n\r\n"
        with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as waiting:
            waiting.sendall(asked.encode())
            time.sleep(3)
            assert session_of(process) - before, "the question runs"
            assert client.get("/alerts").status_code == 200
            os.kill(process.pid, end)
            process.wait(30)
            ends = time.monotonic() + console.ask.SECONDS + 20
            while session_of(process) and time.monotonic() < ends:
                time.sleep(0.2)
        assert session_of(process) == set()
