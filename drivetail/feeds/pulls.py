"""The hours to pull from servers: those of a run, and those before it that no pull has brought yet.

A pull is written down as an entry of an inbox is (outcomes.py). Its path is `URL!FIRST.END`, two hours (UTC) of which the second
is not of it. The last `hours` are pulled every time: scrapes may reach a server late, and of two records of a drive-hour raw keeps the
fuller one. Hours that a server did not answer are pulled with the next ones, so no run has to be repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drivetail.feeds.outcomes import HELD, LANDED, NOTHING_NEW, Outcome, outcomes
from drivetail.service.settings import Server, Settings, this_hour
from engine.warehouse import Warehouse
from ingest.raw.register import Record

HOUR = timedelta(hours=1)
BROUGHT = (LANDED, NOTHING_NEW, HELD)
"""Outcomes of a pull that was answered. A held delivery counts as pulled: repeating it would hold up all later hours."""

_INSTANT = "%Y-%m-%dT%H"


@dataclass(frozen=True)
class Pull:
    """The hours to ask a server for, as `inbox.land` takes them: its name, and the path that says which hours."""

    inbox: str
    path: str

    @property
    def name(self) -> str:
        return self.path


@dataclass(frozen=True)
class Pulled:
    """Where a server stands. `last_hour`: the last that was pulled, UTC; `message`: what is wrong since."""

    server: str
    url: str
    last_hour: datetime | None
    message: str


def due(warehouse: Warehouse, settings: Settings, until: datetime) -> list[Pull]:
    """The hours to pull from each server in the run whose hour ends at `until` (UTC); no later than now."""
    records, until = outcomes(warehouse), min(until, this_hour())
    return [_due(server, _ends(server, records), until) for server in settings.servers]


def _due(server: Server, ends: Collection[datetime], until: datetime) -> Pull:
    first = until - server.hours * HOUR
    before = [end for end in ends if end <= until]  # a run of the past knows nothing of later ones
    if before:
        first = min(first, max(before) - (server.hours - 1) * HOUR)
    return Pull(server.name, f"{server.url}!{first:{_INSTANT}}.{until:{_INSTANT}}")


def span_of(path: str) -> tuple[datetime, datetime]:
    """The hours [first, end) that the path of a pull names."""
    first, end = (datetime.strptime(instant, _INSTANT) for instant in path.rpartition("!")[2].split("."))
    return first, end


def list_pulled(warehouse: Warehouse, settings: Settings) -> list[Pulled]:
    """Where every server of the settings stands."""
    records = outcomes(warehouse)
    found = []
    for server in settings.servers:
        ends, latest = _ends(server, records), _of(server, records)[-1:]
        message = "".join(record["message"] for record in latest if Outcome.of(record).needs_somebody)
        found.append(Pulled(server.name, server.url, max(ends) - HOUR if ends else None, message))
    return found


def _ends(server: Server, records: Sequence[Record]) -> list[datetime]:
    return [span_of(record["path"])[1] for record in _of(server, records) if record["outcome"] in BROUGHT]


def _of(server: Server, records: Sequence[Record]) -> list[Record]:
    """Outcomes of the pulls from it; an inbox that had its name before has entries, which have signatures."""
    return [record for record in records if record["inbox"] == server.name and not record["signature"]]
