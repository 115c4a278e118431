"""node_exporter's states of md arrays (`node_md_state`) -> rebuild and scrub events of the drives of each array."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.findings import some_of
from ingest.raw.known import landed_groups
from ingest.reading.batches import batch_of
from ingest.reading.hosts import spans
from ingest.sources.mdadm import IDLE_STATES, SYNC_OF, sync_event

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

STATE = "node_md_state"
MAX_GAP = timedelta(hours=1)
"""Readings farther apart do not say what the array did in between. The model int_drive_events__identified joins spans as close as that."""
ARRAY: dict[str, pl.DataType] = {
    **dict.fromkeys(("host", "path", "md"), pl.String()),
    "at": pl.Datetime("us"),
    "state": pl.String(),
    "is_on": pl.Boolean(),
    **dict.fromkeys(("device", "raid_group_id"), pl.String()),
}
"""A reading of an array: of one of its states, or of one of its drives, which has no state."""
_WORK: dict[str, pl.DataType] = {
    **dict.fromkeys(("host", "md", "state"), pl.String()),
    **dict.fromkeys(("begun", "ended"), pl.Datetime("us")),
    "is_running": pl.Boolean(),
    "is_only": pl.Boolean(),
    "file_no": pl.Int64(),
}
_UUID = re.compile("[0-9A-Fa-f]{8}(:[0-9A-Fa-f]{8}){3}")


def arrays_of(states: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Samples of `node_md_state` (host, device, path, at, labels, number) and memberships -> ARRAY."""
    said = states.filter(pl.col("number").is_finite()).select(
        "host", "path", pl.col("device").alias("md"), "at", pl.col("labels").str.json_path_match("$.state").alias("state"),
        (pl.col("number") > 0).alias("is_on"),
    ).drop_nulls("state")  # fmt: skip
    drives = members.select("host", "path", pl.col("array_name").alias("md"), "at", "device", "raid_group_id")
    return pl.concat([pl.DataFrame(schema=ARRAY), said, drives], how="diagonal")


def works_of(seen: pl.DataFrame) -> pl.DataFrame:
    """Readings (ARRAY, `file_no`) -> a row per array, state in which it does more than its work, span of it, and drive: host, md, state,
    begun, ended, is_running, is_only, file_no, device, raid_group_id.

    A span ends with the first reading without the state; one that `is_running`, with the last of the readings, or before a gap in them,
    null where that is its only one. `is_only`: the host shows no other array. Drives are those at the end of the span, else the next that
    are known; one row without a drive where none are.
    """
    array = ["host", "md"]
    states = seen.filter(pl.col("state").is_not_null())
    is_work = pl.col("is_on") & ~pl.col("state").is_in(IDLE_STATES)
    looks = states.join(states.filter(is_work), on=array, how="semi").group_by(*array, "at").agg(
        pl.col("state").replace(SYNC_OF).filter(is_work).unique().sort().str.join("\n").alias("states"), pl.col("file_no").first()
    ).sort(*array, "at")  # fmt: skip
    looks = looks.with_columns((pl.col("at").diff() > MAX_GAP).fill_null(False).cum_sum().over(array).alias("part"))
    # a look that finds the same as the one before says only how long that lasts
    place, is_new = [*array, "part"], pl.col("states").ne_missing(pl.col("states").shift(1))
    kept = looks.filter((is_new | (pl.col("at") == pl.col("at").min()) | (pl.col("at") == pl.col("at").max())).over(place))
    counts = dict(states.group_by("host").agg(pl.col("md").n_unique()).iter_rows())
    found: list[dict[str, Any]] = []
    for (host, md, _), part in kept.partition_by(place, as_dict=True, maintain_order=True).items():
        told = [(at, states.split("\n") if states else []) for at, states in part.select("at", "states").iter_rows()]
        files = dict(part.select("at", "file_no").iter_rows())
        for state, begun, ended in spans(told):
            is_running = ended in (None, told[-1][0]) and state in told[-1][1]
            about = {"host": host, "md": md, "state": state, "is_only": counts[host] == 1, "file_no": files[begun]}
            found.append({**about, "begun": begun, "ended": ended, "is_running": is_running})
    works = pl.DataFrame(found, schema=_WORK).with_columns(pl.coalesce("ended", "begun").alias("at")).sort("at")
    members = (
        seen.filter(pl.col("state").is_null())
        .join(works, on=array, how="semi")
        .unique([*array, "at", "device"], keep="first", maintain_order=True)
    )
    known = members.select(*array, "at", pl.col("at").alias("known_at")).unique().sort("at")
    last = works.join_asof(known, on="at", by=array, check_sortedness=False)["known_at"]
    following = works.join_asof(known, on="at", by=array, strategy="forward", check_sortedness=False)["known_at"]
    drives = members.select(*array, pl.col("at").alias("known_at"), "device", "raid_group_id")
    return works.with_columns(last.fill_null(following)).join(drives, on=[*array, "known_at"], how="left").drop("at", "known_at")


def take_works(works: pl.DataFrame, landing: Landing) -> None:
    """Stage an event of each drive of arrays that do more than their work, of works_of(); notes name what none can be made of.

    Drives that the readings do not name are those whose RAID group has landed: one named after the array, else the UUID of an only array.
    """
    is_known = pl.col("state").is_in(list(SYNC_OF))
    others = works.filter(~is_known).select("state", "host", "md").unique().sort("state", "host", "md")
    works = works.filter(is_known)
    groups: dict[str, dict[str, list[tuple[str, bool]]]] = {}
    unnamed = works.filter(pl.col("device").is_null())
    for host, drive, is_alias, group in landed_groups(unnamed["host"].unique(), landing).iter_rows() if unnamed.height else ():
        groups.setdefault(host, {}).setdefault(group, []).append((drive, is_alias))
    events: dict[int, dict[tuple[str, datetime, str], dict[str, Any]]] = {}
    unknown: set[str] = set()
    for row in works.sort("begun", "host", "md", "state", "device").iter_rows(named=True):
        host, group = row["host"], row["raid_group_id"]
        drives = [(f"{host}/{row['device']}", True)]
        if row["device"] is None:
            uuids = [name for name in groups.get(host, {}) if _UUID.fullmatch(name)]
            group = uuids[0] if row["is_only"] and len(uuids) == 1 else f"{host}/{row['md']}"
            drives = groups.get(host, {}).get(group, [])
        unknown |= set() if drives else {f"{host}/{row['md']}"}
        for drive, is_alias in drives:
            event = sync_event(drive, group, row["state"], row["begun"], row["ended"], is_running=row["is_running"])
            key = (drive, row["begun"], event["event_type"])
            events.setdefault(row["file_no"], {}).setdefault(key, {**event, "is_alias": is_alias})
    for number, of_file in events.items():
        landing.take(replace(batch_of("drive_events", of_file.values()), is_beside=True), landing.by_no[number])
    notes = []
    if others.height:
        said = some_of([f"`{state}` of {host}/{md}" for state, host, md in others.iter_rows()])
        notes.append(f"{STATE} says {said}, which is not known: alerts are not held back for it")
    if unknown:
        notes.append(
            f"{some_of(sorted(unknown))} had a check, resync or recovery, and no drive of it is known, so alerts are not held back for it: "
            "install deploy/membership.sh there (a drive in several arrays counts in the one that has most of its bytes)"
        )
    if notes:
        landing.by_no[max(landing.by_no)].notes += notes
