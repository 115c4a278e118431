"""Read-only questions to the published warehouse."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import duckdb

from drivetail.console import Row, human, render
from drivetail.dbt import models_version
from drivetail.warehouse import Warehouse, quoted

MEMORY_LIMIT = "4GB"
"""Of one reading process, as of a build (profiles.yml); what does not fit is written to a temporary folder."""


class QueryError(RuntimeError):
    """A question that has no answer; the message says why and what to do."""


def open_published(warehouse: Warehouse, path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open the current publication, read-only; it stays the one that is seen, whatever is published meanwhile.

    path: an earlier one that is kept.

    Raises: QueryError when there is none, it cannot be read, or the folder has moved since it was made.
    """
    if not warehouse.published.exists():
        hint = "run `drivetail build`" if warehouse.raw.exists() else "nothing has landed there: `drivetail ingest`, then `drivetail build`"
        raise QueryError(f"{warehouse.published}: no such warehouse; {hint}, or name another with --warehouse DIR")
    try:
        connection = duckdb.connect(str(path or warehouse.published), read_only=True)
        connection.execute(f"set memory_limit = {quoted(os.environ.get('DRIVETAIL_MEMORY_LIMIT', MEMORY_LIMIT))}")
        ((root,),) = connection.execute("select root from plan.root").fetchall()
    except (duckdb.Error, ValueError) as error:
        raise QueryError(
            f"{warehouse.published}: cannot be read ({first_line(error)}); `drivetail build` makes it anew from raw"
        ) from error
    if root != str(warehouse.root):
        raise QueryError(f"{warehouse.root}: was moved here from {root}; run `drivetail build` once, so that the tables are found again")
    return connection


@contextmanager
def publication_of(
    warehouse: Warehouse, path: Path | None = None, *, must_be_of_these_models: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The publication, or an earlier one at `path`; what it shows and cannot be read becomes a QueryError.

    One that other models made is read as far as it goes, and the log says so; `must_be_of_these_models`: it is refused.
    """
    with open_published(warehouse, path) as connection:
        other = of_other_models(warehouse, connection)
        if other and must_be_of_these_models:
            raise QueryError(other)
        try:
            yield connection
        except duckdb.Error as error:
            hint = "`drivetail build --full-refresh` makes it anew from raw"
            why = f"{warehouse.published}: what it shows cannot be read ({first_line(error)}); {hint}"
            raise QueryError(other or why) from error
        except QueryError:  # such as a drive that is not there: it may be in what is built now
            _note(other)
            raise
    _note(other)


def published_by(warehouse: Warehouse, publication_id: str) -> str | None:
    """The version of the models that made a publication; None where its record does not say, as of an early release."""
    try:
        record = json.loads((warehouse.publications / f"{publication_id}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    version: str | None = record.get("models")
    return version


def of_other_models(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> str | None:
    """A sentence where a publication was made by other models than those installed here; None where by these."""
    try:
        ((publication_id,),) = connection.execute("select publication_id from plan.publication").fetchall()
    except (duckdb.Error, ValueError):
        publication_id = None
    if publication_id is not None and published_by(warehouse, publication_id) == models_version():
        return None
    return f"{warehouse.published}: was published by another release, or the models have changed since; run `drivetail build`"


@cache
def _note(sentence: str | None) -> None:
    """Say something beside the answer, once: a command may open the publication more than once."""
    if sentence:
        logging.getLogger(__name__).warning(sentence)


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | dict[str, object] = ()) -> list[Row]:
    """The rows of a query, as dicts. `parameters`: for `?`, or by name for `$name`."""
    relation = connection.execute(query, parameters)
    columns = [column[0] for column in relation.description or []]
    return [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]


_EXPLAIN = re.compile(r"(?is)(?:\s|--[^\n]*\n|/\*.*?\*/)*explain\s+(?:analyze\s+)?")


def only_question(text: str) -> str:
    """The one question that a text asks, without its semicolon. Raises: QueryError for anything that could write, or for several at once.

    DuckDB refuses to write into a file that is opened read-only, but would still copy to other files, attach and load.
    """
    try:
        statements = duckdb.extract_statements(text)
        if len(statements) == 1 and statements[0].type == duckdb.StatementType.EXPLAIN:
            # `explain analyze` runs what it explains
            statements = duckdb.extract_statements(_EXPLAIN.sub("", text, count=1))
    except duckdb.Error as error:
        raise QueryError(first_line(error)) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        found = ", ".join(str(statement.type).rpartition(".")[2].lower() for statement in statements) or "nothing"
        raise QueryError(
            f"one question at a time can be asked here (select, from, with, describe, summarize, show, explain), found {found}; the tables "
            "are written by `drivetail build`, a file by --out, and `pivot` needs its values named: pivot ... on COLUMN in (...)"
        )
    return text.strip().rstrip(";")


def open_for_questions(warehouse: Warehouse, out: Path | None = None) -> duckdb.DuckDBPyConnection:
    """The current publication for somebody else's SQL: it reads what the warehouse shows and no other file, and loads nothing.

    out: the one file that may be written, with `copy`.
    """
    connection = open_published(warehouse)
    files = ", ".join(quoted(path) for path in (warehouse.decisions, *([out.resolve()] if out is not None else [])))
    connection.execute(f"set allowed_paths = [{files}]")
    folders = ", ".join(quoted(folder) for folder in (warehouse.raw / "deliveries", warehouse.store))
    connection.execute(f"set allowed_directories = [{folders}]")
    connection.execute("set enable_external_access = false; set lock_configuration = true")
    return connection


def run_query(warehouse: Warehouse, query: str, output: str, out: Path | None, limit: int) -> str:
    """Run SQL text, or the file of that name: one question, about what the warehouse shows.

    output: `table`, `csv`, `json` or `parquet`. out: file to write to, instead of returning the text.
    Returns: what to print; for a table at most `limit` rows.
    """
    path = Path(query)
    text = path.read_text(encoding="utf-8") if query.endswith(".sql") or (len(query) < 255 and path.is_file()) else query
    text = only_question(text)
    with open_for_questions(warehouse, out) as connection:
        other = of_other_models(warehouse, connection)
        try:
            if out is not None and output != "table":
                form = {"csv": "format csv, header", "json": "format json, array true", "parquet": "format parquet"}[output]
                # on a line of its own: a comment may end the question
                connection.execute(f"copy (\n{text}\n) to {quoted(out.resolve())} ({form})")
                return f"Wrote {out}"
            relation = connection.sql(text)
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
            told = f'{_with_hint(error)}; `drivetail sql "show all tables"` lists what there is'
            raise QueryError(f"{told}; {other}" if other else told) from error
    _note(other)
    if out is None:
        return rendered
    out.write_text(rendered + "\n", encoding="utf-8")
    return f"Wrote {out}"


def _with_hint(error: duckdb.Error) -> str:
    """The first line of an engine's message, and the names that it takes the writer to have meant, where it offers any."""
    hints = [line for line in str(error).splitlines()[1:] if line.startswith(("Did you mean", "Candidate bindings"))]
    return " ".join([first_line(error), *hints])


def first_line(error: Exception) -> str:
    """The first line of an engine's message: the rest repeats the query."""
    return str(error).strip().splitlines()[0]
