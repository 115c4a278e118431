"""People's decisions on drives, kept in `raw/decisions.jsonl`: drive_id, verdict, by, at, note, until, publication_id, ticket.

What became of a decision is in models/marts/events/fct_drive_decisions.sql.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from drivetail.ask.explain.question import known_drive
from drivetail.terminal import Columns, known, table
from engine.read import QueryError, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.contract.values import utc, utc_now
from ingest.raw.register import Record, Register
from report.words import counted_noun, named_drive, place, to_minute

if TYPE_CHECKING:
    import polars as pl

REPLACE, WATCH, DISMISS, RETRACT = "replace", "watch", "dismiss", "retract"
VERDICTS = (REPLACE, WATCH, DISMISS, RETRACT)


@dataclass(frozen=True)
class Decision:
    """One decision on a drive; the latest one counts. `until`: from then on it no longer does; null: for ever.

    `publication_id` names the publication that was looked at, `ticket` what carries it out. Instants are UTC without zone.
    """

    drive_id: str
    verdict: str
    by: str
    at: datetime
    note: str
    until: datetime | None
    publication_id: str
    ticket: str | None = None

    def is_dismissal(self, now: datetime) -> bool:
        """Whether the drive's alerts are muted now, because a decision on it stands."""
        return self.verdict in (DISMISS, REPLACE) and (self.until is None or now < self.until)


def decide(
    warehouse: Warehouse,
    drives: Sequence[str],
    verdict: str,
    *,
    by: str,
    note: str,
    until: datetime | None = None,
    ticket: str | None = None,
    at: datetime | None = None,
) -> tuple[list[Decision], list[Decision]]:
    """Record one decision on each of the drives, of all of them or none.

    Where the last one on a drive was the same, by the same person and of the same publication, it is not recorded again: a call that was
    killed after it had written may be repeated. at: when it was taken (UTC without zone), by default now.
    Returns: the decisions that are recorded now, and those that were before. Raises: QueryError for a drive that the publication does not
    know, and where there is nothing to retract.
    """
    with publication_of(warehouse) as connection:
        drives = [known_drive(connection, drive)["drive_id"] for drive in drives]
        ((publication_id,),) = connection.execute("select publication_id from marts.publication").fetchall()
    register = Register(warehouse.raw, "decisions")
    with register.locked():
        last = {record.get("drive_id"): record for record in register.read(skips_damaged=True)}
        none = [drive for drive in drives if verdict == RETRACT and last.get(drive, {}).get("verdict") is None]
        if none:
            raise QueryError(f"{none[0]}: no decision on it is recorded; there is nothing to retract")
        new, repeated = [], []
        for drive in dict.fromkeys(drives):
            decision = Decision(drive, verdict, by, at or utc_now(), note, until, publication_id, ticket)
            record = last.get(drive, {})
            if _is_of(decision, record) and (at is None or record["at"] == at.isoformat()):
                repeated.append(replace(decision, at=datetime.fromisoformat(record["at"])))
            else:
                new.append(decision)
        register.append([asdict(decision) for decision in new])
    return new, repeated


NEVER_SLOW = """
select drives.*
from marts.dim_drives as drives
where drive_id in (select unnest($drives))
    and drive_id not in (select drive_id from marts.fct_drive_slowness where slow_hours > 0)
    and drive_id not in (select subject_id from marts.fct_slow_alerts where subject_type = 'drive')
order by drive_id
"""


def never_slow(warehouse: Warehouse, drives: Sequence[str]) -> str | None:
    """The drives without a slow hour or alert, as a sentence: replacing one may be a slip. None where each has one. Raises: QueryError."""
    with publication_of(warehouse) as connection:
        known_ids = [known_drive(connection, drive)["drive_id"] for drive in drives]
        rows = fetch(connection, NEVER_SLOW, {"drives": known_ids})
    return f"{', '.join(map(named_drive, rows))}: not one slow hour is known of {'it' if len(rows) == 1 else 'them'}" if rows else None


def _is_of(decision: Decision, record: Record) -> bool:
    stated = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(decision).items()}
    return "at" in record and all(record.get(name) == value for name, value in stated.items() if name != "at")


def latest_decisions(warehouse: Warehouse) -> dict[str, Decision]:
    """The last decision on each drive that has any. A line that cannot be read as one is named on stderr and ignored."""
    register, found = Register(warehouse.raw, "decisions"), {}
    for number, record in enumerate(register.read(), start=1):
        try:
            until = None if record["until"] is None else utc(record["until"])
            found[record["drive_id"]] = Decision(**{**record, "at": utc(record["at"]), "until": until})
        except (KeyError, TypeError, ValueError) as error:
            note_ignored(f"{register.path}: line {number}: ignored, it is no decision ({type(error).__name__}: {error})")
    return found


@cache
def note_ignored(sentence: str) -> None:
    """Log a remark on stderr, once: a command may read the register more than once."""
    logging.getLogger(__name__).warning(sentence)


def list_decisions(warehouse: Warehouse, *, is_pending: bool = False, is_all: bool = False) -> pl.DataFrame:
    """Decisions and their outcomes, the latest first: rows of marts.fct_drive_decisions with the ticket's text on the drive.

    is_pending: only replacements not done yet. is_all: also decisions that a later one has superseded or retracted.
    Raises: QueryError when there is no publication or it cannot be read, StoreError where the register is damaged.
    """
    Register(warehouse.raw, "decisions").read()
    states = {"pending"} if is_pending else {"pending", "standing", "expired", "replaced", *(["superseded", "retracted"] if is_all else [])}
    with publication_of(warehouse) as connection:
        found: pl.DataFrame = connection.sql(
            """
            select decisions.*, drives.vendor, drives.model, drives.firmware, drives.host, drives.device, drives.enclosure, drives.left_at
            from marts.fct_drive_decisions as decisions
            left join marts.dim_drives as drives on decisions.drive_id = drives.drive_id
            where decisions.state in (select unnest($states))
            order by decisions.decision_seq desc
            """,
            params={"states": sorted(states)},
        ).pl()
        return found


def render_decisions(decisions: pl.DataFrame) -> str:
    """The decisions as a table; what none of them has (a fleet without hosts, nothing replaced yet) takes no room."""
    columns: Columns = {
        "where": "where",
        "drive": "drive_id",
        "verdict": "verdict",
        "state": "state",
        "group": "raid_group_id",
        "slot": "slot",
        "model": "model",
        "by": "decided_by",
        "decided (UTC)": ("decided_at", lambda instant: to_minute(instant.replace(second=0, microsecond=0))),
        "ticket": "ticket",
        "until": "until_utc",
        "replaced": "replaced_at",
        "by serial": "successor_drive_id",
        "tail hours before": ("tail_hour_ratio_before", _percent),
        "after": ("tail_hour_ratio_after", _percent),
        "note": "note",
    }
    rows = [
        {
            **row,
            "state": "pending, overdue" if row["state"] == "pending" and row["is_past_until"] else row["state"],
            "where": place(row) or None,
        }
        for row in decisions.to_dicts()
    ]
    return "\n".join([counted_noun(len(rows), "decision"), table(rows, known(rows, columns))])


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.1f}%"
