"""Parts of a page: tables of one query each, figures, the map, facts. A table sorts, filters and pages in the database, by its address."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import plotly.graph_objects as go
from markupsafe import Markup

from console.cells import HIDDEN, PAGES, address, by_number, cell
from console.published import DOWNLOADED, FORMS, Published
from engine.read import QueryError, Row
from engine.warehouse import quoted, texts
from report.page.cells import heading, shape
from report.page.look import drawn

Query = Mapping[str, str]
"""The parameters of an address."""

PAGE = re.compile("[1-9][0-9]{0,8}")


@dataclass(frozen=True)
class Table:
    """The rows of a query.

    relation: whose descriptions explain the columns. picks: its drives can be decided on. fold: closed at first; `unasked`: and asked when
    it is opened. said: in a heading that is folded, in the place of how many rows there are. empty: without one a table without rows is
    left out. order: of its columns, after the reader's own.
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
    fold: bool | str = False
    said: str = ""

    def chosen(self, query: Query) -> str:
        """The SQL of the rows that the reader chose, in the reader's order."""
        sought, sort = query.get(f"{self.name}.q", "").strip(), query.get(f"{self.name}.sort", "")
        sql = f"select * from (\n{self.sql.strip()}\n)"
        if sought:
            sql += f"\nwhere contains(lower(concat_ws(' ', *columns(*))), lower({quoted(sought)}))"
        column = sort.removeprefix("-").replace('"', '""')
        order = [f'"{column}" {"desc" if sort.startswith("-") else "asc"} nulls last'] if column else []
        order += [self.order] if self.order else []
        return f"{sql}\norder by {', '.join(order)}" if order else sql

    def view(self, published: Published, page: str, query: Query) -> Row:
        """Values for the template: a page of rows, and the addresses that sort, turn the page and download."""
        own = {name.removeprefix(f"{self.name}."): value for name, value in query.items() if name.startswith(f"{self.name}.")}
        sought, sort, number = own.get("q", ""), own.get("sort", ""), int(own["page"]) if PAGE.fullmatch(own.get("page", "")) else 1

        def to(**changed: str) -> str:
            new = {f"{self.name}.{key}": value for key, value in changed.items()}
            return address(page, **{**dict(query), **new}) + f"#{self.name}"

        links = {
            "block": self,
            "sql": f"{self.sql.strip()}\norder by {self.order}" if self.order else self.sql.strip(),
            "downloads": {name: address(page, **{**dict(query), "download": f"{self.name}.{form}"}) for form, name in FORMS.items()},
            "open": to(page="1") if self.fold == "unasked" and not own else "",
            "is_open": not self.fold or bool(own),
        }
        if links["open"]:
            return {**links, "rows": []}
        limited = f"{self.chosen(query)}\nlimit {self.rows + 1} offset {(number - 1) * self.rows}"
        columns, found = published.answer(limited)
        shown, seen = found[: self.rows], [column for column in columns if column not in HIDDEN]
        values = cells_of(published, seen, shown, self.relation)
        for column, name in zip(values["columns"], seen, strict=True):
            column["sort"] = to(sort=name if sort == f"-{name}" else f"-{name}", page="")
            column["sorted"] = "descending" if sort == f"-{name}" else "ascending" if sort == name else None
        return {
            **links,
            **values,
            "picked": [row.get("drive_id", row.get("subject_id")) for row in shown] if self.picks else [],
            "sought": sought,
            "others": [(name, value) for name, value in query.items() if name not in (f"{self.name}.q", f"{self.name}.page")],
            "number": number,
            "before": to(page=str(number - 1)) if number > 1 else "",
            "after": to(page=str(number + 1)) if len(found) > self.rows else "",
            "is_tooled": len(found) > 7 or number > 1 or bool(sought),
        }


@dataclass(frozen=True)
class Figure:
    """A picture of rows, and the SQL that gives them. draw: rows -> figure, None where there is nothing to see."""

    name: str
    title: str
    sql: str
    draw: Callable[[list[Row]], go.Figure | None]
    note: str = ""

    def view(self, published: Published, page: str, query: Query) -> Row:
        figure = self.draw(published.rows(self.sql.replace("marts.fct_drive_hours", "held.drive_hours")))
        shown = drawn(figure, self.name, self.title) if figure else None
        return {"block": self, "figure": shown, "sql": self.sql.strip()}


STATES = {"replace": "R", "check path": "P", "inspect": "I", "watch": "W", "not judged": "?", "well": ""}
"""States of status.fct_drive_states, the most urgent first, and the letter of each: no state is seen by its colour alone."""

DRAWN_DRIVES, DRAWN_STATES, OPEN_PLACES, WIDE = 600, 2500, 24, 24
"""Drives up to which all are drawn; of a larger fleet those at most that have an action or are silent, and places that are open at first.
Drives from which on a tile is twice as wide.
"""


@dataclass(frozen=True)
class Map:
    """The fleet: a tile for each host, or enclosure without one, in it a square for each drive."""

    name: str = "map"
    title: str = "Every drive, by host"

    def view(self, published: Published, page: str, query: Query) -> Row:
        found = published.rows(f"select distinct state, state_drives from {MAPPED}")
        counts = {row["state"]: row["state_drives"] for row in found}
        drives = sum(counts.values())
        is_whole = drives <= DRAWN_DRIVES
        which = "" if is_whole else f"where is_noted order by place_rank, drive_id limit {DRAWN_STATES}"
        rows = published.rows(f"select * from {MAPPED} {which}")
        # a small fleet is always drawn in the same order, of a large one the most urgent first
        rows.sort(
            key=lambda row: (not is_whole and row["place_rank"], *(by_number(row[name] or "~") for name in ("place", "enclosure", "name")))
        )
        tiles = [tile(list(of)) for _, of in groupby(rows, key=lambda row: row["place"])]
        last = published.rows(f"select place_rank from {MAPPED} order by place_rank desc limit 1")
        key = [
            (state, letter, counts[state], address("/table", **{"name": MAPPED, "rows.q": state}))
            for state, letter in STATES.items()
            if state in counts
        ]
        opened, heading = (len(tiles), self.title) if is_whole else (OPEN_PLACES, "Hosts with a drive to look at")
        return {
            "block": self, "heading": heading, "key": key, "open": tiles[:opened], "folded": tiles[opened:],
            "other_places": last[0]["place_rank"] - len(tiles) if last else 0,
            "other_drives": drives - sum(each["drives"] for each in tiles),
            "is_cut": len(rows) == DRAWN_STATES, "sql": f"select * from {MAPPED} order by place_rank, drive_id",
        }  # fmt: skip


MAPPED = "status.fct_drive_states"


def tile(rows: list[Row]) -> Row:
    """A place of the map: its name, its page, and its drives by enclosure."""
    first = rows[0]
    page = "/host" if first["host"] else "/enclosure"
    return {
        "place": first["place"] or "place unknown",
        "to": address(page, id=first["place"]) if first["place"] else "",
        "drives": first["place_drives"],
        "others": first["place_drives"] - len(rows),
        "is_wide": len(rows) > WIDE,
        "shelves": [[square(row) for row in shelf] for _, shelf in groupby(rows, key=lambda row: row["enclosure"])],
    }


def square(row: Row) -> Row:
    """A drive of the map: its page, its state as a class and a letter, and in words; of the last 14 days those on which it was slow."""
    reason, days = row["unjudged_reason"], row["slow_days_14d"] or 0
    said = f"{row['name']}: {row['state']}" + (f", {reason}" if reason else "") + (f", slow on {days} of 14 days" if days else "")
    state = row["state"]
    return {"to": address("/drive", id=row["drive_id"]), "state": state.replace(" ", "-"), "letter": STATES[state], "said": said,
            "days": days, "is_told": row["is_noted"] or days}  # fmt: skip


Block = Table | Figure | Map


@dataclass(frozen=True)
class Page:
    """A page: its title, a line under it, the answer, and what is on it, in this order.

    is_calm: nobody needs to act on the answer. nothing: in the place of blocks that are all left out. facts: title and value. drive: can be
    decided on. ticket: how to replace it. span: the form that chooses the hours. text: is shown as it is.
    """

    title: str
    blocks: list[Block]
    under: Markup | str = ""
    answer: Markup | str = ""
    is_calm: bool = False
    nothing: str = ""
    facts: Sequence[tuple[str, Markup | str]] = ()
    drive: str = ""
    ticket: str = ""
    span: Row | None = None
    text: str = ""

    def download(self, name: str, query: Query) -> str:
        """SQL for all rows of a table that the reader chose. Raises: QueryError for a name that no table has."""
        tables = {block.name: block for block in self.blocks if isinstance(block, Table)}
        if name not in tables:
            raise QueryError(f"{name!r} is no table of this page; its tables are {', '.join(tables)}")
        return f"{tables[name].chosen(query)}\nlimit {DOWNLOADED}"


def cells_of(published: Published, columns: list[str], rows: list[Row], relation: str = "") -> Row:
    """The heads and the cells of a table, for the template."""
    named = ("drive_id", "successor_drive_id", "slowest_drive_id", "subject_id")
    places = drive_places(published, {row[name] for row in rows for name in named if isinstance(row.get(name), str)})
    groups = (*(name for name, page in PAGES.items() if page == "/group"), "subject_id")
    called = {row[name] for row in rows for name in groups if isinstance(row.get(name), str)} - places.keys()
    called |= {row["incident_id"].removeprefix("raid_group ") for row in rows if isinstance(row.get("incident_id"), str)}
    places |= group_names(published, called)
    heads = [
        {"heading": heading(name), "described": published.described(name, relation), "shape": shape(name, [row[name] for row in rows])}
        for name in columns
    ]
    return {"columns": heads, "rows": [[cell(name, row, places) for name in columns] for row in rows]}


def group_names(published: Published, groups: set[str]) -> dict[str, Row]:
    """Names that people have for some RAID groups, where they are others than the identifiers: raid_group_id -> name."""
    which = f"raid_group_id in ({texts(groups)}) and name <> raid_group_id"
    found = published.rows(f"select raid_group_id, name from marts.dim_raid_groups where {which}") if groups else []
    return {row["raid_group_id"]: row for row in found}


def drive_places(published: Published, drives: set[str]) -> dict[str, Row]:
    """Where some drives are, and what to do about them: drive_id -> host, device, slot, enclosure, model, action."""
    if not drives:
        return {}
    found = published.rows(
        "select drive_id, host, device, slot, enclosure, model, left_at, actions.action from marts.dim_drives "
        "left join (select drive_id, action from marts.drive_actions where needs_person) as actions using (drive_id) "
        f"where drive_id in ({texts(drives)})"
    )
    return {row["drive_id"]: row for row in found}
