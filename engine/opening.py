"""Open the build database, in which a build keeps what it has stored and finished with; and errors in words, with what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from engine.errors import FailedModel, ModelError, RetryableError
from engine.execute import configure, create_schemas
from engine.nodes import Models
from engine.publish import current_publication
from engine.read import first_line, published_deliveries
from engine.retention import Past, register_pruned, restore_pruned
from engine.warehouse import Warehouse
from ingest.raw.durable import remove
from ingest.raw.errors import Shortage, explained
from ingest.raw.store import lost_deliveries, lost_sentence, pruned_record

OPEN_ELSEWHERE = "could not set lock"
"""DuckDB's message about a database that another process has open."""


def open_database(
    warehouse: Warehouse, models: Models, past: Past | None, landed: dict[int, str] | None, *, keep_pruned: bool
) -> tuple[duckdb.DuckDBPyConnection, dict[int, str], str | None]:
    """Open the build database, a new one where other definitions made the days of the old one: their numbers would mix with new ones.

    landed: number and digest of the deliveries that are there, or were dropped; null = raw may have lost some.
    Returns: the connection, number and digest of the finished deliveries, and the version of the models that are defined, none where
    none are. Raises: ModelError where other models than these made what was pruned, unless that may stay as it is, and where raw has lost
    deliveries.
    """
    connection, version = _opened(warehouse)
    try:
        if past is not None and past.is_of_other_models(models) and version != models.store_version and not keep_pruned:
            raise ModelError(cannot_compute(warehouse, past, "drivetail build --keep-pruned"))
        if version not in (None, models.store_version):
            connection.close()
            warehouse.note("forget", reason="the models have changed")
            drop_build_database(warehouse)
            connection, version = _opened(warehouse)
        create_schemas(connection, models)
        # where earlier releases made the custom models
        connection.execute("drop schema if exists custom cascade")
        (defined,) = connection.execute("select max(version) from state.defined").fetchone() or (None,)
        finished = dict(connection.execute("select delivery_seq, digest from state.finished_deliveries").fetchall())
        if version is None:
            connection.execute("insert into state.project values (?)", [models.store_version])
        if past is not None:
            restore_pruned(warehouse, past)
            register_pruned(connection, warehouse, past)
        if landed is not None:
            _refuse_lost(warehouse, finished, landed)
    except BaseException:
        connection.close()
        raise
    return connection, finished, defined


def _opened(warehouse: Warehouse) -> tuple[duckdb.DuckDBPyConnection, str | None]:
    """The build database, an empty one where there is none, and the version of the models that made its days; None in an empty one."""
    if not warehouse.build_database.exists():
        _begin_empty(warehouse)
    connection = _connect(warehouse)
    try:
        # before anything else: an earlier release may have kept its state in other columns
        connection.execute("create schema if not exists state; create table if not exists state.project (version varchar)")
        versions = [row[0] for row in connection.execute("select version from state.project").fetchall()]
    except BaseException:
        connection.close()
        raise
    return connection, versions[0] if versions else None


def _begin_empty(warehouse: Warehouse) -> None:
    """Make the build database by one rename: what a full disk leaves of one that was just begun is no database, and would stay."""
    draft = warehouse.build_database.with_name("build.duckdb.begun")
    draft.unlink(missing_ok=True)
    duckdb.connect(str(draft)).close()
    os.replace(draft, warehouse.build_database)


def _connect(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    """Raises: ModelError when the build database is damaged or of a newer DuckDB, RetryableError when it is open elsewhere."""
    path = warehouse.build_database
    try:
        connection = duckdb.connect(str(path))
    except duckdb.Error as error:
        found = first_line(error).rstrip("!.")
        hint = "close what has it open, or make a new one from raw with `drivetail build --full-refresh`"
        kind = RetryableError if OPEN_ELSEWHERE in found.lower() else ModelError
        raise kind(f"{path}: cannot be opened ({found}); {hint}") from error
    configure(connection)
    return connection


def _refuse_lost(warehouse: Warehouse, finished: dict[int, str], landed: dict[int, str]) -> None:
    """Raises: ModelError where raw has lost deliveries: what was computed of them would stay, or go, without a word."""
    last = None if finished else current_publication(warehouse)
    known = finished if last is None else published_deliveries(warehouse, last.publication_id)
    lost = lost_deliveries(landed, known)
    if lost:
        raise ModelError(lost_sentence(warehouse.raw, lost))


def cannot_compute(warehouse: Warehouse, past: Past, command: str) -> str:
    """Why a build that would lose the past does not start, and what to do."""
    return (
        f"raw before {past.day} was pruned, so it cannot be computed again with these models; `{command}` computes the rest and keeps the "
        f"past as it was computed, or put the pruned days of {warehouse.raw} back from a copy and remove {pruned_record(warehouse.root)}"
    )


def drop_build_database(warehouse: Warehouse) -> None:
    """Drop the build database. The store's files stay while a publication needs them."""
    # its log first: no database may come to stand beside a log that is not its own
    remove(sorted(warehouse.build.glob("build.duckdb*"), reverse=True))


@contextmanager
def with_hints(warehouse: Warehouse, read: Callable[[], Iterable[Path]] = list) -> Iterator[None]:
    """Work that fails for want of room or memory, or over a damaged file, fails with a ModelError that says so and what to do.

    read: the files of raw that the work has read, asked for when it has failed. Raises: RetryableError for want of room or memory.
    """
    try:
        yield
    except RetryableError:
        raise
    except (ModelError, duckdb.Error, OSError, MemoryError) as error:
        why = explained(error, warehouse.root, read())
        if why is None and isinstance(error, FailedModel) and warehouse.published.exists():
            raise ModelError(f"{error}; the last publication stays") from error
        if why is None:
            raise
        raise (RetryableError if isinstance(why, Shortage) else ModelError)(why) from error
