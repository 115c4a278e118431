"""The `sql` command: a query of the published warehouse."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import duckdb

from drivetail.terminal import render
from engine.read import QueryError, first_line, note_not_asked, note_other_models, of_other_models, open_for_questions, publication_of
from engine.warehouse import Warehouse, quoted
from report.words import human

EXPLAIN = re.compile(r"(?is)(?:\s|--[^\n]*\n|/\*(?:(?!\*/).)*\*/)*(explain\s+(?:analyze\s+)?)")


def only_question(text: str) -> tuple[str, str]:
    """The one question that a text asks, without its semicolon, after the `explain` before it. Both together are what may be run.

    DuckDB refuses to write into a file that is opened read-only, but would still copy to other files, attach and load.
    Raises: QueryError for anything that could write, or for several at once.
    """
    explain = ""
    try:
        statements = duckdb.extract_statements(text)
        if len(statements) == 1 and statements[0].type == duckdb.StatementType.EXPLAIN and (begin := EXPLAIN.match(text)):
            # `explain analyze` runs what it explains
            explain, text = begin[1], text[begin.end() :]
            statements = duckdb.extract_statements(text)
    except duckdb.Error as error:
        raise QueryError(first_line(error)) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        found = ", ".join(str(statement.type).rpartition(".")[2].lower() for statement in statements) or "nothing"
        raise QueryError(
            f"give one query that reads (select, from, with, describe, summarize, show, explain); found {found}"
            + ("; `pivot` needs its values named: pivot ... on COLUMN in (...)" if "pivot" in text.lower() else "")
        )
    return explain, text.strip().rstrip(";")


def run_query(warehouse: Warehouse, query: str, output: str, out: Path | None, limit: int) -> str:
    """Run SQL text, or the file of that name: one question, about what the warehouse shows.

    output: `table`, `csv`, `json` or `parquet`. out: file to write to, instead of returning the text.
    Returns: what to print; for a table at most `limit` rows.
    """
    path = Path(query)
    text = path.read_text(encoding="utf-8") if query.endswith(".sql") or (len(query) < 255 and path.is_file()) else query
    text = "".join(only_question(text))
    with open_for_questions(warehouse, out) as connection:
        other = of_other_models(warehouse, connection)
        note_not_asked(connection, text)
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
                rendered += "" if rows else "\n0 rows"
                rendered += f"\n... more than {human(limit)} rows; see --limit, or --format csv" if len(rows) > limit else ""
            elif output == "json":
                rendered = json.dumps([dict(zip(columns, row, strict=True)) for row in relation.fetchall()], default=str, indent=2)
            else:
                rendered = relation.pl().write_csv().rstrip("\n")
        except duckdb.Error as error:
            message = f'{with_hint(error)}; `drivetail sql "show all tables"` lists what there is'
            raise QueryError(f"{message}; {other}" if other else message) from error
    note_other_models(other)
    if out is None:
        return rendered
    out.write_text(rendered + "\n", encoding="utf-8")
    return f"Wrote {out}"


def open_shell(warehouse: Warehouse) -> None:
    """Put a SQL shell on the published file, read-only, in the place of this process. Raises: QueryError where none is installed."""
    with publication_of(warehouse):
        pass  # there is one, and it is of this place
    for name, *options in (("harlequin", "--read-only"), ("duckdb", "-readonly")):
        program = shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))
        if program:
            os.execv(program, [program, *options, str(warehouse.published)])
    raise QueryError(
        f"no SQL shell is installed; `pip install harlequin`, or DuckDB 1.5 or newer, or open "
        f"{warehouse.published} with another tool for DuckDB"
    )


def with_hint(error: duckdb.Error) -> str:
    """The first line of an engine's message, and the names that it takes the writer to have meant, where it offers any."""
    hints = [line for line in str(error).splitlines()[1:] if line.startswith(("Did you mean", "Candidate bindings"))]
    return " ".join([first_line(error), *hints])
