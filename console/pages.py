"""The pages: what their address names, and the answer first. What each shows is in pages.yml."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from string import Template
from typing import Any

import click
import plotly.graph_objects as go
import yaml
from markupsafe import Markup, escape

from console.blocks import MAPPED, Block, Figure, Map, Page, Query, Table, drive_places, group_names
from console.cells import PAGES as COLUMN_PAGES
from console.cells import address
from console.figures import drive_hours, drive_latencies, group_latencies, group_tails, slow_map
from console.measures import SHOWN, definitions, measured_sql
from console.published import Published
from drivetail.ask.explain.hour import hour_text
from drivetail.ask.explain.question import known_drive, parse_hour
from drivetail.ask.probes import newest_probes
from drivetail.ask.ticket import ticket as ticket_of
from drivetail.tell.alerts import OPEN, Alert, sentence
from engine.read import QueryError, Row, is_computed
from engine.warehouse import instant as sql_instant
from engine.warehouse import quoted, texts
from ingest.contract.values import utc
from report.page.numbers import NONE, capacity, day, instant, kind_name, listed
from report.words import counted_noun, human, place

MOST = timedelta(days=92)

PEERS = timedelta(days=15)
"""Longest span in which every other drive of the group is drawn, or every drive of a host."""

Draw = Callable[[list[Row]], go.Figure | None]
DRAWS: dict[str, Draw] = {"tails": group_tails, "map": slow_map, "latencies": group_latencies, "milliseconds": drive_latencies}


@cache
def stated() -> dict[str, list[dict[str, Any]]]:
    """Contents of each page, from pages.yml."""
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "pages.yml").read_text(encoding="utf-8"))
    for entry in (entry for entries in found.values() for entry in entries if "table" in entry):
        entry["of"] = entry.get("of") or re.findall(r"\bfrom ([a-z_]+\.\w+)", entry["sql"])[0]
        entry.setdefault("title", entry["table"].capitalize())
    return found


def blocks_of(published: Published, page: str, words: Mapping[str, str] = {}, draws: Mapping[str, Draw] = DRAWS) -> list[Block]:
    """The blocks of a page, in order. words: in the place of $names. Tables that this publication has not are left out."""
    found: list[Block] = []
    for entry in stated()[page]:
        given = entry | {name: Template(value).substitute(words) for name, value in entry.items() if isinstance(value, str)}
        if name := given.pop("figure", ""):
            found.append(Figure(name, draw=draws[name], **given))
        elif published.has(relation := given.pop("of")):
            found.append(Table(given.pop("table"), relation=relation, **given))
    return found


SLOW = {"acute": "slow", "chronic": "a little slow for weeks", "together": "drives slow together", "whole_group": "slow as a whole"}
"""How an alert's subject is slow, by its reason."""

SEARCH = "search for a part of its name"


def link(page: str, shown: str, /, **parameters: object) -> Markup:
    """A link to what a name names."""
    return Markup('<a href="{}">{}</a>').format(address(page, **(parameters or {"id": shown})), shown)


def fact(title: str, name: str | None, page: str = "", id: str | None = None) -> tuple[str, Markup | str]:
    """Known facts: title, and value, which is a link where it has a page of its own."""
    return title, link(page, name, id=id or name) if page and name else name or NONE


def open_alerts(published: Published, where: Callable[[Alert], bool]) -> str:
    """Sentences of the open alerts of places and RAID groups for which `where` is true."""
    found = [alert for alert in (Alert(**row) for row in published.rows(OPEN)) if alert.subject_type != "drive" and where(alert)]
    return " ".join(f"{sentence(alert).splitlines()[0]}." for alert in found)


def found_rows(published: Published, sql: str, otherwise: str) -> list[Row]:
    """The rows of a query. Raises: QueryError with the text `otherwise` where it has no rows."""
    if not (found := published.rows(sql)):
        raise QueryError(otherwise)
    return found


def span_of(published: Published, query: Query, last: datetime | None = None) -> Row:
    """The hours that a page shows, and its form and links to choose others: those of its address, else the last week of the data.

    last: last hour of what it is about, where it may have gone. Raises: QueryError for no time.
    """

    def to(start: datetime, end: datetime) -> str:
        return address("", **{**dict(query), "since": f"{start:%Y-%m-%dT%H:%M}", "until": f"{end:%Y-%m-%dT%H:%M}"})

    week, end = timedelta(weeks=1), (last or published.last_hour_utc or published.published_at) + timedelta(hours=1)
    try:
        until = utc(query["until"]) if query.get("until") else end
        since = utc(query["since"]) if query.get("since") else until - week
        since = max(since, until - MOST)
        links = [("earlier", to(since - (until - since), since)), ("later", to(until, until + (until - since)))]
        links += [(name, to(until - long, until)) for name, long in (("2 days", timedelta(days=2)), ("week", week), ("4 weeks", 4 * week))]
    except (ValueError, OverflowError) as error:
        raise QueryError("since and until are times such as 2026-01-05 or 2026-01-05T07:00 (UTC)") from error
    others = [(name, value) for name, value in query.items() if name not in ("since", "until")]
    return {"since": since, "until": until, "links": links, "others": others}


def span_words(since: datetime, until: datetime) -> dict[str, str]:
    """The hours in SQL; recent: those in which every drive of a place is drawn."""
    recent = max(since, until - PEERS)
    return {"since": sql_instant(since), "until": sql_instant(until), "recent": sql_instant(recent)}


WHOLE_GROUPS = """
select subject_id from marts.fct_slow_alerts
where cleared_at is null and reason = 'whole_group' and part_of is null order by first_slow_hour_utc, subject_id
"""
"""RAID groups of which no drive stands out, but which are slow against their own past."""


def fleet(published: Published, query: Query) -> Page:
    """Drives that need attention, the map, and what raises no alert. The rest of the week is in its report."""
    due = published.rows("select * from marts.drive_actions where needs_person order by action_rank")
    places = drive_places(published, {row["drive_id"] for row in due})
    named = [
        link("/drive", place(places.get(row["drive_id"], {})) or row["drive_id"], id=row["drive_id"]) + f": {row['action']}"
        for row in due[:3]
    ]
    needs = escape(f"{counted_noun(len(due), 'drive')} {'need' if len(due) > 1 else 'needs'} attention. ")
    answer = needs + Markup("; ").join(named) if due else escape("No drive needs attention.")
    whole = [row["subject_id"] for row in published.rows(WHOLE_GROUPS)]
    if whole:
        called = {id: row["name"] for id, row in group_names(published, set(whole[:3])).items()}
        shown = Markup(", ").join(link("/group", called.get(id, id), id=id) for id in whole[:3])
        answer += Markup("{} Slow as a whole: {}{}.").format(
            "." if due else "", shown, f" and {len(whole) - 3} more" if len(whole) > 3 else ""
        )
    blocks: list[Block] = []
    words = dict.fromkeys(("silent", "unjudged", "unknown"), "")
    if published.has(MAPPED):
        blocks.append(Map())
        found = published.rows(f"select distinct unjudged_reason, reason_drives from {MAPPED} where unjudged_reason is not null")
        counts = {row["unjudged_reason"]: row["reason_drives"] for row in found}
        words["silent"] = counted_noun(counts.pop("silent", 0), "drive")
        words["unknown"] = counted_noun(counts.pop("kind unknown", 0), "drive")
        words["unjudged"] = listed([f"{human(number)} {reason}" for reason, number in sorted(counts.items(), key=lambda each: -each[1])])
    kept = kept_reports(published.warehouse.root)
    report = link("/report", f"the report of {kept[0].stem}", name=kept[0].name) if kept else link("/reports", "the weekly report")
    under = Markup("Error budget, what changed and coverage are in {}.").format(report)
    return Page(
        "Slow drives now", [*blocks, *blocks_of(published, "fleet", words)], under=under, answer=answer, is_calm=not due and not whole
    )


def drive(published: Published, query: Query) -> Page:
    """One drive: the answer, where to walk, its hours against its peers, and all that is known of it."""
    with published.cursor() as cursor:
        known = known_drive(cursor, query.get("id", ""), SEARCH)
    id, host, enclosure, group = (known[name] for name in ("drive_id", "host", "enclosure", "current_raid_group_id"))
    this, span = quoted(id), span_of(published, query, known["last_hour_utc"])
    groups = published.rows(f"select * from marts.dim_raid_groups where raid_group_id = {quoted(group or '')}")
    called = groups[0]["name"] if groups else group
    todo = published.rows(f"select * from marts.drive_actions where drive_id = {this}")
    decided = published.rows(f"select * from marts.fct_drive_decisions where drive_id = {this} order by decision_seq desc limit 1")
    with published.cursor() as cursor:
        probe = newest_probes(cursor).get(id)
    answer = "Nothing to do: it is on no list."
    unjudged = f"select unjudged_reason from status.fct_judged_drives where drive_id = {this} and unjudged_reason <> 'kind unknown'"
    for row in published.rows(unjudged) if published.has("status.fct_judged_drives") else ():
        answer = f"Not judged, {row['unjudged_reason']}: that it is on no list does not mean that it is fast."
    for row in todo:  # what was found stays beside what somebody decided
        action, why = ("action_undecided", "why_undecided") if row["decision"] else ("action", "why")
        answer = f"{row[action]}: {row[why]}"
    for last in decided:
        ticket = f", {last['ticket']}" if last["ticket"] else ""
        said = "retracted the decision" if last["verdict"] == "retract" else f"decided {last['verdict']}"
        state = "" if last["verdict"] == "retract" else f" ({last['state']}{ticket})"
        answer += f" {last['decided_by']} {said} at {instant(last['decided_at'])} UTC{state}."
    if probe:
        answer += f" {probe}."
    facts = [
        fact("Host", host, "/host"), *([fact("Device", known["device"])] if known["device"] else []), fact("Slot", known["slot"]),
        fact("Enclosure", enclosure, "/enclosure", f"{host}/{enclosure}" if host else None),
        fact("RAID group", called, "/group", group), fact("Model", known["model"], "/model"), fact("Serial", id),
        fact("Firmware", known["firmware"]),
        fact("Kind", f"{kind_name(known['kind'])}, {capacity(known['capacity_bytes'])}"), fact("Site", known["site"]),
        fact("Deployed", day(known["deployed_on"])),
        fact("Data", f"{instant(known['first_hour_utc'])} to {instant(known['last_hour_utc'])} UTC"),
        *([fact("Group", "guessed: it is only the host")] if known["is_group_guessed"] else []),
    ]  # fmt: skip
    words = span_words(span["since"], span["until"])
    hours = f"drive_id = {this} and hour_utc >= {words['since']} and hour_utc < {words['until']}"
    if span["until"] - span["since"] <= PEERS:
        hours = f"raid_group_id in (select raid_group_id from marts.fct_drive_hours where {hours})"
    within = f"occurred_at >= {words['since']} and occurred_at < {words['until']}"
    events = f"select * from marts.fct_drive_events where drive_id = {this} and {within}"
    draws = {**DRAWS, "hours": lambda rows: drive_hours(rows, id, known["kind"], published.rows(events))}
    title = place(known) or id
    under = ", ".join(part for part in (id if title != id else "", known["model"], called) if part)
    blocks = blocks_of(published, "drive", {**words, "id": this, "hours": hours}, draws)
    how = "" if known["left_at"] else ticket_of(known, todo, groups, probe)
    is_calm = not any(row["needs_person"] for row in todo)
    return Page(title, blocks, under=under, answer=answer, is_calm=is_calm, facts=facts, drive=id, ticket=how, span=span)


def hour(published: Published, query: Query) -> Page:
    """One number, down to file and row."""
    id = query.get("id", "")
    try:
        start, _ = parse_hour(query.get("at", ""))
        since, until = (f"{start + timedelta(days=days):%Y-%m-%dT%H:%M}" for days in (-3, 4))
    except (click.BadParameter, OverflowError) as error:
        raise QueryError(f"{query.get('at', '')!r} is not an hour; write it as 2026-01-05 07:00 (UTC)") from error
    with published.cursor() as cursor:
        known = known_drive(cursor, id, SEARCH)
        id, where = known["drive_id"], place(known)
        text = hour_text(cursor, published.warehouse, id, f"{start:%Y-%m-%d %H:%M}")
    return Page(f"{where or id}, {instant(start)} UTC", [], under=link("/drive", id, id=id, since=since, until=until), text=text)


def group(published: Published, query: Query) -> Page:
    """One RAID group."""
    this, span = quoted(query.get("id", "")), span_of(published, query)
    otherwise = f"{query.get('id', '')!r} is no RAID group of this publication; search for a part of its name"
    (known,) = found_rows(published, f"select * from marts.dim_raid_groups where raid_group_id = {this}", otherwise)
    words = {
        **span_words(span["since"], span["until"]), "id": this, "hours": f"hours.raid_group_id = {this}",
        "drives": f"drives.current_raid_group_id = {this}", "alerts": f"raid_group_id = {this}", "groups": f"({this})",
    }  # fmt: skip
    host = link("/host", known["host"]) if known["host"] else None
    drives = counted_noun(known["data_drive_count"] or 0, "data drive")
    guessed = "guessed: it is only the host" if known["is_guessed"] else None
    id = known["raid_group_id"] if known["name"] != known["raid_group_id"] else None
    facts = [host, kind_name(known["kind"]), known["raid_level"], drives, known["site"], guessed, id]
    under = Markup(", ").join(part for part in facts if part)
    answer = open_alerts(published, lambda alert: alert.subject_id == known["raid_group_id"])
    return Page(f"RAID group {known['name']}", blocks_of(published, "group", words), under=under, answer=answer, span=span)


def host_or_enclosure(published: Published, query: Query, column: str) -> Page:
    """A host, or an enclosure; the name of one may be that of another host's too, so alerts and tables name it with its host."""
    id, span = query.get("id", ""), span_of(published, query)
    named = f"{quoted(id)} in (enclosure, concat(host, '/', enclosure))"
    if column == "host":  # which no inventory may name, but the name of a drive: host/device
        named = f"(host = {quoted(id)} or host is null and starts_with(drive_id, {quoted(id + '/')}))"
    places = f"select distinct host, enclosure from marts.dim_drives where {named} order by host, enclosure"
    found = found_rows(published, places, f"{id!r} is no {column} of this publication; search for a part of its name")
    drives = f"(select drive_id from marts.dim_drives where {named})"
    groups = f"(select current_raid_group_id from marts.dim_drives where {named})"
    subjects = {id, *(f"{row['host']}/{row['enclosure']}" for row in found if column == "enclosure")}
    words = {
        **span_words(span["since"], span["until"]), "hours": f"drives.drive_id in {drives}", "drives": f"drives.drive_id in {drives}",
        "alerts": f"(subject_type = '{column}' and subject_id in ({texts(subjects)})) "
        f"or (subject_type = 'drive' and subject_id in {drives}) or (subject_type = 'raid_group' and subject_id in {groups})",
        "groups": groups,
    }  # fmt: skip
    others = [
        link("/enclosure", f"{row['host']}/{row['enclosure']}") if column == "host" else link("/host", row["host"])
        for row in found
        if row["host"] and row["enclosure"]
    ]
    under = Markup(", ").join(dict.fromkeys(others))
    answer = open_alerts(published, lambda alert: alert.subject_id in subjects or (column == "host" and alert.host == id))
    return Page(f"{column.capitalize()} {id}", blocks_of(published, "place", words), under=under, answer=answer, span=span)


def model(published: Published, query: Query) -> Page:
    """One model, and its firmware; without one, all of them."""
    id, firmware = query.get("id"), query.get("firmware")
    if not id:
        return Page("Models", blocks_of(published, "models"))
    this = quoted(id)
    firmwares = f"select distinct firmware from marts.dim_drives where model = {this} order by firmware"
    found = found_rows(published, firmwares, f"{id!r} is no model of this publication; search for a part of its name")
    which = f"drives.model = {this}" + (f" and drives.firmware = {quoted(firmware)}" if firmware else "")
    links = [link("/model", row["firmware"], id=id, firmware=row["firmware"]) for row in found if row["firmware"]]
    under = Markup("Firmware ") + Markup(", ").join(links) if links else ""
    title = f"Model {id}, firmware {firmware}" if firmware else f"Model {id}"
    return Page(title, blocks_of(published, "model", {"id": this, "drives": which}), under=under)


def alert(published: Published, query: Query) -> Page:
    """One alert: an incident, and the drives that it is about."""
    this = quoted(query.get("id", ""))
    otherwise = "that alert is not of this publication; the page Alerts lists those that are"
    (known,) = found_rows(published, f"select * from marts.fct_slow_alerts where alert_id = {this}", otherwise)
    rows = [known, *published.rows(f"select * from marts.fct_slow_alerts where part_of = {this}")]
    drives = {row["subject_id"] for row in rows if row["subject_type"] == "drive"}
    group = known["raid_group_id"] or ""
    called = group_names(published, {group}).get(group, {}).get("name", group)
    where = place(drive_places(published, drives).get(known["subject_id"], {}))
    subject = where or (called if known["subject_type"] == "raid_group" else known["subject_id"])
    state = "open" if known["cleared_at"] is None else f"cleared at {instant(known['cleared_at'])} UTC"
    facts = [
        fact("First slow hour", f"{instant(known['first_slow_hour_utc'])} UTC"), fact("Raised", f"{instant(known['raised_at'])} UTC"),
        fact("State", state), fact("Slow hours", str(known["slow_hours"])), fact("Drives", str(known["drive_count"])),
        fact("RAID group", called, "/group", group), *([fact("Part of", known["part_of"], "/alert")] if known["part_of"] else []),
    ]  # fmt: skip
    since, until = known["first_slow_hour_utc"] - timedelta(days=1), known["last_slow_hour_utc"] + timedelta(days=2)
    which = f"drives.drive_id in ({texts(drives)})" if drives else f"drives.current_raid_group_id = {quoted(group)}"
    words = {**span_words(since, until), "hours": which, "drives": which, "groups": f"({quoted(group)})"}
    answer = open_alerts(published, lambda alert: alert.alert_id == known["alert_id"])
    title = f"{known['subject_type'].replace('_', ' ').capitalize()} {subject}: {SLOW[known['reason']]}"
    return Page(title, blocks_of(published, "alert", words), under=state, answer=answer, facts=facts)


def kept_reports(root: Path) -> list[Path]:
    """The pages in the folder of reports, the latest first."""
    return sorted((path for path in (root / "reports").glob("*.html") if path.is_file() and not path.is_symlink()), reverse=True)


def reports(published: Published, query: Query) -> Page:
    """The reports that are kept."""
    root = published.warehouse.root
    kept = [("Kept as it was written", link("/report", path.stem, name=path.name)) for path in kept_reports(root)]
    answer = "" if kept else "None is kept: drivetail report writes one."
    return Page("Reports", [], under=str(root / "reports"), answer=answer, is_calm=True, facts=kept)


def study(published: Published, query: Query) -> Page:
    """Does this fleet behave as the paper's did?"""
    if not has_study(published):
        return Page("Study", [], answer="Nobody has asked for the study yet: run drivetail study.", is_calm=True)
    return Page("Does this fleet behave as the paper's did?", blocks_of(published, "study"))


def has_study(published: Published) -> bool:
    """Whether somebody has asked for the study."""
    with published.cursor() as cursor:
        return is_computed(cursor, "study_results")


def has_lab(published: Published) -> bool:
    """Whether an experiment or a run of the lab can be seen."""
    listed = [entry["of"] for entry in stated()["lab"]]
    return any(published.has(relation) and published.rows(f"select 1 from {relation} limit 1") for relation in listed)


def rooms(published: Published | None) -> dict[str, str]:
    """The pages that every page leads to: name -> address. Study and lab only where there is one."""
    found = {
        "Fleet": "/",
        "Alerts": "/alerts",
        "Candidates": "/candidates",
        "Decisions": "/decisions",
        "Models": "/model",
        "Reports": "/reports",
    }
    if published is not None and has_study(published):
        found["Study"] = "/study"
    if published is not None and has_lab(published):
        found["Lab"] = "/lab"
    return {**found, "Tables": "/tables", "Ask": "/ask"}


def experiment(published: Published, query: Query) -> Page:
    """One experiment: every table of the lab that has rows of it."""
    this, listed = quoted(query.get("id", "")), stated()["lab"][0]["of"]
    if not published.has(listed) or not published.rows(f"select 1 from {listed} where experiment_id = {this}"):
        raise QueryError(f"{query.get('id', '')!r} is no experiment of this publication; the page Lab lists those that are")
    named = [name for name, columns in published.columns.items() if name.startswith("lab.") and "experiment_id" in columns]
    filled = [name for name in named if published.rows(f"select 1 from {name} where experiment_id = {this} limit 1")]
    blocks: list[Block] = [
        Table(
            name.partition(".")[2], name, f"select * exclude (experiment_id) from {name} where experiment_id = {this}", name, rows=15,
            note=published.relations.get(name, ""), fold="results" not in name and name != listed,
        )
        for name in sorted(filled, key=lambda name: (name != listed, "results" not in name, name))
    ]  # fmt: skip
    return Page(f"Experiment {query['id']}", blocks)


def table(published: Published, query: Query) -> Page:
    """One relation: its rows, and what its columns mean."""
    name = query.get("name", "")
    if name not in published.relations:
        raise QueryError(f"{name!r} is no table of this publication; the page Tables lists them")
    rows = Table("rows", "Rows", f"select * from {name}", name, rows=50, empty="It has no row.")
    return Page(name, [rows, *blocks_of(published, "table", {"name": quoted(name)})], under=published.relations[name])


def search(published: Published, query: Query) -> Page | str:
    """The page of what was typed in full, else drives, hosts, groups and models by a part of their name, or `host/device`."""
    sought = query.get("q", "").strip()
    if sought and (found := exact(published, sought)):
        return found
    names = ["drive_id", *(f"coalesce(host, '') || '/' || coalesce({name}, '')" for name in ("slot", "device"))]
    drives = [f"contains(lower({name}), lower({quoted(sought)}))" for name in names]
    if published.has(ALIASES):
        drives.append(f"drive_id in (select drive_id from {ALIASES} where contains(lower(alias), lower({quoted(sought)})))")
    words = {"drives": " or ".join(drives), "sought": quoted(sought)}
    nothing = "No drive, host, enclosure, model or RAID group has it in its name."
    try:
        with published.cursor() as cursor:
            known_drive(cursor, sought, "try a part of the name")
    except QueryError as error:
        nothing = f"{str(error)[0].upper()}{str(error)[1:]}" if sought else "Type a name, or a part of one."
    return Page(f"Search: {sought}", blocks_of(published, "search", words), nothing=nothing)


ALIASES = "intermediate.int_names"


def exact(published: Published, sought: str) -> str | None:
    """The page of what somebody typed in full; None where that is not one thing."""
    this = quoted(sought)
    for column in ("drive_id", "raid_group_id", "host", "enclosure", "model"):
        relation = "marts.dim_raid_groups" if column == "raid_group_id" else "marts.dim_drives"
        if published.rows(f"select {column} from {relation} where {column} = {this} limit 1"):
            return address(COLUMN_PAGES[column], id=sought)
    try:
        with published.cursor() as cursor:
            return address("/drive", id=known_drive(cursor, sought)["drive_id"])
    except QueryError:
        return None


def tables(published: Published, query: Query) -> Page:
    """Relations that people query, and the project's measures."""
    metrics = [definitions()["metrics"][name] for name in SHOWN]
    descriptions = " ".join(f"{metric['label']}: {metric['description']}" for metric in metrics)
    return Page("Tables", blocks_of(published, "tables", {"measures": measured_sql(), "descriptions": descriptions}))


def plain(published: Published, query: Query, name: str) -> Page:
    """A page that its tables alone make."""
    return Page(name.capitalize(), blocks_of(published, name))


PAGES: dict[str, Callable[[Published, Query], Page | str]] = {
    "/": fleet, "/drive": drive, "/hour": hour, "/group": group, "/model": model, "/alert": alert, "/reports": reports, "/study": study,
    "/experiment": experiment, "/table": table, "/tables": tables, "/search": search,
    **{f"/{name}": partial(host_or_enclosure, column=name) for name in ("host", "enclosure")},
    **{f"/{name}": partial(plain, name=name) for name in ("alerts", "candidates", "decisions", "lab")},
}  # fmt: skip
