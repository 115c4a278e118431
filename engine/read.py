"""Read-only questions to the published warehouse."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from engine.compiled import models_version
from engine.execute import limit_memory
from engine.thresholds import variables
from engine.warehouse import Warehouse, day_folder, quoted
from ingest.raw.store import list_folders

Row = dict[str, Any]


NOT_ASKED = "is computed when it is asked for"
"""In the comment of a published relation that is made when asked for, until then; the command that asks follows."""


class QueryError(RuntimeError):
    """A question that has no answer; the message says why and what to do."""


def has_nothing(warehouse: Warehouse) -> bool:
    """Whether nothing has ever landed or been published in a folder: most likely another one was meant."""
    return not warehouse.published.exists() and not list_folders(warehouse.root)


def open_published(warehouse: Warehouse, path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open the current publication, read-only; it stays the one that is seen, whatever is published meanwhile.

    path: an earlier one that is kept.

    Raises: QueryError when there is none, it cannot be read, or the folder has moved since it was made.
    """
    if not warehouse.published.exists():
        hint = "nothing has landed there: `drivetail ingest`, then `drivetail build`" if has_nothing(warehouse) else "run `drivetail build`"
        raise QueryError(f"{warehouse.published}: no such warehouse; {hint}, or name another with --warehouse DIR")
    try:
        connection = duckdb.connect(str(path or own_file(warehouse)), read_only=True)
        limit_memory(connection)
        ((root,),) = connection.execute("select root from plan.root").fetchall()
    except (duckdb.Error, ValueError) as error:
        raise QueryError(f"{warehouse.published}: cannot be read ({first_line(error)}); `drivetail build` rebuilds it from raw") from error
    if root != str(warehouse.root):
        raise QueryError(f"{warehouse.root}: was moved here from {root}; run `drivetail build` once, so that readers find the tables again")
    return connection


def own_file(warehouse: Warehouse) -> Path:
    """The current publication under a name that is never swapped: DuckDB opens a file three times, and one open already as it was."""
    names = sorted(warehouse.publications.glob("*-*.duckdb"), reverse=True) if warehouse.published.exists() else []
    return next((file for file in names if file.samefile(warehouse.published)), warehouse.published)


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
            hint = "`drivetail build --full-refresh` rebuilds it from raw"
            why = f"{warehouse.published}: its tables cannot be read ({first_line(error)}); {hint}"
            raise QueryError(other or why) from error
        except QueryError:  # such as a drive that is not there: it may be in what is built now
            note_other_models(other)
            raise
    note_other_models(other)


def published_by(warehouse: Warehouse, publication_id: str) -> str | None:
    """The version of the models that made a publication, with the warehouse's thresholds (engine/build.py, Build.version); None where its
    record cannot be read.
    """
    version: str | None = record_of(warehouse, publication_id).get("models")
    return version


def published_thresholds(warehouse: Warehouse, publication_id: str) -> dict[str, Any]:
    """The thresholds that a publication was made with: those of dbt_project.yml, and in their place the warehouse's own."""
    own: dict[str, Any] = record_of(warehouse, publication_id).get("thresholds", {})
    return variables() | own


def published_deliveries(warehouse: Warehouse, publication_id: str) -> dict[int, str]:
    """The deliveries that a publication was made of, number -> digest; empty where its record cannot be read."""
    return {int(number): digest for number, digest in record_of(warehouse, publication_id).get("deliveries", {}).items()}


def damaged_files(warehouse: Warehouse, publication_id: str) -> list[Path]:
    """Files of the store that a publication reads, and that are gone or do not end as Parquet does."""
    record = record_of(warehouse, publication_id)
    store = Path(record.get("root", ""), warehouse.store.name)
    files = (warehouse.store / Path(file).relative_to(store) for file in record.get("store", []))
    return [file for file in files if not _is_whole(file)]


def _is_whole(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-4, os.SEEK_END)
            return file.read() == b"PAR1"
    except OSError:
        return False


def is_each_day_due(warehouse: Warehouse, publication_id: str) -> bool:
    """Whether a publication's relations of each day are still to be made of a day that is over."""
    return bool(record_of(warehouse, publication_id).get("each_day_due"))


def published_custom(warehouse: Warehouse, publication_id: str) -> Row:
    """Record of the custom models in a publication (engine/custom.py, CustomModels); empty where it cannot be read."""
    custom: Row = record_of(warehouse, publication_id).get("custom", {})
    return custom


def record_of(warehouse: Warehouse, publication_id: str) -> Row:
    """A publication's record; nothing where it cannot be read."""
    try:
        record: Row = json.loads((warehouse.publications / f"{publication_id}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record


def published_files(warehouse: Warehouse, publication_id: str) -> list[Path]:
    """The files of the store that a publication shows."""
    return [Path(file) for file in record_of(warehouse, publication_id).get("store", [])]


def stored_files(warehouse: Warehouse, publication_id: str, model: str, day: date) -> list[Path]:
    """The files that a publication shows of a stored model's day: one, or more where DuckDB has cut it. Raises: QueryError for none."""
    record = json.loads((warehouse.publications / f"{publication_id}.json").read_text(encoding="utf-8"))
    folder = f"{day_folder(warehouse.store, model, day)}/"
    found = [Path(file) for file in record["store"] if file.startswith(folder)]
    if not found:
        raise QueryError(f"{folder}: publication {publication_id} reads none of its files")
    return found


def of_other_models(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> str | None:
    """A sentence where a publication was made by other models than those installed here; None where by these."""
    try:
        ((publication_id,),) = connection.execute("select publication_id from raw.publication").fetchall()
    except (duckdb.Error, ValueError):
        publication_id = None
    if publication_id is not None and (published_by(warehouse, publication_id) or "").startswith(models_version()):
        return None
    return f"{warehouse.published}: was published by another release, or the models have changed since; run `drivetail build`"


def note_not_asked(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Log on stderr that a relation which a query names is empty because nobody has asked for it."""
    for name, why in not_asked(connection).items():
        if name in query:
            logging.getLogger(__name__).warning("%s is empty: it %s", name, why)


@cache
def note_other_models(sentence: str | None) -> None:
    """Log a remark on stderr, once: a command may open the publication more than once."""
    if sentence:
        logging.getLogger(__name__).warning(sentence)


def not_asked(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The relations of a publication that are not computed, because nobody has asked for them, each with how to ask."""
    query = "select view_name, regexp_extract(comment, 'it ([^.]*)', 1) from duckdb_views() where contains(comment, ?) order by view_name"
    return dict(connection.execute(query, [NOT_ASKED]).fetchall())


def is_computed(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a publication has a relation of this name, and somebody has asked for it where it is made when asked for."""
    query = "select count(*) > 0 from information_schema.tables where table_name = ?"
    return name not in not_asked(connection) and connection.execute(query, [name]).fetchall() == [(True,)]


def fetch(connection: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[object] | dict[str, object] = ()) -> list[Row]:
    """The rows of a query, as dicts. `parameters`: for `?`, or by name for `$name`."""
    relation = connection.execute(query, parameters)
    columns = [column[0] for column in relation.description or []]
    return [dict(zip(columns, row, strict=True)) for row in relation.fetchall()]


def open_for_questions(
    warehouse: Warehouse, out: Path | None = None, *, path: Path | None = None, limits: str = ""
) -> duckdb.DuckDBPyConnection:
    """The current publication for a user's SQL: it reads what the warehouse shows and no other file, and loads nothing.

    It is a DuckDB of its own: what is set here holds for no other connection of the process. A cursor of it begins with
    `use warehouse.main`. out: the one file that may be written, with `copy`. path: as for open_published. limits: SQL that sets more,
    before nothing can be set.
    """
    file = path or own_file(warehouse)
    open_published(warehouse, file).close()
    connection = duckdb.connect()
    limit_memory(connection)
    connection.execute(f"attach {quoted(file)} as warehouse (read_only); use warehouse.main; {limits}")
    files = ", ".join(quoted(path) for path in (warehouse.decisions, *([out.resolve()] if out is not None else [])))
    connection.execute(f"set allowed_paths = [{files}]")
    ((publication_id,),) = connection.execute("select publication_id from raw.publication").fetchall()
    attached = [folder for each in record_of(warehouse, publication_id).get("attached", {}).values() for folder in each["folders"]]
    folders = ", ".join(quoted(folder) for folder in (warehouse.raw / "deliveries", warehouse.store, *attached))
    connection.execute(f"set allowed_directories = [{folders}]")
    connection.execute("set enable_external_access = false; set lock_configuration = true")
    return connection


def first_line(error: Exception) -> str:
    """The first line of an engine's message: the rest repeats the query."""
    return str(error).strip().splitlines()[0]
