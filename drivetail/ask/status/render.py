"""A status as text."""

from __future__ import annotations

from drivetail.ask.status.content import HOUR, Status
from drivetail.ask.status.listings import HOURS, LISTINGS, SHOWN, SPAN
from drivetail.terminal import Columns, block, table, table_with_files
from engine.read import Row
from ingest.reading.text import in_sight
from report.words import counted_noun, duration, human, to_minute


def render_status(status: Status) -> str:
    """The status as text: titled blocks, most important first; a block that has nothing to say is one line or absent."""
    blocks = [_problems_block(status), _publication_block(status)]
    title = "Landed, not yet built" if status.publication["state"] == "published" else "Landed, in no publication"
    columns: Columns = {
        "delivery": "delivery_seq", "source": "source", "landed (UTC)": "ingested_at", "ago": ("age_hours", duration), **HOURS,
        "rows in": ("rows_delivered", human),
    }  # fmt: skip
    title += f": {counted_noun(status.unbuilt['count'], 'delivery', 'deliveries')}"
    blocks += _listed(status.unbuilt, title, columns, "", "run `drivetail build`")
    blocks += [_quarantined_block(row) for row in status.quarantined["rows"][:SHOWN]]
    if status.quarantined["count"] > SHOWN:
        blocks.append(
            f"... and {human(status.quarantined['count'] - SHOWN)} more quarantined deliveries; `drivetail status --format json` lists them"
        )
    blocks += _part_blocks(status, "freshness", status.freshness)
    blocks += _turned_away_blocks(status)
    if status.window is not None and status.window["last_hour_utc"] is not None:
        blocks += _part_blocks(status, "inventory", status.inventory) + _part_blocks(status, "window", status.window)
        blocks += _outcomes_block(status.window, SPAN.format(first_hour=to_minute(status.window["first_hour_utc"]), **status.thresholds))
    blocks.append(_landed_block(status))
    return "\n\n".join(blocks)


def _listed(listing: Row, title: str, columns: Columns, above: str = "", below: str = "") -> list[str]:
    return [block(title, above, table(listing["rows"][:SHOWN], columns, listing["count"]), below)] if listing["count"] else []


def _part_blocks(status: Status, name: str, part: Row | None) -> list[str]:
    """The listings of a part that have rows, each with its count."""
    if part is None:
        return []
    named = {**status.thresholds, **(status.inventory or {}), "last_hour": to_minute((status.freshness or {}).get("last_hour_utc"))}
    named["first_hour"] = to_minute((status.window or {}).get("first_hour_utc"))
    blocks = []
    for key, each in LISTINGS[name].items():
        title = f"{each.title.format(**named)}: {human(part[key]['count'])}"
        below = "".join(each.below.format(**row) for row in part[key]["rows"][:1])
        above = each.above.format(**named) if any(map(each.about, part[key]["rows"])) else ""
        blocks += _listed(part[key], title, each.columns, above, below)
    return blocks


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
        [
            ("id", publication["publication_id"]),
            (
                "published",
                f"{to_minute(publication['published_at'])} UTC, {duration((status.at - publication['published_at']) / HOUR)} ago",
            ),
            ("last hour", f"{last} UTC, ended {duration(age)} ago" if last else "none yet has enough drives for a median"),
            ("holds", f"{counted_noun(publication['delivery_count'], 'delivery', 'deliveries')}; rows of {drives} in {groups}"),
        ],
    )


def _quarantined_block(row: Row) -> str:
    files, since = row["files"], f"{to_minute(row['quarantined_at'])} UTC, {duration(row['age_hours'])} ago"
    shown = [*files[:SHOWN], *([f"... and {human(len(files) - SHOWN)} more"] if len(files) > SHOWN else [])]
    named = [("source", row["source"]), ("since", since), *(("file" if n == 0 else "", name) for n, name in enumerate(shown))]
    why = [("why" if number == 0 else "", reason) for number, reason in enumerate(row["reasons"])]
    return block(
        f"Quarantine {row['number']}: none of it has landed",
        [*named, *why, ("to land it", row["release"]), ("to remove it", row["drop"])],
    )


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
    return [rejected, *_listed(status.unreadable_files, f"Unreadable files: {human(status.unreadable_files['count'])}", files)]


def _outcomes_block(window: Row, span: str) -> list[str]:
    merged = {
        "another source, or another name of the drive, reported the same time": window["merged"]["other_spans"],
        "another path to the drive, added up with the first": window["merged"]["path_spans"],
        "another part of the hour, added up with the first": window["merged"]["part_spans"],
        "belongs to no drive: its name may have passed from one to another meanwhile": window["merged"]["changed_spans"],
    }
    outcomes = [(row["outcome"], row["drive_hours"]) for row in window["drive_hours"]] + list(merged.items())
    total = sum(hours for _, hours in outcomes)
    if not total:
        return []
    rows = [{"outcome": why, "drive_hours": hours, "share": hours / total} for why, hours in outcomes if hours]
    columns: Columns = {"outcome": "outcome", "drive-hours": ("drive_hours", human), "share": ("share", "{:.2%}".format)}
    undirected = window["slowdowns_without_directions"]
    why = "their source gives one latency for both, or too few peers read or wrote"
    note = f"{human(undirected)} of those with a slowdown have no slowdown of reads or of writes: {why}" if undirected else ""
    unjudged = ", ".join(f"{human(row['drive_hours'])} {row['reason']}" for row in window["not_judged"] if row["drive_hours"])
    judged = f"of those with a slowdown these count for no verdict (docs/alerts.md, Evidence): {unjudged}" if unjudged else ""
    days = f"those of another source, name, path or part of an hour are of whole days, from {window['merged']['first_day_utc']} on"
    title = f"What became of {human(total)} accepted drive-hours"
    return [block(title, span, table(rows, columns), judged, note, days if any(merged.values()) else "")]


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
    columns: Columns = {"source": "source", "records": "record_kind", "status": "status"}
    columns |= {heading: (key, human) for heading, key in counts.items()}
    columns["last (UTC)"] = "last_ingested_at"
    rolled_up, pruned = landed["rolled_up_superseded"], landed["pruned"]
    return block(
        f"Landed: {counted_noun(landed['delivery_count'], 'delivery', 'deliveries')}",
        [
            (
                "hours",
                f"{to_minute(landed['first_hour_utc'])} to {to_minute(landed['last_hour_utc'])}" if landed["first_hour_utc"] else "none",
            ),
            (
                "pruned",
                pruned
                and f"{counted_noun(pruned['row_count'], 'drive-hour')} of raw before {pruned['before_utc']:%Y-%m-%d}; no more are taken",
            ),
            ("files", ", ".join(f"{human(count)} {name}" for name, count in files.items() if count)),
            (
                "last delivery",
                last
                and f"{last['delivery_seq']}, source {last['source']}, {to_minute(last['ingested_at'])} UTC: "
                f"{counted_noun(last['rows_delivered'], 'row')} in {counted_noun(last['file_count'], 'file')}",
            ),
        ],
        "rows in all (one that a later delivery replaced is superseded here, and accepted in its file):",
        table(sources, columns),
        f"{counted_noun(rolled_up, 'rolled-up drive-hour')} lost a conflict later; their samples stay among the accepted"
        if rolled_up
        else "",
    )
