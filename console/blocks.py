"""Parts of a page: tables of one query each, figures, facts. A table sorts, filters and pages in the database, by its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go
from markupsafe import Markup

from console.cells import HIDDEN, address, cell, heading, shape
from console.published import DOWNLOADED, Published
from engine.read import QueryError, Row
from engine.warehouse import quoted
from report.page.look import drawn

Query = Mapping[str, str]
"""The parameters of an address."""


def ident(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Table:
    """The rows of a query.

    relation: whose descriptions explain the columns. picks: its drives can be decided on. is_open: not folded. order: of its columns,
    after the reader's own.
    """

    name: str
    title: str
    sql: str
    relation: str = ""
    note: str = ""
    empty: str = "None."
    order: str = ""
    rows: int = 25
    picks: bool = False
    is_open: bool = True
    kind: str = field(default="table", init=False)

    def question(self) -> str:
        """The SQL of all its rows, as a reader would ask it."""
        return f"{self.sql.strip()}\norder by {self.order}" if self.order else self.sql.strip()

    def _chosen(self, published: Published, query: Query) -> str:
        """The rows that the reader chose, in the reader's order."""
        sought, sort = query.get(f"{self.name}.q", "").strip(), query.get(f"{self.name}.sort", "")
        columns = published.answer(f"select * from (\n{self.sql.strip()}\n) limit 0")[0] if sought or sort else []
        sql = f"select * from (\n{self.sql.strip()}\n)"
        if sought:
            texts = ", ".join(f"cast({ident(column)} as varchar)" for column in columns)
            sql += f"\nwhere contains(lower(concat_ws(' ', {texts})), lower({quoted(sought)}))"
        column, is_down = sort.removeprefix("-"), sort.startswith("-")
        order = [f"{ident(column)} {'desc' if is_down else 'asc'} nulls last"] if column in columns else []
        order += [self.order] if self.order else []
        sql += f"\norder by {', '.join(order)}" if order else ""
        return sql

    def view(self, published: Published, page: str, query: Query) -> Row:
        """Values for the template: a page of rows, and the addresses that sort, turn the page and download."""
        number = max(1, int(query.get(f"{self.name}.page", "1")) if query.get(f"{self.name}.page", "1").isdigit() else 1)
        chosen = self._chosen(published, query)
        columns, found = published.answer(f"{chosen}\nlimit {self.rows + 1} offset {(min(number, 10**9) - 1) * self.rows}")
        shown, seen = found[: self.rows], [column for column in columns if column not in HIDDEN]
        drives = {
            row[name]
            for row in shown
            for name in ("drive_id", "successor_drive_id", "slowest_drive_id", "subject_id")
            if isinstance(row.get(name), str)
        }
        places = drive_places(published, drives)
        sort = query.get(f"{self.name}.sort", "")

        def to(**changed: str) -> str:
            new = {f"{self.name}.{key}": value for key, value in changed.items()}
            return address(page, **{**dict(query), **new}) + f"#{self.name}"

        return {
            "block": self,
            "columns": [
                {
                    "name": column,
                    "heading": heading(column),
                    "described": published.described(column, self.relation),
                    "sort": to(sort=column if sort == f"-{column}" else f"-{column}", page=""),
                    "sorted": "descending" if sort == f"-{column}" else "ascending" if sort == column else None,
                    "shape": shape(column, [row[column] for row in shown]),
                }
                for column in seen
            ],
            "rows": [[cell(column, row, places) for column in seen] for row in shown],
            "picked": [row.get("drive_id") if "drive_id" in row else row.get("subject_id") for row in shown] if self.picks else [],
            "sought": query.get(f"{self.name}.q", ""),
            "others": [(name, value) for name, value in query.items() if name not in (f"{self.name}.q", f"{self.name}.page")],
            "number": number,
            "before": to(page=str(number - 1)) if number > 1 else "",
            "after": to(page=str(number + 1)) if len(found) > self.rows else "",
            "downloads": {form: address(page, **{**dict(query), "download": f"{self.name}.{form}"}) for form in ("csv", "parquet")},
            "ask": address("/ask", sql=self.question()),
            "is_tooled": len(found) > 7 or number > 1 or bool(query.get(f"{self.name}.q")),
        }

    def all_rows(self, published: Published, query: Query) -> str:
        """The SQL of a download: what the reader chose, all of it."""
        return f"{self._chosen(published, query)}\nlimit {DOWNLOADED}"


@dataclass(frozen=True)
class Figure:
    """A picture of rows, and the SQL that gives them. draw: rows -> figure, None where there is nothing to see."""

    name: str
    title: str
    sql: str
    draw: Callable[[list[Row]], go.Figure | None]
    note: str = ""
    empty: str = "Nothing to draw."
    kind: str = field(default="figure", init=False)

    def view(self, published: Published, page: str, query: Query) -> Row:
        """Values for the template."""

        def draw(sql: str) -> Markup | None:
            rows = published.rows(sql)
            figure = self.draw(rows) if rows else None
            return None if figure is None else drawn(figure, self.name, self.title)

        return {
            "block": self,
            "figure": published.remembered(self.sql, draw),
            "ask": address("/ask", sql=self.sql.strip()),
        }


@dataclass(frozen=True)
class Part:
    """A part of a page that has a template of its own: what it shows, ready."""

    kind: str
    name: str
    title: str = ""
    content: dict[str, Any] = field(default_factory=dict)

    def view(self, published: Published, page: str, query: Query) -> Row:
        """Values for the template."""
        return {"block": self, **self.content}


Block = Table | Figure | Part


@dataclass(frozen=True)
class Page:
    """A page: its title, the answer, a line under it, and what is on it."""

    title: str
    blocks: list[Block]
    under: Markup | str = ""
    answer: Markup | str = ""


def drive_places(published: Published, drives: set[str]) -> dict[str, Row]:
    """Where some drives are, and what to do about them: drive_id -> host, device, slot, enclosure, model, raid_group_id, action."""
    if not drives:
        return {}
    listed = ", ".join(quoted(drive) for drive in sorted(drives))
    found = published.rows(
        f"select drive_id, host, device, slot, enclosure, model, current_raid_group_id as raid_group_id "
        f"from marts.dim_drives where drive_id in ({listed})"
    )
    todo = {row["drive_id"]: row["action"] for row in published.rows("select drive_id, action from marts.drive_actions where needs_person")}
    return {row["drive_id"]: {**row, "action": todo.get(row["drive_id"])} for row in found}


def block_named(page: Page, name: str) -> Table:
    """The table of a page that is to be downloaded. Raises: QueryError where there is none."""
    found = [block for block in page.blocks if isinstance(block, Table) and block.name == name]
    if not found:
        raise QueryError(
            f"{name!r} is no table of this page; its tables are {', '.join(b.name for b in page.blocks if isinstance(b, Table))}"
        )
    return found[0]
