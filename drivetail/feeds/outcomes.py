"""Outcome of each delivery, an entry of an inbox or a pull from a server: `WAREHOUSE/raw/inbox.jsonl`, a line each.

The line is written after the delivery has landed; a run killed in between lands it again, which changes nothing. Before an entry is
read, a line says that its landing has begun: one that is followed by no other may have ended the process, and waits for the others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from engine.warehouse import Warehouse
from ingest.raw.register import Record, Register
from ingest.reading.text import in_sight
from report.words import human

if TYPE_CHECKING:
    from ingest import IngestSummary

LANDED, NOTHING_NEW, HELD, UNREADABLE, REFUSED, UNANSWERED = "landed", "nothing new", "held", "unreadable", "refused", "unanswered"
"""The possible outcomes. All but the first two need an operator; an entry is retried when it changes, a server every hour."""

HINDERED, NOT_LANDED = "hindered", "not landed"
"""A landing that has not ended: for a reason that may pass, such as a full disk, or for one that trying again meets again. Neither is
written down: the next run takes the delivery again.
"""


BEGUN = "begun"


@dataclass(frozen=True)
class Outcome:
    """Outcome of one delivery. Rows are counted as `drivetail ingest` counts them; `message` says what to do, if anything.

    Of a pull `inbox` is the server, `path` says which hours (drivetail/feeds/pulls.py), and there is no `signature`. `held`: the numbers of
    what is in quarantine; of what was collected each source is one delivery.
    """

    at: str
    inbox: str
    path: str
    signature: str
    outcome: str
    rows_delivered: int = 0
    rows_accepted: int = 0
    held: Sequence[int] = ()
    message: str = ""

    @classmethod
    def of(cls, record: Record) -> Outcome:
        """The outcome of a line, which may be of a release with other columns."""
        return cls(**{each.name: record[each.name] for each in fields(cls) if each.name in record})

    @property
    def needs_somebody(self) -> bool:
        return self.outcome not in (LANDED, NOTHING_NEW)

    @property
    def is_retryable(self) -> bool:
        """Whether it has not landed for a reason that is not its own, so that trying again may help."""
        return self.outcome == HINDERED

    @property
    def is_kept(self) -> bool:
        """Whether it is written down, so that nothing tries it again before it is sent again or decided on."""
        return self.outcome not in (HINDERED, NOT_LANDED, UNANSWERED)

    @property
    def sentence(self) -> str:
        """Summary of the outcome, one line for a log: what to do, if anything, else how many rows."""
        counts = f"{human(self.rows_delivered)} rows in, {human(self.rows_accepted)} accepted"
        return in_sight(self.message or f"{self.path}: {self.outcome}, {counts}")

    def after(self, decided: Collection[int]) -> Outcome:
        """The outcome once the quarantined deliveries of these numbers are decided: one that needed no more than that needs nobody."""
        return replace(self, outcome=NOTHING_NEW, held=(), message="") if self.outcome == HELD and set(self.held) <= set(decided) else self


def register(warehouse: Warehouse) -> Register:
    """Where it is written down."""
    return Register(warehouse.raw, "inbox")


def outcomes(warehouse: Warehouse) -> list[Record]:
    """Every line, oldest first; a damaged one is left out: without it a delivery is taken again, which changes nothing."""
    return register(warehouse).read(skips_damaged=True)


def write_down(warehouse: Warehouse, record: Record) -> None:
    """Add a line."""
    written = register(warehouse)
    with written.locked():
        written.append([record])


def outcome_of(warehouse: Warehouse, summaries: Sequence[IngestSummary], **about: Any) -> Outcome:
    """The outcome of a delivery that one or more calls of ingest() took in; `about`: its at, inbox, path and signature."""
    from drivetail.ask.status.collect_quarantine import commands, in_short

    what, messages, numbers = NOTHING_NEW, [], []
    if any(summary.delivery_seq for summary in summaries):
        what = LANDED
    for summary in summaries:
        undecided = [held for held in summary.held if held.decision is None]
        for held in undecided:
            decide = " or ".join(f"`{command}`" for command in commands(warehouse, held).values())
            messages.append(f"{about['path']} is held in quarantine {held.number}: {in_short(held.reasons)}; {decide}")
            numbers.append(held.number)
        if summary.unreadable and not undecided:
            passing = [file for file in summary.unreadable if file.is_retryable]
            first = (passing or summary.unreadable)[0]
            todo = "it is tried again" if passing else "send it again"
            messages.append(f"{first.file} could not be read: {first.note}; {todo}")
            what = HINDERED if passing or what == HINDERED else UNREADABLE
    if numbers and what not in (UNREADABLE, HINDERED):  # a decision alone does not make up for a part that cannot be read
        what = HELD
    return Outcome(
        **about,
        outcome=what,
        rows_delivered=sum(summary.rows_delivered for summary in summaries),
        rows_accepted=sum(summary.rows_accepted for summary in summaries),
        held=numbers,
        message="; ".join(messages),
    )
