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
    ("behind", "is_stale"),
    [
        (timedelta(hours=-2), False),  # an hour run again: later ones are published
        (timedelta(0), False),
        (timedelta(hours=3) - timedelta(minutes=1), False),
        (timedelta(hours=3), False),
        (timedelta(hours=3) + timedelta(minutes=1), True),
        (timedelta(hours=50), True),
    ],
)
def test_a_publication_is_stale_beyond_the_allowed_hours(monkeypatch: pytest.MonkeyPatch, behind: timedelta, is_stale: bool) -> None:
    last = END - timedelta(hours=1) - behind
    told = said(monkeypatch, SimpleNamespace(last_hour_utc=last))
    assert (told is not None) == is_stale
    if told is not None:
        assert told.startswith(f"the last hour published is {last:%Y-%m-%d %H:%M}, ") and told.endswith(f" before 2026-01-05 12:00{LOOK}")


def test_a_stale_publication_is_reported_with_its_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    told = said(monkeypatch, SimpleNamespace(last_hour_utc=END - timedelta(hours=5)))
    assert told == f"the last hour published is 2026-01-05 07:00, 4 h before 2026-01-05 12:00{LOOK}"


@pytest.mark.parametrize("publication", [None, SimpleNamespace(last_hour_utc=None)])
def test_a_missing_publication_is_reported(monkeypatch: pytest.MonkeyPatch, publication: object) -> None:
    assert said(monkeypatch, publication) == f"no hour is published yet{LOOK}"
