"""Publication: one small DuckDB file whose views show immutable Parquet files (docs/decisions/0003-publication.md).

A reader opens `warehouse.duckdb` and keeps the file it opened; the next publication takes its place by one rename.
What is copied is what one hour of the fleet weighs (drives, inventory); drive-hours and RAID-hours are shown where they lie.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import struct
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.custom import CustomModels
from engine.dbt import Project
from engine.generations import Generation, is_of_lab, is_view_of, lab_version, latest_generation, remove_generations, view_of
from engine.read import published_by
from engine.retention import Past, files_needed, read_past, remove_from_raw
from engine.store import live_files, remove_files
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import sync
from ingest.raw.store import list_deliveries, pruned_files

STORAGE_VERSION = "v1.5.0"
"""The oldest DuckDB that opens a publication."""

KEEP_SECONDS = 3600
"""A publication that nobody holds open is kept this long after it was replaced: copies and readers on other hosts show no lock."""

PUBLISHED = ("marts", "lab")
"""The schemas that people query: every model of them is published, with what it is made of."""

VIEWS = "select schema_name || '.' || view_name, sql from duckdb_views() where not internal"


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
    found = _publication_in(warehouse, warehouse.published)
    return found if found is not None and found.path.exists() else None


def kept_publications(warehouse: Warehouse) -> list[Publication]:
    """The publications that are still kept, can be read and were made for this place, the oldest first."""
    found = (_publication_in(warehouse, path) for path in sorted(warehouse.publications.glob("*-*.duckdb")))
    return [publication for publication in found if publication is not None]


def _publication_in(warehouse: Warehouse, file: Path) -> Publication | None:
    """What a published file says of itself; None when it cannot be read or was made for another place."""
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


def publish(warehouse: Warehouse, project: Project, past: Past | None, started: float, custom: CustomModels) -> Publication:
    """Make a publication of the store and the build database and put it in the place of the last one.

    `past`: what was pruned; `started`: when the build began (time.monotonic), for the record; `custom`: the custom models, of which those
    that were built are published. One that cannot be is added to its failures.
    """
    published_at = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    last = current_publication(warehouse)
    _remove_never_published(warehouse, last)
    number = 1 + max((int(path.name.split("-")[0]) for path in warehouse.publications.glob("*-*.duckdb")), default=0)
    publication_id = f"{number:06d}-{published_at:%Y%m%dT%H%M%SZ}"
    path = warehouse.publications / f"{publication_id}.duckdb"
    draft = warehouse.publications / "draft.duckdb"
    warehouse.note("publish", publication=publication_id)
    _remove(draft)
    _begin_draft(warehouse, project, last, draft)
    horizon = None if past is None else past.before_utc
    generation = latest_generation(warehouse)
    if generation is not None and generation.version != lab_version(project.manifest):
        generation = None
    files, last_hour = _write(warehouse, project.manifest, custom, generation, horizon, draft, publication_id, published_at)
    record = {
        "root": str(warehouse.root), "store": files, "pruned_before_utc": horizon and horizon.isoformat(), "models": project.version,
        "thresholds": project.thresholds,
        "lab": generation and generation.name,
        "custom": {"digest": custom.digest, "failures": custom.failures},
        "build_seconds": round(time.monotonic() - started, 3),
        "model_seconds": {model: round(seconds, 3) for model, seconds in project.seconds.most_common()},
    }  # fmt: skip
    (warehouse.publications / f"{publication_id}.json").write_text(json.dumps(record))
    # who opens it for writing by mistake would shut every reader out, and change what the others see
    draft.chmod(stat.S_IMODE(draft.stat().st_mode) & ~0o222)
    sync(draft)
    os.replace(draft, path)
    warehouse.note("swap", publication=publication_id)
    link = warehouse.publications / "draft.link"
    link.unlink(missing_ok=True)
    os.link(path, link)
    os.replace(link, warehouse.published)
    sync(warehouse.root)
    sync(warehouse.publications)
    if past is None:
        project.template("publication").keep(path, _drop_own)
    warehouse.note("clean-up", publication=publication_id)
    clean_up(warehouse, publication_id)
    return Publication(publication_id, published_at, last_hour, horizon, path)


def _remove_never_published(warehouse: Warehouse, last: Publication | None) -> None:
    """Remove what a build left that was killed before the swap. Its age would say that the last publication was replaced that long ago."""
    if last is not None:
        for path in warehouse.publications.glob("*-*.duckdb"):
            if path.stem > last.publication_id:
                path.unlink()


def _begin_draft(warehouse: Warehouse, project: Project, last: Publication | None, draft: Path) -> None:
    """Begin the draft with the views of the last publication of the same models, or of a template: binding them is what takes long."""
    try:
        if last is not None and published_by(warehouse, last.publication_id) == project.version:
            shutil.copyfile(last.path, draft)
            with duckdb.connect(str(draft)) as connection:
                _drop_own(connection)
                # gives their room back
                connection.execute("checkpoint")
        else:
            project.template("publication").begin(draft)
    except (OSError, duckdb.Error):  # it is damaged, or somebody cleans up beside us: begin with nothing
        _remove(draft)


def _drop_own(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop what the next publication makes itself: tables, and custom models."""
    connection.execute("drop schema if exists custom cascade")
    tables = connection.execute("select schema_name, table_name from duckdb_tables() where not internal").fetchall()
    for schema, table in tables:
        connection.execute(f'drop table {schema}."{table}"')


def _remove(draft: Path) -> None:
    """Remove a draft and what DuckDB left beside it: a log of another file would be played into the next one."""
    for leftover in draft.parent.glob(f"{draft.name}*"):
        leftover.unlink()


def _write(
    warehouse: Warehouse,
    manifest: Any,
    custom: CustomModels,
    generation: Generation | None,
    horizon: datetime | None,
    draft: Path,
    publication_id: str,
    published_at: datetime,
) -> tuple[list[str], datetime | None]:
    """Write the file. Returns: the files of the store that it shows and the last valid RAID-hour."""
    with duckdb.connect(str(warehouse.build_database)) as connection:
        texts = dict(connection.execute(VIEWS).fetchall())
        files = sorted(live_files(warehouse, connection))
        connection.execute(f"attach {quoted(draft)} as publication (storage_version {quoted(STORAGE_VERSION)})")
        schemas = ("raw", "plan", "seeds", "staging", "intermediate", *PUBLISHED, "custom")
        for schema in schemas:
            connection.execute(f"create schema if not exists publication.{schema}")
        connection.execute("use publication")
        connection.execute("create table plan.root as select ? as root", [str(warehouse.root)])
        connection.execute(f"comment on table plan.root is {quoted(warehouse.root)}")
        columns = "publication_id varchar, published_at timestamp, last_hour_utc timestamp, pruned_before_utc timestamp"
        connection.execute(f"create table raw.publication ({columns})")
        begun = dict(connection.execute(f"{VIEWS} and database_name = 'publication'").fetchall())
        of_lab = {f"{node.schema}.{node.alias}": node for node in manifest.nodes.values() if is_of_lab(node)}
        there = {name for name, text in begun.items() if name not in of_lab or is_view_of(text, generation)}
        for name, text in texts.items():
            if name.startswith("raw."):
                connection.execute(_over_files(warehouse, text))
        shown = dict.fromkeys(_relations(manifest))
        for relation in shown:
            name = ".".join(relation[:2])
            if name not in of_lab:
                _show(warehouse, connection, texts, there, relation)
            elif name not in there:
                connection.execute(_over_files(warehouse, view_of(of_lab[name], generation)))
        for unique_id in sorted(custom.built):
            try:
                for relation in _relations(custom.manifest, unique_id):
                    if relation not in shown:
                        _show(warehouse, connection, texts, there, relation)
                        shown[relation] = None
            except (duckdb.Error, KeyError) as error:
                name = custom.manifest.nodes[unique_id].name
                why = " ".join(str(error).split())
                custom.failures.append(f"custom model {name} is not published: {why}; materialize it as a table, or read other models")
        nodes = [node for node in manifest.nodes.values() if node.resource_type == "model" and node.schema in PUBLISHED]
        named = {f"{node.schema}.{node.alias}": node for node in nodes}
        # what `show tables` lists: a few of them, by names to start with
        for node in nodes:
            if short_name := node.config.meta.get("short_name"):
                named[f"main.{short_name}"] = node
                connection.execute(f"create view if not exists main.{short_name} as from {node.schema}.{node.alias}")
        # a second for all of them: a view that the draft began with has its own
        _describe(connection, {name: node for name, node in named.items() if name not in there})
        (last_hour,) = connection.execute("select max(last_hour_utc) from marts.dim_raid_groups").fetchone() or (None,)
        connection.execute("insert into raw.publication values (?, ?, ?, ?)", [publication_id, published_at, last_hour, horizon])
        connection.execute("use build; detach publication")
    return files, last_hour


def _show(
    warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, texts: dict[str, str], there: set[str], relation: tuple[str, str, str]
) -> None:
    """Make one relation in the draft: a view as it is in the build database, a table as a copy. there: views that the draft began with."""
    schema, name, kind = relation
    if kind == "by_day":
        connection.execute(_over_files(warehouse, texts[f"{schema}.{name}"]))
    elif kind not in {"view", "in_run"}:
        connection.execute(f'create table {schema}."{name}" as select * from build.{schema}."{name}"')
    elif f"{schema}.{name}" not in there:
        connection.execute(texts[f"{schema}.{name}"])


def _describe(connection: duckdb.DuckDBPyConnection, named: dict[str, Any]) -> None:
    """Store the descriptions of relations and columns as comments in the draft, so that other tools show them."""
    comments = []
    for name, node in named.items():
        is_view = node.config.materialized in {"view", "in_run"} or name.startswith("main.") or is_of_lab(node)
        kind = "view" if is_view else "table"
        comments.append((f"{kind} {name}", node.description))
        comments += [(f'column {name}."{column.name}"', column.description) for column in node.columns.values()]
    texts = [f"comment on {what} is {quoted(' '.join(said.split()))}" for what, said in comments if said]
    connection.execute(";\n".join(texts))


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


def _over_files(warehouse: Warehouse, text: str) -> str:
    """The text of a view over files, so that it takes the place of one of the same name, and fails in a copy of the warehouse.

    It names the files by absolute path: a copy elsewhere would silently show those of this folder.
    """
    head, _, query = text.replace("CREATE VIEW", "CREATE OR REPLACE VIEW", 1).strip().rstrip(";").partition(" AS ")
    if not any(function in query for function in ("read_parquet(", "read_json(")):
        return f"{head} AS {query}"
    message = (
        f"a warehouse was copied or moved, and would show the files of {warehouse.root}; run `drivetail build -w FOLDER` on the folder it "
        "is in now, which publishes it again, or detach it; `drivetail export` writes a file for other places"
    )
    return f"{head} AS select * from ({query}) where case when ({IS_IN_ITS_PLACE}) then true else error({quoted(message)}) end"


def _relations(manifest: Any, *only: str) -> list[tuple[str, str, str]]:
    """Schema, name and kind of every model to publish, dependencies first: PUBLISHED, what an exposure reads, and what those are made of.

    only: unique ids of the models that are wanted instead. Tables and stored models stand for themselves.
    """
    found: dict[str, tuple[str, str, str]] = {}

    def visit(unique_id: str) -> None:
        node = manifest.nodes.get(unique_id)
        if node is None or unique_id in found:
            return
        if node.config.materialized in {"view", "in_run"}:
            for parent in node.depends_on.nodes:
                visit(parent)
        found[unique_id] = (node.schema, node.alias, node.config.materialized)

    wanted = list(only) or sorted(
        unique_id for unique_id, node in manifest.nodes.items() if node.resource_type == "model" and node.schema in PUBLISHED
    )
    for unique_id in wanted:
        visit(unique_id)
    for exposure in () if only else manifest.exposures.values():
        for unique_id in exposure.depends_on.nodes:
            visit(unique_id)
    return list(found.values())


def clean_up(warehouse: Warehouse, current: str, keep_seconds: float = KEEP_SECONDS) -> None:
    """Remove publications that nobody can be reading any more, and what no kept publication and no build needs: files of the store, and
    files of raw before the horizon that all of them have.
    """
    kept: set[str] = set()
    horizons: set[str | None] = set()
    generations: set[str | None] = set()
    paths = sorted(warehouse.publications.glob("*-*.duckdb"))
    for path, successor in zip(paths, [*paths[1:], None], strict=True):
        needs = path.with_suffix(".json")
        replaced_for = time.time() - successor.stat().st_mtime if successor else 0.0
        if path.stem != current and replaced_for > keep_seconds and not _is_open(path):
            path.unlink()
            needs.unlink(missing_ok=True)
        elif needs.exists():
            record = json.loads(needs.read_text())
            kept.update(record["store"])
            horizons.add(record.get("pruned_before_utc"))
            generations.add(record.get("lab"))
        else:
            horizons.add(None)
    for record in warehouse.publications.glob("*-*.json"):
        # of a build or clean-up that was killed
        if not record.with_suffix(".duckdb").exists():
            record.unlink()
    past = read_past(warehouse)
    with duckdb.connect(str(warehouse.build_database)) as connection:
        kept |= live_files(warehouse, connection) | files_needed(warehouse, past)
    remove_files(warehouse, kept)
    remove_generations(warehouse, generations)
    if past is not None:
        remove_from_raw(warehouse, past)
    reach = [datetime.fromisoformat(horizon) for horizon in horizons if horizon is not None]
    if reach and None not in horizons:
        for delivery in list_deliveries(warehouse.root):
            for path in pruned_files(delivery, min(reach)):
                path.unlink()


def _is_open(path: Path) -> bool:
    """Whether some process of this host holds DuckDB's lock on the file: asked without taking it."""
    with path.open("rb") as handle:
        # struct flock: type, whence, start, length, pid
        answer = fcntl.fcntl(handle, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)
