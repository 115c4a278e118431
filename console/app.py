"""The application: routes, forms, files. Pages are in console/pages.py, who may ask in console/guard.py."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import logging
import pickle
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import duckdb
from anyio.to_thread import run_sync
from plotly.offline import get_plotlyjs
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from console.ask import ROWS, answered, cookbook, download
from console.blocks import Page, Query, cells_of
from console.cells import address
from console.figures import quick_chart
from console.guard import REPORT_POLICY, Access, Guard
from console.pages import PAGES, kept_reports, rooms
from console.published import FORMS, Publications, Published
from drivetail.ask.decisions import REPLACE, VERDICTS, decide, never_slow
from engine.read import QueryError, Row, first_line
from engine.warehouse import Warehouse
from ingest.contract.values import utc, utc_now
from report.page.html import environment
from report.page.look import drawn
from report.words import counted_noun, duration

log = logging.getLogger(__name__)

BODY_BYTES = 1_000_000
MOST_FIELDS = 1_000
LONGEST = {"note": 1_000, "ticket": 200}
"""Characters of a form's fields."""

PARAMETER_CHARACTERS = 1_000
"""Longest parameter of an address, but for a question's SQL."""

STALE_HOURS = 3
STATIC_SECONDS = 86_400
FOLLOW_SECONDS = 1.0


def query_of(request: Request) -> Query:
    """The parameters of an address: of one that is given twice the last, none that is empty. Raises: QueryError for what none can hold."""
    query = {name: value for name, value in request.query_params.items() if value != ""}
    for name, value in query.items():
        if "\0" in value or (len(value) > PARAMETER_CHARACTERS and name != "sql"):
            raise QueryError(f"{name[:50]!r} has more than {PARAMETER_CHARACTERS:,} characters, or a character of value 0")
    return query


class Console:
    """The console of one warehouse."""

    def __init__(self, warehouse: Warehouse, access: Access) -> None:
        self.warehouse = warehouse
        self.access = access
        self.publications = Publications(warehouse)
        self.templates = environment(Path(__file__).parent / "templates")
        self.version = hashlib.sha256(b"".join(content for _, content in static_files().values())).hexdigest()[:12]

    def application(self) -> Guard:
        """The routes, behind the guard: what fails is answered inside it."""
        shown = {**dict.fromkeys(PAGES, self._page), "/ask": self._ask, "/report": self._report, "/static/{name}": static}
        routes = [Route(path, endpoint, methods=["GET"]) for path, endpoint in shown.items()]
        application = Starlette(
            routes=[*routes, Route("/decide", self._decide, methods=["POST"])],
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=3)],
            lifespan=self._following,
            exception_handlers=dict.fromkeys((QueryError, duckdb.Error, HTTPException, Exception), self._failed),
        )
        return Guard(application, self.access)

    @asynccontextmanager
    async def _following(self, application: Starlette) -> AsyncIterator[None]:
        """While the server runs: what is published is made ready for its readers."""

        async def follow() -> None:
            while True:
                await asyncio.sleep(FOLLOW_SECONDS)
                try:
                    await run_sync(self.publications.refresh)
                except (QueryError, duckdb.Error, OSError):
                    log.exception("what is published now cannot be read; readers stay with the last publication")

        following = asyncio.create_task(follow())
        yield
        following.cancel()

    # ----------------------------------------------------------------------------------------------------------------
    # Pages

    def _page(self, request: Request) -> Response:
        path, query, published = request.scope["path"], query_of(request), self.publications.current
        if "download" in query:
            return self._download(published, path, query)
        asked = tuple((name, value) for name, value in query.items() if name != "decided")
        page, views = published.remembered(_views, path, asked)
        if isinstance(page, str):
            return RedirectResponse(page, 303)
        return self._html(request, "page.html.j2", published, page=page, views=views, said=query.get("decided", ""))

    def _html(self, request: Request, template: str, published: Published | None, status: int = 200, **content: Any) -> HTMLResponse:
        url, user, q = request.url, request.scope.get("user", ""), request.query_params.get("q", "")
        return HTMLResponse(self.text(template, published, url.path, user, here=f"{url.path}?{url.query}", q=q, **content), status)

    def text(self, template: str, published: Published | None, path: str, user: str = "", *, is_site: bool = False, **content: Any) -> str:
        """A template with what every page shows: how old the data are, who asks, the token of its forms. is_site: of a file."""
        age, is_stale = "", False
        if published is not None and published.last_hour_utc is not None and not is_site:
            hours = max(0.0, (utc_now() - published.last_hour_utc) / timedelta(hours=1) - 1)
            age, is_stale = f"{duration(hours)} old", hours > STALE_HOURS
        return self.templates.get_template(template).render(
            published=published, user=user, may_decide=self.access.may_decide(user), form_token=self.access.signed(f"form {user}"),
            longest=LONGEST, age=age, is_stale=is_stale, rooms=published.remembered(rooms) if published else rooms(None),
            warehouse=str(self.warehouse.root), path=path, version=self.version, is_site=is_site,
            **content,
        )  # fmt: skip

    @staticmethod
    def _download(published: Published, path: str, query: Query) -> Response:
        name, _, form = query["download"].rpartition(".")
        if form not in FORMS:
            raise QueryError(f"a table is downloaded as {', '.join(FORMS)}")
        rest = {key: value for key, value in query.items() if key != "download"}
        page = PAGES[path](published, rest)
        if isinstance(page, str):
            raise QueryError("that names one thing, which has a page of its own: no list to download")
        sql = published.held(page.download(name, rest))
        return file_of(download(published.connection(), sql, form), f"{name}.{form}")

    def _report(self, request: Request) -> Response:
        name = request.query_params.get("name", "")
        found = next((path for path in kept_reports(self.warehouse.root) if path.name == name), None)
        if found is None:
            raise QueryError(f"{name!r} is no report that is kept; the page Reports lists them")
        return FileResponse(found, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    def _failed(self, request: Request, error: Exception) -> Response:
        """One line of what is wrong. A reader learns nothing of the program."""
        status, words = 500, "This page cannot be shown."
        if isinstance(error, QueryError):
            status, words = 422, str(error)
        elif isinstance(error, duckdb.Error):  # a column that is not there, or the publication itself
            status = 422 if isinstance(error, duckdb.ProgrammingError) else 500
            words = f"The publication cannot answer: {first_line(error)}"
        elif isinstance(error, HTTPException):
            status, words = error.status_code, "There is no such page." if error.status_code == 404 else error.detail
        return self._html(request, "error.html.j2", None, status, message=words)

    # ----------------------------------------------------------------------------------------------------------------
    # Ask

    async def _ask(self, request: Request) -> Response:
        """A question in SQL. It runs where the reader asked for it here; who comes from elsewhere sees it first."""
        query, published = query_of(request), self.publications.current
        sql, form = query.get("sql", ""), query.get("download", "")
        form = form if form in FORMS else ""
        is_from_here = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        found, problem = b"", ""
        if sql.strip() and is_from_here and "edit" not in query:
            try:
                found = await answered(published.warehouse, published.path, sql, form, request.is_disconnected)
            except QueryError as error:
                problem = str(error)
        if found and form:
            return file_of(iter([found]), f"answer.{form}")
        return await run_sync(self._answer, request, published, query, found, problem)

    def _answer(self, request: Request, published: Published, query: Query, found: bytes, problem: str) -> Response:
        content: dict[str, Any] = {"problem": problem, "sql": query.get("sql", ""), "answer": None, "figure": None}
        if found:
            columns, values = pickle.loads(found)
            rows = [dict(zip(columns, row, strict=True)) for row in values[:ROWS]]
            content["answer"] = {**cells_of(published, columns, rows), "is_more": len(values) > ROWS}
            if query.get("as") == "chart" and (figure := quick_chart(columns, rows)):
                content["figure"] = drawn(figure, "answer", "The answer as a chart")
        status, look = 422 if problem else 200, query.get("as")
        return self._html(request, "ask.html.j2", published, status, look=look, limit=ROWS, questions=cookbook(), forms=FORMS, **content)

    # ----------------------------------------------------------------------------------------------------------------
    # Decide

    async def _decide(self, request: Request) -> Response:
        body, user = b"", request.scope["user"]
        if not self.access.may_decide(user):
            raise HTTPException(403, f"{user} may read, and not decide: --decider of `drivetail serve` names who may.")
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_BYTES:
                raise QueryError("the form is too large")
        try:
            fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise QueryError(f"the form has more than {MOST_FIELDS:,} fields: tick fewer drives") from error
        form = {name: values[-1].strip() for name, values in fields.items()}
        if not self.access.is_signed(f"form {user}", form.get("form_token", "")):
            raise QueryError("this form is of an earlier visit: go back, load the page again and send it once more")
        said = await run_sync(self._decided, form, fields.get("drive", []), user)
        path, _, rest = form.get("back", "").partition("#")[0].partition("?")
        path = path if re.fullmatch(r"/[a-z]*", path) else "/"
        return RedirectResponse(address(path, **{**dict(parse_qsl(rest)), "decided": said}), 303)

    def _decided(self, form: dict[str, str], drives: list[str], user: str) -> str:
        """Record a decision. Returns: the sentence that says so."""
        verdict, note, until = form.get("verdict", ""), form.get("note", ""), form.get("until")
        if not drives:
            raise QueryError("no drive was chosen: tick one or more")
        if verdict not in VERDICTS:
            raise QueryError(f"a decision is one of {', '.join(VERDICTS)}")
        if not note:
            raise QueryError("a decision needs a note: it is stored, so that others know who decided and why")
        for name, most in LONGEST.items():
            if len(form.get(name, "")) > most or "\0" in form.get(name, ""):
                raise QueryError(f"the {name} has more than {most:,} characters, or one of value 0")
        try:
            ends = utc(until) if until else None
        except ValueError as error:
            raise QueryError(f"{until!r} is no date; give one such as 2026-02-06 (UTC)") from error
        if ends is not None and ends <= utc_now():
            raise QueryError(f"until {until} has passed; to end a decision, retract it")
        if verdict == REPLACE and not form.get("sure") and (doubt := never_slow(self.warehouse, drives)):
            raise QueryError(f"{doubt}: go back and tick that it is to be replaced even so")
        new, repeated = decide(self.warehouse, drives, verdict, by=user, note=note, until=ends, ticket=form.get("ticket"))
        again = f"; {counted_noun(len(repeated), 'drive')} had it already" if repeated else ""
        return f"{verdict} recorded for {counted_noun(len(new), 'drive')}, by {user}{again}. To undo it, decide again or retract."


def _views(published: Published, path: str, asked: tuple[tuple[str, str], ...]) -> tuple[Page | str, list[Row]]:
    """A page, or the address of the one that was meant, and the values of its blocks for the template."""
    page = PAGES[path](published, dict(asked))
    return page, [] if isinstance(page, str) else views_of(page, published, path, dict(asked))


def views_of(page: Page, published: Published, path: str, query: Query) -> list[Row]:
    """Values of the blocks of a page; a table without rows is left out where it has no text for that."""
    views = [block.view(published, path, query) for block in page.blocks]
    return [view for view in views if view.get("rows", True) or view["block"].empty or view.get("sought")]


def file_of(pieces: Iterator[bytes], name: str) -> StreamingResponse:
    """Bytes as a file to keep. What fails does so before the first is sent."""
    first = next(pieces, b"")
    kinds = {"csv": "text/csv; charset=utf-8", "json": "application/json", "parquet": "application/vnd.apache.parquet"}
    return StreamingResponse(
        chain([first], pieces), media_type=kinds[name.rpartition(".")[2]], headers={"content-disposition": f'attachment; filename="{name}"'}
    )


@cache
def static_files() -> dict[str, tuple[str, bytes]]:
    """The files that pages ask for, packed: media type, content. All are inside this package and those that it needs."""
    template = environment(Path(__file__).parent / "templates").get_template
    look = template("page/style.css.j2").render() + template("console.css").render()
    figures = template("page/figures.js").render() + template("console.js").render()
    script = "text/javascript; charset=utf-8"
    files = {"plotly.js": (script, get_plotlyjs()), "console.js": (script, figures), "console.css": ("text/css; charset=utf-8", look)}
    return {name: (kind, gzip.compress(text.encode(), mtime=0)) for name, (kind, text) in files.items()}


def static(request: Request) -> Response:
    """One of these files. Every browser unpacks them, and keeps them for a day: their addresses hold the version."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("There is no such file.", 404)
    headers = {"cache-control": f"private, max-age={STATIC_SECONDS}", "content-encoding": "gzip"}
    return Response(found[1], media_type=found[0], headers=headers)
