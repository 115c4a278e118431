"""The console of a demo as files, to look at without a server: its pages, the weekly report, and the marts as Parquet."""

from __future__ import annotations

import gzip
import hashlib
import html
import re
import shutil
from collections import deque
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl, quote

from console.app import Console, static_files, views_of
from console.blocks import Block, Table
from console.guard import Access
from console.pages import PAGES, kept_reports
from drivetail.ask.export import export
from engine.read import QueryError
from engine.warehouse import Warehouse
from ingest.raw.durable import remove

ROWS = 500
"""Most rows of a table."""

WIDE = ("fct_drive_hour_io", "fct_drive_hours_described")
"""Marts of every drive-hour that repeat fct_drive_hours, with more columns: two thirds of all bytes."""

NOTED = """
select drive_id from status.fct_drive_states where is_noted
union select drive_id from marts.drive_actions
union select drive_id from marts.fct_drive_decisions
union select successor_drive_id from marts.fct_drive_decisions where successor_drive_id is not null
union select subject_id from marts.fct_slow_alerts where subject_type = 'drive'
"""
"""Drives with a page: on a list, decided on, silent, or with an alert. Of the others, hosts and groups tell."""


def earlier_files(out: Path) -> list[Path]:
    """Make the folder of a site. Returns: the files of an earlier site in it. Raises: QueryError where it holds something else."""
    out.mkdir(parents=True, exist_ok=True)
    earlier = [path for path in out.iterdir() if path.name != ".git"]
    if earlier and not (out / "tables" / "drive_actions.parquet").is_file():
        raise QueryError(f"--site {out}: holds {earlier[0].name}, which no demo wrote; give another folder")
    return earlier


def write_site(warehouse: Warehouse, out: Path) -> int:
    """Write the site to the folder `out`, in the place of an earlier one. Returns: how many pages it has.

    Raises: QueryError for a folder that holds something else.
    """
    remove(earlier_files(out))
    export(warehouse, out / "tables", is_parquet=True, is_sorted=True)
    for name in WIDE:
        (out / "tables" / f"{name}.parquet").unlink()
    for name, (_, content) in static_files().items():
        (out / name).write_bytes(gzip.decompress(content))
    for report in kept_reports(warehouse.root):
        shutil.copy(report, out)
    return Site(warehouse, out).write()


class Site:
    """Pages that lead from one to the next, beginning with the fleet."""

    def __init__(self, warehouse: Warehouse, out: Path) -> None:
        self.out = out
        self.console = Console(warehouse, Access("", "", frozenset(), deciders=frozenset()))
        self.published = self.console.publications.current
        self.drives = {row["drive_id"] for row in self.published.rows(NOTED)}
        due = self.published.rows("select drive_id from marts.drive_actions where needs_person")
        self.hours = dict.fromkeys((row["drive_id"] for row in due), "")
        """The worst hour of each drive that needs attention: it is traced to its row, which reads raw files for a second."""
        self.found = {"/": "index.html"}
        self.waiting = deque(self.found)

    def write(self) -> int:
        """Write all of them. Returns: how many there are."""
        while self.waiting:
            asked = self.waiting.popleft()
            text = re.sub(r' (href|src)="(/[^"]*)"', self._led, self._page(asked))
            (self.out / self.found[asked]).write_text(text, encoding="utf-8")
        return len(self.found)

    def _page(self, asked: str) -> str:
        path, query = parts(asked)
        page = PAGES[path](self.published, query)
        assert not isinstance(page, str), "only a search leads elsewhere"
        under = "" if path == "/reports" else page.under  # a folder of this machine
        page = replace(page, under=under, blocks=[whole(block, path) for block in page.blocks])
        views = views_of(page, self.published, path, query)
        for view in views:
            view["downloads"] = {"Parquet": file} if (file := self._parquet(query.get("name", ""))) else {}
        return self.console.text("page.html.j2", self.published, path, is_site=True, page=page, views=views, said="")

    def _parquet(self, relation: str) -> str:
        """The file of a relation, empty without one."""
        file = f"tables/{relation.removeprefix('marts.')}.parquet"
        return file if (self.out / file).is_file() else ""

    def _led(self, found: re.Match[str]) -> str:
        """A link to a page of the server as one to its file; what has none is text."""
        asked, _, part = html.unescape(found[2]).partition("#")
        path, query = parts(asked)
        if path.startswith("/static/"):
            file = path.removeprefix("/static/")
        elif path == "/report":
            file = query["name"]
        elif self._has(path, query):
            if asked not in self.found:
                self.found[asked] = file_of(path, query)
                self.waiting.append(asked)
            file = self.found[asked]
        else:
            return ""
        return f' {found[1]}="{html.escape(quote(file) + (part and "#" + part))}"'

    def _has(self, path: str, query: dict[str, str]) -> bool:
        if path == "/hour" and query["id"] in self.hours:
            self.hours[query["id"]] = self.hours[query["id"]] or query["at"]
            return self.hours[query["id"]] == query["at"]
        if path == "/table":
            return query.keys() == {"name"} and bool(self._parquet(query["name"]))
        is_plain = query.keys() <= {"id", "firmware"}  # else sorted, filtered, or of other hours
        return path in PAGES and path not in ("/search", "/hour") and is_plain and (path != "/drive" or query["id"] in self.drives)


def parts(asked: str) -> tuple[str, dict[str, str]]:
    """The path and the parameters of an address."""
    path, _, rest = asked.partition("?")
    return path, dict(parse_qsl(rest))


def file_of(path: str, query: dict[str, str]) -> str:
    """The name of a page's file. Two pages never share one, also where a system ignores case."""
    words = [re.sub(r"[^\w.-]", "_", value, flags=re.ASCII)[:60] for value in query.values()]
    digest = [hashlib.sha256(repr(query).encode()).hexdigest()[:6]] if query else []
    return f"{'-'.join([path.strip('/'), *words, *digest])}.html"


def whole(block: Block, path: str) -> Block:
    """A block with what readers of a server would turn the page for."""
    if not isinstance(block, Table):
        return block
    if path == "/table" and block.name == "rows":
        return replace(block, order="all")
    if block.fold == "unasked":
        return replace(block, order="slowdown desc nulls last, hour_utc", fold=True)
    note = "The page of a mart shows its first rows, and leads to all of them as Parquet." if block.name == "relations" else block.note
    return replace(block, rows=ROWS, note=note)
