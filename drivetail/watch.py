"""What an operator is told: each alarm one line that says what is wrong and what to do, in `WAREHOUSE/drivetail.log`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from drivetail.alerts import Alert, sentence
from drivetail.console import duration, some, to_minute
from drivetail.outcomes import Outcome
from drivetail.publish import current_publication
from drivetail.settings import Settings
from drivetail.warehouse import Warehouse

HOUR = timedelta(hours=1)

MANY_ALERTS = 20
"""More at a time are one message: whoever takes in a year of a fleet wants no thousand mails."""


def alarm(warehouse: Warehouse, what: str, message: str, **facts: object) -> str:
    """Write an alarm to the log. Returns: its message."""
    warehouse.note("alarm", what=what, message=message, **facts)
    return message


def late_deliveries(settings: Settings, outcomes: Iterable[Outcome], interval_start: datetime) -> list[str]:
    """The deliveries just landed whose hours all lie longer before an interval than allowed, a sentence each.

    Nothing needs doing for their numbers: the build recomputes the RAID-hours they touch. Who sent them so late may want a look.
    """
    told = []
    for outcome in outcomes:
        if outcome.last_hour is None or outcome.first_hour is None:
            continue
        first, last = datetime.fromisoformat(outcome.first_hour), datetime.fromisoformat(outcome.last_hour)
        behind = interval_start - last
        if behind > settings.alarms.late_hours * HOUR:
            hours = to_minute(last) if first == last else f"{to_minute(first)} to {to_minute(last)}"
            told.append(
                f"{outcome.path} came late: its hours ({hours}) end {duration(behind / HOUR)} before {to_minute(interval_start)}; "
                f"they are taken in, look why {outcome.inbox} had them only now"
            )
    return told


def staleness(warehouse: Warehouse, settings: Settings, interval_end: datetime) -> str | None:
    """What to say when the publication's last hour lies further behind the end of an interval than allowed; None while it is fresh."""
    publication = current_publication(warehouse)
    places = ", ".join([*(f"in {inbox.folder}" for inbox in settings.inboxes), *(f"at {server.url}" for server in settings.servers)])
    if publication is None or publication.last_hour_utc is None:
        return f"no hour is published yet; look whether anything comes {places}: `drivetail inbox`, then `drivetail status`"
    behind = interval_end - publication.last_hour_utc - HOUR
    if behind <= settings.alarms.fresh_hours * HOUR:
        return None
    return (
        f"the last hour published is {to_minute(publication.last_hour_utc)}, {duration(behind / HOUR)} before {to_minute(interval_end)}; "
        f"look whether anything comes {places}: `drivetail inbox`, then `drivetail status`"
    )


def slow_drives(alerts: Sequence[Alert]) -> str:
    """What to say of new alerts: a sentence each, or one for all when they are more than MANY_ALERTS."""
    if len(alerts) <= MANY_ALERTS:
        return "\n".join(sentence(alert) for alert in alerts)
    named = ", ".join(alert.subject_id for alert in alerts[:MANY_ALERTS])
    return f"{some(len(alerts), 'alert')} at once: {named}, ...; `drivetail alerts` lists them with what to check"
