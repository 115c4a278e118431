"""Hosts that stopped reporting, or some of their drives, while others go on: each is reported to each receiver once (docs/alerts.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from drivetail.ask.status.listings import SILENT_HOSTS, silence
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.contract.values import utc_now
from ingest.raw.register import Register
from ingest.reading.text import in_sight
from report.words import counted_noun

SAME_WITHIN = timedelta(hours=24)
"""A drive that sent something for less than this and stopped again is not reported again."""

MOST_HOSTS = 20
"""Hosts that one message names; a switch may take a hundred with it."""


def silent_hosts(warehouse: Warehouse) -> list[Row]:
    """Rows of SILENT_HOSTS. Raises: QueryError when there is no publication or it cannot be read."""
    with publication_of(warehouse) as connection:
        return fetch(connection, f"{SILENT_HOSTS.query} order by {SILENT_HOSTS.order}")


def report_silence_once(warehouse: Warehouse, hosts: Sequence[Row], tell: Callable[[list[Row]], object], receiver: str) -> list[Row]:
    """The hosts with a drive whose silence was not reported to the receiver before; when `tell` fails they are new again."""
    register = Register(warehouse.raw, "silences")
    with register.locked():
        said = {
            record["drive_id"]: datetime.fromisoformat(record["last_hour_utc"])
            for record in register.read()
            if record["receiver"] == receiver
        }
        drives = {
            id(row): [d for d in row["drives"] if d["last_hour_utc"] > said.get(d["drive_id"], datetime.min) + SAME_WITHIN] for row in hosts
        }
        fresh = [row for row in hosts if drives[id(row)]]
        if fresh:
            tell(fresh)
        at = utc_now()
        register.append(
            [
                {"drive_id": drive["drive_id"], "last_hour_utc": drive["last_hour_utc"], "said_at": at, "receiver": receiver}
                for row in fresh
                for drive in drives[id(row)]
            ]
        )
    return fresh


def silence_headline(hosts: Sequence[Row]) -> str:
    """The first of some hosts as a lock screen shows it, and how many more: `web1 silent`, `web2: 1 of 7 drives silent and 3 more`."""
    first, silent, drives = hosts[0], hosts[0]["silent_drives"], hosts[0]["host_drives"]
    part = "" if silent == drives else f": {silent} of {counted_noun(drives, 'drive')}"
    more = f" and {len(hosts) - 1} more" if len(hosts) > 1 else ""
    return in_sight(f"{first['host'] or first['raid_group_id']}{part} silent{more}")


def silences(hosts: Sequence[Row]) -> str:
    """A line for each host, or the first of many."""
    more = len(hosts) - MOST_HOSTS
    lines = [in_sight(silence(row)) for row in hosts[:MOST_HOSTS]]
    return "\n".join([*lines, *([f"and {more} more; `drivetail status` lists them"] if more > 0 else [])])
