"""Read-only questions to the published warehouse."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import duckdb

from drivetail.console import Row, human, render
from drivetail.warehouse import Warehouse, quoted

MEMORY_LIMIT = "4GB"
"""Of one reading process, as of a build (profiles.yml); what does not fit is written to a temporary folder."""


class QueryError(RuntimeError):
    """A question that has no answer; the message says why and what to do."""


def open_published(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """Open the current publication, read-only; it stays the one that is seen, whatever is published meanwhile.

    Raises: QueryError when there is none, it cannot be read, or the folder has moved since it was made.
    """
    if not warehouse.published.exists():
        hint = "run `drivetail build`" if warehouse.raw.exists() else "nothing has landed there: `drivetail ingest`, then `drivetail build`"
        raise QueryError(f"{warehouse.published}: no such warehouse; {hint}, or name another with --warehouse DIR")
    try:
        connection = duckdb.connect(str(warehouse.published), read_only=True)
        connection.execute(f"set memory_limit = {quoted(os.environ.get('DRIVETAIL_MEMORY_LIMIT', MEMORY_LIMIT))}")
        ((root,),) = connection.execute("select root from plan.root").fetchall()
    except (duckdb.Error, ValueError) as error:
        raise QueryError(
            f"{warehouse.published}: cannot be read ({first_line(error)}); `drivetail build` makes it anew from raw"
        ) from error
    if root != str(warehouse.root):
        raise QueryError(f"{warehouse.root}: was moved here from {root}; run `drivetail build` once, so that the tables are found again")
    return connection


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | dict[str, object] = ()) -> list[Row]:
    """The rows of a query, as dicts. `parameters`: for `?`, or by name for `$name`."""
    relation = connection.execute(query, parameters)
    columns = [column[0] for column in relation.description or []]
    return [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]


def run_query(warehouse: Warehouse, query: str, output: str, out: Path | None, limit: int) -> str:
    """Run SQL text, or the file of that name.

    output: `table`, `csv`, `json` or `parquet`. out: file to write to, instead of returning the text.
    Returns: what to print; for a table at most `limit` rows.
    """
    path = Path(query)
    text = path.read_text(encoding="utf-8") if query.endswith(".sql") or (len(query) < 255 and path.is_file()) else query
    text = text.strip().rstrip(";")
    with open_published(warehouse) as connection:
        try:
            if out is not None and output != "table":
                form = {"csv": "format csv, header", "json": "format json, array true", "parquet": "format parquet"}[output]
                connection.execute(f"copy ({text}) to {quoted(out)} ({form})")
                return f"Wrote {out}"
            relation = connection.sql(text)
            if relation is None:
                raise QueryError("the query returns no rows; only questions can be asked here, the tables are written by `drivetail build`")
            columns = relation.columns
            if output == "table":
                rows = relation.limit(limit + 1).fetchall()
                rendered = render(columns, rows[:limit])
                rendered += f"\n... more than {human(limit)} rows; see --limit, or --format csv" if len(rows) > limit else ""
            elif output == "json":
                rendered = json.dumps([dict(zip(columns, row, strict=True)) for row in relation.fetchall()], default=str, indent=2)
            else:
                rendered = relation.pl().write_csv().rstrip("\n")
        except duckdb.Error as error:
            raise QueryError(f'{first_line(error)}; `drivetail sql "show all tables"` lists what there is') from error
    if out is None:
        return rendered
    out.write_text(rendered + "\n", encoding="utf-8")
    return f"Wrote {out}"


def first_line(error: Exception) -> str:
    """The first line of an engine's message: the rest repeats the query."""
    return str(error).strip().splitlines()[0]
