"""What people decided on drives, kept in `raw/decisions.jsonl`: drive_id, verdict, by, at, note, until, publication_id."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from drivetail.explain.question import known_drive
from drivetail.queries import publication_of
from drivetail.register import Register
from drivetail.warehouse import Warehouse
from ingest.raw_store import utc_now

DISMISS, WATCH = "dismiss", "watch"


@dataclass(frozen=True)
class Decision:
    """One decision on a drive; the latest one counts. `until`: from then on it no longer does; null: for ever.

    `publication_id` names the publication that was looked at. Instants are UTC without zone.
    """

    drive_id: str
    verdict: str
    by: str
    at: datetime
    note: str
    until: datetime | None
    publication_id: str

    def is_dismissal(self, now: datetime) -> bool:
        """Whether the drive's alerts are not to be told now."""
        return self.verdict == DISMISS and (self.until is None or now < self.until)


def decide(warehouse: Warehouse, drive: str, verdict: str, *, by: str, note: str, until: datetime | None = None) -> Decision:
    """Record a decision on a drive. Raises: QueryError for a drive that the publication does not know."""
    with publication_of(warehouse) as connection:
        known_drive(connection, drive)
        ((publication_id,),) = connection.execute("select publication_id from marts.publication").fetchall()
    decision = Decision(drive, verdict, by, utc_now(), note, until, publication_id)
    register = Register(warehouse, "decisions")
    with register.locked():
        register.append([asdict(decision)])
    return decision


def latest_decisions(warehouse: Warehouse) -> dict[str, Decision]:
    """The last decision on each drive that has any."""
    found = {}
    for record in Register(warehouse, "decisions").read():
        until = None if record["until"] is None else datetime.fromisoformat(record["until"])
        found[record["drive_id"]] = Decision(**{**record, "at": datetime.fromisoformat(record["at"]), "until": until})
    return found
