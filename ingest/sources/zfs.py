"""Source `zfs`: latency of the drives of ZFS pools, which drives are peers, their errors and slow I/Os, scrubs and resilvers.

Reads `zpool iostat -lvpHy -T u SECONDS`, `zpool status -sp` and what `zpool_influxdb` prints, in `HOST/zpool*` (docs/sources/zfs.md).
Latency is `disk_wait`, which leaves out the queues of ZFS. Peers are the drives of one raidz or draid vdev, or of all mirrors of a pool.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.reading.batches import Batch, Rejection, batch_of, rejections
from ingest.reading.devices import is_whole_drive
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.histograms import BUCKET, drive_latencies
from ingest.reading.hosts import drive_device, host_of, instant, looks, read_text, spans
from ingest.reading.overlap import each_once
from ingest.reading.readers import count_in
from ingest.reading.resolution import as_samples, seconds_of
from ingest.sources.diskstats import SECTOR_BYTES, SNAPSHOT, counted, roll_up, totals

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = (
    "HOST/zpool*: what `zpool iostat -lvpHy -T u SECONDS`, `zpool status -sp`, each below a line `TS seconds`, or `zpool_influxdb` print"
)
recognise = named("vdevs", "zpool.*")
_COLUMNS = 11
"""Columns of a line of iostat up to disk_wait: name, alloc, free, then operations, bytes, total_wait and disk_wait, of reads and writes."""
_LEAST_PEERS = 3
# a draid's own spare, draid2-0-0, is room on all its drives
_GROUP = re.compile(r"(mirror|raidz\d?|draid\d?(?::\w+)*|replacing|spare|indirect|root|logs|cache|special|dedup|spares)(-\d+){0,2}")
_CLASSES = ("logs", "cache", "special", "dedup", "spares")
# `scan: resilver (draid2:4d:11c:1s-0) in progress since ...`; adding a drive to a raidz and taking one away move data too
_WORK = re.compile(r"\s*(?:scan|expand|remove): .*\bin progress since")
_ABSENT = ("UNAVAIL", "REMOVED", "INUSE")
_ERRORS = ("zfs_read_errors", "zfs_write_errors", "zfs_checksum_errors", "zfs_slow_ios")
_POINT = re.compile(r"(zpool_\w+),((?:\\.|[^\\ ])+) (\S+) (\d{18,19})")

_INTERVAL: dict[str, pl.DataType] = {
    "host": pl.String(), "device": pl.String(), "at": pl.Float64(), "seconds": pl.Float64(),
    **{f"d_{name}": pl.Float64() for name in SNAPSHOT if name.endswith(("_ios", "_sectors", "_ms"))},
    "row_no": pl.Int64(),
}  # fmt: skip


@dataclass
class Leaf:
    """A device of a pool at a look: its row, top-level vdev (null where it is one) and class, its state and what it counted."""

    name: str
    row: int
    pool: str
    top: str | None
    cls: str
    counts: list[int | None]

    @property
    def vdev(self) -> tuple[str, str, str | None]:
        """The top-level vdev that it is in."""
        return self.pool, self.cls, self.top

    def group(self, drives: int) -> str:
        """Its peers, within the host; drives: of its vdev. Two have no median: a pool's small mirrors and single drives are one group."""
        is_own = self.top is not None and (self.top.startswith(("raidz", "draid")) or drives >= _LEAST_PEERS)
        return "/".join([self.pool, *([self.cls] if self.cls not in ("", "spares") else []), *([self.top or ""] if is_own else [])])


@dataclass
class Status:
    """One look at the pools of a host."""

    at: datetime
    leaves: list[Leaf] = field(default_factory=list)
    scans: dict[str, str] = field(default_factory=dict)


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every look and stage the hours of drives, which are peers, what they counted, and scrubs and resilvers.

    Counts are lines of drives: of reports of iostat, of points of zpool_influxdb, of looks at the status.
    """
    read = landing.read_each(files, _File)
    frames = [pl.DataFrame(schema={**_INTERVAL, "file_no": pl.Int64()})]
    points = [pl.DataFrame(schema=SNAPSHOT)]
    buckets = [pl.DataFrame(schema=BUCKET)]
    for result, file in read:
        with landing.reading(result):
            file_no = pl.lit(result.file_no, pl.Int64()).alias("file_no")
            landing.take(Batch(None, file.intervals, rejections(file.rejected)), result)
            landing.take(Batch(None, file.points), result)
            landing.take(batch_of("drives", file.members()), result)
            # the same lines of the status once more
            for kind, records in (("drive_health", file.health()), ("drive_events", file.events())):
                batch = batch_of(kind, records)
                landing.take(Batch(kind, batch.rows, batch.rejected, is_beside=True), result)
            frames.append(file.intervals.with_columns(file_no))
            points.append(file.points.with_columns(file_no).select(*SNAPSHOT))
            buckets.append(file.buckets.with_columns(file_no).select(*BUCKET))
    place = ["host", "device", "at"]
    if (latencies := drive_latencies(pl.concat(buckets).unique([*place, "upper_us"], keep="first", maintain_order=True))).height:
        landing.accept("drive_latencies", _under_own_names(latencies), None)
    snapshots = each_once(pl.concat(points), place, [name for name in SNAPSHOT if name.endswith(("_ios", "_ms"))], landing.by_no)
    reports = each_once(pl.concat(frames), place, ["seconds"], landing.by_no)
    gained = counted(snapshots.sort(*place))
    both = [frame.select(*_INTERVAL, "file_no").cast(_INTERVAL) for frame in (reports, gained)]  # type: ignore[arg-type]
    # parts of one drive are one drive, of which each covers the time
    whole = pl.concat(both).with_columns(pl.col("device").map_elements(whole_vdev, return_dtype=pl.String()))
    intervals = whole.with_columns(
        (pl.col("seconds") / pl.len().over(place)).alias("covered_seconds"),
        ((pl.col("at") - 1e-6) // 3600).cast(pl.Int64).alias("hour"),
        *(pl.col(f"d_{way}_ios").cast(pl.Int64) for way in ("read", "write")),
        *(pl.col(f"d_{way}_sectors").cast(pl.Int64) for way in ("read", "write")),
    )
    hours, counts = roll_up(intervals)
    if not hours.height:
        return
    landing.accept("drive_hours", _under_own_names(hours), None)
    landing.count_samples(counts)
    if (seconds := seconds_of(landing.options)) is not None:
        landing.accept("drive_samples", _under_own_names(as_samples(totals(intervals, seconds), seconds)), None)


def drive_named(host: str, name: str) -> tuple[str, bool]:
    """The drive that a vdev's name means, and whether that is an alias: in /dev/disk/by-id are serial numbers and world wide names."""
    short = whole_vdev(name)
    if match := re.fullmatch(r"(?:wwn-(0x\w+)|nvme-((?:eui|nvme)\.[\w-]+)|scsi-3(\w{16,32}))", short):
        return f"wwn:{match[1] or match[2] or '0x' + match[3]}", True
    if match := re.fullmatch(r"(?:ata|nvme|scsi-SATA)[-_].+?_([^_]+)(?:_\d)?", short):
        return match[1], False
    return f"{host}/{short}", True


def whole_vdev(name: str) -> str:
    """Device of a vdev: a drive's device or its name in /dev/disk, without the partition."""
    device = drive_device(name)
    return device if is_whole_drive(device) else re.sub(r"-part\d+$", "", name.rpartition("/")[2])


def _under_own_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of HOST/VDEV under the drive that the vdev is."""
    named = {given: drive_named(*given.split("/", 1)) for given in rows["drive_id"].unique()}
    drives = {given: drive for given, (drive, _) in named.items()}
    aliases = [given for given, (_, is_alias) in named.items() if is_alias]
    return rows.with_columns(pl.col("drive_id").replace(drives), pl.col("drive_id").is_in(aliases).alias("is_alias"))


class _File:
    """Contents of a file: `intervals` of vdevs (_INTERVAL), `points` (SNAPSHOT) and `buckets` (BUCKET) since import, `seen` of the status,
    and `rejected` lines.
    """

    def __init__(self, file: SourceFile, result: FileResult) -> None:
        self.host = host_of(file)
        self.rejected: list[Rejection] = []
        self.seen: list[Status] = []
        self._reports: list[tuple[datetime | None, datetime, int, list[str]]] = []
        self._buckets: dict[tuple[str, int], dict[float, tuple[int, int]]] = defaultdict(dict)
        self._bytes: dict[tuple[str, int], tuple[int, int]] = {}
        self._rows: dict[tuple[str, int], int] = {}
        self._listed: dict[int, Status] = {}
        text = read_text(file)
        is_dated = text.lstrip().startswith("TS")  # what prints its own times needs no line before
        for look in looks(text if is_dated else f"TS 0\n{text}"):
            self._read([(number - (not is_dated), line) for number, line in look.lines], look.at if is_dated else None)
        leaves = {leaf.name for status in self.seen for leaf in status.leaves}
        self.intervals = pl.DataFrame(self._intervals(leaves), schema=_INTERVAL, orient="row")
        self.points = self._points()
        listed = any(status.leaves for status in self._listed.values())
        if not (self.intervals.height or self.points.height or self.seen or listed or self.rejected):
            raise UnreadableFile(f"no drive of a pool is in it; expected {EXPECTED}")

    # Lines ----------------------------------------------------------------------------------------------------------

    def _read(self, lines: list[tuple[int, str]], at: datetime | None) -> None:
        begun, status, pool, config = None, None, "", False
        table: list[tuple[int, int, list[str]]] = []
        for row, line in [*lines, (0, "  pool: ")]:
            fields = line.split()
            if line.startswith("zpool_"):
                self._take_point(row, line)
            elif re.fullmatch(r"\d{9,11}", line.strip()):  # -T u, above a report
                begun, at = at, instant(int(line))
            elif "\t" in line.strip() and not line.startswith((" ", "\t")):
                self._take_report(row, line.split("\t"), begun, at)
            elif fields[:1] == ["pool:"]:
                if status is not None:
                    self._take_table(status, pool, table)
                pool, config, table = " ".join(fields[1:]), False, []
                if pool and at is None:
                    self.rejected.append((row, "no time above it; put `TS seconds` first", "pool", pool))
                elif pool and (status is None or status.at != at):
                    status = Status(at)  # type: ignore[arg-type]
                    self.seen.append(status)
            elif status is not None and _WORK.match(line):
                status.scans[pool] = "scrub" if "scrub" in fields[1:3] else "rebuild"
            elif fields[:1] == ["NAME"]:
                config = True
            elif fields[:1] == ["errors:"]:
                config = False
            elif config and fields and status is not None:
                table.append((row, len(line.expandtabs()) - len(line.expandtabs().lstrip()), fields))

    def _take_report(self, row: int, fields: list[str], begun: datetime | None, at: datetime | None) -> None:
        if len(fields) < _COLUMNS:
            self.rejected.append((row, f"{len(fields)} columns, expected {_COLUMNS} or more; give `-l`", "line", "\t".join(fields)))
        elif at is None or begun is None:
            self.rejected.append((row, "no time at its beginning and end; give `-T u`, below a line `TS seconds`", "name", fields[0]))
        else:
            self._reports.append((begun, at, row, fields))

    def _take_point(self, row: int, line: str) -> None:
        match = _POINT.fullmatch(line.strip())
        if match is None:
            self.rejected.append((row, "no whole point of influx's line protocol; is it cut off?", "line", line))
            return
        tags = dict(each.replace("\\", "").split("=", 1) for each in re.split(r"(?<!\\),", match[2]) if "=" in each)
        values = dict(each.split("=", 1) for each in match[3].split(",") if "=" in each)
        path, at = tags.get("path"), int(match[4])
        listed, pool = self._listed.setdefault(at, Status(instant(at / 1e9))), tags.get("name", "")
        if match[1] == "zpool_scan_stats" and tags.get("state") == "scanning":
            listed.scans[pool] = "scrub" if tags.get("function") == "scrub" else "rebuild"
        names = {"zpool_latency": ("disk_read", "disk_write"), "zpool_stats": ("read_bytes", "write_bytes")}.get(match[1])
        if path is None or names is None:
            return
        numbers = []
        for name in names:
            text = values.get(name, "")
            if not re.fullmatch(r"\d{1,16}[iu]?", text):
                self.rejected.append((row, "no whole number of 0 or more", name, text or None))
                return
            numbers.append(int(text.rstrip("iu")))
        if match[1] == "zpool_stats":
            self._bytes[path, at] = (numbers[0], numbers[1])
            if tags.get("state") not in _ABSENT:
                # root/raidz-0/disk-3; nothing says whether a vdev holds data or is a log
                top = next(iter(tags.get("vdev", "").split("/")[1:-1]), None)
                counts = [count_in(values.get(name.removeprefix("zfs_"), "").rstrip("iu")) for name in _ERRORS]
                listed.leaves.append(Leaf(path, row, pool, top, "", counts))
            return
        bound = tags.get("le", "")
        if not re.fullmatch(r"\d{1,6}\.\d{1,9}|\+Inf", bound):
            self.rejected.append((row, "no bound of a bucket, in seconds", "le", bound or None))
            return
        self._buckets[path, at][float(bound)] = (numbers[0], numbers[1])
        self._rows.setdefault((path, at), row)

    def _take_table(self, status: Status, pool: str, table: list[tuple[int, int, list[str]]]) -> None:
        """The devices of a pool: rows below which nothing is set further in."""
        base, top, cls = (table[0][1] if table else 0), None, ""
        for number, (row, indent, fields) in enumerate(table):
            if indent <= base:
                top, cls = None, fields[0] if fields[0] in _CLASSES else ""
                continue
            is_parent = number + 1 < len(table) and table[number + 1][1] > indent
            if indent == base + 2:
                top = fields[0] if is_parent or _GROUP.fullmatch(fields[0]) else None
            if is_parent or _GROUP.fullmatch(fields[0]):
                continue
            counts = [count_in(text) for text in [*fields[2:6], "", "", "", ""][:4]]
            if cls != "spares" and len(fields) < 5:
                self.rejected.append(
                    (row, f"{len(fields)} columns, expected NAME STATE READ WRITE CKSUM; is it cut off?", "line", " ".join(fields))
                )
            elif fields[1] not in _ABSENT:
                # the SLOW column is there with -s only
                counts = counts if len(fields) > 5 and (fields[5].isdecimal() or fields[5] == "-") else [*counts[:3], None]
                status.leaves.append(Leaf(fields[0], row, pool, top, cls, counts))

    # What they come to ----------------------------------------------------------------------------------------------

    def _intervals(self, leaves: set[str]) -> Iterator[tuple[Any, ...]]:
        for begun, at, row, fields in self._reports:
            name, seconds = fields[0], (at - begun).total_seconds()  # type: ignore[operator]
            if name not in leaves:
                # below the top of a pool nothing has a capacity; at the top, only a name can tell a drive from a pool
                is_below = {*fields[1:3]} <= {"0", "-"}
                is_named = is_whole_drive(drive_device(name)) or not drive_named(self.host, name)[0].startswith(f"{self.host}/")
                if _GROUP.fullmatch(name) or not (is_below or is_named):
                    continue
            if seconds <= 0:
                self.rejected.append((row, "covers no time: the first report is since the pool's import; give `-y`", "name", name))
                continue
            bad = next((text for text in fields[3:_COLUMNS] if text != "-" and not re.fullmatch(r"\d{1,15}", text)), None)
            if bad is not None:
                self.rejected.append((row, "no whole number; give `-p`", name, bad))
                continue
            numbers = [None if text == "-" else int(text) for text in fields[3:_COLUMNS]]
            reads, writes, read_bytes, write_bytes, _, _, read_ns, write_ns = numbers
            # less than one a second is printed as 0
            ios = [max((rate or 0) * seconds, 1.0 if wait else 0.0) for rate, wait in ((reads, read_ns), (writes, write_ns))]
            ios = [float(round(number)) if wait else 0.0 for number, wait in zip(ios, (read_ns, write_ns), strict=True)]
            sectors = [float(round((rate or 0) * seconds / SECTOR_BYTES)) for rate in (read_bytes, write_bytes)]
            ms = [number * (wait or 0) / 1e6 for number, wait in zip(ios, (read_ns, write_ns), strict=True)]
            of = dict(zip(("read", "write"), zip(ios, sectors, ms, strict=True), strict=True))
            end = (at - datetime(1970, 1, 1)).total_seconds()
            yield (self.host, name, end, seconds, *of["read"], *of["write"], row)

    def _points(self) -> pl.DataFrame:
        """Histograms -> I/Os and milliseconds counted since the pool's import.

        What zpool_influxdb calls `le` is where a bucket begins; it ends at twice that, and its I/Os count as its middle.
        """
        # --sum-histogram-buckets: no bucket holds less than the one before it
        ordered = [[numbers for _, numbers in sorted(buckets.items())] for buckets in self._buckets.values()]
        is_summed = all(below[way] <= above[way] for numbers in ordered for below, above in pairwise(numbers) for way in (0, 1))
        rows, counts = [], []
        for (path, at), buckets in self._buckets.items():
            ios, ms, before, lower = [0, 0], [0.0, 0.0], (0, 0), 0.0
            for bound, numbers in sorted(buckets.items()):
                lower = lower * 2 if bound == float("inf") else bound
                for way in (0, 1):
                    count = numbers[way] - (before[way] if is_summed else 0)
                    ios[way] += count
                    ms[way] += count * lower * 1500
                counted = sum(numbers) - (sum(before) if is_summed else 0)
                counts.append((self.host, whole_vdev(path), at / 1e9, round(lower * 2e6, 3), counted, 0, self._rows[path, at]))
                before = numbers
            moved = self._bytes.get((path, at), (0, 0))
            of = [(ios[way], moved[way] // SECTOR_BYTES, round(ms[way])) for way in (0, 1)]
            rows.append((self.host, path, at / 1e9, *of[0], *of[1], 0, self._rows[path, at]))
        self.buckets = (
            pl.DataFrame(counts, schema=BUCKET, orient="row")
            .group_by(*list(BUCKET)[:4], maintain_order=True)
            .agg(pl.col("count").sum(), pl.col("file_no", "row_no").first())
        )  # parts of one drive add up
        return pl.DataFrame(rows, schema=SNAPSHOT, orient="row").drop("file_no")

    def _record(self, leaf: Leaf, at: datetime) -> dict[str, Any]:
        drive, is_alias = drive_named(self.host, leaf.name)
        return {"drive_id": drive, "is_alias": is_alias, "collected_at": at, "row_no": leaf.row}

    def _looks(self) -> list[list[Status]]:
        """Looks of `zpool status`, and those of zpool_influxdb, by time."""
        return [sorted(seen, key=lambda one: one.at) for seen in (self.seen, self._listed.values())]

    def members(self) -> Iterator[dict[str, Any]]:
        """An inventory record per drive, where a look finds other members than the one before it; a guess by what influx prints."""
        for seen, is_guessed in zip(self._looks(), (False, True), strict=True):
            before: list[tuple[str, str, str]] | None = None
            for status in seen:
                drives = Counter(leaf.vdev for leaf in status.leaves)
                listed = [(leaf.name, leaf.group(drives[leaf.vdev]), leaf.cls) for leaf in status.leaves]
                if listed == before:
                    continue
                before = listed
                for leaf, (_, group, _) in zip(status.leaves, listed, strict=True):
                    level = (leaf.top or "stripe").rpartition("-")[0] or "stripe"
                    role = "spare" if leaf.cls == "spares" else "data"
                    place = {"raid_group_id": f"{self.host}/{group}", "is_group_guessed": is_guessed, "host": self.host}
                    yield {**self._record(leaf, status.at), **place, "role": role, "raid_level": level, "valid_from": status.at}

    def health(self) -> Iterator[dict[str, Any]]:
        """The pool's counts of each drive since it was cleared, the last of a day: errors, and I/Os slower than `zio_slow_io_ms`."""
        last = [status for seen in self._looks() for status in {status.at.date(): status for status in seen if status.leaves}.values()]
        for status in last:
            for leaf in status.leaves:
                of = {**self._record(leaf, status.at), "read_at": status.at}
                yield from (
                    {**of, "attribute": name, "raw_value": n} for name, n in zip(_ERRORS, leaf.counts, strict=True) if n is not None
                )

    def events(self) -> Iterator[dict[str, Any]]:
        """Scrubs and resilvers, of every drive of the pool but its spares."""
        for seen in self._looks():
            yield from self._work(seen)

    def _work(self, seen: list[Status]) -> Iterator[dict[str, Any]]:
        leaves = {leaf.name: leaf for status in seen for leaf in status.leaves if leaf.cls != "spares"}
        at_work = [(one.at, {(leaf.name, one.scans[leaf.pool]) for leaf in one.leaves if leaf.pool in one.scans}) for one in seen]
        for (name, work), begun, ended in spans(at_work):
            if name in leaves:
                detail = "zfs: scrub" if work == "scrub" else "zfs: resilver, expansion or removal"
                record = {**self._record(leaves[name], ended or begun), "event_type": work, "occurred_at": begun, "ended_at": ended}
                yield {**record, "detail": detail}
