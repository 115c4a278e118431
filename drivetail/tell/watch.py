"""Messages of the hourly run about slow drives and about missing hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from drivetail.ask.decisions import REPLACE
from drivetail.ask.ticket import to_find
from drivetail.service.settings import Settings
from drivetail.tell.alerts import Alert, sentence
from engine.publish import current_publication
from engine.warehouse import Warehouse
from ingest.reading.text import in_sight
from report.words import counted_noun, duration, to_minute

HOUR = timedelta(hours=1)

MANY_ALERTS = 20
"""Alerts that one message describes; of more it names the first."""


def staleness(warehouse: Warehouse, settings: Settings, interval_end: datetime) -> str | None:
    """The message when the publication's last hour is further behind the end of an interval than allowed; None while it is fresh."""
    publication = current_publication(warehouse)
    places = ", ".join([*(f"in {inbox.folder}" for inbox in settings.inboxes), *(f"at {server.url}" for server in settings.servers)])
    if publication is None or publication.last_hour_utc is None:
        return f"no hour is published yet; check whether anything arrives {places}: `drivetail inbox`, then `drivetail status`"
    behind = interval_end - publication.last_hour_utc - HOUR
    if behind <= settings.alarms.fresh_hours * HOUR:
        return None
    return (
        f"the last hour published is {to_minute(publication.last_hour_utc)}, {duration(behind / HOUR)} before {to_minute(interval_end)}; "
        f"check whether anything arrives {places}: `drivetail inbox`, then `drivetail status`"
    )


def slow_drives(alerts: Sequence[Alert], waits: Mapping[str, str | None] | None = None) -> str:
    """Messages for new alerts: a sentence each, or one for all when they are more than MANY_ALERTS.

    waits: by drive, the reason not to act on it yet.
    """

    def message(alert: Alert) -> str:
        reason = waits.get(alert.subject_id) if waits and alert.subject_type == "drive" else None
        if reason:
            return f"{sentence(alert)}\nWait before acting on it: {in_sight(reason)}."
        is_drive = alert.subject_type == "drive" and alert.reason in ("acute", REPLACE)
        return sentence(alert) + (f"\n{in_sight(to_find(vars(alert) | {'drive_id': alert.subject_id}))}" if is_drive else "")

    if len(alerts) <= MANY_ALERTS:
        return "\n".join(message(alert) for alert in alerts)
    named = ", ".join(alert.subject for alert in alerts[:MANY_ALERTS])
    return f"{counted_noun(len(alerts), 'alert')} at once: {named}, ...; `drivetail alerts` lists them with what to check"
