"""Look at a warehouse: the publication first, then raw itself, then what of it needs an operator."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from datetime import UTC, datetime

import duckdb

from drivetail.ask.status.collect_published import collect_published
from drivetail.ask.status.collect_quarantine import collect_quarantined
from drivetail.ask.status.collect_raw import DELIVERIES, collect_landed, collect_turned_away, collect_unbuilt
from drivetail.ask.status.content import Status
from drivetail.ask.status.problems import find_problems
from engine.compiled import models_of
from engine.publish import current_publication
from engine.read import QueryError, first_line, published_deliveries
from engine.retention import read_past
from engine.sources import RawFiles, landed_rows, show_sources
from engine.warehouse import Warehouse
from ingest.raw.register import Register
from ingest.raw.store import deliveries_but, digests, list_folders


def collect_status(warehouse: Warehouse, now: datetime | None = None) -> Status:
    """Look at a warehouse. `now` (UTC without zone) is the clock's time where not given.

    Raises: QueryError when raw itself cannot be read.
    """
    now = now or datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    status = Status(str(warehouse.root), now)
    last = current_publication(warehouse)
    known = {} if last is None else published_deliveries(warehouse, last.publication_id)
    # after it: what lands and is built meanwhile is not lost
    folders = list_folders(warehouse.root)
    landed = digests(folders)
    collect_quarantined(status, warehouse)
    _collect_machine(status, warehouse)
    built = collect_published(status, warehouse, landed, known)
    try:
        with duckdb.connect() as raw:
            raw.execute("create schema raw")
            show_sources(raw, landed_rows(models_of().sources, RawFiles(folders), warehouse.raw))
            # asked often, and as many files as there are deliveries
            raw.execute("create temp table landed_files as select * from raw.ingested_files")
            raw.execute(f"create temp table deliveries as {DELIVERIES}")
            collect_landed(status, raw, folders, len(landed), read_past(warehouse))
            collect_unbuilt(status, raw, list(deliveries_but(folders, built or ())))
            collect_turned_away(status, raw, Register(warehouse.raw, "inbox").read(skips_damaged=True))
            status.problems = list(find_problems(status, raw, folders, built))
    except duckdb.Error as error:
        raise QueryError(f"{warehouse.raw}: cannot be read ({first_line(error)}); raw files never change, restore the one named") from error
    return status


def _collect_machine(status: Status, warehouse: Warehouse) -> None:
    """Room, and whether the last build failed."""
    place = next(folder for folder in (warehouse.root, *warehouse.root.parents) if folder.exists())
    status.free_bytes = shutil.disk_usage(place).free
    if warehouse.published.exists():
        status.published_bytes = warehouse.published.stat().st_size
    with suppress(OSError, ValueError, KeyError):
        failed = json.loads(warehouse.failed_build.read_text(encoding="utf-8"))
        at = datetime.fromisoformat(failed["at"]).replace(tzinfo=None, microsecond=0)
        status.failed_build = {"at": at, "message": str(failed["message"])}
