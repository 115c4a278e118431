"""Problems that need an operator, a sentence each."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import duckdb

from drivetail.ask.status.collect_quarantine import in_short
from drivetail.ask.status.collect_raw import UNBUILT_AFTER
from drivetail.ask.status.content import HOUR, Status
from drivetail.ask.status.listings import silence
from drivetail.service import SettingsError
from drivetail.service.settings import load_settings
from engine.read import fetch
from engine.warehouse import Warehouse
from ingest.contract.values import COUNTED_KINDS, TWO_MACHINES
from ingest.raw.store import Folder, lost_sentence
from report.words import counted_noun, duration, human, to_minute

REJECTED_SHARE = 0.01
"""More than this share of the last delivery's rows turned away: no longer stray bad rows, the sender has changed."""

UNREADABLE_FOR = timedelta(days=7)
"""An unreadable file is a problem until its like lands readable, and for this long: raw never forgets it, a monitor must."""

LIVE_WITHIN = timedelta(hours=24)
"""A delivery that came this soon after its last hour is live telemetry. An older one is, too, where hours go on as the clock does; else
history is being loaded, whose age says nothing."""

STALE_LEAST, ON_ITS_WAY = timedelta(hours=3), timedelta(hours=2)
"""How long a live feed may bring no newer hour at least, and how much later than usual a delivery may be: as long again, but no longer
than the second."""

VALID_WITHIN = timedelta(hours=2)
"""How far the last valid RAID-hour may be behind the hours that are built."""

NAMED = 5
"""RAID groups or hosts that a sentence names; the listing has more."""


ROOM_FOR = 3
"""Publications that must fit beside what is there: the one of a build, that of the custom models, and what a build computes."""

AHEAD = timedelta(days=1)
"""How far the last hour may be ahead of this machine's clock: a time zone taken for UTC is less."""


def find_problems(status: Status, raw: duckdb.DuckDBPyConnection, folders: list[Folder], built: set[int] | None) -> Iterator[str]:
    """Problems that need an operator, most urgent first."""
    if status.lost_deliveries:
        yield lost_sentence(Path(status.warehouse) / "raw", status.lost_deliveries)
    if status.damaged_files:
        others = f" and {human(len(status.damaged_files) - 1)} more" if len(status.damaged_files) > 1 else ""
        yield f"{status.damaged_files[0]}{others}: cut or gone; `drivetail build --full-refresh` computes it again from raw"
    if status.published_bytes is not None and status.free_bytes < ROOM_FOR * status.published_bytes:
        size = (
            f"{human(status.free_bytes)} bytes are free, fewer than {ROOM_FOR} publications of {human(status.published_bytes)} bytes need"
        )
        yield f"{status.warehouse}: {size}; make room (docs/runbooks/no-room.md)"
    if status.failed_build:
        yield f"the last build failed ({to_minute(status.failed_build['at'])}): {status.failed_build['message']}"
    ended_at, wrong = _ended_at(Warehouse(Path(status.warehouse)))
    if wrong and wrong not in (status.failed_build or {}).get("message", ""):
        yield wrong
    if status.other_models:
        yield status.other_models
    if built is None:
        yield status.publication["message"]
    elif late := status.unbuilt["late_count"]:
        landed = f"{counted_noun(late, 'delivery', 'deliveries')} landed more than {duration(UNBUILT_AFTER / HOUR)} ago"
        yield f"{landed} and no build has taken {'it' if late == 1 else 'them'} in: run `drivetail build`"
    if status.quarantined["count"]:
        row, others = status.quarantined["rows"][0], status.quarantined["count"] - 1
        held = f"quarantine {row['number']}, {counted_noun(len(row['files']), 'file')} of source {row['source']} held since"
        more = f"; {counted_noun(others, 'more delivery', 'more deliveries')} quarantined after it" if others else ""
        yield f"{held} {to_minute(row['quarantined_at'])}: {in_short(row['reasons'])}; `{row['release']}` or `{row['drop']}`{more}"
    yield from _counting_problems(status, raw)
    yield from _feed_problems(status, raw, folders, built, ended_at or status.at)
    last = (status.window or {}).get("last_hour_utc")
    if last is not None and last > status.at + AHEAD:
        yield (
            f"the last hour published, {to_minute(last)}, is {duration((last - status.at) / HOUR)} ahead of this machine's clock: "
            "correct the clock that is wrong, the sender's or this one's (docs/runbooks/clock.md)"
        )
    if status.freshness and (stopped := status.freshness["stopped_group_count"]):
        rows = status.freshness["lagging_groups"]["rows"][: min(stopped, NAMED)]
        names = ", ".join(f"{row['raid_group_name']} ({duration(row['lag_hours'])} behind the fleet)" for row in rows)
        more = f" and {human(stopped - NAMED)} more" if stopped > NAMED else ""
        yield f"{counted_noun(stopped, 'RAID group')} stopped reporting: {names}{more}"
    if status.freshness and (hosts := status.freshness["silent_hosts"])["count"]:
        more = f"; and {human(hosts['count'] - NAMED)} more hosts" if hosts["count"] > NAMED else ""
        yield f"{'; '.join(silence(row) for row in hosts['rows'][:NAMED])}{more}"
    unreadable = [
        row for row in status.unreadable_files["rows"] if not row["is_replaced"] and status.at - row["ingested_at"] < UNREADABLE_FOR
    ]
    if unreadable:
        others = f" (and {counted_noun(len(unreadable) - 1, 'other')})" if len(unreadable) > 1 else ""
        yield f"{unreadable[0]['file']} could not be read: {unreadable[0]['note']}{others}; send it again"
    for number, source in raw.execute(
        "select distinct delivery_seq, source from landed_files where contains(note, $1) and ingested_at > $2 order by delivery_seq",
        [TWO_MACHINES, status.at - UNREADABLE_FOR],
    ).fetchall():
        differ = f"delivery {number} has drive-hours that differ from others of the same devices and times"
        drop = f"`drivetail drop --landed {number}` takes it back"
        yield f"{differ}. {TWO_MACHINES} docs/sources/{source}.md says how to tell hosts apart; {drop}"
    yield from status.custom_failures
    delivery = status.landed["last_delivery"]
    if delivery and delivery["rows_rejected"] > REJECTED_SHARE * delivery["rows_delivered"]:
        rejected = f"{human(delivery['rows_rejected'])} of {human(delivery['rows_delivered'])} rows were rejected"
        yield f"delivery {delivery['delivery_seq']}: {rejected}, more than {REJECTED_SHARE:.0%}"


def _counting_problems(status: Status, raw: duckdb.DuckDBPyConnection) -> list[str]:
    """Counts that do not add up: within a file, against the rejected records, against what is stored."""
    unequal = fetch(
        raw,
        """
        select file, rows_delivered, rows_accepted + rows_rejected + rows_duplicate + rows_superseded as judged
        from landed_files where rows_delivered <> judged order by delivery_seq, file_no limit 3
        """,
    )
    found = [f"{row['file']}: {human(row['rows_delivered'])} rows were delivered, {human(row['judged'])} judged" for row in unequal]
    rejected, kept = status.landed["rows"]["rejected"], status.rejected["count"]
    if rejected != kept:
        found.append(f"{human(rejected)} rows were rejected according to their files, {human(kept)} according to the rejected records")
    # a warehouse that holds rolled-up samples has records that no file counts
    if raw.execute("select count(*) from rolled_up").fetchall() == [(0,)]:
        for kind in COUNTED_KINDS:
            accepted = sum(row["accepted"] for row in status.landed["by_source"] if row["record_kind"] == kind)
            stored = status.landed["stored_rows"][kind]
            if accepted != stored:
                found.append(f"{human(accepted)} {kind} are accepted over the warehouse, {human(stored)} are stored")
    return [f"counts do not add up: {sentence}; restore {status.warehouse}/raw from a copy" for sentence in found]


def _feed_problems(
    status: Status, raw: duckdb.DuckDBPyConnection, folders: list[Folder], built: set[int] | None, due_until: datetime
) -> Iterator[str]:
    """Whether newer hours should be here. Only live telemetry can be late: a fleet of another year, loaded today, is not."""
    ingested_at: dict[int, datetime] = dict(raw.execute("select delivery_seq, ingested_at from deliveries").fetchall())
    hours = (
        pair for each in folders for pair in (each.packed("delivery_seq", "last_hour") if each.level else [(each.seq, each.last_hour)])
    )
    came = [(ingested_at[seq], hour, seq) for seq, hour in hours if hour is not None and seq in ingested_at]
    last, allowed = rhythm((at, hour) for at, hour, _ in came)
    if last is not None and (age := status.at - last - HOUR) > allowed and due_until >= status.at:
        yield f"no hour after {to_minute(last)} has landed for {duration(age / HOUR)}; one was due within {duration(allowed / HOUR)}"
    newest = status.publication.get("last_hour_utc")
    recent = [hour for at, hour, seq in came if seq in (built or ()) and status.at - at < timedelta(days=1)]
    if recent and (newest is None or max(recent) - newest > VALID_WITHIN):
        valid = f"the last valid RAID-hour is {to_minute(newest)}" if newest else "no RAID-hour is valid"
        landed = f"hours up to {to_minute(max(recent))} landed within the last day and are built"
        yield f"{landed}, but {valid}: {_why_not_valid(status)}"


def _ended_at(warehouse: Warehouse) -> tuple[datetime | None, str]:
    """When the fleet's telemetry ended according to the settings, and what is wrong with these, which stops what reads them."""
    try:
        return load_settings(warehouse).schedule.end, ""
    except SettingsError as error:
        return None, str(error) if warehouse.settings.exists() else ""


def rhythm(came: Iterable[tuple[datetime, datetime]]) -> tuple[datetime | None, timedelta]:
    """The last hour of live telemetry, and how old it may get: from when deliveries landed, and the last hour of each. A single one has
    no rhythm, and of many only those count that brought a newer hour.
    """
    newer: list[tuple[datetime, datetime]] = []
    live = []
    for at, hour in sorted(came):
        if at - hour < -HOUR or (newer and hour <= newer[-1][1]):
            continue
        gap, went_on = (at - newer[-1][0], hour - newer[-1][1]) if newer else (timedelta(), timedelta.max)
        if at - hour - HOUR <= LIVE_WITHIN or abs(went_on - gap) <= gap / 2:
            live.append((at, hour))
        newer.append((at, hour))
    if len(live) < 2:
        return None, STALE_LEAST
    recent = live[-25:]
    usual = timedelta(seconds=statistics.median((later - earlier).total_seconds() for (earlier, _), (later, _) in pairwise(recent)))
    lag = timedelta(seconds=statistics.median((at - hour - HOUR).total_seconds() for at, hour in recent))
    return live[-1][1], max(STALE_LEAST, usual + lag + min(usual, ON_ITS_WAY))


def _why_not_valid(status: Status) -> str:
    """Outcomes of the drive-hours where none has a slowdown, else a guess."""
    outcomes = {row["outcome"]: row["drive_hours"] for row in (status.window or {}).get("drive_hours", ()) if row["drive_hours"]}
    if not outcomes or "with a slowdown" in outcomes:
        return "groups with too few drives, or a clock that is ahead?"
    return "of the drive-hours " + ", ".join(f"{human(hours)} are `{outcome}`" for outcome, hours in outcomes.items())
