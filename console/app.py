"""The application: routes, forms, files. Pages are in console/pages.py, who may ask in console/guard.py."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import duckdb
from anyio.to_thread import run_sync
from plotly.offline import get_plotlyjs
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from console.ask import ROWS, Question, cookbook, download
from console.blocks import Page, Query, block_named, drive_places
from console.cells import address, cell, heading, shape
from console.figures import quick_chart
from console.guard import REPORT_POLICY, Access, Guard
from console.pages import PAGES, exact, kept_reports
from console.published import Publications, Published
from drivetail.ask.decisions import decide
from engine.read import QueryError, first_line
from engine.warehouse import Warehouse
from ingest.contract.values import utc_now
from report.page.html import environment
from report.page.look import drawn
from report.words import counted_noun

BODY_BYTES = 1_000_000
STALE_HOURS = 3
VERDICTS = ("replace", "watch", "dismiss")
STATIC_SECONDS = 86_400


def query_of(request: Request) -> Query:
    """The parameters of an address: of one that is given twice the last, none that is empty."""
    return {name: value for name, value in request.query_params.items() if value != ""}


class Console:
    """The console of one warehouse."""

    def __init__(self, warehouse: Warehouse, access: Access) -> None:
        self.warehouse = warehouse
        self.access = access
        self.publications = Publications(warehouse)
        self.questions: list[tuple[str, Question]] = []
        self.templates = environment(Path(__file__).parent / "templates")

    def application(self) -> Guard:
        """The routes, behind the guard: what fails is answered inside it."""
        routes = [Route(path, self._page(path), methods=["GET"]) for path in PAGES if path not in ("/search",)]
        routes += [
            Route("/search", self._search, methods=["GET"]),
            Route("/ask", self._ask, methods=["GET"]),
            Route("/ask/cancel", self._cancel, methods=["POST"]),
            Route("/decide", self._decide, methods=["POST"]),
            Route("/report", self._report, methods=["GET"]),
            Route("/static/{name}", static, methods=["GET"]),
        ]
        application = Starlette(
            routes=routes,
            middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=3)],
            exception_handlers={QueryError: self._failed, duckdb.Error: self._failed, 404: self._failed, Exception: self._failed},
        )
        return Guard(application, self.access)

    # ----------------------------------------------------------------------------------------------------------------
    # Pages

    def _page(self, path: str) -> Callable[[Request], Response]:
        """The endpoint of a page."""

        def endpoint(request: Request) -> Response:
            query = query_of(request)
            if "download" in query:
                return self._download(path, query)
            with self.publications.current() as published:
                return self._shown(request, published, PAGES[path](published, query), path, query)

        return endpoint

    def _shown(self, request: Request, published: Published, page: Page, path: str, query: Query) -> Response:
        """A page as HTML."""
        views = [block.view(published, path, {name: value for name, value in query.items() if name != "decided"}) for block in page.blocks]
        return self._html(request, "page.html.j2", published, page=page, views=views, said=query.get("decided", ""))

    def _html(self, request: Request, template: str, published: Published | None, status: int = 200, **content: Any) -> HTMLResponse:
        """A template with what every page shows: how old the data are, who asks, the token of its forms."""
        user = request.scope.get("user", "")
        age = None if published is None or published.last_hour_utc is None else utc_now() - published.last_hour_utc - timedelta(hours=1)
        text = self.templates.get_template(template).render(
            published=published, user=user, form_token=self.access.form_token(user), age=age_words(age),
            is_stale=age is not None and age > timedelta(hours=STALE_HOURS), here=f"{request.url.path}?{request.url.query}",
            q=request.query_params.get("q", ""), warehouse=str(self.warehouse.root), path=request.url.path, version=static_version(),
            **content,
        )  # fmt: skip
        return HTMLResponse(text, status)

    def _download(self, path: str, query: Query) -> Response:
        """A table as a file."""
        name, _, form = query["download"].rpartition(".")
        if form not in ("csv", "parquet"):
            raise QueryError("a table is downloaded as csv or parquet")
        rest = {key: value for key, value in query.items() if key != "download"}

        def pieces() -> Iterator[bytes]:
            with self.publications.current() as published:
                sql = block_named(PAGES[path](published, rest), name).all_rows(published, rest)
                # its reader may be slow, and takes nobody's turn
                with published.cursor(waits=False) as cursor:
                    yield from download(cursor, published.held(sql), form)

        return file_of(pieces(), f"{name}.{form}")

    def _search(self, request: Request) -> Response:
        """Straight to what was typed in full, else all that it may be."""
        query = query_of(request)
        sought = query.get("q", "").strip()
        with self.publications.current() as published:
            found = exact(published, sought) if sought else None
            if found and "download" not in query:
                return RedirectResponse(found, 303)
        return self._page("/search")(request)

    def _report(self, request: Request) -> Response:
        """A report that is kept, as it was written."""
        name = request.query_params.get("name", "")
        found = next((path for path in kept_reports(self.warehouse.root) if path.name == name), None)
        if found is None:
            raise QueryError(f"{name!r} is no report that is kept; the page Reports lists them")
        return FileResponse(found, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})

    def _failed(self, request: Request, error: Exception) -> Response:
        """One line of what is wrong. A reader learns nothing of the program."""
        status = getattr(error, "status_code", 422 if isinstance(error, QueryError) else 500)
        words = "There is no such page." if status == 404 else str(error) if isinstance(error, QueryError) else "This page cannot be shown."
        if isinstance(error, duckdb.Error):
            words = f"The publication cannot answer: {first_line(error)}"
        return self._html(request, "error.html.j2", None, status, message=words)

    # ----------------------------------------------------------------------------------------------------------------
    # Ask

    async def _ask(self, request: Request) -> Response:
        """A question in SQL. It runs where the reader asked for it here; who comes from elsewhere sees it first."""
        query = query_of(request)
        sql = query.get("sql", "")
        is_from_here = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        if not sql.strip() or not is_from_here or "edit" in query:
            return await run_sync(self._asked, request, sql, None, "", "")
        question = Question(sql)
        self.questions.append((request.scope["user"], question))
        gone = asyncio.ensure_future(self._cancelled_when_gone(request, question))
        try:
            return await run_sync(self._answered, request, question, query.get("as", "table"), query.get("download", ""))
        finally:
            gone.cancel()
            self.questions.remove((request.scope["user"], question))

    async def _cancelled_when_gone(self, request: Request, question: Question) -> None:
        """Nobody waits for it any more: the reader pressed Stop, or left."""
        while not await request.is_disconnected():
            await asyncio.sleep(0.1)
        question.cancel()

    def _answered(self, request: Request, question: Question, look: str, form: str) -> Response:
        try:
            with self.publications.current() as published:
                if form in ("csv", "parquet"):
                    return file_of(iter([question.kept(published, form)]), f"answer.{form}")
                answer = question.answer(published)
        except QueryError as error:
            return self._asked(request, question.sql, None, look, str(error))
        return self._asked(request, question.sql, answer, look, "")

    def _asked(
        self, request: Request, sql: str, answer: tuple[list[str], list[tuple[Any, ...]], bool] | None, look: str, problem: str
    ) -> Response:
        """The page of a question and its answer."""
        content: dict[str, Any] = {"sql": sql, "problem": problem, "look": look, "answer": None, "figure": None, "limit": ROWS}
        with self.publications.current() as published:
            if answer is not None:
                columns, rows, is_more = answer
                dicts = [dict(zip(columns, row, strict=True)) for row in rows]
                drives = {row["drive_id"] for row in dicts if isinstance(row.get("drive_id"), str)}
                places = drive_places(published, set(sorted(drives)[:ROWS]))
                content["answer"] = {
                    "columns": [(heading(c), published.described(c), shape(c, [row[i] for row in rows])) for i, c in enumerate(columns)],
                    "rows": [[cell(column, row, places) for column in row] for row in dicts], "is_more": is_more, "count": len(rows),
                }  # fmt: skip
                figure = quick_chart(columns, rows) if look == "chart" else None
                content["figure"] = None if figure is None else drawn(figure, "answer", "The answer as a chart")
            forms = (("table", "as"), ("chart", "as"), ("csv", "download"), ("parquet", "download"))
            addresses = {form: address("/ask", sql=sql, **{key: form}) for form, key in forms}
            questions = [(title, address("/ask", sql=text.strip())) for title, text in cookbook().items()]
            return self._html(request, "ask.html.j2", published, status=422 if problem else 200, title="Ask", addresses=addresses,
                              questions=questions, columns=published.described_relations, **content)  # fmt: skip

    async def _cancel(self, request: Request) -> Response:
        """Stop the questions of this user, and show the one that was sent, to be changed."""
        form = await self._form(request)
        for user, question in list(self.questions):
            if user == request.scope["user"]:
                question.cancel()
        return RedirectResponse(address("/ask", sql=form.get("sql", [""])[-1], edit=1), 303)

    # ----------------------------------------------------------------------------------------------------------------
    # Decide

    async def _form(self, request: Request) -> dict[str, list[str]]:
        """The fields of a form of this user's own. Raises: QueryError for another."""
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > BODY_BYTES:
                raise QueryError("the form is too large")
        fields: dict[str, list[str]] = {}
        for name, value in parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True):
            fields.setdefault(name, []).append(value)
        expected = self.access.form_token(request.scope["user"])
        if not hmac.compare_digest(fields.get("form_token", [""])[-1].encode(), expected.encode()):
            raise QueryError("this form is of an earlier visit: go back, load the page again and send it once more")
        return fields

    async def _decide(self, request: Request) -> Response:
        """Record a decision on one or more drives, as `drivetail decide` does."""
        form = await self._form(request)
        said = await run_sync(self._decided, form, request.scope.get("user", ""))
        back = form.get("back", ["/"])[-1]
        parts = urlsplit(back)
        kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "decided"]
        path = parts.path if re.fullmatch(r"/[\w/]*", parts.path) else "/"
        return RedirectResponse(address(path, **{**dict(kept), "decided": said}), 303)

    def _decided(self, form: dict[str, list[str]], user: str) -> str:
        drives = list(dict.fromkeys(drive for drive in form.get("drive", []) if drive))
        verdict, note = form.get("verdict", [""])[-1], form.get("note", [""])[-1].strip()
        ticket, until = form.get("ticket", [""])[-1].strip() or None, form.get("until", [""])[-1].strip()
        if not drives:
            raise QueryError("no drive was chosen: tick one or more")
        if verdict not in VERDICTS:
            raise QueryError(f"a decision is one of {', '.join(VERDICTS)}")
        if not note:
            raise QueryError("a decision needs a note: it is stored, so that others know who decided and why")
        try:
            ends = datetime.fromisoformat(until) if until else None
        except ValueError as error:
            raise QueryError(f"{until!r} is no date; give one such as 2026-02-06 (UTC)") from error
        if ends is not None and ends.replace(tzinfo=None) <= utc_now():
            raise QueryError(f"until {until} has passed; to end a decision, decide watch")
        new, repeated = decide(self.warehouse, drives, verdict, by=user, note=note, until=ends, ticket=ticket)
        again = f"; {counted_noun(len(repeated), 'drive')} had it already" if repeated else ""
        return f"{verdict} recorded for {counted_noun(len(new), 'drive')}, by {user}{again}. To undo it, decide again."


def file_of(pieces: Iterator[bytes], name: str) -> StreamingResponse:
    """Bytes as a file to keep. What fails does so before the first is sent."""
    first = next(pieces, b"")

    def all_pieces() -> Iterator[bytes]:
        yield first
        yield from pieces

    kind = "text/csv; charset=utf-8" if name.endswith(".csv") else "application/vnd.apache.parquet"
    return StreamingResponse(all_pieces(), media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


def age_words(age: timedelta | None) -> str:
    """How old the data are."""
    if age is None:
        return ""
    hours = max(0, int(age.total_seconds() // 3600))
    return "less than an hour old" if hours == 0 else f"{hours} h old" if hours < 72 else f"{hours // 24} days old"


@cache
def static_files() -> dict[str, tuple[str, bytes]]:
    """The files that pages ask for, packed: media type, content. All are inside this package and those that it needs."""
    templates = environment(Path(__file__).parent / "templates")
    look = templates.get_template("page/style.css.j2").render() + templates.get_template("console.css").render()
    figures = templates.get_template("page/figures.js").render() + templates.get_template("console.js").render()
    script = "text/javascript; charset=utf-8"
    files = {"plotly.js": (script, get_plotlyjs()), "console.js": (script, figures), "console.css": ("text/css; charset=utf-8", look)}
    return {name: (kind, gzip.compress(text.encode(), mtime=0)) for name, (kind, text) in files.items()}


@cache
def static_version() -> str:
    """Changes with any of these files: a browser keeps them for a day."""
    return hashlib.sha256(b"".join(content for _, content in static_files().values())).hexdigest()[:12]


def static(request: Request) -> Response:
    """One of these files. Every browser unpacks them."""
    found = static_files().get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("There is no such file.", 404)
    headers = {"cache-control": f"private, max-age={STATIC_SECONDS}", "content-encoding": "gzip"}
    return Response(found[1], media_type=found[0], headers=headers)
