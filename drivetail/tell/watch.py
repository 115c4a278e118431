"""What an operator is told: each alarm one line that says what is wrong and what to do, in `WAREHOUSE/drivetail.log`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from drivetail.ask.status import Problem, collect_status
from drivetail.ask.status.problems import QUARANTINED, UNREADABLE
from drivetail.feeds.outcomes import Outcome
from drivetail.service.settings import Settings
from drivetail.tell.alerts import Alert, sentence
from engine.publish import current_publication
from engine.register import Record, Register
from engine.warehouse import Warehouse
from engine.words import duration, some, to_minute

HOUR = timedelta(hours=1)

MANY_ALERTS = 20
"""More slow drives, or late deliveries, at a time are one message: whoever takes in a year of a fleet wants no thousand mails."""


def alarm(warehouse: Warehouse, what: str, message: str, **facts: object) -> str:
    """Write an alarm to the log. Returns: its message."""
    warehouse.note("alarm", what=what, message=message, **facts)
    return message


def late_deliveries(settings: Settings, outcomes: Iterable[Outcome], interval_start: datetime) -> list[str]:
    """The deliveries just landed whose hours all lie longer before an interval than allowed: a sentence each, or one for many.

    Nothing needs doing for their numbers: the build recomputes the RAID-hours they touch. Who sent them so late may want a look. What ends
    before the first hour that is run is a past that somebody puts in, and not late.
    """
    ended = [(datetime.fromisoformat(each.last_hour), each) for each in outcomes if each.last_hour]
    limit = interval_start - settings.alarms.late_hours * HOUR
    late = [(last, each) for last, each in ended if settings.schedule.start <= last < limit]
    if len(late) > MANY_ALERTS:
        late.sort(key=lambda each: each[0])
        first, final = late[0][1], late[-1][1]
        feeds = ", ".join(sorted({each.inbox for _, each in late}))
        return [
            f"{len(late)} deliveries came late, first {first.path} ({_hours(first)}), last {final.path} ({_hours(final)}); "
            f"they are taken in, look why {feeds} had them only now. WAREHOUSE/raw/inbox.jsonl has each"
        ]
    return [
        f"{each.path} came late: its hours ({_hours(each)}) end {duration((interval_start - last) / HOUR)} before "
        f"{to_minute(interval_start)}; they are taken in, look why {each.inbox} had them only now"
        for last, each in late
    ]


def _hours(outcome: Outcome) -> str:
    hours = (to_minute(datetime.fromisoformat(hour)) for hour in (outcome.first_hour, outcome.last_hour) if hour)
    return " to ".join(dict.fromkeys(map(str, hours)))


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


def new_problems(warehouse: Warehouse, tell: Callable[[Problem], object], now: datetime | None = None) -> list[Problem]:
    """The problems of the status that nobody has been told of since they are there; from now on they count as told until they are over.

    tell: called with each before it counts as told. When it fails, or the process dies in it, the problem is new again.
    Not those that a delivery's own landing has told of. Raises: QueryError when raw cannot be read.
    """
    register, told = Register(warehouse, "problems"), list[Problem]()
    warehouse.create()
    with register.locked():
        status = collect_status(warehouse, now)

        def record(about: Iterable[str], *, is_over: bool) -> list[Record]:
            return [{"about": each, "at": status.at, "is_over": is_over} for each in about]

        # a damaged line is left out: a problem is then told once more, or not told again
        latest = {each["about"]: each for each in register.read(skips_damaged=True)}
        lasting = {about for about, each in latest.items() if not each["is_over"]}
        problems = [problem for problem in status.problems if not {QUARANTINED, UNREADABLE} & set(problem.about)]
        over = lasting.difference(*(problem.about for problem in problems))
        # while there is no publication to look at, nobody knows of groups that have stopped
        register.append(record(sorted(over if status.freshness is not None else over & {"publication"}), is_over=True))
        for problem in problems:
            new = [about for about in problem.about if about not in lasting]
            if new:
                tell(problem)
                register.append(record(new, is_over=False))
                told.append(problem)
    return told


def slow_drives(alerts: Sequence[Alert]) -> str:
    """What to say of new alerts: a sentence each, or one for all when they are more than MANY_ALERTS."""
    if len(alerts) <= MANY_ALERTS:
        return "\n".join(sentence(alert) for alert in alerts)
    named = ", ".join(alert.subject_id for alert in alerts[:MANY_ALERTS])
    return f"{some(len(alerts), 'alert')} at once: {named}, ...; `drivetail alerts` lists them with what to check"
