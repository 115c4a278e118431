"""Deliveries that the gate holds back: what they are, why, and the two commands that decide on them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from drivetail.ask.status.content import LISTED, Status, in_hours
from engine.read import QueryError
from engine.warehouse import Warehouse
from ingest.contract.errors import GateError
from ingest.raw.quarantine import Held, list_quarantine
from report.words import counted_noun


def commands(warehouse: Warehouse, held: Held) -> dict[str, str]:
    """The command that lands a quarantined delivery after all, and the one that removes it; NAME and WHY are to be filled in."""
    rest = f"{held.number} --by NAME --note WHY --warehouse {shlex.quote(str(warehouse.root))}"
    return {"release": f"drivetail release {rest}", "drop": f"drivetail drop {rest}"}


def in_short(reasons: Sequence[str]) -> str:
    """Why a delivery is held: the first reason, and how many more there are."""
    return reasons[0] + (f" (and {counted_noun(len(reasons) - 1, 'more reason')})" if len(reasons) > 1 else "")


def collect_quarantined(status: Status, warehouse: Warehouse) -> None:
    """The undecided deliveries, oldest first. Raises: QueryError for a record that cannot be read."""
    try:
        held = [each for each in list_quarantine(warehouse.root) if each.decision is None]
    except GateError as error:
        raise QueryError(str(error)) from error
    rows = []
    for each in held[:LISTED]:
        rows.append(
            {
                "number": each.number,
                "source": each.record["source"],
                "files": [entry["file"] for entry in each.files],
                "quarantined_at": each.since,
                "age_hours": in_hours(status.at - each.since),
                "reasons": each.reasons,
                **commands(warehouse, each),
            }
        )
    status.quarantined = {"count": len(held), "rows": rows}
