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
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.raw.durable import replace_file
from ingest.reading.batches import Batch, Rejection, rejections
from ingest.reading.devices import drive_of, is_whole_drive
from ingest.reading.devices import host_of as host_of_target
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import drive_device, host_of, looks, read_text, spans
from ingest.reading.overlap import behind, each_once
from ingest.reading.parse import completed
from ingest.reading.readers import count_in, text_in, whole
from ingest.sources.prometheus import forget as forget
from ingest.sources.prometheus import hours_of, spool
from ingest.sources.prometheus.client import Client, Series, server_url
from ingest.sources.prometheus.known import unknown_rows
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
# what the mgr calls slowed by the cluster itself: states of waiting are left out, and so is a scrub that reads no data
_WORK = {"recovering": "rebuild", "backfilling": "rebuild", "premerge": "rebuild", "deep": "scrub"}
_NO_ROOT = {"id": -1, "type": "root", "name": ""}
_KINDS = {"hdd": "disk", "ssd": "ssd", "nvme": "ssd"}

_ENTRY: dict[str, pl.DataType] = {
    "what": pl.String(),
    "cluster": pl.String(),
    "at": pl.Datetime("us"),
    "osd": pl.Int64(),
    "latency_us": pl.Float64(),
    **dict.fromkeys(("host", "device", "serial", "model", "kind", "place", "work"), pl.String()),
    "capacity_bytes": pl.Int64(),
    "rank": pl.Int64(),
    "row_no": pl.Int64(),
}
PERF, DRIVE, PLACE, WORK, LOOK = "perf", "drive", "place", "work", "look"
"""Facts of an entry on an OSD: its latency, its drive, its peers, or what it is doing; and that a look saw what all are doing."""


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every look, join the facts of each OSD over all files, and stage hours, inventory, names and events of drives.

    Counts are entries: one look at one OSD, or at one placement group at work.
    """
    read = [pl.DataFrame(schema={**_ENTRY, "file_no": pl.Int64()}), *landing.read(files, _batches)]
    entries = pl.concat([rows.select(*_ENTRY, "file_no") for rows in read])
    of = {what: rows.sort("at", "file_no", "row_no") for (what,), rows in entries.partition_by("what", as_dict=True).items()}
    nothing = entries.clear()
    drives, places = of.get(DRIVE, nothing), of.get(PLACE, nothing)
    # what says where the data are counts before a list of every device, which has that of the metadata too
    drives = drives.filter(pl.col("rank") == pl.col("rank").min().over("cluster", "osd")).filter(
        (pl.col("rank") == 0) | (pl.struct("host", "device").n_unique().over("cluster", "osd", "at") == 1)
    )
    perf = each_once(of.get(PERF, nothing), ["cluster", "osd", "at"], ["latency_us"], landing.by_no)
    _stage_hours(_with_drive(perf, drives, places), landing)
    _stage_inventory(drives, places, landing)
    working = _with_drive(_runs(of.get(WORK, nothing), of.get(LOOK, nothing)), drives, places)
    events = working.filter(pl.col("drive_id").is_not_null()).unique(["drive_id", "at", "work"], keep="first", maintain_order=True)
    if events.height:
        named = events.rename({"at": "occurred_at", "work": "event_type"}).with_columns(
            pl.col("event_type").replace_strict({"rebuild": "ceph: recovery or backfill", "scrub": "ceph: deep scrub"}).alias("detail"),
            pl.coalesce("ended_at", "occurred_at").alias("collected_at"),
        )
        landing.accept("drive_events", completed(named.drop("is_group_guessed"), "drive_events"), None)


# Reading ----------------------------------------------------------------------------------------------------------


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    cluster, number = host_of(file), 0
    rejected: list[Rejection] = []
    found: list[dict[str, Any]] = []
    # some commands end without a new line, and the next look begins right there
    for look in looks(re.sub(r"(?<=[]}])(?=TS \d+$)", "\n", read_text(file), flags=re.MULTILINE)):
        for document in _documents("\n".join(line for _, line in look.lines)):
            for entry in _entries(document):
                number += 1
                if isinstance(entry, tuple):
                    rejected.append((number, *entry))
                else:
                    found.append({"cluster": cluster, "at": look.at, "row_no": number, **entry})
    if not found and not rejected:
        raise UnreadableFile("nothing of an OSD is in it; was ceph called with `-f json`?")
    yield Batch(None, pl.DataFrame(found, schema=_ENTRY), rejections(rejected))


def _documents(text: str) -> Iterator[Any]:
    """The JSON documents of a text, one after the other; text that is not JSON comes as it is, and ends it."""
    decoder, at = json.JSONDecoder(parse_int=whole), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            document, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            yield text[at:]
            return
        yield document


Entry = dict[str, Any] | tuple[str, str, str | None]
"""An entry's columns; or why it is rejected: reason, column, value."""


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
            # of an OSD that is down and has never been up since, there is only its number
            return (_metadata(osd) for osd in document if len(osd) > 1)
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


def _metadata(osd: dict[str, Any]) -> Entry:
    if not _is_osd(osd.get("id")):
        return ("no number of an OSD", "id", _shown(osd.get("id")))
    given = text_in(osd.get("bluestore_bdev_devices")) or text_in(osd.get("devices")) or text_in(osd.get("backend_filestore_dev_node"))
    devices = sorted({drive_device(device) for device in (given or "").split(",") if device})
    host = text_in(osd.get("hostname"))
    if host is None:
        return ("the OSD names no host", "hostname", None)
    if len(devices) != 1 or not is_whole_drive(devices[0]):
        return ("the OSD is not on one drive of its own", "bluestore_bdev_devices", given)
    ids = dict(each.split("=", 1) for each in (text_in(osd.get("device_ids")) or "").split(",") if "=" in each)
    model, serial = _named(ids.get(devices[0]))
    # of several OSDs of a drive each has a part
    size = text_in(osd.get("bluestore_bdev_size")) if osd.get("bluestore_bdev_dev_node") == f"/dev/{devices[0]}" else None
    kind = text_in(osd.get("bluestore_bdev_type")) or text_in(osd.get("default_device_class"))
    return {
        "what": DRIVE, "osd": osd["id"], "host": host, "device": devices[0], "serial": serial, "model": model,
        "kind": _KINDS.get(kind or ""), "rank": 0, "capacity_bytes": count_in(size),
    }  # fmt: skip


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


def _as_of(rows: pl.DataFrame, said: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Rows with the last facts of their OSD before them; rows before all facts take the first ones."""
    rows, said = rows.drop(columns, strict=False).sort("at", maintain_order=True), said.sort("at", maintain_order=True)
    of = ["cluster", "osd"]
    for strategy in ("backward", "forward"):
        found = rows.join_asof(said.select(*of, "at", *columns), on="at", by=of, strategy=strategy, check_sortedness=False)
        if strategy == "backward":
            before = found
    return rows.with_columns(pl.coalesce(before[name], found[name]).alias(name) for name in columns)


def _with_drive(rows: pl.DataFrame, drives: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Rows of OSDs with the drive (HOST/DEVICE) and its group, `CLUSTER/ROOT/CLASS`; without a place it is the host, as a guess."""
    known = _as_of(_as_of(rows, drives, ("host", "device")), places, ("place",))
    return known.with_columns(
        pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"),
        pl.coalesce(pl.concat_str("cluster", pl.lit("/"), "place"), "host").alias("raid_group_id"),
        pl.col("place").is_null().alias("is_group_guessed"),
        pl.lit(True).alias("is_alias"),
    )


def _stage_inventory(drives: pl.DataFrame, places: pl.DataFrame, landing: Landing) -> None:
    """A record where what is known of an OSD's drive changes, or where its peers do; what earlier calls have said already is left out."""
    facts = ("serial", "model", "kind", "capacity_bytes")
    looked = pl.concat([drives, _as_of(places, drives, ("host", "device", *facts)).select(drives.columns)])
    known = _with_drive(looked.drop_nulls("device"), drives, places).sort("drive_id", "at", "rank", "file_no", "row_no", nulls_last=True)
    known = known.unique(["drive_id", "at"], keep="first", maintain_order=True)
    of_drive = ("raid_group_id", *facts)
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1).over("drive_id")) for name in of_drive)
    news = known.filter(is_new | (pl.int_range(pl.len()).over("drive_id") == 0))
    if not news.height:
        return
    dated = news.with_columns(pl.col("at").dt.truncate("1h").alias("valid_from"), pl.col("drive_id").alias("seen_as"), role=pl.lit("data"))
    dated = dated.unique(["seen_as", "valid_from"], keep="last", maintain_order=True)
    named = dated.filter(pl.col("serial").is_not_null()).with_columns(pl.col("drive_id").alias("alias"), pl.col("serial").alias("drive_id"))
    records = dated.with_columns(pl.coalesce("serial", "drive_id").alias("drive_id"), pl.col("serial").is_null().alias("is_alias"))
    for record_kind, rows in (("drive_aliases", named.drop("is_alias", "is_group_guessed")), ("drives", records)):
        landing.accept(record_kind, unknown_rows(completed(rows, record_kind).with_columns(rows["seen_as"]), record_kind, landing), None)


def _stage_hours(perf: pl.DataFrame, landing: Landing) -> None:
    """Drive-hours: the mean over the looks of an hour at all OSDs of a drive. An OSD that has done nothing is at 0, which is no latency."""
    reason = "nothing says which drive the OSD is on; add `ceph osd metadata -f json` to the files of the call"
    unnamed = perf.filter(pl.col("device").is_null()).with_columns(pl.concat_str(pl.lit("osd."), "osd").alias("value"))
    landing.turn_away(unnamed.with_columns(pl.lit(reason).alias("reason"), pl.lit("id").alias("column")))
    named = perf.filter(pl.col("device").is_not_null()).sort("drive_id", "at", "file_no", "row_no")
    gap = (pl.col("at") - pl.col("at").shift(1).over("drive_id")).dt.total_seconds()
    # an instant on the hour ends the hour before
    hour = (pl.col("at") - pl.duration(microseconds=1)).dt.truncate("1h")
    named = named.with_columns(hour.alias("hour_utc"), gap.fill_null(0).clip(0, MAX_GAP_SECONDS).alias("seconds"))
    if not named.height:
        return
    hours = named.group_by("drive_id", "hour_utc", maintain_order=True).agg(
        pl.col("latency_us").filter(pl.col("latency_us") > 0).mean(),
        (pl.col("seconds").sum() / 3600).clip(upper_bound=1.0).alias("coverage"),
        pl.col("at").max().alias("collected_at"),
        pl.col("raid_group_id", "is_group_guessed").last(),
        pl.col("is_alias", "file_no", "row_no").first(),
    )
    landing.accept("drive_hours", completed(hours, "drive_hours"), None)
    landing.count_samples(behind(named, hours, ["drive_id", "hour_utc"]))


def _runs(works: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """Looks in a row that find an OSD at the same work -> one row, from the first on, with `ended_at`."""
    found: list[dict[str, Any]] = []
    for (cluster,), looked in seen.partition_by("cluster", as_dict=True).items():
        first = {(row["osd"], row["work"], row["at"]): row for row in works.filter(cluster=cluster).iter_rows(named=True)}
        by_time: dict[datetime, set[tuple[int, str]]] = {at: set() for at in sorted(looked["at"])}
        for osd, work, at in first:
            by_time[at].add((osd, work))
        found += [{**first[osd, work, begun], "ended_at": ended} for (osd, work), begun, ended in spans(list(by_time.items()))]
    return pl.DataFrame(found, schema={**works.schema, "ended_at": pl.Datetime("us")})


# Pulling ----------------------------------------------------------------------------------------------------------


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
    for number, (url, (begins, ends)) in enumerate(pieces):
        on_progress("pull", number, len(pieces))
        client = Client(url, is_partial_allowed=bool(options.get("allow_partial")))
        for cluster, text in _pulled(client, tuple(options.get("match") or ()), unix_of(begins), unix_of(ends)):
            name = f"{cluster.replace('/', '_')}/{begins:%Y-%m-%dT%H}.{ends:%Y-%m-%dT%H}"
            path = replace_file(spool(warehouse, url, options) / f"{len(files)}.ceph", text)
            files.append(SourceFile(path, f"{url}!{name}", name, RECORD_KIND))
        notes += [f"{url} says its answers are incomplete: {warning}" for warning in sorted(client.warnings)]
    on_progress("pull", len(pieces), len(pieces))
    if not files:
        raise IngestError(f"{', '.join(urls)}: no ceph_osd_commit_latency_ms from {first} to {end} UTC; is the mgr module `prometheus` on?")
    return files, notes


def _pulled(client: Client, match: Sequence[str], start: int, end: int) -> Iterator[tuple[str, str]]:
    """Cluster and text of each: metrics of the mgr at every step, in the words of the tools."""
    names = ("ceph_osd_commit_latency_ms", "ceph_osd_metadata", "ceph_disk_occupation", "ceph_osd_recovery_ops")
    found: dict[str, dict[str, list[tuple[str, Series]]]] = defaultdict(lambda: {name: [] for name in names})
    selector = ",".join((f"__name__=~{quoted('|'.join(names))}", *match))
    for one in client.query_range(f"{{{selector}}}", start, end, PULL_SECONDS):
        kind, _, osd = one.labels.get("ceph_daemon", "").partition(".")
        if kind == "osd" and osd.isdecimal() and len(osd) < 10 and one.points:
            found[one.labels.get("cluster") or "ceph"][one.labels.get("__name__", "")].append((osd, one))
    for cluster, series in sorted(found.items()):
        latency, metadata, disks, recovered = series.values()
        if not latency:
            continue
        documents: dict[float, list[Any]] = defaultdict(list)
        perf: dict[float, list[Any]] = defaultdict(list)
        for osd, one in latency:
            for at, value in one.points:
                perf[at].append({"id": int(osd), "perf_stats": {"commit_latency_ms": _number(value)}})
        placed = {osd: one.labels for osd, one in disks}
        on = {osd: (of.get("exported_instance") or host_of_target(of.get("instance", "")), of) for osd, of in placed.items()}
        used = Counter((host, name) for host, labels in on.values() for name in labels.get("devices", "").split(","))
        known = {osd: (one.labels, one.points[0][0]) for osd, one in metadata}
        for osd, (labels, at) in known.items():
            host, disk = on.get(osd, (labels.get("hostname", ""), {}))
            device = disk.get("device", "").replace("+", ",")
            if disk.get("devices") and not is_whole_drive(drive_device(device)):
                # a logical volume: its drives, which are those of the database too, unless other OSDs have theirs there as well
                listed = disk["devices"].split(",")
                device = ",".join([name for name in listed if used[host, name] == 1] or listed)
            kind = labels.get("device_class", "")
            said = {"hostname": labels.get("hostname") or host, "devices": device, "device_ids": disk.get("device_ids")}
            documents[at] += [
                [{"id": int(osd), **said, "default_device_class": kind}],
                {"nodes": [{**_NO_ROOT, "children": [int(osd)]}, {"id": int(osd), "type": "osd", "device_class": kind}]},
            ]
        busy: dict[float, set[int]] = defaultdict(set)
        for osd, one in recovered:
            for (_, before), (at, after) in pairwise(one.points):
                if (_number(after) or 0) > (_number(before) or 0):
                    busy[at].add(int(osd))
        for at in sorted(perf):
            documents[at].append({"osd_perf_infos": perf[at]})
            documents[at].append({"pg_stats": [{"state": "recovering", "up": sorted(busy[at])}] if busy[at] else []})
        lines = (f"TS {at:.0f}\n" + "\n".join(json.dumps(each) for each in documents[at]) + "\n" for at in sorted(documents))
        yield cluster, "".join(lines)


def _number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None
