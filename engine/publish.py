"""Publication: one DuckDB file, written by each build (docs/decisions/0003-publication.md).

A reader opens `warehouse.duckdb` and keeps the file it opened; the next publication takes its place by one rename. Relations are tables;
drive-hours, RAID-hours and samples are views over immutable Parquet files, shown where they lie.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import struct
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.custom import CustomModels
from engine.execute import Executor, limit_memory
from engine.nodes import EACH_DAY, SEED, STORED, VIEW, WHEN_ASKED, WITH_INVENTORY, Node
from engine.projects import projects, published_schemas
from engine.read import NOT_ASKED, first_line, own_file, record_of
from engine.retention import files_needed, read_past, remove_from_raw
from engine.sources import RawFiles, source_rows
from engine.warehouse import Warehouse, day_folders, quoted
from ingest.raw.durable import remove, sync
from ingest.raw.store import list_folders, pruned_files, remove_replaced

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB that opens a publication."""

KEEP_SECONDS = 3600
"""A publication that nobody holds open is kept this long after it was replaced: copies and readers on other hosts show no lock."""

READS_FILES = re.compile(r"\bread_\w+\(")

IS_IN_ITS_PLACE = """
    select
        count(*) > 0
        and bool_and(path = made_in.comment || '/warehouse.duckdb' or starts_with(path, made_in.comment || '/publications/'))
    from duckdb_tables() as made_in
    join duckdb_databases() as opened on made_in.database_oid = opened.database_oid
    where schema_name = 'plan' and table_name = 'root'
"""
"""Whether every publication that is open lies in the folder it was made in. A view cannot ask which of them it is in. DuckDB 1.5 and newer
name what they have open by its real path.
"""


@dataclass(frozen=True)
class Publication:
    """One publication: publication_id, published_at (UTC), the last hour with a valid RAID-hour (UTC, None without one) and the horizon
    before which drive-hours were pruned (UTC, None without a prune).
    """

    publication_id: str
    published_at: datetime
    last_hour_utc: datetime | None
    pruned_before_utc: datetime | None
    path: Path


def current_publication(warehouse: Warehouse) -> Publication | None:
    """The publication readers see; None when there is none, it cannot be read, or it was made for another place."""
    if not warehouse.published.exists():
        return None
    found = _publication_in(warehouse, own_file(warehouse))
    return found if found is not None and found.path.exists() else None


def kept_publications(warehouse: Warehouse) -> list[Publication]:
    """The publications that are still kept, can be read and were made for this place, the oldest first."""
    found = (_publication_in(warehouse, path) for path in sorted(warehouse.publications.glob("*-*.duckdb")))
    return [publication for publication in found if publication is not None]


def _publication_in(warehouse: Warehouse, file: Path) -> Publication | None:
    """A published file's record of itself; None when it cannot be read or was made for another place."""
    try:
        with duckdb.connect(str(file), read_only=True) as connection:
            ((root,),) = connection.execute("select root from plan.root").fetchall()
            query = "select publication_id, published_at, last_hour_utc, pruned_before_utc from marts.publication"
            ((publication_id, published_at, last_hour, horizon),) = connection.execute(query).fetchall()
    except (duckdb.Error, ValueError):
        return None
    if root != str(warehouse.root):
        return None
    return Publication(publication_id, published_at, last_hour, horizon, warehouse.publications / f"{publication_id}.duckdb")


def next_publication_id(warehouse: Warehouse, published_at: datetime, last: Publication | None) -> str:
    """The name of a publication that is about to be made. last: the one that readers see."""
    if last is not None:
        # what a build left that was killed before the swap: its age would say that the last publication was replaced that long ago
        for path in warehouse.publications.glob("*-*.duckdb"):
            if path.stem > last.publication_id:
                path.unlink()
    number = 1 + max((int(path.name.split("-")[0]) for path in warehouse.publications.glob("*-*.duckdb")), default=0)
    return f"{number:06d}-{published_at:%Y%m%dT%H%M%SZ}"


def publish(
    publication: Publication,
    executor: Executor,
    files: RawFiles,
    custom: CustomModels,
    *,
    made_by: dict[str, Any],
    began: float,
    last: Publication | None = None,
    has_inventory: bool = True,
) -> None:
    """Make a publication of the store and the build database and put it in the place of the last one.

    custom: the custom models as they were made last. made_by: what its record has of the models. began: when the build began, by
    time.monotonic(). last: begun as a copy of it, where its record says that the rest of it would be written again as it is. has_inventory:
    what is made with inventory has been made again since.
    """
    warehouse = executor.warehouse
    draft = _draft(publication, warehouse)
    horizon = publication.pruned_before_utc
    made = _Draft(executor, files, horizon)
    attached = {name: {"state": each.state, "folders": list(map(str, each.folders))} for name, each in made.attached.items()}
    kept = {"models": made_by["models"], "compiled": executor.models.digest, "tables": made.tables, "attached": attached}
    record = {} if last is None else record_of(warehouse, last.publication_id)
    is_begun = last is not None and all(record.get(name) == value for name, value in kept.items())
    if last is not None and is_begun:
        shutil.copyfile(last.path, draft)
    executor.connection.execute(f"attach {quoted(draft)} as publication (storage_version {quoted(STORAGE_VERSION)})")
    try:
        made.write(is_begun=is_begun, has_inventory=has_inventory)
    finally:
        executor.connection.execute("use build; detach publication")
    _show_custom(draft, custom, executor)
    seconds = sorted(executor.seconds.items(), key=lambda item: -item[1])
    record = {
        "root": str(warehouse.root), "store": sorted(live_files(warehouse, executor.connection)),
        "raw": files.folders, "pruned_before_utc": horizon and horizon.isoformat(), **made_by, **kept,
        "custom": asdict(custom),
        "build_seconds": round(time.monotonic() - began, 3),
        "model_seconds": {model: round(taken, 3) for model, taken in seconds},
    }  # fmt: skip
    _swap(publication, executor, draft, record, is_begun=is_begun)


def publish_custom(before: Publication, publication: Publication, executor: Executor, custom: CustomModels) -> None:
    """Make a publication of the one before it and of the custom models that have been made since."""
    warehouse = executor.warehouse
    draft = _draft(publication, warehouse)
    shutil.copyfile(before.path, draft)
    with duckdb.connect(str(draft)) as connection:
        connection.execute("begin; drop schema if exists custom cascade; create schema custom")
        values = [publication.publication_id, publication.published_at]
        connection.execute("update raw.publication set publication_id = ?, published_at = ?", values)
        connection.execute("commit")
    _show_custom(draft, custom, executor)
    record = json.loads(before.path.with_suffix(".json").read_text(encoding="utf-8"))
    _swap(publication, executor, draft, {**record, "custom": asdict(custom)}, is_begun=True)


def _draft(publication: Publication, warehouse: Warehouse) -> Path:
    """Where a publication is made, with nothing there."""
    warehouse.note("publish", publication=publication.publication_id)
    draft = warehouse.publications / "draft.duckdb"
    # a log of another file would be played into the next one
    remove(draft.parent.glob(f"{draft.name}*"))
    return draft


def _swap(publication: Publication, executor: Executor, draft: Path, record: dict[str, Any], *, is_begun: bool) -> None:
    """Put a finished draft in the place of the last publication. is_begun: as a copy of it, which most hours' are."""
    warehouse = executor.warehouse
    (warehouse.publications / f"{publication.publication_id}.json").write_text(json.dumps(record))
    # who opens it for writing by mistake would shut every reader out, and change what the others see
    draft.chmod(stat.S_IMODE(draft.stat().st_mode) & ~0o222)
    sync(draft)
    os.replace(draft, publication.path)
    warehouse.note("swap", publication=publication.publication_id)
    link = warehouse.publications / "draft.link"
    link.unlink(missing_ok=True)
    os.link(publication.path, link)
    os.replace(link, warehouse.published)
    sync(warehouse.root)
    sync(warehouse.publications)
    warehouse.note("clean-up", publication=publication.publication_id)
    clean_up(warehouse, publication.publication_id, executor.connection, is_whole=not is_begun)


def _show_custom(draft: Path, custom: CustomModels, executor: Executor) -> None:
    """Add the custom models that were built to a draft; one that cannot be shown is added to their failures."""
    if not custom.built:
        return
    with duckdb.connect(str(draft)) as connection:
        limit_memory(connection)
        try:
            connection.execute(f"attach {quoted(executor.warehouse.custom_database)} as made (read_only)")
        except duckdb.Error as error:
            custom.failures.append(f"no custom model is published: {first_line(error)}")
            return
        for node in custom.built:
            kind = "view" if node.made == VIEW else "table"
            rows = in_its_place(executor.sql_of(node), executor.warehouse) if kind == "view" else f"from made.{node.relation}"
            try:
                connection.execute(f"create {kind} {node.relation} as {rows}")
                describe(connection, kind, node)
            except duckdb.Error as error:
                custom.failures.append(f"custom model {node.name} is not published: {' '.join(str(error).split())}")


class _Draft:
    """Contents of a publication, written into the attached database `publication`."""

    def __init__(self, executor: Executor, files: RawFiles, horizon: datetime | None) -> None:
        self.warehouse = executor.warehouse
        self.connection = executor.connection
        self.executor = executor
        self.models = executor.models
        self.sources = source_rows(self.models.sources, files, self.warehouse.raw, horizon=horizon and horizon.date())
        self.attached = {project.NAME: project.attached(self.warehouse) for project in projects()}
        self.stored = {node.relation: rows for node, rows in executor.stored_rows()}
        self.schemas = published_schemas()
        self.shown: set[str] = set()
        self.row_counts: dict[str, int] = {}
        rows = self.connection.execute("select relation, as_of_hour_utc, publication_id from state.made").fetchall()
        self.made: dict[str, datetime | None] = {relation: hour for relation, hour, _ in rows}
        stay = {node.relation for node in self.models.made(EACH_DAY, WHEN_ASKED)}
        self.tables = {relation: publication_id for relation, _, publication_id in rows if relation in stay}
        """The publication that each table which not every build makes was made for."""

    def write(self, *, is_begun: bool, has_inventory: bool) -> None:
        """Write all of it. is_begun: into a copy of a publication with the same `tables`, which stay. has_inventory: see publish()."""
        # one transaction: DuckDB would write each of 2,000 comments to the file's log
        self.connection.execute("use publication; begin; drop schema if exists custom cascade")
        others = (shown.relation.split(".")[0] for each in self.attached.values() for shown in each.relations)
        schemas = dict.fromkeys(("raw", "plan", "seeds", "staging", "intermediate", *self.schemas, "custom", *others))
        self.connection.execute(";".join(f"create schema if not exists {schema}" for schema in schemas))
        if is_begun:
            stay = (SEED, VIEW, EACH_DAY, WHEN_ASKED) if has_inventory else (SEED, VIEW, EACH_DAY, WHEN_ASKED, WITH_INVENTORY)
            self.shown.update(node.relation for node in self.models.made(*stay))
            self.row_counts.update(self.connection.execute("select relation, row_count from raw.relations").fetchall())
        self.connection.execute("create or replace table plan.root as select ? as root", [str(self.warehouse.root)])
        self.connection.execute(f"comment on table plan.root is {quoted(self.warehouse.root)}")
        wanted = [node.relation for node in self.models if node.schema in self.schemas or node.made in STORED]
        sources = [name for name in self.models.sources if name.startswith("raw.")]
        for relation in self.models.above([*sources, *wanted, *self.models.exposed]):
            self._show(relation)
        for shown in (shown for each in self.attached.values() for shown in each.relations):
            if shown.is_table:
                self.connection.execute(f"create or replace table {shown.relation} as {shown.rows}")
            else:
                self._view(shown.relation, shown.rows)
            if shown.node is not None:
                self._describe("table" if shown.is_table else "view", shown.node)
        # what `show tables` lists: a few of them, by names to start with
        for node in self.models:
            if node.schema in self.schemas and (short_name := node.meta.get("short_name")):
                self.connection.execute(f"create or replace view main.{short_name} as from {node.relation}")
                self._describe("view", node, f"main.{short_name}")
        self._name_relations()
        self.connection.execute("commit")

    def _show(self, relation: str) -> None:
        """Make one relation: a table as a copy, a view over files or over what is there already."""
        if relation in self.shown:
            return
        self.shown.add(relation)
        node = self.models.by_relation.get(relation)
        if node is None:
            self._show_source(relation)
            return
        kind = "view"
        if node.made in STORED:
            self._view(relation, self.stored[relation])
        elif node.made == VIEW:
            self._view(relation, self.executor.sql_of(node))
        elif node.made == WHEN_ASKED and relation not in self.made:
            columns = ", ".join(f'cast(null as {kind}) as "{name}"' for name, kind in node.columns.items())
            self._view(relation, f"select {columns} where false")
        else:
            kind = "table"
            ((self.row_counts[relation],),) = self.connection.execute(
                f"create or replace table {relation} as select * from build.{relation}"
            ).fetchall()
        if node.schema in self.schemas:
            self._describe(kind, node)

    def _show_source(self, relation: str) -> None:
        if relation == "raw.publication":
            self.connection.execute("create or replace table raw.publication as select * from build.raw.publication")
        elif relation == "raw.relations":
            self.connection.execute("create or replace table raw.relations as select * from build.raw.relations")
        else:
            self._view(relation, self.sources[relation])

    def _name_relations(self) -> None:
        """Write down for tools what has been made."""
        rows = [
            (each.relation, ", ".join(each.meta["grain"]), each.made, self.made.get(each.relation), self.row_counts.get(each.relation),
             each.meta.get("overlap"))
            for each in self.models if each.schema in self.schemas
        ]  # fmt: skip
        self.connection.execute(
            "insert into raw.relations select unnest(?), unnest(?), unnest(?), unnest(?), unnest(?), unnest(?)",
            [list(column) for column in zip(*rows, strict=True)],
        )

    def _describe(self, kind: str, node: Node, name: str | None = None) -> None:
        as_of = str(self.made[node.relation] or "nothing") if node.relation in self.made else None
        describe(self.connection, kind, node, name, as_of)

    def _view(self, relation: str, rows: str) -> None:
        self.connection.execute(f"create or replace view {relation} as {in_its_place(rows, self.warehouse)}")


def in_its_place(rows: str, warehouse: Warehouse) -> str:
    """SQL of a view, which fails in a copy of the warehouse where it reads files: it names them by absolute path, and a copy elsewhere
    would silently show those of this folder.
    """
    if not READS_FILES.search(rows):
        return rows
    message = (
        f"a warehouse was copied or moved, and would show the files of {warehouse.root}; run `drivetail build -w FOLDER` on the "
        "folder it is in now, which publishes it again, or detach it; `drivetail export` writes a file for other places"
    )
    return f"select * from ({rows}) where case when ({IS_IN_ITS_PLACE}) then true else error({quoted(message)}) end"


def describe(connection: duckdb.DuckDBPyConnection, kind: str, node: Node, name: str | None = None, as_of: str | None = None) -> None:
    """Store descriptions as comments, so that other tools show them. name: of a view that shows the model by another name. as_of: the hour
    as of which a table was made.
    """
    comments = []
    relation = name or node.relation
    said = node.description
    if as_of:
        said = f"{said} As of {as_of}, UTC.".strip()
    elif node.made == WHEN_ASKED and "asked_by" in node.meta:
        said = f"Empty: it {NOT_ASKED}: run `{node.meta['asked_by']}`. {said}".strip()
    if said:
        comments.append(f"comment on {kind} {relation} is {quoted(said)}")
    # of what people ask: columns of pages' inputs are described in the models, and each comment is a statement
    if node.schema == "marts" or node.schema not in published_schemas():
        comments += [f'comment on column {relation}."{column}" is {quoted(text)}' for column, text in node.descriptions.items()]
    if comments:
        connection.execute(";".join(comments))


def clean_up(
    warehouse: Warehouse, current: str, connection: duckdb.DuckDBPyConnection, keep_seconds: float = KEEP_SECONDS, *, is_whole: bool = True
) -> None:
    """Remove publications that nobody can be reading any more, and what no kept publication and no build needs: files of the store, files
    of raw before the horizon that all of them have, and folders of raw that are packed.

    is_whole: look for all files of the store, also those that a killed build left, and not only for those of publications that go.
    """
    kept: set[str] = set()
    dropped: set[str] = set()
    horizons: set[str | None] = set()
    shown: set[str] = set()
    states: dict[str, set[str | None]] = defaultdict(set)
    paths = sorted(warehouse.publications.glob("*-*.duckdb"))
    for path, successor in zip(paths, [*paths[1:], None], strict=True):
        needs = path.with_suffix(".json")
        replaced_for = time.time() - successor.stat().st_mtime if successor else 0.0
        record = json.loads(needs.read_text()) if needs.exists() else {}
        if path.stem != current and replaced_for > keep_seconds and not _is_open(path):
            # a copied or moved warehouse has records of its old place, too, and the files there are not ours
            dropped.update(record["store"] if record.get("root") == str(warehouse.root) else ())
            path.unlink()
            needs.unlink(missing_ok=True)
        elif record:
            kept.update(record["store"])
            horizons.add(record["pruned_before_utc"])
            shown.update(record.get("raw", ()))
            for name, each in record.get("attached", {}).items():
                states[name].add(each["state"])
        else:
            horizons.add(None)
    for record in warehouse.publications.glob("*-*.json"):
        # of a build or clean-up that was killed
        if not record.with_suffix(".duckdb").exists():
            record.unlink()
    remove_replaced(warehouse.root, keep_seconds, shown)
    past = read_past(warehouse)
    kept |= live_files(warehouse, connection) | files_needed(warehouse, past)
    if is_whole:
        for folder, names in day_folders(warehouse.store):
            gone = [name for name in names if f"{folder}/{name}" not in kept]
            remove(folder / name for name in gone)
            if len(gone) == len(names):
                folder.rmdir()
    remove(map(Path, dropped - kept))
    for project in projects():
        project.clean_up(warehouse, states[project.NAME])
    if past is not None:
        remove_from_raw(warehouse, past)
    reach = [datetime.fromisoformat(horizon) for horizon in horizons if horizon is not None]
    if reach and None not in horizons:
        for each in list_folders(warehouse.root):
            for path in pruned_files(each, min(reach)):
                path.unlink()


def live_files(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection) -> set[str]:
    """Paths of the files that hold what is stored now."""
    files = connection.execute("select ? || '/' || file from plan.files", [str(warehouse.store)]).fetchall()
    return {file for (file,) in files}


def _is_open(path: Path) -> bool:
    """Whether some process of this host holds DuckDB's lock on the file: asked without taking it."""
    with path.open("rb") as handle:
        # struct flock: type, whence, start, length, pid
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)
