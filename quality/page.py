"""Data docs: one HTML file per day, `WAREHOUSE/docs/quality/DATE.html`, of every delivery the gate looked at. Opens offline."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import jinja2

from ingest.contract.values import utc_now
from ingest.raw.durable import replace_file
from ingest.raw.packing import gates_backwards
from ingest.raw.quarantine import list_quarantine
from ingest.raw.store import list_folders
from ingest.reading.text import in_order


def write_pages(warehouse: Path, *days: date, now: datetime | None = None) -> Path:
    """Write the page of today (UTC), of yesterday, for a call killed at midnight wrote none, and of other days that have changed.

    Only today's is written where nothing was looked at. Returns: the page of today.
    """
    today = (now or utc_now()).date()
    for day in sorted({*days, today - timedelta(days=1)} - {today}):
        deliveries = _looked_at(warehouse, day)
        if deliveries:
            _write(warehouse, day, deliveries)
    return _write(warehouse, today, _looked_at(warehouse, today))


def _write(warehouse: Path, day: date, deliveries: list[dict[str, Any]]) -> Path:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=in_order,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html.j2").render(day=day, warehouse=warehouse, deliveries=deliveries)
    return replace_file(Path(warehouse) / "docs" / "quality" / f"{day}.html", page)


def _looked_at(warehouse: Path, day: date) -> list[dict[str, Any]]:
    """Deliveries that the gate checked on a day: quarantined deliveries first, then the latest."""
    found = []
    for held in list_quarantine(warehouse):
        gate = held.record["gate"]
        if _day(gate) == day:
            names = [entry["file"] for entry in held.files]
            found.append({**_gate_fields(gate), "title": f"Quarantine {held.number}", "source": held.record["source"], "names": names,
                          "reasons": held.reasons, "decision": held.decision})  # fmt: skip
    for seq, *texts in (each for folder in reversed(list_folders(warehouse)) for each in gates_backwards(folder)):
        gate, record = map(json.loads, texts)
        if _day(gate) == day:
            found.append({**_gate_fields(gate), "title": f"Delivery {seq}", "source": record["source"], "names": record["paths"],
                          "reasons": [], "decision": record.get("released")})  # fmt: skip
        elif _day(gate) < day:
            break  # deliveries are numbered in the order they came
    return found


def _day(gate: dict[str, Any]) -> date:
    return datetime.fromisoformat(gate["checked_at"]).date()


def _gate_fields(gate: dict[str, Any]) -> dict[str, Any]:
    order = {"broken": 0, "passed": 1, "left out": 2}
    checks = [{**check, "state": next((state for state in order if check[state]), "left out")} for check in gate["checks"]]
    return {"checked_at": gate["checked_at"][:19].replace("T", " "), "checks": sorted(checks, key=lambda check: order[check["state"]])}
