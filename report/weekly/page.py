"""The page of the weekly report: figures, words and tables put in order. All data are escaped, in HTML by the template."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from engine.read import Row
from report.page import numbers
from report.page.cells import heading, shape
from report.page.html import render
from report.page.look import drawn, kinds_of
from report.page.numbers import DETECTOR_WORDS, count, listed, noun, of_kind, percent, plural, ratio, times, week_name
from report.page.tolerance import tolerance_words
from report.weekly import figures
from report.weekly.queries import LIMITS, WeekFacts
from report.words import named_drive, place

RECORD_KINDS = {
    "all": "All records",
    "drive_hours": "Drive-hours",
    "drives": "Inventory",
    "drive_events": "Events",
    "drive_health": "Health",
    "unknown": "Unreadable files",
}
EXCLUSIONS = {
    "low_coverage": "observed for too small a part of the hour",
    "no_io": "no I/O in the hour, so no latency",
    "too_few_drives": "fewer than {fewest} drives of the group with I/O",
    "zero_median": "median latency of the group is 0",
    "narrow_group": "fewer than {width} data drives in the group",
}
STATES = {
    "new": "new",
    "reopened": "slow again",
    "continuing": "as last week",
    "resolved": "no longer",
    "unseen": "not measured",
}
CAUSES = {
    "workload_rate": "load: more I/Os",
    "workload_size": "load: larger I/Os",
    "drive_event": "error of the drive",
    "rebuild_or_scrub": "rebuild or scrub",
    "maintenance": "maintenance",
    "whole_group": "whole group",
    "neighbours": "what drives of its host, enclosure or group share",
    "latency_quantum": "firmware timer",
    "cohort": "model or firmware",
}
UNJUDGED = {
    "behind a RAID controller": (
        "not visible: the kernel sees the logical drive of a RAID controller or hypervisor, not the drives behind it"
    ),
    "silent": "stopped reporting",
    "kind unknown": "of unknown kind, compared with each other (ingest lsblk or smartctl of the host, or give --kind)",
    "RAID group too small": "compared with nobody, because the RAID group is too small",
    "no RAID group": "compared with nobody, because no source names a RAID group",
    "no data drive": "not judged: no data drive of its group",
}
CHANCES = {"excluded": "", "possible": ", perhaps by chance", "few groups": ", few groups"}
DECISIONS_DRAWN = 12
"""The latest decisions whose drive has a chart."""


def render_page(facts: WeekFacts) -> str:
    """The whole HTML file."""
    fewest, width = threshold(facts, "min_reporting_drives"), threshold(facts, "min_group_width")
    return render(
        "weekly/page.html.j2",
        facts=facts,
        week=week_name(facts.week["week_utc"]),
        sunday=facts.week["week_utc"] + timedelta(days=6),
        digest=digest(facts),
        tolerance_words=tolerance_words(facts.tolerance),
        coverage_words=coverage_words(facts),
        slowness_words=[sentence for row in facts.slowness if (sentence := against_before(row))],
        trend=trend(facts),
        heat_maps=heat_maps(facts),
        charts=charts(facts),
        drive_verdicts=rows_by(facts.drive_verdicts, "drive_id"),
        drive_events=rows_by(facts.drive_events, "drive_id"),
        group_drives=rows_by(facts.group_drives, "raid_group_id"),
        anchors={
            **{row["drive_id"]: f"drive-{number}" for number, row in enumerate(charted(facts), 1)},
            **{row["raid_group_id"]: f"group-{row['cost_rank']}" for row in facts.raid_groups},
        },
        unplug_digest=unplug_digest(facts),
        chronic_words=chronic_words(facts),
        words={
            "cause": CAUSES,
            "record_kind": RECORD_KINDS,
            "replace_rule": {"none": numbers.NONE},
            "preceding_severity": {None: "no slowdown"},
            "lists_reason": {None: "on all"},
            "exclusion_reason": {reason: words.format(fewest=fewest, width=width) for reason, words in EXCLUSIONS.items()},
        },
        shaped=shaped,
        state_words=STATES,
        guessed={row["raid_group_id"] for row in facts.guessed},
        detector_words=DETECTOR_WORDS,
        chance_words=CHANCES,
        lists_of=lists_of,
        incidents=incidents(facts.actions),
        places={
            **{row["raid_group_id"]: {"walk": row["name"]} for row in facts.group_names},
            **{row["drive_id"]: {**row, "walk": place(row)} for row in facts.places},
        },
        listed={row["drive_id"]: row for row in facts.actions},
        todo={row["drive_id"]: row["action"] for row in facts.actions if row["action"] != "none"},
        explain=lambda drive: f"drivetail explain {shlex.quote(drive)}",
        baseline_weeks=max((row["baseline_week_count"] or 0 for row in facts.slowness), default=0),
        limits=LIMITS,
    )


def shaped(rows: list[Row], columns: str) -> list[tuple[str, str, str]]:
    """The columns of a table: name, heading, class."""
    found = [column.partition("=") for column in columns.split("|")]
    return [
        (name, said or heading(name)[0].upper() + heading(name)[1:], shape(name, [row[name] for row in rows])) for name, _, said in found
    ]


def threshold(facts: WeekFacts, name: str) -> str:
    """A threshold that the marts were computed with, for all kinds."""
    (value,) = (row["value"] for row in facts.thresholds if row["name"] == name)
    return f"{value:g}"


def slow_at(facts: WeekFacts) -> str:
    """How many times the median of its RAID group a slow drive takes, `2 times`; where kinds differ, each."""
    kinds: dict[float, list[str]] = {}
    for row in facts.thresholds:
        if row["name"] == "slow_threshold":
            kinds.setdefault(row["value"], []).append(row["kind"])
    return " or ".join(f"{value:g} times" + (f" ({', '.join(named)})" if len(kinds) > 1 else "") for value, named in kinds.items())


def rows_by(rows: list[Row], column: str) -> dict[Any, list[Row]]:
    """The rows of each value of a column, in their order."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


# --------------------------------------------------------------------------------------------------------------------
# Figures


def trend(facts: WeekFacts) -> list[tuple[str, Markup | None]]:
    """Slow drive-hours and tail hours over the weeks; no figure where every bar would be 0."""
    week = facts.week["week_utc"]
    parts = (
        ("Share of drive-hours that were slow", "slow_drive_hours", "drive_hours", "slow_drive_hour_ratio", "slow", "drive-hours"),
        ("Share of RAID-hours that were tail hours", "tail_hours", "raid_hours", "tail_hour_ratio", "tail hours", "RAID-hours"),
    )
    return [
        (
            title,
            drawn(
                figures.weekly_trend(facts.trend, week, numerator=numerator, denominator=denominator, share=share, what=what, of=of),
                f"trend-{numerator}",
                f"{title}, week by week",
            )
            if any(row[numerator] for row in facts.trend)
            else None,
        )
        for title, numerator, denominator, share, what, of in parts
    ]


def charted(facts: WeekFacts) -> list[Row]:
    """Every drive that the page lists: of the list of actions, decided on (the successor of one that was replaced), the costliest."""
    of_week = {row["drive_id"]: row for row in facts.drives}
    nothing = {"slow_hours": 0, "drive_hours": None, "max_slowdown": None, "cause": None, "evidence": None, "incident_id": None}
    listed = [{**nothing, **of_week.get(row["drive_id"], {}), **row, "evidence": row["cause_evidence"]} for row in facts.actions]
    for row in facts.decisions[:DECISIONS_DRAWN]:
        after = row["successor_drive_id"] if row["state"] == "replaced" else row["drive_id"]
        if after is not None:
            role = f"in the place of {row['drive_id']}" if after != row["drive_id"] else f"decided: {row['verdict']}"
            place = {"drive_id": after, "kind": row["kind"], "raid_group_id": row["raid_group_id"]}
            listed.append({**nothing, **of_week.get(after, {}), **place, "action": None, "role": role})
    listed += [{**row, "action": None, "incident_id": None} for row in facts.drives]
    first: dict[str, Row] = {}
    for row in listed:
        first.setdefault(row["drive_id"], {"role": None, **row})
    return list(first.values())


def charts(facts: WeekFacts) -> list[tuple[Row, Markup]]:
    """Each of them, hour by hour, on one scale."""
    bands = {(row["raid_group_id"], row["hour_utc"]): row for row in facts.peer_bands}
    top = max([row["max_slowdown"] for row in facts.drives] + [4.0])
    series, events = rows_by(facts.drive_series, "drive_id"), rows_by(facts.drive_events, "drive_id")
    result = []
    for number, drive in enumerate(charted(facts), 1):
        name = drive["drive_id"]
        figure = figures.drive_week(drive, series.get(name, []), bands, events.get(name, []), facts.week["week_utc"], top)
        result.append((drive, drawn(figure, f"drive-{number}", f"Slowdown of {name}, hour by hour")))
    return result


def heat_maps(facts: WeekFacts) -> list[tuple[str, Markup]]:
    """Tail hours by hour and day, one figure a kind; none where there is no tail hour."""
    fleet_hours = rows_by(facts.fleet_hours, "kind")
    return [
        (
            kind,
            drawn(
                figures.heat_map(fleet_hours[kind], facts.week["week_utc"]), f"heat-{kind}", f"Tail hours of {plural(kind)}, hour by day"
            ),
        )
        for kind in kinds_of(facts.fleet_hours)
        if any(row["tail_hours"] for row in fleet_hours[kind])
    ]


# --------------------------------------------------------------------------------------------------------------------
# Words


def digest(facts: WeekFacts) -> list[str]:
    """The week in five lines: how slow, against the budget, by whom, why, what has changed, and what to do."""
    lines = [slow_words(facts), slo_words(facts), concentration(facts), cause_digest(facts), change_words(facts)]
    return [line for line in lines if line]


def slow_words(facts: WeekFacts) -> str:
    """How slow the fleet was."""
    fleet = facts.fleet
    if not fleet["slow_drive_hours"]:
        hours = count(fleet["drive_hours"])
        return f"No drive was slow this week: none of {hours} drive-hours reached {slow_at(facts)} the median of its RAID group."
    return (
        f"{count(fleet['tail_hours'])} of {count(fleet['raid_hours'])} RAID-hours ({percent(fleet['tail_hour_ratio'])}) "
        f"were tail hours: at least one drive took {slow_at(facts)} as long as its group's median or longer. "
        f"{noun(fleet['slow_drive_count'], 'drive was', 'drives were')} slow, of {count(fleet['drive_count'])}, "
        f"in {noun(fleet['tail_raid_group_count'], 'group', 'groups')}."
    )


def slo_words(facts: WeekFacts) -> str:
    """The budgets of tail hours, kept or missed, and whether that may be chance."""
    parts = [
        f"Error budget ({percent(rows[0]['budget_ratio'])} of RAID-hours above {times(threshold)}): "
        + listed([f"{plural(row['kind'])} used {ratio(row['budget_used'])} ({row['state']}{CHANCES[row['chance']]})" for row in rows])
        for threshold, rows in sorted(rows_by(facts.slo, "threshold").items(), reverse=True)
    ]
    return f"{'. '.join(parts)}." if parts else ""


def cause_digest(facts: WeekFacts) -> str:
    """Main cause of the slow hours of each kind."""
    first = {row["kind"]: row for row in reversed(facts.causes) if row["cause"] != "unexplained"}
    parts = [
        f"{plural(kind)}, {CAUSES.get(first[kind]['cause'], first[kind]['cause'])} "
        f"({percent(first[kind]['slow_hour_share'])} of {noun(first[kind]['all_slow_hours'], 'hour', 'hours')})"
        for kind in kinds_of(facts.causes)
        if kind in first
    ]
    return f"Most frequent known cause of the slow intervals that began this week: {'; '.join(parts)}." if parts else ""


def lists_of(row: Row) -> str:
    """The lists that a drive of the list of actions is on, and why not on the others."""
    on = [
        name
        for name, is_on in (
            ("open alerts", row["has_open_alert"]),
            ("candidates", row["verdict"] not in (None, "leave")),
            (f"costliest this week (#{row['cost_rank']})", row["is_costliest"]),
        )
        if is_on
    ]
    return f"Listed in: {', '.join(on) or 'decisions'}."


@dataclass(frozen=True)
class Incident:
    """One row of the list of actions: a drive, or the drives of one place that were slow in the same hours."""

    name: str | None
    drives: list[Row]

    @property
    def size(self) -> int:
        """How many drives it has."""
        return len(self.drives)


def incidents(actions: list[Row]) -> tuple[list[Incident], list[Incident]]:
    """The incidents of the list of actions, in its order: first those with a drive that needs attention."""
    found: dict[str, Incident] = {}
    for row in actions:
        name = row["incident_id"]
        found.setdefault(name or f"drive {row['drive_id']}", Incident(name, [])).drives.append(row)
    # keep one drive of an incident that is not listed whole
    whole = [Incident(one.name if len(one.drives) > 1 else None, one.drives) for one in found.values()]
    due = [one for one in whole if any(row["needs_person"] for row in one.drives)]
    return due, [one for one in whole if one not in due]


def change_words(facts: WeekFacts) -> str:
    """New and finished incidents, where there is an earlier week."""
    if not any(row["baseline_raid_hours"] for row in facts.slowness):
        return ""
    parts = [
        f"{plural(row['kind'])}: {count(row['new_drive_count'])} new, {count(row['reopened_drive_count'])} slow again, "
        f"{count(row['resolved_drive_count'])} no longer slow"
        + (f", {count(row['unseen_drive_count'])} no longer measured" if row["unseen_drive_count"] else "")
        for row in facts.state_counts
    ]
    return f"Since last week, {'; '.join(parts)}." if parts else ""


def against_before(row: Row) -> str:
    """One kind's tail hours against the weeks before."""
    if not row["raid_hours"]:
        return ""
    name = {"disk": "Disks", "ssd": "SSDs"}.get(row["kind"], "Groups of unknown kind")
    now = f"{name}: {count(row['tail_hours'])} tail hours in {count(row['raid_hours'])} RAID-hours ({percent(row['tail_hour_ratio'])})"
    if not row["baseline_raid_hours"]:
        return f"{now}; there is no earlier week to compare with."
    before = f"{noun(row['baseline_week_count'], 'week', 'weeks')} before"
    earlier = percent(row["baseline_tail_hour_ratio"])
    change = row["tail_hour_change"]
    if change is None:
        return f"{now}, none in the {before}." if row["tail_hours"] else f"{now}, as in the {before}."
    if not row["tail_hours"]:
        return f"{now}, down from {earlier} in the {before}."
    if change >= 1.1:
        return f"{now}, up from {earlier} in the {before} ({ratio(change)})."
    if change <= 0.9:
        return f"{now}, down from {earlier} in the {before} ({ratio(change)})."
    return f"{now}, about as in the {before} ({earlier})."


def concentration(facts: WeekFacts) -> str:
    """How few drives the tail hours come from."""
    if not facts.drives or not facts.drives[0]["tail_hours"]:
        return ""
    half = next((row["cost_rank"] for row in facts.drives if row["cumulative_tail_hour_share"] >= 0.5), None)
    places = {row["drive_id"]: row for row in facts.places}
    if half is not None and half <= 3:
        few = facts.drives[:half]
        kinds = {drive["kind"] for drive in few}
        who = of_kind(half, kinds.pop()) if len(kinds) == 1 else noun(half, "drive", "drives")
        names = listed([named_drive({**drive, **places.get(drive["drive_id"], {})}) for drive in few])
        share = percent(few[-1]["cumulative_tail_hour_share"])
        return f"{who} caused {share} of the tail hours that are evidence: {names}. {cutting_words(facts)}"
    first = facts.drives[0]
    costliest = named_drive({**first, **places.get(first["drive_id"], {})})
    together = f"{count(half)} drives" if half else f"More than {count(len(facts.drives))} drives"
    return (
        f"{together} together caused half of the tail hours that are evidence; "
        f"the costliest, {costliest}, caused {percent(first['tail_hour_share'])}. {cutting_words(facts)}"
    )


def cutting_words(facts: WeekFacts) -> str:
    """The week as it would have been if requests did not wait for the slowest drive."""
    parts = [
        f"{count(row['saved_by_cutting_one_hours'])} of {noun(row['tail_1_hours'], 'tail hour', 'tail hours')} of {plural(row['kind'])}"
        for row in facts.tails
        if row["is_slow_threshold"] and row["tail_1_hours"]
    ]
    return f"Skipping the slowest drive would have avoided {listed(parts)}." if parts else ""


def chronic_words(facts: WeekFacts) -> str:
    """How many drives are chronic now."""
    parts = [of_kind(row["chronic_drive_count"], row["kind"]) for row in facts.slowness_counts if row["chronic_drive_count"]]
    is_one = sum(row["chronic_drive_count"] for row in facts.slowness_counts) == 1
    return f"{listed(parts)} {'is' if is_one else 'are'} chronic, a little slow nearly always." if parts else "No drive is chronic."


def unplug_digest(facts: WeekFacts) -> str:
    """Drives unplugged this week, with the outcome."""
    return " ".join(
        f"{of_kind(row['drive_count'], row['kind'])} had {noun(row['unplug_count'], 'unplug', 'unplugs')}: "
        f"{none_or(row['replugged_count'])} came back, "
        f"{none_or(row['replaced_count'])} replaced; {none_or(row['after_slowdown_count'])} followed a slowdown"
        + (f", of which {none_or(row['recurred_count'])} came back to be slow again." if row["after_slowdown_count"] else ".")
        for row in facts.unplugs
    )


def none_or(number: int) -> str:
    """A count as a word of a sentence."""
    return count(number) if number else "none"


def coverage_words(facts: WeekFacts) -> list[str]:
    """Whether the week can be trusted, in sentences."""
    sentences = []
    if not facts.week["is_complete"]:
        sentences.append(f"The week is not complete: the fleet's data end on {numbers.instant(facts.publication['last_hour_utc'])} UTC.")
    for row in facts.coverage:
        name = {"disk": "disks", "ssd": "SSDs"}.get(row["kind"], "drives in groups of unknown kind")
        silent = row["silent_raid_hours"]
        group = f"; in {noun(silent, 'RAID-hour', 'RAID-hours')} a whole group did not report" if silent else ""
        sentences.append(
            f"{percent(row['reported_ratio'])} of the expected drive-hours of {name} arrived ({count(row['reported_drive_hours'])} of "
            f"{count(row['expected_drive_hours'])}), {percent(row['measured_ratio'])} could be measured{group}."
        )
    if narrow := facts.fleet["narrow_group_drive_hours"]:
        width = threshold(facts, "min_group_width")
        sentences.append(
            f"{noun(narrow, 'drive-hour', 'drive-hours')} came from groups of fewer than {width} data drives: they were compared with "
            "nothing and are not among those expected."
        )
    for reason, rows in rows_by(facts.unjudged, "reason").items():
        hosts = [f"{row['host']} ({row['drives']})" for row in rows]
        number, many = sum(row["drive_count"] for row in rows), "and others" if hosts[5:] else ""
        sentences.append(
            f"{noun(number, 'drive', 'drives')} {UNJUDGED.get(reason, 'not judged: ' + reason)}, on {noun(len(hosts), 'host', 'hosts')}: "
            f"{listed(hosts[:5])} {many}".rstrip()
            + "."
        )
    if facts.guessed:
        hosts = [row["raid_group_id"] for row in facts.guessed]
        shown = listed(hosts[:5]) + (" and others" if hosts[5:] else "")
        sentences.append(
            f"Of {noun(len(hosts), 'RAID group', 'RAID groups')} no source says which drives belong together: each is all drives of one "
            f"host ({shown}), each kind by itself. Where a host has several arrays, their slowdown means little; run "
            "deploy/membership.sh on the hosts (POSIX shell, no Python), or say it with drivetail map."
        )
    return sentences
