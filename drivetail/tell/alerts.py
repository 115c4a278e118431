"""`drivetail alerts`: which drives have become slow, each reported to each receiver once (docs/alerts.md).

What an alert is, is in models/marts/slowdown/fct_slow_alerts.sql. This module decides which of them are shown: not those of dismissed
drives, not those that another alert stands for, and with `report_once` none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

import duckdb

from drivetail.ask.decisions import DISMISS, REPLACE, Decision, latest_decisions
from drivetail.terminal import Columns, known, table
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.contract.values import utc_now
from ingest.raw.register import Record, Register
from ingest.reading.text import in_sight
from report.words import counted_noun, milliseconds, named_drive, ordinal, place, to_minute

SAME_WITHIN = timedelta(hours=24)
"""Two alerts of one subject and reason are at least as far apart (alert_clear_hours); closer, late data have moved the one."""

RISEN_AGAIN_AFTER = timedelta(days=7)
"""A verdict that falls and rises again sooner is not reported again. While it lasts, when it rose is known to a week."""

PLACES = ("host", "enclosure")
"""Places that drives share: they may be slow for long while others join them a second time."""

MAX_DRIVES_NAMED = 6

DESPITE_WORK = {
    "slower than the others at the same work": "Its array worked in some of these hours; it was slower than the others at the same work",
    "work of more than 48 hours": "Its array had worked for more than 48 hours in some of these hours: look at that work first",
}
"""Why slow hours count in which the array works (`despite_work`), as a sentence."""

LISTS = ("drives", "members", "peers", "dismissed_by")

OPEN = """
with alerts as (
    select * from marts.fct_slow_alerts
    where cleared_at is null or part_of in (select alert_id from marts.fct_slow_alerts where cleared_at is null)
),
parts as (
    select
        alerts.part_of as alert_id, list(distinct alerts.subject_id) as drives,
        list(
            {
                'drive_id': alerts.subject_id, 'host': drives.host, 'device': drives.device, 'slot': drives.slot,
                'enclosure': drives.enclosure, 'model': drives.model, 'slow_hours': alerts.slow_hours,
                'median_slowdown': alerts.median_slowdown
            }
            order by alerts.slow_hours desc, alerts.subject_id
        ) filter (alerts.reason = 'acute') as members,
        list(distinct drives.host) as hosts,
        list(distinct drives.is_group_guessed) as guesses
    from alerts
    left join marts.dim_drives as drives on alerts.subject_id = drives.drive_id
    where alerts.part_of is not null
    group by alerts.part_of
),
of_groups as (
    select current_raid_group_id, list(drive_id) as drives from marts.dim_drives
    where current_raid_group_id in (select subject_id from alerts where subject_type = 'raid_group')
    group by current_raid_group_id
)
select
    alerts.* exclude (cleared_at), raid_groups.name as raid_group_name, drives.kind, drives.model,
    coalesce(
        drives.host, case when len(parts.hosts) = 1 then parts.hosts[1] end,
        case when alerts.subject_type = 'raid_group' then raid_groups.host end
    ) as host,
    drives.device, drives.enclosure, drives.slot,
    coalesce(
        drives.is_group_guessed, case when alerts.subject_type = 'raid_group' then raid_groups.is_guessed end, parts.guesses = [true]
    ) as is_group_guessed,
    case when freshness.is_silent then freshness.last_hour_utc end as silent_since,
    list_sort(coalesce(of_groups.drives, parts.drives, [alerts.subject_id])) as drives,
    coalesce(parts.members, []) as members
from alerts
left join marts.dim_drives as drives on alerts.subject_type = 'drive' and alerts.subject_id = drives.drive_id
left join status.fct_drive_freshness as freshness on alerts.subject_type = 'drive' and alerts.subject_id = freshness.drive_id
left join marts.dim_raid_groups as raid_groups on alerts.raid_group_id = raid_groups.raid_group_id
left join of_groups on alerts.subject_type = 'raid_group' and alerts.subject_id = of_groups.current_raid_group_id
left join parts on alerts.alert_id = parts.alert_id
where alerts.cleared_at is null
order by coalesce(alerts.reopened_at, alerts.raised_at) desc, alerts.subject_type, alerts.subject_id
"""
"""The open alerts, with the drives that each is about and, of an incident, each of its drives."""

RISEN = """
select
    concat('drive ', actions.drive_id, ' replace ', candidates.replace_since_utc) as alert_id, 'drive' as subject_type,
    actions.drive_id as subject_id, 'replace' as reason, actions.raid_group_id, candidates.replace_since_utc as raised_at,
    1 as episode_count, null as reopened_at, coalesce(actions.since_utc, candidates.replace_since_utc) as first_slow_hour_utc,
    candidates.last_slow_hour_utc, candidates.slow_hours_28d as slow_hours, 0 as imbalanced_hours, 0 as load_known_hours,
    null as load_ratio, 1 as drive_count, null as median_slowdown, null as max_slowdown, null as worst_hour_utc, null as latency_us,
    null as median_latency_us, null as part_of, raid_groups.name as raid_group_name,
    actions.kind, actions.model, actions.host, actions.device, actions.enclosure, actions.slot,
    drives.is_group_guessed, [actions.drive_id] as drives, candidates.decision
from marts.drive_actions as actions
inner join marts.replacement_candidates as candidates on actions.drive_id = candidates.drive_id
left join marts.dim_drives as drives on actions.drive_id = drives.drive_id
left join marts.dim_raid_groups as raid_groups on actions.raid_group_id = raid_groups.raid_group_id
where actions.action_undecided = 'replace'
order by candidates.candidate_rank
"""
"""Drives whose verdict is to replace them, as alerts are: news to each receiver, but none that `drivetail alerts` lists as open."""

HELD = """
select held.*, raid_groups.name as raid_group_name
from status.fct_held_alerts as held
left join marts.dim_raid_groups as raid_groups on held.raid_group_id = raid_groups.raid_group_id
cross join marts.publication as publication
where held.ended_at > publication.last_hour_utc - interval 1 day
order by held.slow_hours desc, held.subject_type, held.subject_id
"""
"""Drives and RAID groups that were slow within the last day, and why that raises no alert."""


CARRIED_OUT = "select drive_id from marts.fct_drive_decisions where state = 'replaced' and superseded_at is null"
"""Drives whose last decision was carried out: where one reports again, in another place, it is a new matter."""


@dataclass(frozen=True)
class Alert:
    """An open alert: a row of marts.fct_slow_alerts with what is known of the drive.

    drives: the drives it is about. members: of an incident of several drives those, each with its place, slow_hours and median_slowdown.
    peers: the other drives of the RAID group in the worst hour (of a chronic drive: in its last one), slowest first (drive_id, latency_us,
    slowdown). silent_since: the last row of a drive that went silent. dismissed_by: the decision that mutes it.
    verdict: `replace` where that is news too. decision: what was decided on such a drive before.
    Latencies in microseconds, instants UTC without zone.
    """

    alert_id: str
    subject_type: str
    subject_id: str
    reason: str
    raid_group_id: str | None
    raid_group_name: str | None
    raised_at: datetime
    episode_count: int
    reopened_at: datetime | None
    first_slow_hour_utc: datetime
    last_slow_hour_utc: datetime
    slow_hours: int
    imbalanced_hours: int
    load_known_hours: int
    load_ratio: float | None
    drive_count: int
    median_slowdown: float | None
    max_slowdown: float | None
    worst_hour_utc: datetime | None
    latency_us: float | None
    median_latency_us: float | None
    part_of: str | None
    kind: str | None
    model: str | None
    host: str | None
    device: str | None
    enclosure: str | None
    slot: str | None
    is_group_guessed: bool | None
    silent_since: datetime | None = None
    despite_work: str | None = None
    drives: Sequence[str] = ()
    members: Sequence[Row] = ()
    peers: Sequence[Row] = ()
    dismissed_by: Decision | None = None
    verdict: str | None = None
    decision: str | None = None

    @property
    def shared_place(self) -> str | None:
        """The place whose alert stands for this one, such as `host h1`. A chronic alert may be part of the drive's own acute one."""
        place, _, together = (self.part_of or "").partition(" together ")
        return place if together else None

    @property
    def check(self) -> str:
        verdict = f"{self.news}: `drivetail candidates` says why" if self.verdict else None
        return ". ".join(filter(None, (DESPITE_WORK.get(self.despite_work or ""), self._check, verdict)))

    @property
    def _check(self) -> str:
        if self.reason == REPLACE:
            return f"{self.news}: `drivetail candidates` says why"
        if self.reason == "together":
            shared = "load, HBA, cables, power and cooling" if self.subject_type == "host" else "expander, cables, power and cooling"
            kinds = ". Their RAID group is a guess: are they another kind of drive than the rest?" if self.is_group_guessed else ""
            return f"Look at what these {self.drive_count} drives share: {shared}{kinds}"
        if self.reason == "whole_group":
            return "No drive stands out: look at its load, a rebuild or scrub, its controller, cables and power"
        if self.reason == "chronic":
            compare = "Compare its firmware, model and workload with those of its peers; if it alone differs, plan to replace it"
            return f"{compare}. Four weeks of hours say so: where it has been mended since, dismiss the alert"
        if 2 * self.imbalanced_hours >= self.slow_hours:
            return (
                f"Look at its workload first: in {self.imbalanced_hours} of {counted_noun(self.slow_hours, 'slow hour')} "
                "it did far more I/O, or far larger, than its peers"
            )
        like = self.load_known_hours - self.imbalanced_hours
        if 2 * like <= self.slow_hours:
            known = f"known to be that of its peers in only {like} of {counted_noun(self.slow_hours, 'slow hour')}"
            known = known if self.load_known_hours else "not known"
            return f"Its load is {known}: compare it first, then reseat the drive and check the cabling"
        hours = f" in {like} of {counted_noun(self.slow_hours, 'slow hour')}" if like < self.slow_hours else ""
        load = round(self.load_ratio or 0, 1) or f"{self.load_ratio:.3f}"
        fault = ": has it another job? If not," if (self.load_ratio or 0) < 0.25 else ", so the drive or its path is at fault:"
        return f"At {load} times its peers' load{hours}{fault} reseat it and check the cabling. If it stays slow, replace it"

    @property
    def news(self) -> str:
        """A verdict that has risen, as a sentence."""
        return f"Its verdict is now replace{f'; it was decided to {self.decision}' if self.decision else ''}"

    @property
    def subject(self) -> str:
        """Its subject, by place: `web2 sdd (SERIAL, MODEL)`, `enclosure web2/e1`, `RAID group raid6a md0 (UUID)`."""
        if self.subject_type == "drive":
            return named_drive({**vars(self), "drive_id": self.subject_id})
        if self.subject_type == "raid_group":
            host = f" of host {self.host}" if self.called != self.raid_group_name else ""
            return f"RAID group {self.group}{host}{' (guessed: all drives of its host)' if self.is_group_guessed else ''}"
        return f"{self.subject_type} {self.subject_id}"

    @property
    def called(self) -> str:
        """Its subject in short, a RAID group with the one host that it is on: `raid6a md0`, `array7 g3`, `enclosure web2/e1`."""
        if self.subject_type != "raid_group":
            return self.subject_id
        name = str(self.raid_group_name)
        return f"{self.host} {name}" if self.host and self.host not in name.split() else name

    @property
    def group(self) -> str | None:
        """Its RAID group as people call it, and as it is named: `raid6a md0 (5f1c...)`."""
        is_called = self.raid_group_name not in (None, self.raid_group_id)
        return f"{self.raid_group_name} ({self.raid_group_id})" if is_called else self.raid_group_id

    @property
    def since(self) -> datetime:
        """When it became true, or became so again after it had been over (UTC)."""
        return self.reopened_at or self.raised_at

    def to_row(self, *, with_lists: bool = True) -> Row:
        """Every field, the sentences among them; without lists those that have one value."""
        row = {**asdict(self), "subject": self.subject, "check": self.check}
        return row if with_lists else {name: value for name, value in row.items() if name not in LISTS}


def open_alerts(warehouse: Warehouse, *, with_all: bool = False, now: datetime | None = None) -> list[Alert]:
    """The alerts that are open in the publication, latest first.

    with_all: also those of dismissed drives, and of drives that an alert of their host or enclosure stands for.
    Raises: QueryError when there is no publication or it cannot be read.
    """
    return _published(warehouse, OPEN, with_all=with_all, now=now)[1]


def published_alerts(warehouse: Warehouse, *, now: datetime | None = None) -> tuple[str, list[Alert]]:
    """News for receivers, after the id of the publication: the open alerts, and the drives whose verdict is to replace them."""
    return _published(warehouse, OPEN, RISEN, now=now)


def _published(warehouse: Warehouse, *queries: str, with_all: bool = False, now: datetime | None) -> tuple[str, list[Alert]]:
    with publication_of(warehouse) as connection:
        ((publication_id,),) = connection.execute("select publication_id from marts.publication").fetchall()
        alerts = _judged(warehouse, connection, [Alert(**row) for query in queries for row in fetch(connection, query)], now)
        return publication_id, _with_peers(connection, [alert for alert in alerts if with_all or _is_shown(alert)])


def held_back(warehouse: Warehouse) -> list[Row]:
    """Drives and RAID groups that were slow within the last day and raise no alert, rows of status.fct_held_alerts. Raises: QueryError."""
    with publication_of(warehouse) as connection:
        return fetch(connection, HELD)


def held_sentence(rows: Sequence[Row]) -> str | None:
    """`Slow, but held back: web1 sda (30 hours, rebuild or recovery)`; None without rows."""
    shown = [f"{_held_name(row)} ({counted_noun(row['slow_hours'], 'hour')}, {row['held_back_by']})" for row in rows[:MAX_DRIVES_NAMED]]
    more = [f"{len(rows) - len(shown)} more"] if len(rows) > len(shown) else []
    return in_sight(f"Slow, but held back: {', '.join([*shown, *more])}") if rows else None


def _held_name(row: Row) -> str:
    return named_drive({**row, "drive_id": row["subject_id"]}) if row["subject_type"] == "drive" else f"RAID group {row['raid_group_name']}"


def report_once(
    warehouse: Warehouse,
    published: tuple[str, list[Alert]],
    tell: Callable[[list[Alert]], object] | None,
    *,
    receiver: str | None = None,
) -> list[Alert]:
    """The published alerts that were not reported to the receiver before; from now on they count as reported.

    tell: called with them (if there are any) before they count as reported. When it fails, or the process dies in it, they are new again.
    receiver: name of a receiver; None is the terminal. Calls at the same time wait for each other: each alert is returned by one of them.
    """
    publication_id, alerts = published
    register = Register(warehouse.raw, "alerts")
    with register.locked():
        said = [record for record in register.read() if record.get("receiver") == receiver]
        fresh = [alert for alert in alerts if not any(_is_same(alert, record) for record in said)]
        news = _by_drive(fresh)
        if tell is not None and news:
            tell(news)
        register.append([_said(alert, utc_now(), publication_id, receiver) for alert in fresh])
    return news


def _by_drive(alerts: Sequence[Alert]) -> list[Alert]:
    """One message for one drive: a verdict that has risen is part of its alert, where that is news at the same time."""
    slow = {alert.subject_id for alert in alerts if alert.subject_type == "drive" and alert.reason != REPLACE}
    risen = {alert.subject_id: alert.decision for alert in alerts if alert.reason == REPLACE}
    return [
        replace(alert, verdict=REPLACE, decision=risen[alert.subject_id])
        if alert.subject_id in risen and alert.subject_type == "drive" and alert.reason != REPLACE
        else alert
        for alert in alerts
        if alert.reason != REPLACE or alert.subject_id not in slow
    ]


def new_alerts(warehouse: Warehouse, tell: Callable[[list[Alert]], object] | None = None, *, now: datetime | None = None) -> list[Alert]:
    """The open alerts that were not shown on the terminal before, as `report_once` has it."""
    return report_once(warehouse, published_alerts(warehouse, now=now), tell)


def _said(alert: Alert, at: datetime, publication_id: str, receiver: str | None) -> Record:
    kept = ("alert_id", "subject_type", "subject_id", "reason", "raised_at", "reopened_at", "first_slow_hour_utc", "last_slow_hour_utc")
    record = {**{name: getattr(alert, name) for name in kept}, "said_at": at, "publication_id": publication_id}
    return record if receiver is None else {**record, "receiver": receiver}


def _is_same(alert: Alert, said: Record) -> bool:
    """Whether it is the alert of that record, as late data may have left it: raised about then, or over some of the same hours. One that
    was over since then and has come back is news.
    """
    if (alert.subject_type, alert.subject_id, alert.reason) != (said["subject_type"], said["subject_id"], said["reason"]):
        return False
    raised_at, first, last = (datetime.fromisoformat(said[name]) for name in ("raised_at", "first_slow_hour_utc", "last_slow_hour_utc"))
    if alert.reason == REPLACE:
        return alert.raised_at <= raised_at + RISEN_AGAIN_AFTER
    since = datetime.fromisoformat(said.get("reopened_at") or said["raised_at"])
    if alert.reopened_at is not None and since + SAME_WITHIN < alert.reopened_at and last < alert.reopened_at:
        return False
    if abs(alert.raised_at - raised_at) <= SAME_WITHIN:
        return True
    return alert.subject_type not in PLACES and alert.first_slow_hour_utc <= last and first <= alert.last_slow_hour_utc


def _judged(warehouse: Warehouse, connection: duckdb.DuckDBPyConnection, alerts: Sequence[Alert], now: datetime | None) -> list[Alert]:
    now = now or utc_now()
    dismissals = {drive: decision for drive, decision in latest_decisions(warehouse).items() if decision.is_dismissal(now)}
    if dismissals:
        for (drive,) in connection.execute(CARRIED_OUT).fetchall():
            dismissals.pop(drive, None)

    def judged(alert: Alert) -> Alert:
        found = [dismissals[drive] for drive in alert.drives if drive in dismissals]
        return replace(alert, dismissed_by=max(found, key=lambda one: one.at)) if found and len(found) == len(alert.drives) else alert

    return [judged(alert) for alert in alerts]


def _is_shown(alert: Alert) -> bool:
    return alert.dismissed_by is None and alert.part_of is None


def _with_peers(connection: duckdb.DuckDBPyConnection, alerts: Sequence[Alert]) -> list[Alert]:
    """With the peers of each in its worst hour, of a chronic drive in its last one; of a RAID group all its drives."""
    hour_of = {alert.alert_id: alert.last_slow_hour_utc if alert.reason == "chronic" else alert.worst_hour_utc for alert in alerts}
    asked = [alert for alert in alerts if hour_of[alert.alert_id] is not None]
    if not asked:
        return list(alerts)
    hours = ", ".join(f"timestamp '{hour}'" for hour in sorted({str(hour_of[alert.alert_id]) for alert in asked}))
    rows = fetch(
        connection,
        f"""
        with asked as (
            select unnest($ids) as alert_id, unnest($types) as subject_type, unnest($subjects) as subject_id, unnest($hours) as hour_utc
        ),
        drive_hours as materialized (
            select drive_id, hour_utc, raid_group_id, latency_us, slowdown
            from marts.fct_drive_hours where hour_utc in ({hours}) and slowdown is not null
        ),
        groups as (
            select alert_id, hour_utc, subject_id as raid_group_id, null as drive_id from asked where subject_type = 'raid_group'
            union all
            select asked.alert_id, asked.hour_utc, own.raid_group_id, own.drive_id
            from asked
            inner join drive_hours as own on asked.subject_id = own.drive_id and asked.hour_utc = own.hour_utc
            where asked.subject_type = 'drive'
        )
        select groups.alert_id, peers.drive_id, peers.latency_us, peers.slowdown
        from groups
        inner join drive_hours as peers
            on groups.raid_group_id = peers.raid_group_id and groups.hour_utc = peers.hour_utc
            and groups.drive_id is distinct from peers.drive_id
        order by peers.slowdown desc, peers.drive_id
        """,
        {
            "ids": [alert.alert_id for alert in asked],
            "types": [alert.subject_type for alert in asked],
            "subjects": [alert.subject_id for alert in asked],
            "hours": [hour_of[alert.alert_id] for alert in asked],
        },
    )
    peers: dict[str, list[Row]] = {}
    for row in rows:
        peers.setdefault(row.pop("alert_id"), []).append(row)
    return [replace(alert, peers=tuple(peers.get(alert.alert_id, ()))) for alert in alerts]


def sentence(alert: Alert) -> str:
    """The alert as text: where, which drive, how slow, since when, what to check; the drives of an incident in lines of their own."""
    since = f"since {to_minute(alert.first_slow_hour_utc)} UTC"
    hours = counted_noun(alert.slow_hours, "slow hour")
    what = {
        "acute": f"{alert.median_slowdown or 0:.1f} times its peers in {hours} {since}",
        "together": f"{counted_noun(alert.drive_count, 'drive')} slow in the same hours {since}",
        "whole_group": f"slow as a whole {since}: {alert.median_slowdown or 0:.1f} times its usual latency at that hour of the week, "
        f"up to {alert.max_slowdown or 0:.1f}",
        "chronic": f"a little slow {since}",
        REPLACE: alert.news[0].lower() + alert.news[1:],
    }[alert.reason]
    facts = [f"{alert.subject}: {what}"]
    if alert.episode_count > 1:
        facts.append(f"now for the {ordinal(alert.episode_count)} time")
    nouns = {"together": ("slow drive-hour", None), "chronic": ("hour of four weeks", "hours of four weeks")}
    if alert.reason != "acute":
        facts.append(counted_noun(alert.slow_hours, *nouns.get(alert.reason, ("slow hour", None))))
    if alert.latency_us is not None and alert.median_latency_us is not None:
        beside = "usually" if alert.reason == "whole_group" else "its peers"
        facts.append(
            f"at worst {milliseconds(alert.latency_us)} at {to_minute(alert.worst_hour_utc)} "
            f"({beside} {milliseconds(alert.median_latency_us)})"
        )
    if alert.silent_since is not None:
        facts.append(f"it has sent nothing since {to_minute(alert.silent_since)}")
    if alert.subject_type == "drive":
        placed = (("enclosure", alert.enclosure), ("slot", alert.slot if alert.device or not alert.host else None))
        facts += [f"{name} {value}" for name, value in placed if value]
    if alert.raid_group_id is not None:
        guessed = " (guessed: all drives of its host)" if alert.is_group_guessed else ""
        facts += [f"RAID group {alert.group}{guessed}"] if alert.subject_type != "raid_group" else []
    named = [
        f"{named_drive(one)}: {one['median_slowdown'] or 0:.1f} times its peers in {counted_noun(one['slow_hours'], 'hour')}"
        for one in alert.members[:MAX_DRIVES_NAMED]
    ]
    more = len(alert.members) - len(named)
    check = alert.check if alert.reason != REPLACE else "`drivetail candidates` says why"
    lines = [f"{'; '.join(facts)}. {check}", *(f"- {line}" for line in named), *([f"- and {more} more"] if more > 0 else [])]
    return "\n".join(in_sight(line) for line in lines)


def headline(alerts: Sequence[Alert]) -> str:
    """The first of some alerts as a lock screen shows it, and how many more: `raid6b sdf 5.1x and 2 more`."""
    alert = alerts[0]
    where = alert.subject_type == "drive" and (alert.device or alert.slot) and place(vars(alert) | {"left_at": None})
    how = {
        "acute": f"{alert.median_slowdown or 0:.1f}x",
        "together": f"{counted_noun(alert.drive_count, 'drive')} slow",
        "whole_group": f"{alert.median_slowdown or 0:.1f}x its usual",
        "chronic": "a little slow",
        REPLACE: "replace",
    }[alert.reason]
    risen = f", {alert.verdict}" if alert.verdict else ""
    more = f" and {len(alerts) - 1} more" if len(alerts) > 1 else ""
    return in_sight(f"{where or alert.called} {how}{risen}{more}")


def render_alerts(alerts: Sequence[Alert], *, with_all: bool = False) -> str:
    """The alerts as a table, and what to check for each below it."""
    rows = []
    for number, alert in enumerate(alerts, 1):
        walk = alert.subject_type == "drive" and {"host": alert.host, "device": alert.device, "slot": alert.slot}
        where = place(walk) if walk else ""
        called = alert.called if alert.subject_type == "raid_group" else alert.subject
        times = f"{alert.episode_count} times" if alert.episode_count > 1 else None
        row = {**asdict(alert), "number": number, "where": where or called, "shown": _shown(alert), "again": times}
        row["serial"] = alert.subject_id if alert.subject_type == "drive" else None
        if alert.is_group_guessed and alert.raid_group_name:
            row["raid_group_name"] = f"{alert.raid_group_name} (host)"
        rows.append(row)
        # the drives of an incident stand beneath it
        empty = dict.fromkeys(row)
        rows += [{**empty, **one, "where": f"- {place(one) or one['drive_id']}", "serial": one["drive_id"]} for one in alert.members]
    columns: Columns = {
        "": "number",
        "where": "where",
        "slot": "slot",
        "enclosure": "enclosure",
        "drive": "serial",
        "model": "model",
        "what": ("reason", lambda reason: reason.replace("_", " ")),
        "since (UTC)": "first_slow_hour_utc",
        "came": "again",
        "slow hours": "slow_hours",
        "S": ("median_slowdown", lambda value: round(value, 2)),
        "worst S": ("max_slowdown", lambda value: round(value, 2)),
        "silent since": "silent_since",
        "group": "raid_group_name",
    }
    if with_all:
        columns["shown"] = "shown"
    checks = [f"{number:>{len(str(len(alerts)))}}. {alert.check}" for number, alert in enumerate(alerts, 1)]
    what = "alert" if any(alert.reason == REPLACE for alert in alerts) else "open alert"
    return "\n".join([counted_noun(len(alerts), what), table(rows, known(rows, columns)), "To check", *checks])


def _shown(alert: Alert) -> str:
    if alert.dismissed_by is not None:
        until = to_minute(alert.dismissed_by.until)
        ends = f" until {until}" if until else ""
        what = "dismissed" if alert.dismissed_by.verdict == DISMISS else "replacement decided"
        return f"no: {what} by {alert.dismissed_by.by}{ends}: {alert.dismissed_by.note}"
    return "yes" if alert.part_of is None else f"with {alert.shared_place or 'its acute alert'}"
