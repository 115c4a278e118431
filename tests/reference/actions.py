"""The list of actions computed the slow way from other published relations: what to do drive by drive, and which are one incident.

Verdicts, alerts, weekly costs and decisions are taken as published. Nothing of the project's own code is imported.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COSTLIEST = 20
ORDER = {"replace": 1, "check path": 2, "inspect": 3, "watch": 4, "none": 5}
READ = {
    "candidates": "select * from marts.replacement_candidates",
    "alerts": "select * from marts.fct_slow_alerts",
    "costs": "select * from marts.fct_weekly_drives where week_utc = (select max(week_utc) from marts.dim_weeks where is_complete)",
    "weeks": "select max(week_utc) as week_utc from marts.dim_weeks where is_complete",
    "decisions": "select * from marts.fct_drive_decisions where state in ('pending', 'standing') order by decision_seq",
    "causes": "select * from marts.fct_interval_causes",
    "publication": "select * from marts.publication",
    "standing": "select * from intermediate.int_drives__standing",
}
"""Its inputs, by name, beside `slow`, `places` and `members`, which no publication has: rows of int_drive_hours__evidence,
int_drives__places and int_drives__described.
"""

HOUR = timedelta(hours=1)


def counted(number: int, noun: str) -> str:
    """`1 hour`, `3 hours`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def day(instant: datetime) -> str:
    """The day of an instant."""
    return str(instant.date())


def is_array(group: str, hour: datetime, members: list[Row]) -> bool:
    """Whether a RAID group shares a cable: unless all its drives are only taken to be in it, or they were on several hosts in that hour
    and the array itself names none of them.
    """
    then = [row for row in members if row["raid_group_id"] == group and row["since_hour_utc"] <= hour < row["to_hour_utc"]]
    hosts = {row["host"] for row in then} - {None}
    if then and all(row["is_group_guessed"] for row in then):
        return False
    return len(hosts) < 2 or any(row["is_named_by_array"] for row in then)


def places_of(slow: list[Row], places: list[Row], members: list[Row]) -> dict[tuple[str, str], dict[str, set[datetime]]]:
    """Every enclosure, host and array, with the hours in which each of its drives was slow there."""
    found: dict[tuple[str, str], dict[str, set[datetime]]] = defaultdict(lambda: defaultdict(set))
    for row in slow:
        drive, hour, group = row["drive_id"], row["hour_utc"], row["raid_group_id"]
        for place in places:
            if place["drive_id"] == drive and place["from_hour_utc"] <= hour < place["to_hour_utc"]:
                found[place["place_type"], place["place_id"]][drive].add(hour)
        if is_array(group, hour, members):
            found["raid_group", group][drive].add(hour)
    return found


def with_others(drive: str, hours: dict[str, set[datetime]]) -> set[datetime]:
    """Slow hours of a drive in which another of the drives was slow."""
    return {hour for hour in hours[drive] if any(hour in own for other, own in hours.items() if other != drive)}


def incidents(slow: list[Row], places: list[Row], members: list[Row]) -> dict[str, tuple[str, str, int]]:
    """The place of the incident of each drive that is in one, and its shared hours.

    An incident is drives of one place, each of which was slow with another of them in more than half of its slow hours. So a drive
    that was not is taken away, and the others are looked at as if it were not there, until none is. A drive has its narrowest place.
    """
    slow_hours = Counter(row["drive_id"] for row in slow)
    of_drive: dict[str, list[tuple[int, int, str, str]]] = defaultdict(list)
    for (kind, place), hours in places_of(slow, places, members).items():
        together = dict(hours)
        while alone := [drive for drive in together if 2 * len(with_others(drive, together)) <= slow_hours[drive]]:
            together = {drive: own for drive, own in together.items() if drive not in alone}
        for drive in together:
            narrowness = ["enclosure", "raid_group", "host"].index(kind)
            of_drive[drive].append((narrowness, -len(with_others(drive, together)), place, kind))
    return {drive: (best[3], best[2], -best[1]) for drive, best in ((drive, min(all_)) for drive, all_ in of_drive.items())}


def cause_of(intervals: list[Row], rank: dict[str, int]) -> str | None:
    """The cause of most hours of some slow intervals; of equal ones that of the first rank."""
    hours: Counter[str] = Counter()
    for row in intervals:
        hours[row["cause"]] += row["interval_hours"]
    return min(hours, key=lambda cause: (-hours[cause], rank[cause])) if hours else None


def drive_actions(given: dict[str, list[Row]]) -> list[Row]:
    """The rows of marts.drive_actions, the columns that are computed here, by drive. Without a floor of concern."""
    last = given["publication"][0]["last_hour_utc"]
    since = last - timedelta(days=28)
    week = given["weeks"][0]["week_utc"]
    candidates = {row["drive_id"]: row for row in given["candidates"]}
    boundary = (last + HOUR).replace(hour=0, minute=0, second=0, microsecond=0)
    costs = {row["drive_id"]: row for row in given["costs"]}
    standing = {row["drive_id"]: row for row in given["standing"]}
    decided = {row["drive_id"]: row for row in given["decisions"]}
    by_id = {row["alert_id"]: row for row in given["alerts"]}
    of_drives = [row for row in given["alerts"] if row["subject_type"] == "drive"]
    open_of: dict[str, list[Row]] = defaultdict(list)
    for row in of_drives:
        over = by_id.get(row["part_of"], row)
        if row["cleared_at"] is None or over["cleared_at"] is None:
            open_of[row["subject_id"]].append(row)
    latest = {drive: max(rows, key=lambda row: (row["reason"] == "acute", row["raised_at"])) for drive, rows in open_of.items()}
    costly = {drive for drive, row in costs.items() if row["cost_rank"] <= COSTLIEST and row["tail_hours"] > 0}
    listed = {drive for drive, row in candidates.items() if row["verdict"] != "leave"} | set(latest) | costly
    listed |= {drive for drive, row in decided.items() if row["state"] == "pending"}
    recent = [row for row in given["slow"] if row["hour_utc"] > since]
    places = {drive: (kind, place) for drive, (kind, place, _) in incidents(recent, given["places"], given["members"]).items()}
    with (Path(__file__).parents[2] / "seeds" / "cause_rules.csv").open() as rules:
        rank = {row["cause"]: int(row["cause_rank"]) for row in csv.DictReader(rules)}
    rows = []
    for drive in listed:
        candidate, alert, decision = candidates.get(drive), latest.get(drive), decided.get(drive)
        verdict = candidate and candidate["verdict"]
        over = by_id.get(alert["part_of"]) if alert else None
        together = over if over is not None and over["subject_type"] != "drive" else None
        gone = standing.get(drive, {}).get("standing") in ("replaced", "gone")
        if gone:
            action = "none"
        elif verdict in ("replace", "check path"):
            action = verdict
        else:
            action = "check path" if together else "inspect" if alert else "watch" if verdict == "watch" else "none"
        # found at the boundary of a candidate; a decision to watch holds from the Monday before it on
        bound = candidate and candidate["boundary_utc"] - timedelta(days=candidate["boundary_utc"].weekday())
        is_decided = decision is not None and not gone
        if is_decided and decision["verdict"] == "watch":
            is_decided = bound is None or decision["decided_at"] >= bound
        final = ({"dismiss": "none"}.get(decision["verdict"], decision["verdict"])) if is_decided and decision else action
        at = (together["subject_type"], together["subject_id"]) if together else places.get(drive)
        own = [row for row in given["causes"] if row["drive_id"] == drive and row["started_at"] + row["interval_hours"] * HOUR > since]
        slow_since = min((row["started_at"] for row in own), default=None)
        alert_since = alert and alert["first_slow_hour_utc"]
        rows.append({
            "drive_id": drive, "action": final, "action_undecided": action, "needs_person": final in ("replace", "check path", "inspect"),
            "place": at, "own_cause": cause_of(own, rank), "has_open_alert": alert is not None, "is_costliest": drive in costly,
            "since_utc": alert_since if alert and (final == "inspect" or alert["reason"] == "acute") else slow_since or alert_since,
            "lists_reason": why_not(alert, of_drives, drive, candidate, boundary, standing.get(drive, {}).get("standing"), slow_since,
                                    action != "none" or is_decided, drive in costly, costs.get(drive), week),
            "order": (ORDER[final], candidate["candidate_rank"] if candidate else 10**9,
                      -(alert["raised_at"] - datetime.min).total_seconds() if alert else 0,
                      costs[drive]["cost_rank"] if drive in costs else 10**9, drive),
        })  # fmt: skip
    many = Counter(row["place"] for row in rows)
    for rank, row in enumerate(sorted(rows, key=lambda row: row["order"]), 1):
        row["action_rank"] = rank
        row["incident_id"] = " ".join(row["place"]) if row["place"] and many[row["place"]] > 1 else None
        row["cause"] = "neighbours" if row["action_undecided"] == "check path" or row["incident_id"] else row["own_cause"]
    for row in rows:
        same = [one["action_rank"] for one in rows if row["incident_id"] and one["incident_id"] == row["incident_id"]]
        row["incident_rank"] = min(same, default=row["action_rank"])
    return sorted(rows, key=lambda row: row["drive_id"])


def why_not(
    alert: Row | None, of_drives: list[Row], drive: str, candidate: Row | None, boundary: datetime, standing: str | None,
    slow_since: datetime | None, is_acted_on: bool, is_costly: bool, cost: Row | None, week: datetime | None,
) -> str | None:  # fmt: skip
    """Why a drive is not on each of the lists on which it is not; null where it is on all."""
    parts = []
    if alert is None:
        ended = [row["cleared_at"] for row in of_drives if row["subject_id"] == drive and row["cleared_at"] is not None]
        parts.append(f"No open alert: the last one ended on {day(max(ended))}." if ended else "No open alert.")
    if candidate is not None and candidate["verdict"] == "leave":
        parts.append(f"No candidate: {candidate['verdict_reason']}" if is_acted_on else "No candidate.")
    elif candidate is None:
        known = {"replaced": "it was replaced", "gone": "it is gone", "other role": "it is no data drive now"}.get(standing or "")
        known = known or ("it was not slow in the last 28 days" if slow_since is None else None)
        known = known or (f"it became slow after {day(boundary)}" if slow_since is not None and slow_since >= boundary else None)
        parts.append(f"No candidate: {known}." if known else "No candidate.")
    hours = cost["tail_hours"] if cost else 0
    if week is None:
        parts.append("Not among the costliest of a week: no week is over yet.")
    elif not is_costly and not hours:
        parts.append("Not among the costliest of the last whole week: no tail hour.")
    elif not is_costly and cost:
        parts.append(f"Not among the costliest of the last whole week: {counted(hours, 'tail hour')}, place {cost['cost_rank']}.")
    return " ".join(parts) or None
