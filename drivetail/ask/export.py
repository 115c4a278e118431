"""The `export` command: the marts as tables of one DuckDB file, or as a Parquet file each, which need no warehouse any more."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from engine.execute import limit_memory
from engine.read import QueryError, Row, fetch, first_line, not_asked, publication_of
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import left_by_killed_calls, remove, sync, sync_tree

STORAGE_VERSION = "v1.0.0"
"""The oldest that DuckDB 2.0.0 writes."""

MOST_KEYED_ROWS = 1_000_000
"""A primary key has an index in memory, which views of hours and large tables go without."""

Progress = Callable[[str, int, int], None]

RELATIONS = """
select schema_name || '.' || table_name as relation, comment from duckdb_tables() where schema_name in ('marts', 'custom')
union all
select schema_name || '.' || view_name, comment from duckdb_views() where schema_name in ('marts', 'custom')
order by relation
"""
COLUMNS = """
select schema_name || '.' || table_name as relation, column_name, data_type, comment
from duckdb_columns() where schema_name in ('marts', 'custom') order by relation, column_index
"""


@dataclass(frozen=True)
class Exported:
    """Summary of an export: relations, their rows together, and bytes. left_out: those not asked for yet, each with how to ask."""

    relation_count: int
    row_count: int
    size_bytes: int
    left_out: dict[str, str]


@dataclass
class Relation:
    """A relation of the publication, its columns with their types and comments, and those that are its key (`marts.relations.grain`)."""

    relation: str
    comment: str | None
    columns: list[Row] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    row_count: int | None = None
    """Null of a view."""

    @property
    def name(self) -> str:
        """`fct_raid_hours` of marts, `custom.slow_ssds` of the custom models, which may have a mart's name."""
        return self.relation.removeprefix("marts.")

    def made(self, *, is_keyed: bool) -> str:
        """SQL that makes an empty table. is_keyed: with its primary key; where an index would be large its columns are only not null."""
        key = self.key if is_keyed else []
        columns = [f'"{row["column_name"]}" {row["data_type"]}{" not null" if row["column_name"] in key else ""}' for row in self.columns]
        if key and self.row_count is not None and self.row_count <= MOST_KEYED_ROWS:
            columns.append(f"primary key ({', '.join(key)})")
        return f"create table {self.relation} ({', '.join(columns)})"

    def comments(self) -> Iterator[str]:
        """SQL that says what it is and what its columns are."""
        if self.comment:
            yield f"comment on table {self.relation} is {quoted(self.comment)}"
        for row in self.columns:
            if row["comment"]:
                yield f'comment on column {self.relation}."{row["column_name"]}" is {quoted(row["comment"])}'

    def said(self) -> str:
        """The same for a Parquet file: `description`, `key` and, as JSON, `columns`."""
        columns = json.dumps({row["column_name"]: row["comment"] for row in self.columns if row["comment"]})
        return f"description: {quoted(self.comment or '')}, key: {quoted(', '.join(self.key))}, columns: {quoted(columns)}"


def has_null(connection: duckdb.DuckDBPyConnection, relation: Relation) -> bool:
    """Whether a column of its key is null somewhere, such as an unknown model: SQL has no key then."""
    is_null = " or ".join(f"{column} is null" for column in relation.key) or "false"
    return bool(connection.execute(f"select 1 from publication.{relation.relation} where {is_null} limit 1").fetchall())


def export(
    warehouse: Warehouse,
    out: Path,
    *,
    is_parquet: bool = False,
    only: Sequence[str] = (),
    storage_version: str = STORAGE_VERSION,
    is_forced: bool = False,
    is_sorted: bool = False,
    on_progress: Progress = lambda phase, done, total: None,
) -> Exported:
    """Write the marts that are computed and the custom models, or those in `only`, to the file `out`, or to the folder `out` as Parquet.
    Readers see all of it or nothing.

    is_forced: replace what is there. is_sorted: Parquet of the same rows is the same file. Raises: QueryError.
    """
    out = out.resolve()
    _check_place(warehouse, out, is_parquet=is_parquet, is_forced=is_forced)
    with publication_of(warehouse) as connection:
        ((publication_id,),) = connection.execute("select publication_id from raw.publication").fetchall()
        relations = {row["relation"]: Relation(**row) for row in fetch(connection, RELATIONS)}
        for row in fetch(connection, COLUMNS):
            relations[row.pop("relation")].columns.append(row)
        for row in fetch(connection, "select relation, grain, row_count from marts.relations where grain <> ''"):
            if each := relations.get(row["relation"]):
                each.key, each.row_count = row["grain"].split(", "), row["row_count"]
        names = [each.name for each in relations.values()]
        left_out = {name: why for name, why in not_asked(connection).items() if name in names}
        wanted = [each for each in relations.values() if (each.name in only if only else each.name not in left_out)]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise QueryError(f"--select {unknown[0]}: no such relation; there are {', '.join(names)}")
    for name in only:
        if name in left_out:
            raise QueryError(f"--select {name}: {left_out[name]}")
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
                schemas = dict.fromkeys(each.relation.split(".")[0] for each in wanted)
                connection.execute("begin; use exported;" + ";".join(f"create schema {schema}" for schema in schemas))
            for number, each in enumerate(wanted):
                on_progress(each.name, number, len(wanted))
                if is_parquet:
                    options = f"format parquet, compression zstd, kv_metadata {{{each.said()}}}"
                    source = f"(from publication.{each.relation} order by all)" if is_sorted else f"publication.{each.relation}"
                    statement = f"copy {source} to {quoted(draft / f'{each.name}.parquet')} ({options})"
                else:
                    connection.execute(each.made(is_keyed=not has_null(connection, each)))
                    statement = f"insert into {each.relation} from publication.{each.relation}"
                row_count += (connection.execute(statement).fetchone() or (0,))[0]
            if not is_parquet:
                connection.execute(";\n".join(comment for each in wanted for comment in each.comments()) or "select 1")
                connection.execute("commit; use memory; detach exported")
        except duckdb.Error as error:
            raise QueryError(f"{out}: cannot be written ({first_line(error)})") from error
        size = sum(path.stat().st_size for path in (draft.iterdir() if is_parquet else [draft]))
    return Exported(len(wanted), row_count, size, {} if only else left_out)


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
