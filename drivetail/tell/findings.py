"""`drivetail export --findings`: which drives are slow now, why, and whether to act on them, for other systems (docs/findings.md).

Advice only, from the open alerts. One drive of a RAID group at a time, and none while a host, an enclosure, a group or much of the fleet is
slow: then the drives are not what is wrong, or taking one out would cost more than it gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from drivetail.ask.decisions import REPLACE
from drivetail.tell.alerts import Alert, held_back, held_sentence, open_alerts, sentence
from drivetail.terminal import as_json
from engine.read import Row, fetch, publication_of
from engine.warehouse import Warehouse
from ingest.raw.durable import replace_file
from ingest.reading.text import in_sight

VERSION = 2
"""Version of the layout; a field that changes its meaning raises it."""
MANY_SHARE, MANY_DRIVES = 0.1, 3
"""Share of the fleet's drives, and their least number, from which nobody is to act on any of them by this list."""
CONDITION = "SlowDrive"

KEPT = (
    "host", "device", "enclosure", "slot", "raid_group_id", "model", "kind", "last_slow_hour_utc", "slow_hours", "max_slowdown",
    "latency_us", "median_latency_us", "check",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """findings: slow drives, the slowest first, with `reasons` of their alerts and an `advice`, `act` or `wait`. places: hosts, enclosures
    and RAID groups that are slow as a whole. cleared: by host, the drive and when its last alert was over, where none is open. hosts: all
    that inventory names. held: by host, a sentence about slow drives whose alerts are held back. Latencies in microseconds, instants UTC.
    """

    publication_id: str
    findings: list[Row]
    places: list[Row]
    cleared: Mapping[str, tuple[str, datetime]]
    hosts: list[str]
    held: Mapping[str, str]


def find(warehouse: Warehouse, *, now: datetime | None = None) -> Found:
    """Slow drives and places in the publication, without dismissed drives. Raises: QueryError where there is none or it is unreadable."""
    alerts = open_alerts(warehouse, with_all=True, now=now)
    with publication_of(warehouse) as connection:
        ((publication_id,),) = connection.execute("select publication_id from marts.publication").fetchall()
        drives = {row["drive_id"]: row["host"] for row in fetch(connection, "select drive_id, host from marts.dim_drives")}
        over = fetch(
            connection,
            "select subject_id, cleared_at from marts.fct_slow_alerts "
            "where subject_type = 'drive' and cleared_at is not null order by cleared_at, subject_id",
        )
        # one that has reported nothing for a day is out, whether or not somebody has recorded the swap
        decided = connection.execute("""
            select decisions.drive_id, decisions.raid_group_id
            from marts.fct_drive_decisions as decisions
            inner join marts.dim_drives as drives on decisions.drive_id = drives.drive_id
            cross join marts.publication as publication
            where decisions.state = 'pending' and drives.last_hour_utc > publication.last_hour_utc - interval 1 day
        """).fetchall()
    shown = [alert for alert in alerts if alert.dismissed_by is None]
    places = [alert for alert in shown if alert.subject_type != "drive"]
    by_drive: dict[str, list[Alert]] = {}
    for alert in shown:
        if alert.subject_type == "drive":
            by_drive.setdefault(alert.subject_id, []).append(alert)
    # a drive that is to be replaced is slow all the same
    to_go = {
        alert.subject_id
        for alert in alerts
        if alert.subject_type == "drive" and alert.dismissed_by is not None and alert.dismissed_by.verdict == REPLACE
    }
    slow_count = len(by_drive.keys() | to_go)
    is_many = slow_count >= max(MANY_DRIVES, MANY_SHARE * len(drives))
    findings: list[Row] = []
    taken: dict[str, str] = {}
    # the acute alert counts before the chronic one, the slower drive before the others
    for of_drive in sorted((sorted(each, key=lambda one: one.reason) for each in by_drive.values()), key=_slowest_first):
        alert = of_drive[0]
        group = alert.raid_group_id
        shared_place = next((one.shared_place for one in of_drive if one.shared_place is not None), None)
        if is_many:
            why = f"{slow_count} of {len(drives)} drives are slow: look for what they share"
        elif shared_place is not None:
            why = f"{shared_place} is slow: look at what its drives share"
        elif any(place.reason == "whole_group" and place.subject_id == group for place in places):
            why = f"RAID group {alert.raid_group_name} is slow as a whole"
        elif group is not None and any(of_group == group and drive != alert.subject_id for drive, of_group in decided):
            why = f"a replacement in RAID group {alert.raid_group_name} is decided: one drive at a time"
        elif group in taken:
            why = f"{taken[group]} of RAID group {alert.raid_group_name} first: one drive at a time"
        else:
            why = None
            if group is not None:
                taken[group] = alert.subject_id
        findings.append(_finding(of_drive, why))
    slow_hosts = {finding["host"] for finding in findings}
    cleared = {
        host: (row["subject_id"], row["cleared_at"]) for row in over if (host := drives.get(row["subject_id"])) not in slow_hosts and host
    }
    shared = [
        {
            **{name: getattr(one, name) for name in ("subject_type", "subject_id", "host", "check")},
            "since_utc": one.first_slow_hour_utc,
        }
        for one in places
    ]
    held: dict[str, list[Row]] = {}
    for row in held_back(warehouse):
        held.setdefault(row["host"], []).append(row)
    sentences = {host: text for host, rows in held.items() if (text := held_sentence(rows))}
    return Found(publication_id, findings, shared, cleared, sorted({host for host in drives.values() if host}), sentences)


def _slowest_first(alerts: Sequence[Alert]) -> tuple[bool, float, str]:
    return (alerts[0].max_slowdown is None, -(alerts[0].max_slowdown or 0), alerts[0].subject_id)


def _finding(alerts: Sequence[Alert], why: str | None) -> Row:
    first = alerts[0]
    return {
        "drive_id": first.subject_id,
        **{name: getattr(first, name) for name in KEPT},
        "reasons": [alert.reason for alert in alerts],
        "since_utc": min(alert.first_slow_hour_utc for alert in alerts),
        "summary": sentence(first),
        "advice": "act" if why is None else "wait",
        "why_wait": why,
    }


def conditions(found: Found) -> dict[str, dict[str, str]]:
    """A Kubernetes node condition by host: `SlowDrive` is True while a drive of it is slow that somebody is to act on."""
    made = {}
    for host in found.hosts:
        slow = [finding for finding in found.findings if finding["host"] == host]
        drive, at = found.cleared.get(host, (None, None))
        if slow:
            to_act = [finding["since_utc"] for finding in slow if finding["advice"] == "act"]
            status, reason = ("True", "DriveIsSlow") if to_act else ("False", "DriveWaits")
            message, at = "; ".join(_words(finding) for finding in slow), max(to_act, default=None)
        elif drive is not None:
            status, reason, message = "False", "DriveIsWell", f"cleared: {drive}"
        else:
            status, reason, message = "False", "NoSlowDrive", found.held.get(host, "no drive has been slow")
        condition = {"type": CONDITION, "status": status, "reason": reason, "message": in_sight(message)}
        made[host] = {**condition, **({"lastTransitionTime": f"{at:%Y-%m-%dT%H:%M:%SZ}"} if at else {})}
    return made


def _words(finding: Row) -> str:
    place = "".join(f", {part}" for part in (finding["device"], finding["slot"] and f"slot {finding['slot']}") if part)
    waits = f": wait, {finding['why_wait']}" if finding["why_wait"] else ""
    return f"{finding['drive_id']} since {finding['since_utc']:%Y-%m-%dT%H:%MZ}{place}{waits}"


def lines(found: Found) -> str:
    """A line for each host: its name, `slow`, `wait`, `cleared` or `ok`, and which drives; for a health check of Slurm or LBNL NHC."""
    words = {"DriveIsSlow": "slow", "DriveWaits": "wait", "DriveIsWell": "cleared", "NoSlowDrive": "ok"}
    made = []
    for host, condition in conditions(found).items():
        word = words[condition["reason"]]
        text = f"{word} {condition['message'].removeprefix('cleared: ')}" if word != "ok" else word
        made.append(f"{in_sight(host)} {text}" + (f" at {condition['lastTransitionTime']}" if word == "cleared" else "") + "\n")
    return "".join(made)


def write_findings(warehouse: Warehouse, file: Path) -> Found:
    """Write the list in one step: as JSON, or as a line for each host where the file's name ends in .txt. Raises: QueryError."""
    found = find(warehouse)
    if file.suffix == ".txt":
        replace_file(file, lines(found))
        return found
    parts = {"findings": found.findings, "places": found.places, "conditions": conditions(found)}
    document = {"version": VERSION, "publication_id": found.publication_id, **parts}
    replace_file(file, as_json(document) + "\n")
    return found
