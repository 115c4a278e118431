"""What became of each delivery that was taken, an entry of an inbox or a pull from a server: one line of `WAREHOUSE/raw/inbox.jsonl` each.

The line is written after the delivery has landed; a run killed in between takes it again, which changes nothing. That the landing of an
entry has begun is a line of `WAREHOUSE/raw/begun.jsonl`: one that was begun and has no outcome may have ended the process; it waits for the
others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from engine.register import Record, Register
from engine.warehouse import Warehouse
from engine.words import human
from ingest import IngestSummary, list_deliveries

LANDED, NOTHING_NEW, HELD, UNREADABLE, REFUSED, UNANSWERED = "landed", "nothing new", "held", "unreadable", "refused", "unanswered"
"""What became of it. All but the first two need somebody; an entry is taken again when it changes, a server is asked again every hour."""

HINDERED, NOT_LANDED = "hindered", "not landed"
"""A landing that has not ended: for a reason that may pass, such as a full disk, or for one that trying again meets again. Neither is
written down: the next run takes the delivery again.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of one delivery. Rows are counted as `drivetail ingest` counts them; `message` says what to do where somebody must.

    Of a pull `inbox` is the server and `path` says which hours (drivetail/pulls.py). `also_held`: of what was collected each source is
    looked at by itself, so more than one part may be in quarantine.
    """

    at: str
    inbox: str
    path: str
    signature: str
    outcome: str
    delivery_seq: int | None = None
    first_hour: str | None = None
    last_hour: str | None = None
    rows_delivered: int = 0
    rows_accepted: int = 0
    quarantine: int | None = None
    message: str = ""
    also_held: Sequence[int] = ()

    @property
    def needs_somebody(self) -> bool:
        """Whether it has not landed as it should."""
        return self.outcome not in (LANDED, NOTHING_NEW)

    @property
    def may_pass(self) -> bool:
        """Whether it has not landed for a reason that is not its own, so that trying again may help."""
        return self.outcome == HINDERED

    @property
    def sentence(self) -> str:
        """What became of it, for a log: what to do where somebody must, else how many rows."""
        counts = f"{human(self.rows_delivered)} rows in, {human(self.rows_accepted)} accepted"
        return self.message or f"{self.path}: {self.outcome}, {counts}"

    def is_decided(self, decided: Collection[int]) -> bool:
        """Whether all that it needed was to decide on quarantined deliveries, and somebody has: `decided` are their numbers."""
        return self.outcome == HELD and {self.quarantine, *self.also_held} <= set(decided)


def register(warehouse: Warehouse) -> Register:
    """Where it is written down."""
    return Register(warehouse, "inbox")


def outcomes(warehouse: Warehouse) -> list[Record]:
    """Every line, oldest first; a damaged one is left out: without it a delivery is taken again, which changes nothing."""
    return register(warehouse).read(skips_damaged=True)


def note_begun(warehouse: Warehouse, path: str, signature: str) -> None:
    """Write down that the landing of an entry begins."""
    begun = _begun(warehouse)
    with begun.locked():
        begun.append([{"path": path, "signature": signature}])


def unfinished(warehouse: Warehouse, ended: Collection[tuple[str, str]]) -> dict[str, int]:
    """The paths whose landing was begun and is not among those (path, signature) that ended, with a number: greater, later begun."""
    begun = enumerate(_begun(warehouse).read(skips_damaged=True))
    return {record["path"]: number for number, record in begun if (record["path"], record["signature"]) not in ended}


def _begun(warehouse: Warehouse) -> Register:
    return Register(warehouse, "begun")


def outcome_of(warehouse: Warehouse, summaries: Sequence[IngestSummary], **about: Any) -> Outcome:
    """The outcome of a delivery that so many calls of ingest() took in; `about` is what is known of it beside."""
    from drivetail.status.collect_quarantine import commands, in_short

    landed = {summary.delivery_seq for summary in summaries if summary.delivery_seq}
    what, messages, numbers = (LANDED if landed else NOTHING_NEW), [], []
    for summary in summaries:
        undecided = [held for held in summary.held if held.decision is None]
        for held in undecided:
            decide = " or ".join(f"`{command}`" for command in commands(warehouse, held).values())
            messages.append(f"{about['path']} is held in quarantine {held.number}: {in_short(held.reasons)}; {decide}")
            numbers.append(held.number)
        if summary.unreadable and not undecided:
            first = summary.unreadable[0]
            messages.append(f"{first.file} could not be read: {first.note}; send it again")
            what = UNREADABLE
    if numbers and what != UNREADABLE:  # a decision alone does not make up for a part that cannot be read
        what = HELD
    deliveries = [delivery for delivery in list_deliveries(warehouse.root) if delivery.seq in landed]
    first_hours = [delivery.first_hour for delivery in deliveries if delivery.first_hour]
    last_hours = [delivery.last_hour for delivery in deliveries if delivery.last_hour]
    return Outcome(
        **about,
        outcome=what,
        delivery_seq=max(landed, default=None),
        first_hour=min(first_hours).isoformat() if first_hours else None,
        last_hour=max(last_hours).isoformat() if last_hours else None,
        rows_delivered=sum(summary.rows_delivered for summary in summaries),
        rows_accepted=sum(summary.rows_accepted for summary in summaries),
        quarantine=numbers[0] if numbers else None,
        message="; ".join(messages),
        also_held=numbers[1:],
    )
