"""A status as text."""

from __future__ import annotations

from drivetail.ask.status.content import HOUR, Status
from drivetail.console import Columns, block, facts, table, table_with_files
from engine.read import Row
from ingest.reading.text import in_sight
from report.words import counted_noun, duration, human, to_minute

SHOWN = 10
"""Rows that a listing of the text shows."""


def render_status(status: Status) -> str:
    """The status as text: titled blocks, most important first; a block that has nothing to say is one line or absent."""
    blocks = [_problems_block(status), _publication_block(status)]
    if status.unbuilt["count"]:
        title = "Landed, not yet built" if status.publication["state"] == "published" else "Landed, in no publication"
        blocks.append(
            block(
                f"{title}: {counted_noun(status.unbuilt['count'], 'delivery', 'deliveries')}",
                _list(
                    status.unbuilt,
                    {
                        "delivery": "delivery_seq",
                        "source": "source",
                        "landed (UTC)": "ingested_at",
                        "ago": ("age_hours", duration),
                        "first hour": "first_hour_utc",
                        "last hour": "last_hour_utc",
                        "rows in": ("rows_delivered", human),
                    },
                ),
                "run `drivetail build`",
            )
        )
    blocks += [_quarantined_block(row) for row in status.quarantined["rows"][:SHOWN]]
    if status.quarantined["count"] > SHOWN:
        blocks.append(
            f"... and {human(status.quarantined['count'] - SHOWN)} more quarantined deliveries; `drivetail status --format json` lists them"
        )
    if status.freshness is not None:
        blocks += _freshness_blocks(status.freshness, status.thresholds)
    blocks += _turned_away_blocks(status)
    if status.inventory is not None and status.window is not None:
        blocks += _window_blocks(status.inventory, status.window, status.thresholds)
    blocks.append(_landed_block(status))
    return "\n\n".join(blocks)


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
    last, groups, drives = freshness["last_hour_utc"], freshness["lagging_groups"], freshness["silent_drives"]
    unknown = freshness["drives_without_inventory"]
    hours: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}
    behind: Columns = {"last hour": "last_hour_utc", "behind": ("lag_hours", duration)}
    blocks = []
    if not groups["count"]:
        blocks.append(f"RAID groups: none is more than {duration(bounds['lagging_hours'])} behind the fleet's last hour")
    else:
        blocks.append(
            block(
                f"RAID groups more than {duration(bounds['lagging_hours'])} behind the fleet's last hour, {to_minute(last)}: "
                f"{human(groups['count'])}",
                _list(groups, {"RAID group": "raid_group_id", "drives": "drive_count", **behind}),
                "without a last hour: inventory names the group, but none of its rows ever arrived" if _has_never(groups) else "",
            )
        )
    if drives["count"]:
        blocks.append(
            block(
                f"Drives of the inventory without a row in their RAID group's last {duration(bounds['silent_hours'])}: "
                f"{human(drives['count'])}",
                _list(drives, {"drive": "drive_id", "RAID group": "raid_group_id", "role": "role", **behind}),
                "without a last hour: it never reported" if _has_never(drives) else "",
            )
        )
    if unknown["count"]:
        blocks.append(
            block(
                f"Drives with rows but no inventory: {human(unknown['count'])} (they count as data drives)",
                _list(unknown, {"drive": "drive_id", "RAID group": "raid_group_id", **hours}),
            )
        )
    return blocks


def _turned_away_blocks(status: Status) -> list[str]:
    blocks = []
    reasons = status.rejected["reasons"]
    if reasons:
        blocks.append(
            block(
                f"Rejected rows: {human(status.rejected['count'])}",
                table_with_files(
                    [{**row, "written": "null" if row["value"] is None else repr(row["value"])} for row in reasons[: 2 * SHOWN]],
                    {
                        "rows": ("count", human),
                        "source": "source",
                        "column": "column",
                        "reason": "reason",
                        "last (UTC)": "last_rejected_at",
                        "for example": "written",
                        "row": "row",
                    },
                    len(reasons),
                ),
            )
        )
    else:
        blocks.append("Rejected rows: none")
    if status.unreadable_files["count"]:
        blocks.append(
            block(
                f"Unreadable files: {human(status.unreadable_files['count'])}",
                _list(
                    status.unreadable_files,
                    {
                        "source": "source",
                        "file": "file",
                        "came (UTC)": "ingested_at",
                        "why": "note",
                        "landed since": ("is_replaced", lambda is_replaced: "yes" if is_replaced else "no"),
                    },
                ),
            )
        )
    return blocks


def _window_blocks(inventory: Row, window: Row, bounds: Row) -> list[str]:
    if window["last_hour_utc"] is None:
        return []
    span = f"(hours from {to_minute(window['first_hour_utc'])} on, the last {bounds['status_window_days']} days of the fleet)"
    drive: Columns = {"drive": "drive_id", "RAID group": "raid_group_id"}
    hours: Columns = {"first hour": "first_hour_utc", "last hour": "last_hour_utc"}
    blocks = []
    contradictions, groups, drives = inventory["contradictions"], window["groups_with_gaps"], window["drives_with_gaps"]
    if contradictions["count"]:
        blocks.append(
            block(
                f"Drives whose rows name another RAID group than inventory; the rows count: {human(contradictions['count'])}",
                span,
                _list(contradictions, {**drive, "by inventory": "inventory_raid_group_id", "hours": "hours", **hours}),
            )
        )
    if (unjudged := inventory["unjudged_hosts"])["count"]:
        drives_at = sum(row["drive_count"] for row in unjudged["rows"])
        columns_unjudged: Columns = {"host": "host", "why": "reason", "drives": "drive_count", "which": ("drives", in_short)}
        note = "behind a RAID controller the kernel sees the logical drive: no source here can show the drives behind it"
        is_hidden = any(row["reason"] == "behind a RAID controller" for row in unjudged["rows"])
        blocks.append(
            block(
                f"Not judged, or of no known kind: {counted_noun(drives_at, 'drive')}",
                _list(unjudged, columns_unjudged),
                note if is_hidden else "",
            )
        )
    unnamed, guessed, disagreements = inventory["unnamed_drives"], inventory["guessed_groups"], inventory["disagreements"]
    if unnamed["count"]:
        what = f"Drives known by their device only: {human(unnamed['count'])}"
        blocks.append(
            block(what, "(ingest lsblk or smartctl of the host, or say it with `drivetail map`)", _list(unnamed, {**drive, **hours}))
        )
    if guessed["count"]:
        what = f"Drives whose RAID group is only their host: {human(guessed['count'])}"
        blocks.append(
            block(
                what,
                "(run deploy/membership.sh on the host: POSIX shell, no Python; or say it with `drivetail map`)",
                _list(guessed, {**drive, "last hour": "last_hour_utc"}),
            )
        )
    if (kinds := inventory["unknown_kinds"])["count"]:
        what = f"Drives of unknown kind, compared with each other, or with an array of one known kind: {human(kinds['count'])}"
        how = "(ingest lsblk or smartctl of the host, give --kind, or say it with `drivetail map`)"
        blocks.append(block(what, how, _list(kinds, {**drive, "last hour": "last_hour_utc"})))
    if (mixed := inventory["mixed_groups"])["count"]:
        what = "RAID groups of several kinds of drives, each kind compared among itself"
        parts: Columns = {"named": "named_raid_group_id", "compared as": "raid_group_id", "kind": "peer_kind", "drives": "drive_count"}
        fewest = inventory["fewest_drives"]
        few = [row["raid_group_id"] for row in mixed["rows"][:SHOWN] if row["drive_count"] < fewest]
        note = f"compared with nothing, of fewer than {fewest:g} drives: {', '.join(few)}" if few else ""
        blocks.append(block(what, _list(mixed, parts), note))
    if (shared := inventory["shared_serials"])["count"]:
        what = f"Serials that several devices share, so that they name none: {human(shared['count'])}"
        columns_shared: Columns = {"serial": "serial", "devices": "devices", "why": "reason"}
        host, _, device = (shared["rows"][0]["devices"] or "HOST/DEVICE").split(", ")[0].rpartition("/")
        how = "(each goes by HOST/DEVICE; to name one, give `drivetail map` a CSV file with a row for it, such as)"
        row = ("host,device,drive_id", f"{host},{device},ITS-OWN-SERIAL")
        blocks.append(block(what, _list(shared, columns_shared), how, *row))
    if disagreements["count"]:
        sides: Columns = {"drive": "drive_id", "attribute": "attribute", "believed": "believed", "said": "said"}
        blocks.append(block(f"Sources disagree: {human(disagreements['count'])}", _list(disagreements, sides)))
    if groups["count"]:
        blocks.append(
            block(
                f"RAID groups with hours missing or without a valid median: {human(groups['count'])}",
                span,
                _list(
                    groups,
                    {
                        "RAID group": "raid_group_id",
                        "hours": "hours",
                        "missing": "missing_hours",
                        "no median": "hours_without_median",
                        **hours,
                    },
                ),
            )
        )
    if drives["count"]:
        blocks.append(
            block(
                f"Drives without a row in hours that their RAID group has: {human(drives['count'])}",
                span,
                _list(drives, {**drive, "hours": "hours", "missing": "missing_hours", **hours}),
            )
        )
    if (paths := window["paths"])["count"]:
        of_paths: Columns = {"drive": "drive_id", "host": "host", "devices": "device", "hours added": "path_hours"}
        blocks.append(block(f"Drives of several paths, added up: {human(paths['count'])}", _list(paths, of_paths)))
    merged = {
        "another source, or another name of the drive, reported the same hour": window["merged"]["other_hours"],
        "another path to the drive, added up with the first": window["merged"]["path_hours"],
    }
    outcomes = [(row["outcome"], row["drive_hours"]) for row in window["drive_hours"]] + list(merged.items())
    if total := sum(hours for _, hours in outcomes):
        rows = [{"outcome": why, "drive_hours": hours, "share": f"{hours / total:7.2%}"} for why, hours in outcomes if hours]
        columns: Columns = {"outcome": "outcome", "drive-hours": ("drive_hours", lambda count: f"{count:>11,}"), "  share": "share"}
        undirected = window["slowdowns_without_directions"]
        why = "their source gives one latency for both, or too few peers read or wrote"
        note = f"{human(undirected)} of those with a slowdown have no slowdown of reads or of writes: {why}" if undirected else ""
        days = f"those of another source, name or path are of whole days, from {window['merged']['first_day_utc']} on"
        title = f"What became of {human(total)} accepted drive-hours"
        blocks.append(block(title, span, table(rows, columns), note, days if any(merged.values()) else ""))
    return blocks


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


def _list(listing: Row, columns: Columns) -> str:
    return table(listing["rows"][:SHOWN], columns, listing["count"]) if listing["count"] else ""


def _has_never(listing: Row) -> bool:
    """Whether a printed row of it has no last hour."""
    return any(row["last_hour_utc"] is None for row in listing["rows"][:SHOWN])
