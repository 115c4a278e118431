"""When the last hour published is too old: at, above and below what the settings allow, and while there is none."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from drivetail.service.settings import Alarms, Inbox, Server, Settings
from drivetail.tell.watch import staleness
from engine.warehouse import Warehouse

END = datetime(2026, 1, 5, 12)
"""The end of the interval of a run: fresh is what has the hour before it."""
SETTINGS = Settings(
    alarms=Alarms(fresh_hours=3),
    inboxes=[Inbox(name="fleet", source="bundle", folder=Path("/srv/deliveries"))],
    servers=[Server(name="metrics", url="http://prometheus:9090")],
)
LOOK = "; check whether anything arrives in /srv/deliveries, at http://prometheus:9090: `drivetail inbox`, then `drivetail status`"


def said(monkeypatch: pytest.MonkeyPatch, publication: object) -> str | None:
    monkeypatch.setattr("drivetail.tell.watch.current_publication", lambda warehouse: publication)
    return staleness(Warehouse(Path("nowhere")), SETTINGS, END)


@pytest.mark.parametrize(
    ("behind", "lag"),
    [
        (timedelta(hours=-2), None),  # an hour run again: later ones are published
        (timedelta(0), None),
        (timedelta(hours=3) - timedelta(minutes=1), None),
        (timedelta(hours=3), None),
        (timedelta(hours=3) + timedelta(minutes=1), "3 h"),
        (timedelta(hours=50), "2 d 2 h"),
    ],
)
def test_a_publication_is_stale_beyond_the_allowed_hours(monkeypatch: pytest.MonkeyPatch, behind: timedelta, lag: str | None) -> None:
    last = END - timedelta(hours=1) - behind
    told = f"the last hour published is {last:%Y-%m-%d %H:%M}, {lag} before 2026-01-05 12:00{LOOK}"
    assert said(monkeypatch, SimpleNamespace(last_hour_utc=last)) == (told if lag else None)


@pytest.mark.parametrize("publication", [None, SimpleNamespace(last_hour_utc=None)])
def test_a_missing_publication_is_reported(monkeypatch: pytest.MonkeyPatch, publication: object) -> None:
    assert said(monkeypatch, publication) == f"no hour is published yet{LOOK}"
