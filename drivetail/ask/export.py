"""The `export` command: the marts as tables of one DuckDB file, or as a Parquet file each, which need no warehouse any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from engine.execute import limit_memory
from engine.read import NOT_ASKED, QueryError, fetch, first_line, not_asked, publication_of
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import left_by_killed_calls, remove, sync, sync_tree

STORAGE_VERSION = "v1.0.0"
"""The oldest that DuckDB 2.0.0 writes."""

Progress = Callable[[str, int, int], None]

COMMENTS = """
select 'table marts.' || table_name as what, comment from duckdb_tables() where schema_name = 'marts' and comment is not null
union all
select 'table marts.' || view_name, comment from duckdb_views() where schema_name = 'marts' and comment is not null
union all
select 'column marts.' || table_name || '."' || column_name || '"', comment
from duckdb_columns() where schema_name = 'marts' and comment is not null
"""


@dataclass(frozen=True)
class Exported:
    """Summary of an export: relations, their rows together, and bytes. left_out: those that nobody has asked for yet."""

    relation_count: int
    row_count: int
    size_bytes: int
    left_out: list[str]


def export(
    warehouse: Warehouse,
    out: Path,
    *,
    is_parquet: bool = False,
    only: Sequence[str] = (),
    storage_version: str = STORAGE_VERSION,
    is_forced: bool = False,
    on_progress: Progress = lambda phase, done, total: None,
) -> Exported:
    """Write the marts that are computed, or those in `only`, to the file `out`, or to the folder `out` as Parquet. Readers see all of it
    or nothing.

    is_forced: replace what is there. Raises: QueryError.
    """
    out = out.resolve()
    _check_place(warehouse, out, is_parquet=is_parquet, is_forced=is_forced)
    with publication_of(warehouse) as connection:
        ((publication_id,),) = connection.execute("select publication_id from raw.publication").fetchall()
        query = "select table_name from information_schema.tables where table_schema = 'marts' order by table_name"
        names = [name for (name,) in connection.execute(query).fetchall()]
        left_out = [name for name in not_asked(connection) if name in names]
        wanted = [name for name in names if (name in only if only else name not in left_out)]
        comments = [row for row in fetch(connection, COMMENTS) if row["what"].split(".")[1] in wanted]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise QueryError(f"--select {unknown[0]}: no such relation in marts; there are {', '.join(names)}")
    refused = [name for name in only if name in left_out]
    if refused:
        raise QueryError(f"--select {refused[0]}: {NOT_ASKED}")
    row_count = 0
    with _draft_of(out) as draft, duckdb.connect() as connection:
        try:
            limit_memory(connection)
            connection.execute("set preserve_insertion_order = false")
            connection.execute(f"attach {quoted(warehouse.publications / f'{publication_id}.duckdb')} as publication (read_only)")
            if is_parquet:
                draft.mkdir()
            else:
                connection.execute(f"attach {quoted(draft)} as exported (storage_version {quoted(storage_version)})")
                # one transaction: DuckDB would write each of 2,000 comments to the file's log
                connection.execute("begin; create schema exported.marts")
            for number, name in enumerate(wanted):
                on_progress(name, number, len(wanted))
                if is_parquet:
                    options = "(format parquet, compression zstd)"
                    statement = f"copy publication.marts.{name} to {quoted(draft / f'{name}.parquet')} {options}"
                else:
                    statement = f"create table exported.marts.{name} as from publication.marts.{name}"
                row_count += (connection.execute(statement).fetchone() or (0,))[0]
            if not is_parquet:
                connection.execute("use exported")
                connection.execute(";\n".join(f"comment on {row['what']} is {quoted(row['comment'])}" for row in comments) or "select 1")
                connection.execute("commit; use memory; detach exported")
        except duckdb.Error as error:
            raise QueryError(f"{out}: cannot be written ({first_line(error)})") from error
        size = sum(path.stat().st_size for path in (draft.iterdir() if is_parquet else [draft]))
    return Exported(len(wanted), row_count, size, [] if only else left_out)


def _check_place(warehouse: Warehouse, out: Path, *, is_parquet: bool, is_forced: bool) -> None:
    """Raises: QueryError where nothing may be written."""
    if out.is_relative_to(warehouse.root):
        raise QueryError(f"{out}: is inside the warehouse {warehouse.root}; give a place outside")
    if not out.parent.is_dir():
        raise QueryError(f"{out.parent}: no such folder; make it first")
    if not out.exists():
        return
    if not is_forced:
        raise QueryError(f"{out}: already exists; --force replaces it")
    if out.is_dir() != is_parquet:
        raise QueryError(f"{out}: is {'a folder' if out.is_dir() else 'a file'}; give another name")
    others = [path for path in out.iterdir() if path.suffix != ".parquet"] if is_parquet else []
    if others:
        raise QueryError(f"{others[0]}: is no Parquet file, so this folder is not replaced; give another one")


@contextmanager
def _draft_of(out: Path) -> Iterator[Path]:
    """A place beside `out` to write to; it takes the place of `out` when the block ends well, and is removed when it does not.

    Remains of killed calls are removed first; the file that `out` held before one of them only once something is in its place.
    """
    draft, last = (out.with_name(f".{out.name}.{os.getpid()}.{what}") for what in ("draft", "last"))
    remove(left_by_killed_calls(out, "draft"))
    try:
        yield draft
        if draft.is_dir():
            sync_tree(draft)
            if out.exists():  # a folder cannot be replaced in one step
                os.rename(out, last)
        else:
            sync(draft)
        os.replace(draft, out)
        sync(out.parent)
        remove(left_by_killed_calls(out, "last"))
    finally:
        remove([draft, last, draft.with_name(f"{draft.name}.wal")])
