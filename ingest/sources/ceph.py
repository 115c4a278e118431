"""Source `ceph`: latencies of OSDs, the drives behind them, their CRUSH root and device class, and what a cluster is doing to them.

Reads `ceph osd perf`, `osd metadata`, `osd tree`, `device ls` and `pg dump pgs_brief`, each as JSON in `CLUSTER/ceph*` below a line
`TS seconds` (docs/sources/ceph.md); or pulls the same from Prometheus, as the mgr module exports it. A drive is known by its host and
device, as diskstats and node_exporter know it. Its peers are the drives of one CRUSH root and device class.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial, reduce
from itertools import combinations, pairwise
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.contract.findings import some_of
from ingest.raw.durable import replace_file
from ingest.raw.known import landed_serials, stored_rows, unknown_rows
from ingest.reading.batches import Batch, Rejection, rejections
from ingest.reading.devices import alias_of, drive_of, is_placeholder, is_whole_drive, placeholder_note
from ingest.reading.devices import host_of as host_of_target
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import drive_device, each_look, host_of, json_documents, spans
from ingest.reading.overlap import behind, each_once
from ingest.reading.parse import HOUR_US, completed
from ingest.reading.readers import count_in, text_in
from ingest.reading.spans import with_spans
from ingest.sources.prometheus import forget as forget
from ingest.sources.prometheus import hours_of, spool
from ingest.sources.prometheus.client import Client, Series, server_url
from ingest.sources.prometheus.paths import telling
from ingest.sources.prometheus.pull import chunks, quoted, unix_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = (
    "CLUSTER/ceph*: what `ceph -f json` prints of `osd perf`, `osd metadata`, `osd tree`, `device ls` and `pg dump pgs_brief`, "
    "below a line `TS seconds`; or the address of a server (http://prometheus:9090)"
)
RECORD_KIND = "OSDs"
recognise = named(RECORD_KIND, "ceph.*")
MAX_GAP_SECONDS = 900
"""A look says how an OSD has been since the one before, but not for longer than this."""
PULL_SECONDS = 300
NO_OSD = 2**31 - 1
"""A place of a PG that no OSD holds."""
_MOST = 2**53
# states in which the mgr says that the cluster slows itself; waiting, and a scrub that reads no data, are left out
_WORK = {"recovering": "rebuild", "backfilling": "rebuild", "premerge": "rebuild", "deep": "scrub"}
_NO_ROOT = {"id": -1, "type": "root", "name": ""}
_KINDS = {"hdd": "disk", "ssd": "ssd", "nvme": "ssd"}

_ENTRY: dict[str, pl.DataType] = {
    "what": pl.String(),
    "cluster": pl.String(),
    "at": pl.Datetime("us"),
    "osd": pl.Int64(),
    "latency_us": pl.Float64(),
    **dict.fromkeys(("host", "device", "serial", "model", "kind", "place", "work", "fault"), pl.String()),
    "capacity_bytes": pl.Int64(),
    "rank": pl.Int64(),
    "row_no": pl.Int64(),
}
PERF, DRIVE, BESIDE, PLACE, WORK, LOOK = "perf", "drive", "beside", "place", "work", "look"
"""Facts of an entry on an OSD: its latency, its drive, another device of it (`place`: DB or WAL), its peers, or what it is doing;
and that a look saw what all are doing.
"""
DB, WAL = "db", "wal"
_MOST_ENTRIES = 50_000
"""Entries of a file that are held before they become columns."""


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every look, join the facts of each OSD over all files, and stage hours, inventory, names and events of drives.

    Counts are entries: one look at one OSD, at another device of it, or at one placement group at work.
    """
    refused: list[dict[str, Any]] = []
    read = [pl.DataFrame(schema={**_ENTRY, "file_no": pl.Int64()}), *landing.read(files, partial(_batches, refused=refused))]
    entries = pl.concat([*(rows.select(*_ENTRY, "file_no") for rows in read), pl.DataFrame(refused, schema=read[0].schema)])
    of = {what: rows.sort("at", "file_no", "row_no") for (what,), rows in entries.partition_by("what", as_dict=True).items()}
    nothing = entries.clear()
    drives, places = of.get(DRIVE, nothing), of.get(PLACE, nothing)
    # the device that holds the data counts before the list of all devices, which includes that of the metadata
    drives = drives.filter(pl.col("rank") == pl.col("rank").min().over("cluster", "osd")).filter(
        (pl.col("rank") != 1) | (pl.struct("host", "device").n_unique().over("cluster", "osd", "at") == 1)
    )
    beside = of.get(BESIDE, nothing)
    apart = _machines_apart(pl.concat([drives, beside]), landing)
    drives, beside = (
        rows.join(apart, on=["host", "cluster"], how="left", maintain_order="left")
        .with_columns(pl.coalesce("machine", "host").alias("host"))
        .drop("machine")
        for rows in (drives, beside)
    )
    drives = drives.sort("at", "cluster", maintain_order=True)
    drives = drives.with_columns(pl.Series("slot", _slots(drives), dtype=pl.String()))
    perf = each_once(of.get(PERF, nothing), ["cluster", "osd", "at"], ["latency_us"], landing.by_no)
    inventory, names = _inventory(drives, beside, places)
    _stage_hours(_with_drive(perf, drives, places), names, landing)
    _stage_inventory(inventory, names, landing)
    working = _with_drive(of.get(WORK, nothing), drives, places)
    events = _runs(working.filter(pl.col("drive_id").is_not_null()), of.get(LOOK, nothing))
    if events.height:
        named = events.rename({"at": "occurred_at", "work": "event_type"}).with_columns(
            pl.col("event_type").replace_strict({"rebuild": "ceph: recovery or backfill", "scrub": "ceph: deep scrub"}).alias("detail"),
            pl.coalesce("ended_at", "occurred_at").alias("collected_at"),
        )
        landing.accept("drive_events", completed(named.drop("is_group_guessed"), "drive_events"), None)


# Reading ----------------------------------------------------------------------------------------------------------


def _batches(file: SourceFile, result: FileResult, refused: list[dict[str, Any]]) -> Iterator[Batch]:
    """Entries of a file. refused: takes what is known of the drive of an OSD whose metadata are rejected."""
    cluster, number = host_of(file), 0
    rejected: list[Rejection] = []
    found: list[dict[str, Any]] = []
    placeholders: dict[str, set[str]] = defaultdict(set)
    for look in each_look(file):
        for document in json_documents("\n".join(line for _, line in look.lines)):
            for entry in _entries(document):
                number += 1
                of = {"cluster": cluster, "at": look.at, "row_no": number}
                if isinstance(entry, dict):
                    if (serial := entry.get("serial")) and is_placeholder(serial):
                        placeholders[serial].add(alias_of(entry["host"], entry["device"]))
                        entry["serial"] = None
                    found.append({**of, **entry})
                    continue
                reason, column, value, *osd = entry
                rejected.append((number, reason, column, value))
                fault = f"{reason}: {value}" if value else reason
                refused += [{**of, "what": DRIVE, "file_no": result.file_no, "fault": fault, **said} for said in osd]
        if len(found) > _MOST_ENTRIES:
            yield Batch(None, pl.DataFrame(found, schema=_ENTRY))
            found = []
    if not number:
        raise UnreadableFile("nothing of an OSD is in it; was ceph called with `-f json`?")
    result.notes += [placeholder_note(serial, sorted(names)) for serial, names in placeholders.items()]
    yield Batch(None, pl.DataFrame(found, schema=_ENTRY), rejections(rejected))


Entry = dict[str, Any] | tuple[str, str, str | None] | tuple[str, str, str | None, dict[str, Any]]
"""An entry's columns; or why it is rejected: reason, column, value, and the OSD whose drive stays unknown for that (`osd`, `rank`)."""


def _entries(document: Any) -> Iterable[Entry]:
    """Facts of a document, entry by entry."""
    if isinstance(document, dict):
        perf = document.get("osdstats", document)
        if isinstance(perf, dict) and isinstance(perf.get("osd_perf_infos"), list):
            return map(_perf, perf["osd_perf_infos"])
        if isinstance(document.get("nodes"), list):
            return _places(document["nodes"])
        if isinstance(document.get("pg_stats"), list):
            return _works(document["pg_stats"])
    elif isinstance(document, list) and all(isinstance(each, dict) for each in document):
        if all("devid" in each for each in document):
            return (entry for each in document for entry in _listed_device(each))
        if all("id" in each for each in document):
            # an OSD that has been down ever since has only its number
            return (entry for osd in document if len(osd) > 1 for entry in _metadata(osd))
        if all("pgid" in each for each in document):  # before Nautilus
            return _works(document)
    if isinstance(document, str):
        return [("no whole JSON; was ceph called with `-f json`, or is it cut off?", "document", _shown(document))]
    reason = "none of `osd perf`, `osd metadata`, `osd tree`, `device ls` and `pg dump pgs_brief`"
    return [(reason, "document", _shown(json.dumps(document)))]


def _shown(value: Any) -> str | None:
    return None if value is None else str(value)[:80]


def _is_osd(value: Any) -> bool:
    return type(value) is int and 0 <= value < NO_OSD


def _perf(info: Any) -> Entry:
    stats = info.get("perf_stats") if isinstance(info, dict) else None
    if not isinstance(stats, dict) or not _is_osd(info.get("id")):
        return ("no OSD with perf_stats", "id", _shown(info.get("id") if isinstance(info, dict) else info))
    name, divisor = ("commit_latency_ns", 1000) if "commit_latency_ns" in stats else ("commit_latency_ms", 0.001)
    value = stats.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _MOST:
        return ("no latency, expected a number of 0 or more", name, _shown(value))
    return {"what": PERF, "osd": info["id"], "latency_us": value / divisor}


def _named(devid: str | None) -> tuple[str | None, str | None]:
    """Model and serial number of what Ceph calls a device: `VENDOR_MODEL_SERIAL`."""
    model, _, serial = (devid or "").rpartition("_")
    return model.replace("_", " ").strip() or None, serial or None


def _metadata(osd: dict[str, Any]) -> Iterator[Entry]:
    """The drive of an OSD's data, and the devices of its database and log; of several paths to one the first."""
    if not _is_osd(osd.get("id")):
        yield ("no number of an OSD", "id", _shown(osd.get("id")))
        return
    given = text_in(osd.get("bluestore_bdev_devices")) or text_in(osd.get("devices")) or text_in(osd.get("backend_filestore_dev_node"))
    ids = dict(each.split("=", 1) for each in (text_in(osd.get("device_ids")) or "").split(",") if "=" in each)
    host = text_in(osd.get("hostname"))
    if host is None:
        yield ("the OSD names no host", "hostname", None, {"osd": osd["id"], "rank": 2})
        return
    drives = _drives_in(given, ids)
    if len(drives) != 1 or not is_whole_drive(drives[0][0]):
        reason, rank = ("the OSD is on several drives", 0) if len(drives) > 1 else ("the OSD is not on one drive of its own", 2)
        yield (reason, "bluestore_bdev_devices", given, {"osd": osd["id"], "rank": rank})
        return
    devices = drives[0]
    # each of several OSDs of a drive has a part
    size = text_in(osd.get("bluestore_bdev_size")) if osd.get("bluestore_bdev_dev_node") in {f"/dev/{each}" for each in devices} else None
    kind = text_in(osd.get("bluestore_bdev_type")) or text_in(osd.get("default_device_class"))

    def said(device: str, kind: str | None) -> dict[str, Any]:
        model, serial = _named(ids.get(device))
        return {"osd": osd["id"], "host": host, "device": device, "serial": serial, "model": model, "kind": _KINDS.get(kind or "")}

    yield {**said(devices[0], kind), "what": DRIVE, "rank": 0, "capacity_bytes": count_in(size)}
    for place in (DB, WAL):
        for one in _drives_in(text_in(osd.get(f"bluefs_{place}_devices")), ids):
            if is_whole_drive(one[0]) and one != devices:
                yield {**said(one[0], text_in(osd.get(f"bluefs_{place}_type"))), "what": BESIDE, "place": place}


def _drives_in(given: str | None, ids: Mapping[str, str]) -> list[list[str]]:
    """Drives of a list of devices; those of one model and serial number are paths to one drive, which goes by the first of them."""
    devices = {drive_device(device.strip()) for device in (given or "").split(",") if device.strip()}
    drives: dict[str, list[str]] = defaultdict(list)
    for device in sorted(devices, key=lambda name: (len(name), name)):
        name = ids.get(device, "")
        drives[name if not is_placeholder(_named(name)[1] or "") else device].append(device)
    return list(drives.values())


def _listed_device(device: dict[str, Any]) -> Iterator[Entry]:
    model, serial = _named(text_in(device.get("devid")))
    locations, daemons = device.get("location"), device.get("daemons")
    if not isinstance(locations, list) or not isinstance(daemons, list):
        yield ("a device without its location and daemons", "devid", _shown(device.get("devid")))
        return
    for place in locations:
        host, name = (text_in(place.get(key)) if isinstance(place, dict) else None for key in ("host", "dev"))
        for daemon in daemons:
            kind, _, number = str(daemon).partition(".")
            if kind == "osd" and host and name and number.isdecimal() and len(number) < 10:
                said = {"host": host, "device": drive_of(name), "serial": serial, "model": model}
                yield {"what": DRIVE, "osd": int(number), **said, "rank": 1}


def _places(nodes: list[Any]) -> Iterator[Entry]:
    """Root and device class of each OSD. A shadow tree of one class, such as `default~hdd`, is of its root."""
    known = {node["id"]: node for node in nodes if isinstance(node, dict) and type(node.get("id")) is int}
    roots: dict[int, str] = {}
    for node in sorted(known.values(), key=lambda one: "~" in str(one.get("name"))):
        below = [node["id"]] if node.get("type") == "root" else []
        seen: set[int] = set()
        while below:
            at = below.pop()
            if at not in seen and at in known:
                seen.add(at)
                roots.setdefault(at, str(node.get("name")).partition("~")[0])
                children = known[at].get("children")
                below += [child for child in (children if isinstance(children, list) else []) if type(child) is int]
    for number, node in known.items():
        if node.get("type") != "osd":
            continue
        if number not in roots:
            yield ("the OSD is below no root of the CRUSH map", "id", str(number))
        else:
            yield {"what": PLACE, "osd": number, "place": "/".join(filter(None, (roots[number], text_in(node.get("device_class")))))}


def _works(groups: list[Any]) -> Iterator[Entry]:
    yield {"what": LOOK}
    for group in groups:
        state = text_in(group.get("state")) if isinstance(group, dict) else None
        if state is None:
            yield ("a placement group without its state", "state", _shown(group.get("pgid") if isinstance(group, dict) else group))
            continue
        works = {_WORK[word] for word in state.split("+") if word in _WORK}
        osds = {osd for name in ("up", "acting") for osd in (group.get(name) if isinstance(group.get(name), list) else []) if _is_osd(osd)}
        for work in sorted(works):
            for osd in sorted(osds):
                yield {"what": WORK, "osd": osd, "work": work}


# Joining ----------------------------------------------------------------------------------------------------------


def _facts(rows: pl.DataFrame, said: pl.DataFrame, columns: Sequence[str], strategy: Literal["backward", "forward"]) -> pl.DataFrame:
    """Facts of each row's OSD, last known at its instant or next known from then on, with `said_at`."""
    facts = said.sort("at", maintain_order=True).select("cluster", "osd", "at", pl.col("at").alias("said_at"), *columns)
    keys = rows.select("cluster", "osd", "at")
    return keys.join_asof(facts, on="at", by=["cluster", "osd"], strategy=strategy, check_sortedness=False)


def _as_of(rows: pl.DataFrame, said: pl.DataFrame, columns: Sequence[str], fixed: Sequence[str] = ()) -> pl.DataFrame:
    """Rows with the last facts of their OSD up to their instant; rows before all facts take the first ones.

    fixed: facts that have to be the same before and after a row that is between two looks; `passed` says that they are not.
    """
    rows = rows.drop(columns, strict=False).sort("at", maintain_order=True)
    before, after = (_facts(rows, said, columns, "backward"), _facts(rows, said, columns, "forward"))
    is_said = before["said_at"].is_not_null()
    is_between = (is_said & after["said_at"].is_not_null() & (before["said_at"] < rows["at"])).fill_null(False)
    differs = [before[name].ne_missing(after[name]) for name in fixed]
    found = pl.DataFrame(
        [
            *(before[name].zip_with(is_said, after[name]) for name in columns),
            *(after[name].alias(f"next_{name}") for name in fixed),
            (is_between & reduce(or_, differs, is_between & False)).alias("passed"),
        ]
    )
    return rows.hstack(found)


def _with_drive(rows: pl.DataFrame, drives: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Rows of OSDs with the drive (HOST/DEVICE) and its group, `CLUSTER/ROOT/CLASS`; without a place it is the host, as a guess.

    Between two looks that find an OSD on two drives nobody knows which one it was on: `fault` says so.
    """
    where = ("host", "device")
    known = _as_of(rows, drives, (*where, "fault"), fixed=where)
    old, new = (pl.concat_str(*(f"{when}{name}" for name in where), separator="/") for when in ("", "next_"))
    moved = pl.format(
        "the OSD moved from {} to {} between two looks at its drive", old.fill_null("several drives"), new.fill_null("several drives")
    )
    known = known.with_columns(
        pl.when("passed").then(moved).otherwise("fault").alias("fault"),
        *(pl.when(~pl.col("passed")).then(name).alias(name) for name in where),
    ).drop("passed", *(f"next_{name}" for name in where))
    return _as_of(known, places, ("place",)).drop("passed").with_columns(
        pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"),
        pl.coalesce(pl.concat_str("cluster", pl.lit("/"), "place"), "host").alias("raid_group_id"),
        pl.col("place").is_null().alias("is_group_guessed"),
        pl.lit(True).alias("is_alias"),
    )  # fmt: skip


def _machines_apart(drives: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """Hosts of one name in several clusters that have a device in common and no serial number are machines of one name: host, cluster, and
    `machine`, the name with the cluster's behind it. Where hours have landed under the plain name it stays.
    """
    columns = ["host", "cluster", "device", "serial"]
    said = drives.drop_nulls(["host", "device"]).select(*columns, "file_no")
    landed = landed_serials(said["host"], landing).with_columns(pl.col("raid_group_id").str.replace("/.*", "").alias("cluster"))
    is_plain = ~pl.col("host").str.contains("@", literal=True)
    base = landed.with_columns(pl.col("host").str.replace("@.*", ""))
    every = pl.concat([said.select(columns), base.select(columns)]).unique()
    # virtual machines make serial numbers up, each the same
    every = every.with_columns(pl.when(pl.col("host").n_unique().over("serial") == 1).then("serial"))
    pairs = every.join(every, on="host", suffix="_other").filter(pl.col("cluster") != pl.col("cluster_other"))
    met = pairs.group_by("host", "cluster", "cluster_other").agg(
        *((pl.col(name) == pl.col(f"{name}_other")).any().alias(f"same_{name}") for name in ("device", "serial"))
    )
    of_call = said.group_by("host", "cluster").agg(pl.col("file_no").first())
    apart = of_call.join(met.filter("same_device", ~pl.col("same_serial")), on=["host", "cluster"], how="semi")
    apart = apart.join(landed.filter(is_plain), on=["host", "cluster"], how="anti").sort("host", "cluster")
    apart = apart.with_columns(pl.format("{}@{}", "host", "cluster").alias("machine"))
    for (file_no,), rows in apart.group_by("file_no"):
        names = some_of(rows["machine"].to_list())
        landing.by_no[file_no].notes.append(f"hosts of another cluster have the same names and other drives: these are called {names}")
    return apart.drop("file_no")


def _slots(drives: pl.DataFrame) -> list[str | None]:
    """For each row, in order of time, the OSDs on its drive then: `osd.3, osd.5`."""
    drive_of_osd: dict[tuple[str, int], tuple[str, str]] = {}
    osds: dict[tuple[str, str], set[int]] = defaultdict(set)
    shown: list[str | None] = []
    for rows in drives.partition_by("cluster", "at", maintain_order=True):
        found = rows.select("cluster", "osd", "host", "device").rows()
        for cluster, osd, *drive in found:
            osds[drive_of_osd.pop((cluster, osd), ("", ""))].discard(osd)
            if drive[1] is not None:
                drive_of_osd[cluster, osd] = (drive[0], drive[1])
                osds[drive[0], drive[1]].add(osd)
        shown += [None if device is None else _osds(osds[host, device]) for _, _, host, device in found]
    return shown


def _osds(numbers: Iterable[int]) -> str:
    """OSDs for people, no more of them than an operator reads."""
    return some_of([f"osd.{osd}" for osd in sorted(numbers)])


def _inventory(drives: pl.DataFrame, beside: pl.DataFrame, places: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Descriptions of drives, where a look brings a new one, or other peers; and who bore a name: `alias`, `serial`, and the `run` of looks
    that found it, from 1, with `valid_from`, the first, and `last_at`. Both with `seen_as`, the drive of the data, which has hours.
    """
    facts = ("serial", "model", "kind", "capacity_bytes", "slot")
    looked = pl.concat([drives, _as_of(places, drives, ("host", "device", *facts)).select(drives.columns)])
    data = _with_drive(looked.drop_nulls("device"), drives, places).with_columns(pl.col("drive_id").alias("seen_as")).drop_nulls("drive_id")
    at_own = {"host": "own_host", "device": "own_device"}
    others = _with_drive(beside.rename({**at_own, "place": "what_for"}), drives, places).with_columns(
        pl.col("drive_id").fill_null("").alias("seen_as"),
        pl.concat_str("own_host", pl.lit("/"), "own_device").alias("drive_id"),
        pl.col("own_host").alias("host"),
    )
    at = ["drive_id", "at"]
    # a drive that holds data and a database is compared with those of its data
    databases = others.join(data, on="drive_id", how="anti").sort("what_for", *_ORDER)
    slots = databases.group_by(at).agg(pl.col("osd").unique().sort().alias("osds"))
    databases = databases.unique(at, keep="first", maintain_order=True).join(slots, on=at).with_columns(
        pl.concat_str("cluster", pl.lit("/"), "what_for").alias("raid_group_id"),
        pl.lit(False).alias("is_group_guessed"),
        pl.concat_str("what_for", pl.lit(" of "), pl.col("osds").map_elements(_osds, return_dtype=pl.String())).alias("slot"),
    )  # fmt: skip
    columns = [*at, "seen_as", "host", "raid_group_id", "is_group_guessed", "is_alias", *facts, "file_no", "row_no"]
    known = pl.concat([data.sort("at", "rank", "file_no", "row_no", nulls_last=True).select(columns), databases.select(columns)])
    known = known.unique(at, keep="first", maintain_order=True).sort(at)
    of_drive = ("raid_group_id", *facts)  # with the serial: a look describes the drive that it found
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1).over("drive_id")) for name in of_drive)
    news = known.filter(is_new | (pl.int_range(pl.len()).over("drive_id") == 0))
    said = ["drive_id", "seen_as", "serial", "at", "file_no", "row_no"]
    own = drives.with_columns(pl.concat_str("host", pl.lit("/"), "device").alias(name) for name in ("drive_id", "seen_as"))
    borne = pl.concat([own.select(said), others.select(said)]).drop_nulls("serial").unique(at, keep="first", maintain_order=True).sort(at)
    begins = pl.col("serial").ne_missing(pl.col("serial").shift(1).over("drive_id"))
    runs = (
        borne.with_columns(begins.cum_sum().over("drive_id").alias("run"))
        .group_by("drive_id", "run", maintain_order=True)
        .agg(
            pl.col("at").first().alias("valid_from"),
            pl.col("at").last().alias("last_at"),
            pl.col("serial", "seen_as", "file_no", "row_no").first(),
        )
    )
    return news, runs.rename({"drive_id": "alias"})


_ORDER = ("at", "file_no", "row_no")


def _stage_inventory(news: pl.DataFrame, names: pl.DataFrame, landing: Landing) -> None:
    """Stage what `_inventory` found; descriptions that earlier calls have said already of the same drive are left out."""
    records = completed(news.with_columns(pl.col("at").alias("valid_from"), role=pl.lit("data")), "drives").with_columns(news["seen_as"])
    # one look is an instant
    last = pl.when(pl.col("last_at") > pl.col("valid_from")).then("last_at").alias("valid_to")
    looks = completed(names.rename({"serial": "drive_id"}).with_columns(last), "drive_aliases")
    begun = names.filter(pl.col("run") > 1).select(pl.col("alias").alias("drive_id"), "valid_from")
    if looks.height:
        stored = stored_rows("drive_aliases", landing, looks, ["alias", "valid_from", "drive_id"]).drop_nulls("drive_id").sort("valid_from")
        met = looks.sort("valid_from").join_asof(
            stored, on="valid_from", by="alias", allow_exact_matches=False, suffix="_stored", check_sortedness=False
        )
        others = met.filter(pl.col("drive_id") != pl.col("drive_id_stored")).select(pl.col("alias").alias("drive_id"), "valid_from")
        begun = pl.concat([begun, others])
        # each call says until when a drive was there, though it says nothing new: another one may follow in the next call
        landing.accept("drive_aliases", looks, None)
    if records.height:
        place = ["drive_id", "valid_from"]
        unknown = unknown_rows(records, "drives", landing).select(place)
        told = records.join(pl.concat([unknown, begun]).unique(), on=place, how="semi", maintain_order="left")
        landing.accept("drives", told.drop("seen_as"), None)


def _stage_hours(perf: pl.DataFrame, names: pl.DataFrame, landing: Landing) -> None:
    """Drive-hours: the mean over the looks of a span at all OSDs of a drive. An OSD that has done nothing is at 0, which is no latency.

    A look says how an OSD has been since the one before, if the OSD was on the same drive.
    """
    reason = (
        "nothing says which drive the OSD is on; add `ceph osd metadata -f json` to the files of the call "
        "(Prometheus: are ceph_osd_metadata and ceph_disk_occupation there?)"
    )
    unnamed = perf.filter(pl.col("device").is_null()).with_columns(pl.concat_str(pl.lit("osd."), "osd").alias("value"))
    landing.turn_away(unnamed.with_columns(pl.col("fault").fill_null(reason).alias("reason"), pl.lit("id").alias("column")))
    ends, most = pl.col("ends_us"), MAX_GAP_SECONDS * 1_000_000
    named = perf.filter(pl.col("device").is_not_null()).with_columns(
        pl.col("at").cast(pl.Int64).alias("ends_us"),
        # an instant on the hour ends the hour before
        ((pl.col("at").cast(pl.Int64) - 1) // HOUR_US).alias("hour"),
    ).sort("drive_id", "at", "file_no", "row_no")  # fmt: skip
    if not named.height:
        return
    place = ["drive_id", "hour"]
    before = ends.shift(1).over("drive_id")
    # the drive may have been in another place before the name began
    since = names.select(pl.col("alias").alias("drive_id"), pl.col("valid_from").cast(pl.Int64).alias("since_us")).sort("since_us")
    looks = named.unique(["drive_id", "at"], keep="first", maintain_order=True)
    steps = looks.join_asof(since, left_on="ends_us", right_on="since_us", by="drive_id", check_sortedness=False).select(
        *place, "ends_us", pl.max_horizontal(pl.coalesce(before, "since_us"), ends - most).alias("begins_us"),
        before.is_null().alias("is_start"),
    )  # fmt: skip
    # the first look at a drive only begins what the next one says; an hour of it alone is covered by nothing
    is_alone = (pl.len().over(place) == 1) & ((ends % HOUR_US != 0) | (pl.len().over("drive_id") == 1))
    steps = steps.filter(~pl.col("is_start") | is_alone)
    named = named.join(steps, on=place, how="semi", maintain_order="left")
    steps = with_spans(_with_cuts(steps, names), ["drive_id"], pl.col("is_cut"))
    said = named.join(steps.drop("hour"), on=["drive_id", "ends_us"], how="left", maintain_order="left")
    said = said.with_columns(pl.col("span_no", "begins_us").fill_null(strategy="backward").over(place))
    # the first look counts in the span that begins with it, but not where the span is cut to its last quarter of an hour
    said = said.with_columns(pl.when(ends >= pl.col("begins_us").fill_null(ends)).then("latency_us"))
    hours = said.group_by(*place, "span_no", maintain_order=True).agg(
        pl.col("latency_us").filter(pl.col("latency_us") > 0).mean(),
        pl.col("at").max().alias("collected_at"),
        pl.col("raid_group_id", "is_group_guessed").last(),
        pl.col("is_alias", "file_no", "row_no").first(),
        pl.col("from_utc", "to_utc").last(),
    )
    covered = steps.group_by(*place, "span_no").agg((ends - pl.col("begins_us")).sum().alias("covered_us"))
    hours = hours.join(covered, on=[*place, "span_no"], maintain_order="left").with_columns(
        (pl.col("hour") * HOUR_US).cast(pl.Datetime("us")).alias("hour_utc"),
        (pl.col("covered_us") / HOUR_US).clip(upper_bound=1.0).alias("coverage"),
    )
    landing.accept("drive_hours", completed(hours, "drive_hours"), None)
    landing.count_samples(behind(said, hours, [*place, "span_no"]))


def _with_cuts(steps: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Increments with `is_cut`: another serial was found on the device where it begins, or between its ends or those of the one before."""
    passes = {"valid_from": pl.col("run") > 1, "last_at": pl.col("run") < pl.col("run").max().over("alias")}
    found = [
        names.filter(of).select(pl.col("alias").alias("drive_id"), pl.col(at).cast(pl.Int64).alias("cut_us")) for at, of in passes.items()
    ]
    cuts = pl.concat(found).unique().sort("cut_us").with_columns(pl.int_range(1, pl.len() + 1).over("drive_id").alias("cut_no"))
    if not cuts.height:
        return steps.with_columns(pl.lit(False).alias("is_cut"))
    for name, instant in (("begun", pl.col("begins_us")), ("just_before", pl.col("begins_us") - 1), ("ended", pl.col("ends_us") - 1)):
        at = steps.with_columns(instant.alias("cut_us")).with_row_index("no").sort("cut_us")
        count = at.join_asof(cuts, on="cut_us", by="drive_id", check_sortedness=False).sort("no")["cut_no"].fill_null(0)
        steps = steps.with_columns(count.alias(name))
    crossed = pl.col("begun") != pl.col("ended")
    begins = pl.col("begun") != pl.col("just_before")
    return steps.with_columns((begins | crossed | crossed.shift(1).over("drive_id").fill_null(False)).alias("is_cut"))


def _runs(works: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """Looks in a row that find the OSDs of a drive at the same work -> one row, from the first on, with `ended_at`."""
    found: list[dict[str, Any]] = []
    for (cluster,), looked in seen.partition_by("cluster", as_dict=True).items():
        rows = works.filter(cluster=cluster).unique(["drive_id", "work", "at"], keep="first", maintain_order=True)
        first = {(row["drive_id"], row["work"], row["at"]): row for row in rows.iter_rows(named=True)}
        by_time: dict[datetime, set[tuple[str, str]]] = {at: set() for at in sorted(looked["at"])}
        for drive, work, at in first:
            by_time[at].add((drive, work))
        found += [{**first[drive, work, begun], "ended_at": ended} for (drive, work), begun, ended in spans(list(by_time.items()))]
    return pl.DataFrame(found, schema={**works.schema, "ended_at": pl.Datetime("us")})


# Pulling ----------------------------------------------------------------------------------------------------------


METRICS = LATENCY, METADATA, OCCUPATION, RECOVERED = (
    "ceph_osd_commit_latency_ms",
    "ceph_osd_metadata",
    "ceph_disk_occupation",
    "ceph_osd_recovery_ops",
)
_OF_SCRAPE = ("pod", "instance", "container", "endpoint", "prometheus", "prometheus_replica", "replica", "receive")
"""Labels that differ between two scrapes of one cluster."""
Found = list[tuple[int, Series]]
"""OSDs' series of one cluster."""


def fetch(
    urls: Sequence[str],
    warehouse: Path,
    options: Mapping[str, Any],
    first: datetime | None,
    end: datetime | None,
    on_progress: Callable[[str, int, int], None],
) -> tuple[list[SourceFile], list[str]]:
    """Pull what the mgr exported in the full hours [first, end), a file per day and cluster, as `ceph` would print it; and notes.

    Default: the 24 hours up to the last full one. Raises: PrometheusError where a server does not answer, IngestError where it has no OSD.
    """
    first, end, notes = hours_of(first, end)
    pieces = [(url, piece) for url in dict.fromkeys(map(server_url, urls)) for piece in chunks(first, end)]
    files: list[SourceFile] = []
    unseen: dict[str, bool] = {}
    for number, (url, (begins, ends)) in enumerate(pieces):
        on_progress("pull", number, len(pieces))
        client = Client(url, is_partial_allowed=bool(options.get("allow_partial")))
        clusters, said = _pulled(client, tuple(options.get("match") or ()), unix_of(begins), unix_of(ends))
        notes += [note for note in said if note not in notes]
        for cluster, found in clusters.items():
            if not any(one.labels["__name__"] == LATENCY for _, one in found):
                continue
            unseen[cluster] = unseen.get(cluster, True) and not any(one.labels["__name__"] == RECOVERED for _, one in found)
            name = f"{cluster.replace('/', '_')}/{begins:%Y-%m-%dT%H}.{ends:%Y-%m-%dT%H}"
            path = replace_file(spool(warehouse, url, options) / f"{len(files)}.ceph", _printed(found))
            files.append(SourceFile(path, f"{url}!{name}", name, RECORD_KIND))
        notes += [f"{url} says its answers are incomplete: {warning}" for warning in sorted(client.warnings)]
    on_progress("pull", len(pieces), len(pieces))
    if not files:
        raise IngestError(f"{', '.join(urls)}: no {LATENCY} from {first} to {end} UTC; is the mgr module `prometheus` on?")
    if blind := sorted(cluster for cluster, is_unseen in unseen.items() if is_unseen):
        notes.append(f"recoveries of {some_of(blind)} are not seen, so alerts are not held for them (no {RECOVERED}): scrape ceph-exporter")
    return files, notes


def _pulled(client: Client, match: Sequence[str], start: int, end: int) -> tuple[dict[str, Found], list[str]]:
    """Series of each cluster, at every step; and notes on what tells clusters apart."""
    labelled: dict[str, Found] = defaultdict(list)
    selector = ",".join((f"__name__=~{quoted('|'.join(METRICS))}", *match))
    for one in client.query_range(f"{{{selector}}}", start, end, PULL_SECONDS):
        kind, _, osd = one.labels.get("ceph_daemon", "").partition(".")
        if kind == "osd" and osd.isdecimal() and len(osd) < 10 and one.points:
            labelled[one.labels.get("cluster", "")].append((int(osd), one))
    clusters: dict[str, Found] = {}
    notes: list[str] = []
    for label, found in sorted(labelled.items()):
        by, note = _apart(client.url, found)
        notes += note
        matched = None if label else _matched(match, found)
        for number, one in found:
            value = ",".join(filter(None, (one.labels.get(name) for name in by))) or matched
            name = "@".join(filter(None, (label, value))).replace("/", "-") or "ceph"
            clusters.setdefault(name, []).append((number, one))
    return clusters, notes


def _matched(match: Sequence[str], found: Found) -> str | None:
    """The value of a label that the call selects by, where all series have the one: two calls are of two clusters."""
    names = [matcher.partition("=")[0].strip() for matcher in match if re.match(r"\s*\w+\s*=", matcher)]
    values = {name: {one.labels.get(name, "") for _, one in found} for name in names if name != "__name__"}
    single = {name: next(iter(of)) for name, of in values.items() if len(of) == 1 and of != {""}}
    return single[telling([(single, {})])[0]] if single else None


def _apart(url: str, found: Found) -> tuple[tuple[str, ...], list[str]]:
    """The labels that tell clusters apart whose OSDs have the same numbers, if there are several, and a note on them. Raises: IngestError.

    One OSD on two drives at once is two OSDs; for a few minutes it may be one that was remade.
    """
    target = {name for _, each in found if each.labels["__name__"] == LATENCY for name in each.labels} - {
        "__name__",
        "ceph_daemon",
        "cluster",
    }
    of: dict[tuple[int, str], list[Series]] = defaultdict(list)
    for osd, each in found:
        if each.labels["__name__"] in (METADATA, OCCUPATION):
            of[osd, each.labels["__name__"]].append(each)
    pairs: list[tuple[dict[str, str], dict[str, str]]] = []
    first = None
    for (osd, _), series in of.items():
        for both in combinations(series, 2):
            shared = {at for at, _ in both[0].points} & {at for at, _ in both[1].points}
            if _place(both[0].labels) == _place(both[1].labels) or len(shared) * PULL_SECONDS <= MAX_GAP_SECONDS:
                continue
            first = osd if first is None else first
            one, other = ({name: text for name, text in each.labels.items() if name in target} for each in both)
            lasting, also = ({name: text for name, text in each.items() if name not in _OF_SCRAPE} for each in (one, other))
            if lasting == also:
                differs = [name for name in sorted(target) if one.get(name) != other.get(name)]
                how = f"--match '{differs[0]}=\"{one.get(differs[0], '')}\"'" if differs else "--match, by a label that each job sets"
                places = " and ".join("/".join(_place(each.labels)[:2]) for each in both)
                raise IngestError(
                    f"{url}: osd.{osd} is on {places} at once, so there are several clusters, and no label tells them apart for good; "
                    f"call once for each with {how}"
                )
            pairs.append((lasting, also))
    if not pairs:
        return (), []
    by = telling(pairs)
    names = sorted({",".join(labels.get(name, "") for name in by) for pair in pairs for labels in pair})
    return by, [
        f"OSDs of several clusters have the same numbers, such as osd.{first}: the label {', '.join(by)} tells them apart and names them: "
        f"{some_of(names)}"
    ]


def _place(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Where a series says that an OSD is: its host, and of an occupation its devices and their serial numbers."""
    if labels["__name__"] == METADATA:
        return (labels.get("hostname", ""),)
    devices = labels.get("devices") or labels.get("device", "")
    listed = (",".join(sorted(text.split(","))) for text in (devices, labels.get("device_ids", "")))
    return (labels.get("exported_instance") or host_of_target(labels.get("instance", "")), *listed)


def _printed(found: Found) -> str:
    """Text that the tools of a cluster would have printed at every step: latencies and recoveries; where OSDs are at the first and last
    step, and before and after a change of it.
    """
    documents: dict[float, list[Any]] = defaultdict(list)
    perf: dict[float, list[Any]] = defaultdict(list)
    busy: dict[float, set[int]] = defaultdict(set)
    said: dict[float, dict[int, dict[str, list[Mapping[str, str]]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for osd, one in found:
        metric = one.labels["__name__"]
        if metric == LATENCY:
            for at, value in one.points:
                perf[at].append({"id": osd, "perf_stats": {"commit_latency_ms": _number(value)}})
        elif metric == RECOVERED:
            for (_, before), (at, after) in pairwise(one.points):
                if (_number(after) or 0) > (_number(before) or 0):
                    busy[at].add(osd)
        else:
            for at, _ in one.points:
                said[at][osd][metric].append(one.labels)
    last: tuple[float, Any] | None = None
    shown: float | None = None
    for at, osds in sorted(said.items()):
        # where a server still has the labels of before, too, nothing is said
        clear = {
            osd: tuple(labels[0] if (labels := of.get(metric)) else {} for metric in (METADATA, OCCUPATION))
            for osd, of in osds.items()
            if all(len({_place(labels) for labels in series}) == 1 for series in of.values())
        }
        if last is None or clear != last[1]:
            if last is not None and shown != last[0]:
                documents[last[0]] += _described(last[1])
            documents[at] += _described(clear)
            shown = at
        last = (at, clear)
    if last is not None and shown != last[0]:
        documents[last[0]] += _described(last[1])
    for at in sorted(perf):
        documents[at].append({"osd_perf_infos": perf[at]})
        documents[at].append({"pg_stats": [{"state": "recovering", "up": sorted(busy[at])}] if busy[at] else []})
    return "".join(f"TS {at:.0f}\n" + "\n".join(json.dumps(each) for each in documents[at]) + "\n" for at in sorted(documents))


def _described(osds: Mapping[int, tuple[Mapping[str, str], ...]]) -> list[Any]:
    """`osd metadata` and `osd tree` of OSDs, by the labels of their metadata and of the drives that they occupy."""
    used = Counter((_place(disk)[0], name) for _, disk in osds.values() if disk for name in disk.get("devices", "").split(","))
    metadata, nodes = [], []
    for osd, (labels, disk) in sorted(osds.items()):
        kind = labels.get("device_class", "")
        if labels:
            nodes.append({"id": osd, "type": "osd", "device_class": kind})
        if not disk:
            continue
        host, listed = _place(disk)[0], [name for name in disk.get("devices", "").split(",") if name]
        data = disk.get("device", "").replace("+", ",")
        if listed and not is_whole_drive(drive_device(data)):
            # a logical volume: its drives, which are those of the database too, unless other OSDs have theirs there as well
            data = ",".join([name for name in listed if used[host, name] == 1] or listed)
        beside = [name for name in listed if drive_device(name) not in {drive_device(each) for each in data.split(",")}]
        wal = disk.get("wal_device") and not disk.get("db_device")
        metadata.append(
            {
                "id": osd, "hostname": labels.get("hostname") or host, "devices": data, "device_ids": disk.get("device_ids"),
                "default_device_class": kind, f"bluefs_{WAL if wal else DB}_devices": ",".join(beside),
            }
        )  # fmt: skip
    tree = {"nodes": [{**_NO_ROOT, "children": [node["id"] for node in nodes]}, *nodes]}
    return [each for each in (metadata, tree if nodes else None) if each]


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
