"""A status as text."""

from __future__ import annotations

from drivetail.ask.status.content import HOUR, Status
from drivetail.console import Columns, block, facts, table, table_with_files
from engine.read import Row
from ingest.reading.text import in_sight
from report.words import counted_noun, duration, human, to_minute

SHOWN = 10
"""Rows that a listing of the text shows."""

DRIVE: Columns = {"drive": "drive_id", "RAID group": "raid_group_id"}
HOURS: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}


def render_status(status: Status) -> str:
    """The status as text: titled blocks, most important first; a block that has nothing to say is one line or absent."""
    blocks = [_problems_block(status), _publication_block(status)]
    title = "Landed, not yet built" if status.publication["state"] == "published" else "Landed, in no publication"
    columns: Columns = {
        "delivery": "delivery_seq", "source": "source", "landed (UTC)": "ingested_at", "ago": ("age_hours", duration), **HOURS,
        "rows in": ("rows_delivered", human),
    }  # fmt: skip
    what = f"{title}: {counted_noun(status.unbuilt['count'], 'delivery', 'deliveries')}"
    blocks += _listed(status.unbuilt, what, columns, after="run `drivetail build`", is_counted=False)
    blocks += [_quarantined_block(row) for row in status.quarantined["rows"][:SHOWN]]
    if status.quarantined["count"] > SHOWN:
        blocks.append(
            f"... and {human(status.quarantined['count'] - SHOWN)} more quarantined deliveries; `drivetail status --format json` lists them"
        )
    if status.freshness is not None:
        blocks += _freshness_blocks(status.freshness, status.thresholds)
    blocks += _turned_away_blocks(status)
    if status.inventory is not None and status.window is not None and status.window["last_hour_utc"] is not None:
        blocks += _window_blocks(status.inventory, status.window, status.thresholds)
    blocks.append(_landed_block(status))
    return "\n\n".join(blocks)


def _listed(listing: Row, title: str, columns: Columns, *, before: str = "", after: str = "", is_counted: bool = True) -> list[str]:
    """The block of a listing: its count in the title, lines before and after its first rows. None where it is empty."""
    if not listing["count"]:
        return []
    title += f": {human(listing['count'])}" if is_counted else ""
    return [block(title, before, table(listing["rows"][:SHOWN], columns, listing["count"]), after)]


def _problems_block(status: Status) -> str:
    if not status.problems:
        return f"{status.warehouse}: nothing needs an operator"
    title = f"{status.warehouse}: {counted_noun(len(status.problems), 'problem')}"
    return block(title, *(f"- {in_sight(problem)}" for problem in status.problems))


def _publication_block(status: Status) -> str:
    publication = status.publication
    if publication["state"] != "published":
        return "Publication: none" if publication["state"] == "none" else "Publication: cannot be used"
    age = publication["last_hour_age_hours"]
    last = to_minute(publication["last_hour_utc"])
    drives, groups = counted_noun(publication["drive_count"], "drive"), counted_noun(publication["raid_group_count"], "RAID group")
    return block(
        "Publication",
        facts(
            [
                ("id", publication["publication_id"]),
                (
                    "published",
                    f"{to_minute(publication['published_at'])} UTC, {duration((status.at - publication['published_at']) / HOUR)} ago",
                ),
                ("last hour", f"{last} UTC, ended {duration(age)} ago" if last else "none yet has enough drives for a median"),
                ("holds", f"{counted_noun(publication['delivery_count'], 'delivery', 'deliveries')}; rows of {drives} in {groups}"),
            ]
        ),
    )


def _quarantined_block(row: Row) -> str:
    files, since = row["files"], f"{to_minute(row['quarantined_at'])} UTC, {duration(row['age_hours'])} ago"
    shown = [*files[:SHOWN], *([f"... and {human(len(files) - SHOWN)} more"] if len(files) > SHOWN else [])]
    named = [("source", row["source"]), ("since", since), *(("file" if n == 0 else "", name) for n, name in enumerate(shown))]
    why = [("why" if number == 0 else "", reason) for number, reason in enumerate(row["reasons"])]
    return block(
        f"Quarantine {row['number']}: none of it has landed",
        facts([*named, *why, ("to land it", row["release"]), ("to remove it", row["drop"])]),
    )


def _freshness_blocks(freshness: Row, bounds: Row) -> list[str]:
    groups, drives = freshness["lagging_groups"], freshness["silent_drives"]
    behind: Columns = {"last hour": "last_hour_utc", "behind": ("lag_hours", duration)}
    lagging, last = duration(bounds["lagging_hours"]), to_minute(freshness["last_hour_utc"])
    blocks = [] if groups["count"] else [f"RAID groups: none is more than {lagging} behind the fleet's last hour"]
    blocks += _listed(
        groups,
        f"RAID groups more than {lagging} behind the fleet's last hour, {last}",
        {"RAID group": "raid_group_id", "drives": "drive_count", **behind},
        after="without a last hour: inventory names the group, but none of its rows ever arrived" if _has_never(groups) else "",
    )
    blocks += _listed(
        drives,
        f"Drives of the inventory without a row in their RAID group's last {duration(bounds['silent_hours'])}",
        {**DRIVE, "role": "role", **behind},
        after="without a last hour: it never reported" if _has_never(drives) else "",
    )
    unknown = freshness["drives_without_inventory"]
    what = f"Drives with rows but no inventory: {human(unknown['count'])} (they count as data drives)"
    return blocks + _listed(unknown, what, {**DRIVE, **HOURS}, is_counted=False)


def _turned_away_blocks(status: Status) -> list[str]:
    reasons = status.rejected["reasons"]
    rejected = "Rejected rows: none"
    if reasons:
        columns: Columns = {
            "rows": ("count", human), "source": "source", "column": "column", "reason": "reason", "last (UTC)": "last_rejected_at",
            "for example": "written", "row": "row",
        }  # fmt: skip
        rows = [{**row, "written": "null" if row["value"] is None else repr(row["value"])} for row in reasons[: 2 * SHOWN]]
        rejected = block(f"Rejected rows: {human(status.rejected['count'])}", table_with_files(rows, columns, len(reasons)))
    files: Columns = {"source": "source", "file": "file", "came (UTC)": "ingested_at", "why": "note"}
    files["landed since"] = ("is_replaced", lambda is_replaced: "yes" if is_replaced else "no")
    return [rejected, *_listed(status.unreadable_files, "Unreadable files", files)]


def _window_blocks(inventory: Row, window: Row, bounds: Row) -> list[str]:
    span = f"(hours from {to_minute(window['first_hour_utc'])} on, the last {bounds['status_window_days']} days of the fleet)"
    kinds = "(ingest lsblk or smartctl of the host, give --kind, or say it with `drivetail map`)"
    unjudged = inventory["unjudged_hosts"]
    judged = f"Not judged, or of no known kind: {counted_noun(sum(row['drive_count'] for row in unjudged['rows']), 'drive')}"
    hidden = any(row["reason"] == "behind a RAID controller" for row in unjudged["rows"])
    mixed, fewest = inventory["mixed_groups"], inventory["fewest_drives"]
    few = [row["raid_group_id"] for row in mixed["rows"][:SHOWN] if row["drive_count"] < fewest]
    shared = inventory["shared_serials"]
    host, _, device = ((shared["rows"] or [{}])[0].get("devices") or "HOST/DEVICE").split(", ")[0].rpartition("/")
    return [
        *_listed(
            inventory["contradictions"],
            "Drives whose rows name another RAID group than inventory; the rows count",
            {**DRIVE, "by inventory": "inventory_raid_group_id", "hours": "hours", **HOURS},
            before=span,
        ),
        *_listed(
            unjudged,
            judged,
            {"host": "host", "why": "reason", "drives": "drive_count", "which": ("drives", in_short)},
            after="behind a RAID controller the kernel sees the logical drive: no source here can show the drives behind it"
            if hidden
            else "",
            is_counted=False,
        ),
        *_listed(
            inventory["unnamed_drives"],
            "Drives known by their device only",
            {**DRIVE, **HOURS},
            before="(ingest lsblk or smartctl of the host, or say it with `drivetail map`)",
        ),
        *_listed(
            inventory["guessed_groups"],
            "Drives whose RAID group is only their host",
            {**DRIVE, "last hour": "last_hour_utc"},
            before="(run deploy/membership.sh on the host: POSIX shell, no Python; or say it with `drivetail map`)",
        ),
        *_listed(
            inventory["unknown_kinds"],
            "Drives of unknown kind, compared with each other, or with an array of one known kind",
            {**DRIVE, "last hour": "last_hour_utc"},
            before=kinds,
        ),
        *_listed(
            mixed,
            "RAID groups of several kinds of drives, each kind compared among itself",
            {"named": "named_raid_group_id", "compared as": "raid_group_id", "kind": "peer_kind", "drives": "drive_count"},
            after=f"compared with nothing, of fewer than {fewest:g} drives: {', '.join(few)}" if few else "",
            is_counted=False,
        ),
        *_listed(
            shared,
            "Serials that several devices share, so that they name none",
            {"serial": "serial", "devices": "devices", "why": "reason"},
            after="(each goes by HOST/DEVICE; to name one, give `drivetail map` a CSV file with a row for it, such as)\n"
            f"host,device,drive_id\n{host},{device},ITS-OWN-SERIAL",
        ),
        *_listed(
            inventory["disagreements"],
            "Sources disagree",
            {"drive": "drive_id", "attribute": "attribute", "believed": "believed", "said": "said"},
        ),
        *_listed(
            window["groups_with_gaps"],
            "RAID groups with hours missing or without a valid median",
            {"RAID group": "raid_group_id", "hours": "hours", "missing": "missing_hours", "no median": "hours_without_median", **HOURS},
            before=span,
        ),
        *_listed(
            window["drives_with_gaps"],
            "Drives without a row in hours that their RAID group has",
            {**DRIVE, "hours": "hours", "missing": "missing_hours", **HOURS},
            before=span,
        ),
        *_listed(
            window["paths"],
            "Drives of several paths, added up",
            {"drive": "drive_id", "host": "host", "devices": "device", "hours added": "path_hours"},
        ),
        *_outcomes_block(window, span),
    ]


def _outcomes_block(window: Row, span: str) -> list[str]:
    """Outcomes of the drive-hours of the last days."""
    merged = {
        "another source, or another name of the drive, reported the same hour": window["merged"]["other_hours"],
        "another path to the drive, added up with the first": window["merged"]["path_hours"],
    }
    outcomes = [(row["outcome"], row["drive_hours"]) for row in window["drive_hours"]] + list(merged.items())
    total = sum(hours for _, hours in outcomes)
    if not total:
        return []
    rows = [{"outcome": why, "drive_hours": hours, "share": f"{hours / total:7.2%}"} for why, hours in outcomes if hours]
    columns: Columns = {"outcome": "outcome", "drive-hours": ("drive_hours", lambda count: f"{count:>11,}"), "  share": "share"}
    undirected = window["slowdowns_without_directions"]
    why = "their source gives one latency for both, or too few peers read or wrote"
    note = f"{human(undirected)} of those with a slowdown have no slowdown of reads or of writes: {why}" if undirected else ""
    days = f"those of another source, name or path are of whole days, from {window['merged']['first_day_utc']} on"
    title = f"What became of {human(total)} accepted drive-hours"
    return [block(title, span, table(rows, columns), note, days if any(merged.values()) else "")]


def in_short(names: str) -> str:
    """The first of some names, and how many more there are."""
    named = names.split(", ")
    return ", ".join(named[:SHOWN]) + (f" and {len(named) - SHOWN} more" if len(named) > SHOWN else "")


def _landed_block(status: Status) -> str:
    landed = status.landed
    if not landed["delivery_count"]:
        return "Landed: nothing"
    last, files = landed["last_delivery"], landed["files"]
    sources: list[Row] = [*landed["by_source"]]
    if len(sources) > 1:
        every = {"source": "all", "record_kind": None, "status": None, "file_count": sum(files.values()), "last_ingested_at": None}
        sources.append({**every, **landed["rows"]})
    counts = {"files": "file_count", "in": "delivered", **{name: name for name in ("accepted", "rejected", "duplicate", "superseded")}}
    # with thousands written out the numbers are text: they are put to the right here
    width = {key: max(len(heading), *(len(human(row[key])) for row in sources)) for heading, key in counts.items()}
    rows = [{**row, **{key: human(row[key]).rjust(width[key]) for key in counts.values()}} for row in sources]
    columns: Columns = {"source": "source", "records": "record_kind", "status": "status"}
    columns |= {heading.rjust(width[key]): key for heading, key in counts.items()}
    columns["last (UTC)"] = "last_ingested_at"
    rolled_up, pruned = landed["rolled_up_superseded"], landed["pruned"]
    return block(
        f"Landed: {counted_noun(landed['delivery_count'], 'delivery', 'deliveries')}",
        facts(
            [
                (
                    "hours",
                    f"{to_minute(landed['first_hour_utc'])} to {to_minute(landed['last_hour_utc'])}"
                    if landed["first_hour_utc"]
                    else "none",
                ),
                (
                    "pruned",
                    pruned
                    and f"{counted_noun(pruned['row_count'], 'drive-hour')} of raw before {pruned['before_utc']:%Y-%m-%d}; "
                    "no more are taken",
                ),
                ("files", ", ".join(f"{human(count)} {name}" for name, count in files.items() if count)),
                (
                    "last delivery",
                    last
                    and f"{last['delivery_seq']}, source {last['source']}, {to_minute(last['ingested_at'])} UTC: "
                    f"{counted_noun(last['rows_delivered'], 'row')} in {counted_noun(last['file_count'], 'file')}",
                ),
            ]
        ),
        "rows in all (one that a later delivery replaced is superseded here, and accepted in its file):",
        table(rows, columns),
        f"{counted_noun(rolled_up, 'rolled-up drive-hour')} lost a conflict later; their samples stay among the accepted"
        if rolled_up
        else "",
    )


def _has_never(listing: Row) -> bool:
    """Whether a printed row of it has no last hour."""
    return any(row["last_hour_utc"] is None for row in listing["rows"][:SHOWN])
