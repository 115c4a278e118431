"""A warehouse as it was known at an instant: raw never changes, so what had landed by then is still there and can be built again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from engine.read import QueryError
from engine.retention import read_past
from engine.warehouse import Warehouse
from ingest.raw.packing import link_folders
from ingest.raw.register import Register
from ingest.raw.store import Delivery, list_deliveries, list_folders


def landed_by(warehouse: Warehouse, instant: datetime) -> list[Delivery]:
    """The deliveries that had landed by an instant (UTC), the oldest first."""
    return [each for each in list_deliveries(warehouse.root) if each.committed_at <= instant]


@contextmanager
def built_as_known_at(warehouse: Warehouse, instant: datetime) -> Iterator[Warehouse]:
    """Build what had landed and been decided by the instant (UTC), in a folder of its own that is removed afterwards; costs a whole build.

    The thresholds are those of now.

    Raises: QueryError where nothing had landed by then, or raw was pruned: then what is left may be less than what was known.
    """
    from engine.build import build  # only this path builds

    past = read_past(warehouse)
    if past is not None:
        raise QueryError(
            f"what was known at {instant} UTC cannot be built again: the drive-hours before {past.day} are pruned; "
            "to read a publication that is kept, use --publication"
        )
    landed = landed_by(warehouse, instant)
    if not landed:
        came = [each.committed_at for each in list_deliveries(warehouse.root)]
        raise QueryError(
            f"nothing had landed at {instant} UTC; "
            + (f"the first delivery landed at {min(came)} UTC" if came else "and nothing has landed since")
        )
    with TemporaryDirectory(prefix=".as-known-at-", dir=warehouse.root) as folder:
        then = Warehouse(Path(folder))
        then.create()
        if warehouse.settings.exists():
            then.settings.symlink_to(warehouse.settings)
        link_folders(list_folders(warehouse.root), then.root, {each.seq for each in landed})
        decided = [record for record in Register(warehouse.raw, "decisions").read() if datetime.fromisoformat(record["at"]) <= instant]
        Register(then.raw, "decisions").append(decided)
        build(then)
        yield then
