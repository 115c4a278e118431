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
from ingest.contract.findings import count_of
from ingest.reading.batches import Batch, Rejection, batch_of, rejections
from ingest.reading.devices import alias_of, is_placeholder, is_whole_drive, placeholder_note, whole_drives
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.histograms import BUCKET, drive_latencies
from ingest.reading.hosts import drive_device, host_of, instant, looks, read_text, spans
from ingest.reading.overlap import each_once, take_back
from ingest.reading.parse import completed
from ingest.reading.readers import count_in
from ingest.reading.resolution import HOUR_SECONDS, as_samples, seconds_of
from ingest.sources.diskstats import SECTOR_BYTES, SNAPSHOT, cuts_of, gained_in, in_spans, roll_up, totals

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = (
    "HOST/zpool*: what `zpool iostat -lvpHy -T u SECONDS`, `zpool status -sp`, each below a line `TS seconds`, or `zpool_influxdb` print"
)
recognise = named("vdevs", "zpool.*")
_COLUMNS = 11
"""Columns of a line of iostat up to disk_wait: name, alloc, free, then operations, bytes, total_wait and disk_wait, of reads and writes."""
_LEAST_PEERS = 3
_OLD = "/old"
"""Behind the name of a drive that is being replaced by one of the same name."""
_ROUNDED_SECONDS = 1
# two drives in one place of a vdev
_PAIR = re.compile(r"(replacing|spare)(-\d+)?")
# a draid's own spare, draid2-0-0, is room on all its drives
_GROUP = re.compile(r"(mirror|raidz\d?|draid\d?(?::\w+)*|replacing|spare|indirect|root|logs|cache|special|dedup|spares)(-\d+){0,2}")
_CLASSES = ("logs", "cache", "special", "dedup", "spares")
_CLASSES_BY_WEIGHT = ("", "special", "dedup", "logs", "cache", "spares")
# `scan: resilver (draid2:4d:11c:1s-0) in progress since ...`, of that vdev; `expand: expansion of raidz2-0 in progress since ...`; taking a
# vdev away moves its data to all others
_WORK = re.compile(r"\s*(scan|expand|remove): .*\bin progress since")
_WORKING_VDEV = re.compile(r"\s*(?:scan: resilver \((\S+)\)|expand: expansion of (\S+)) in progress")
# behind a device: its data are being made again
_MARK = re.compile(r"\((?:resilvering|repairing)\)")
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
    """A device of a pool at a look: its row, top-level vdev (null where it is one), its place in that, which two share that replace each
    other, its class, and what it counted.
    """

    name: str
    row: int
    pool: str
    top: str | None
    place: str
    cls: str
    counts: list[int | None]

    @property
    def vdev(self) -> tuple[str, str, str | None]:
        """The top-level vdev that it is in."""
        return self.pool, self.cls, self.top

    def group(self, places: int) -> str:
        """Its peers, within the host; places: of its vdev. Two have no median: a pool's small mirrors and single drives are one group."""
        is_own = self.top is not None and (self.top.startswith(("raidz", "draid")) or places >= _LEAST_PEERS)
        return "/".join([self.pool, *([self.cls] if self.cls not in ("", "spares") else []), *([self.top or ""] if is_own else [])])


@dataclass
class Status:
    """One look at the pools of a host."""

    at: datetime
    leaves: list[Leaf] = field(default_factory=list)
    scans: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Pool, `scrub` or `rebuild`, and the vdev where it names one."""

    marked: set[tuple[str, str]] = field(default_factory=set)
    """Pool and top-level vdev, or device at the top, of which a device is marked as resilvering."""

    def working(self) -> Iterator[tuple[Leaf, str]]:
        """Drives and their work: a scrub reads the whole pool, a rebuild the vdev that is named, else those with marks, else all."""
        for pool, work, vdev in self.scans:
            leaves = [leaf for leaf in self.leaves if leaf.pool == pool and leaf.cls != "spares"]
            tops = {(pool, vdev)} if vdev else self.marked if work == "rebuild" else set()
            of_tops = [leaf for leaf in leaves if (pool, leaf.top or leaf.place) in tops]
            yield from ((leaf, work) for leaf in of_tops or leaves)


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every look and stage the hours of drives, which are peers, what they counted, and scrubs and resilvers.

    Counts are lines of drives: of reports of iostat, of points of zpool_influxdb, of looks at the status.
    """
    read = landing.read_each(files, _File)
    # influx does not say which vdev resilvers
    looked_at = {file.host for _, file in read if any(status.leaves for status in file.seen)}
    frames = [pl.DataFrame(schema={**_INTERVAL, "file_no": pl.Int64()})]
    sightings: list[pl.DataFrame] = []
    points = [pl.DataFrame(schema=SNAPSHOT)]
    buckets = [pl.DataFrame(schema=BUCKET)]
    for result, file in read:
        with landing.reading(result):
            file_no = pl.lit(result.file_no, pl.Int64()).alias("file_no")
            landing.take(Batch(None, file.intervals, rejections(file.rejected)), result)
            landing.take(Batch(None, file.points), result)
            landing.take(batch_of("drives", file.members()), result)
            result.rows_delivered += len(file.parts)
            result.rows_superseded += len(file.parts)
            result.notes += file.notes()
            # the same lines of the status once more
            for kind, records in (("drive_health", file.health()), ("drive_events", file.events(with_influx=file.host not in looked_at))):
                batch = batch_of(kind, records)
                landing.take(Batch(kind, batch.rows, batch.rejected, is_beside=True), result)
            sightings.append(file.sightings().with_columns(file_no))
            frames.append(file.intervals.with_columns(file_no))
            points.append(file.points.with_columns(file_no).select(*SNAPSHOT))
            buckets.append(file.buckets.with_columns(file_no).select(*BUCKET))
    place = ["host", "device", "at"]
    if (latencies := drive_latencies(pl.concat(buckets).unique([*place, "upper_us"], keep="first", maintain_order=True))).height:
        landing.accept("drive_latencies", _under_own_names(latencies), None)
    snapshots = each_once(pl.concat(points), place, [name for name in SNAPSHOT if name.endswith(("_ios", "_ms"))], landing.by_no)
    reports = each_once(pl.concat(frames), place, ["seconds"], landing.by_no)
    flags = ("is_lost", "is_reset")
    gained = gained_in(snapshots.sort(*place))
    reports = reports.with_columns(pl.lit(False).alias(name) for name in flags)
    both = [frame.select(*_INTERVAL, *flags, "file_no").cast(_INTERVAL) for frame in (reports, gained)]  # type: ignore[arg-type]
    hour = ((pl.col("at") - 1e-6) // 3600).cast(pl.Int64).alias("hour")
    told, beside = (frame.with_columns(pl.col("device").map_elements(whole_vdev, return_dtype=pl.String()), hour) for frame in both)
    # both commands print the same measurement of a drive
    again = beside.join(told, on=["host", "device", "hour"], how="semi")
    take_back(again, landing.by_no, "rows_superseded")
    whole = pl.concat([told, beside.join(again, on=["file_no", "row_no"], how="anti")])
    # parts of one drive are one drive, of which each covers the time
    intervals = whole.with_columns(
        (pl.col("seconds") / pl.len().over(*place, "is_lost")).alias("covered_seconds"),
        *(pl.col(f"d_{way}_ios").cast(pl.Int64) for way in ("read", "write")),
        *(pl.col(f"d_{way}_sectors").cast(pl.Int64) for way in ("read", "write")),
    )
    begun = intervals.select("host", "device", pl.col("at") - pl.col("seconds"), "row_no", "file_no")
    _stage_names([*sightings, begun, intervals.select(begun.columns)], landing)
    intervals = _with_gaps(intervals)
    spans = in_spans(intervals, HOUR_SECONDS)
    # names other than the kernel's pass to no other drive at a boot
    if (cuts := cuts_of(spans.filter(whole_drives("device")))).height:
        landing.accept("drive_aliases", cuts, None)
    hours, counts = roll_up(spans.filter(~pl.col("is_lost")))
    if not hours.height:
        return
    landing.accept("drive_hours", _under_own_names(hours), None)
    landing.count_samples(counts)
    if (seconds := seconds_of(landing.options)) is not None:
        landing.accept("drive_samples", _under_own_names(as_samples(totals(intervals, seconds), seconds)), None)


def _with_gaps(intervals: pl.DataFrame) -> pl.DataFrame:
    """Intervals, and those that nobody measured, which are lost: between them, and while a file goes on without the drive."""
    place = ["host", "device"]
    steps = intervals.sort(*place, "at", maintain_order=True).unique([*place, "at"], keep="first", maintain_order=True)
    begins = pl.col("at") - pl.col("seconds")
    of_file = steps.with_columns(
        begins.min().over("host", "file_no").alias("first_at"), pl.col("at").max().over("host", "file_no").alias("last_at")
    )
    until = of_file.unique(place, keep="last", maintain_order=True)
    gaps = pl.concat(
        [
            of_file.with_columns(
                (begins - pl.col("at").shift(1).over(place).fill_null(pl.col("first_at"))).alias("gap"), begins.alias("at")
            ),
            until.with_columns((pl.col("last_at") - pl.col("at")).alias("gap"), pl.col("last_at").alias("at")),
        ]
    )
    gaps = gaps.filter(pl.col("gap") > _ROUNDED_SECONDS).with_columns(
        pl.col("gap").alias("seconds"), ((pl.col("at") - 1e-6) // 3600).cast(pl.Int64).alias("hour"), pl.lit(True).alias("is_lost")
    )
    return pl.concat([intervals, gaps.select(intervals.columns)])


def _stage_names(seen: list[pl.DataFrame], landing: Landing) -> None:
    """Stage which serial number the name of a vdev holds, from the first look at it to the last."""
    found = (
        pl.concat(seen).with_columns(pl.col("device").map_elements(whole_vdev, return_dtype=pl.String())).sort("at", "file_no", "row_no")
    )
    names = found.group_by("host", "device", maintain_order=True).agg(
        pl.col("at").min().alias("first"), pl.col("at").max().alias("last"), pl.col("file_no", "row_no").first()
    )
    named, placeholders = [], defaultdict(list)
    for row in names.iter_rows(named=True):
        alias, serial = drive_named(row["host"], row["device"])
        if serial is not None and is_placeholder(serial):
            placeholders[serial].append((alias, row["file_no"]))
        elif serial is not None:
            first, last = (instant(row[name]) for name in ("first", "last"))
            named.append({"alias": alias, "drive_id": serial, "valid_from": first, "valid_to": last if last > first else None, **row})
    for serial, aliases in placeholders.items():
        landing.by_no[aliases[0][1]].notes.append(placeholder_note(serial, [alias for alias, _ in aliases]))
    if named:
        schema = {"alias": pl.String(), "drive_id": pl.String(), "valid_from": pl.Datetime("us"), "valid_to": pl.Datetime("us")}
        rows = pl.DataFrame(named, schema={**schema, "file_no": pl.Int64(), "row_no": pl.Int64()})
        landing.accept("drive_aliases", completed(rows, "drive_aliases"), None)


def drive_named(host: str, name: str) -> tuple[str, str | None]:
    """Name of a drive by its vdev's name, and the serial number in that: in /dev/disk/by-id are serial numbers and world wide names."""
    short = whole_vdev(name)
    if match := re.fullmatch(r"(?:wwn-(0x\w+)|nvme-((?:eui|nvme)\.[\w-]+)|scsi-3(\w{16,32}))", short):
        wide = f"wwn:{match[1] or match[2] or '0x' + match[3]}"
        return (alias_of(host, short) if is_placeholder(wide) else wide), None
    match = re.fullmatch(r"(?:ata|nvme|scsi-SATA)[-_].+?_([^_/]+)(?:_\d)?", short)
    return alias_of(host, short), match[1] if match else None


def whole_vdev(name: str) -> str:
    """Device of a vdev: a drive's device or its name in /dev/disk, without the partition. The one that leaves where both have one name
    keeps the `/old` behind it.
    """
    path = re.sub("^/dev/(disk/by-[^/]+/|mapper/)?", "", name)
    device = path.removesuffix(_OLD)
    drive = drive_device(device)
    short = drive if is_whole_drive(drive) else re.sub(r"-part\d+$", "", device)
    return short + path[len(device) :]


def _under_own_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of HOST/VDEV, under the world wide name where the vdev's name is one."""
    named = {given: drive_named(*given.split("/", 1))[0] for given in rows["drive_id"].unique()}
    return rows.with_columns(pl.col("drive_id").replace(named))


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
        self.parts: list[tuple[str, str, str]] = []
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
                vdev = _WORKING_VDEV.match(line)
                status.scans.append((pool, "scrub" if "scrub" in fields[1:3] else "rebuild", (vdev[1] or vdev[2]) if vdev else None))
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
            listed.scans.append((pool, "scrub" if tags.get("function") == "scrub" else "rebuild", None))
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
                # root/raidz-0/disk-3, root/mirror-1/replacing-0/disk-1; nothing says whether a vdev holds data or is a log
                above = tags.get("vdev", "").split("/")[1:-1]
                top = above[0] if above and not _PAIR.fullmatch(above[0]) else None
                place = next((name for name in above if _PAIR.fullmatch(name)), path)
                counts = [count_in(values.get(name.removeprefix("zfs_"), "").rstrip("iu")) for name in _ERRORS]
                listed.leaves.append(Leaf(path, row, pool, top, place, "", counts))
            return
        bound = tags.get("le", "")
        if not re.fullmatch(r"\d{1,6}\.\d{1,9}|\+Inf", bound):
            self.rejected.append((row, "no bound of a bucket, in seconds", "le", bound or None))
            return
        self._buckets[path, at][float(bound)] = (numbers[0], numbers[1])
        self._rows.setdefault((path, at), row)

    def _take_table(self, status: Status, pool: str, table: list[tuple[int, int, list[str]]]) -> None:
        """The devices of a pool: rows below which nothing is set further in."""
        base, top, place, cls = (table[0][1] if table else 0), None, "", ""
        for number, (row, indent, fields) in enumerate(table):
            if indent <= base:
                top, cls = None, fields[0] if number and fields[0] in _CLASSES else ""
                continue
            is_parent = number + 1 < len(table) and table[number + 1][1] > indent
            is_group = is_parent or _GROUP.fullmatch(fields[0]) is not None
            if indent == base + 2:
                top = fields[0] if is_group and not _PAIR.fullmatch(fields[0]) else None
            if indent == base + (4 if top else 2):
                place = fields[0]
            if _MARK.search(" ".join(fields)):
                status.marked.add((pool, top or place))
            if is_group:
                continue
            if fields[0] == _OLD[1:]:
                self.rejected.append((row, "the drive that is being replaced has lost its name; give `-P`", "name", fields[0]))
                continue
            counts = [count_in(text) for text in [*fields[2:6], "", "", "", ""][:4]]
            if cls != "spares" and len(fields) < 5:
                self.rejected.append(
                    (row, f"{len(fields)} columns, expected NAME STATE READ WRITE CKSUM; is it cut off?", "line", " ".join(fields))
                )
            elif fields[1] not in _ABSENT:
                # the SLOW column is there with -s only
                counts = counts if len(fields) > 5 and (fields[5].isdecimal() or fields[5] == "-") else [*counts[:3], None]
                status.leaves.append(Leaf(fields[0], row, pool, top, place, cls, counts))

    # Results ---------------------------------------------------------------------------------------------------------

    def _intervals(self, leaves: set[str]) -> Iterator[tuple[Any, ...]]:
        for begun, at, row, fields in self._reports:
            name, seconds = fields[0], (at - begun).total_seconds()  # type: ignore[operator]
            if name not in leaves:
                # below the top of a pool nothing has a capacity; at the top, only a name can tell a drive from a pool
                is_below = {*fields[1:3]} <= {"0", "-"}
                known, serial = drive_named(self.host, name)
                is_named = is_whole_drive(drive_device(name)) or serial is not None or known.startswith("wwn:")
                if _GROUP.fullmatch(name) or not (is_below or is_named):
                    continue
            if name == _OLD[1:]:
                self.rejected.append((row, "the drive that is being replaced has lost its name; give `-P`", "name", name))
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
        return {"drive_id": self._drive(leaf), "is_alias": True, "collected_at": at, "row_no": leaf.row}

    def _drive(self, leaf: Leaf) -> str:
        return drive_named(self.host, leaf.name)[0]

    def _looks(self) -> list[list[Status]]:
        """Looks of `zpool status`, and those of zpool_influxdb, by time."""
        return [sorted(seen, key=lambda one: one.at) for seen in (self.seen, self._listed.values())]

    def members(self) -> Iterator[dict[str, Any]]:
        """An inventory record per drive, where a look finds other members than the one before it; a guess by what influx prints.

        Of a drive's parts in several groups that of the data counts; the others are `parts`: drive, group, that of the data.
        """
        for seen, is_guessed in zip(self._looks(), (False, True), strict=True):
            before: list[tuple[str, str, str]] | None = None
            for status in seen:
                places = Counter(vdev for vdev, _ in {(leaf.vdev, leaf.place) for leaf in status.leaves})
                listed = [(leaf.name, leaf.group(places[leaf.vdev]), leaf.cls) for leaf in status.leaves]
                if listed == before:
                    continue
                before = listed
                groups: dict[str, str] = {}
                order = [(_CLASSES_BY_WEIGHT.index(leaf.cls), -places[leaf.vdev], n) for n, leaf in enumerate(status.leaves)]
                for *_, number in sorted(order):
                    leaf, (_, group, _) = status.leaves[number], listed[number]
                    if (drive := self._drive(leaf)) in groups:
                        self.parts.append((drive, group, groups[drive]))
                        continue
                    groups[drive] = group
                    level = (leaf.top or "stripe").rpartition("-")[0] or "stripe"
                    role = "spare" if leaf.cls == "spares" else "data"
                    place = {"raid_group_id": f"{self.host}/{group}", "is_group_guessed": is_guessed, "host": self.host}
                    yield {**self._record(leaf, status.at), **place, "role": role, "raid_level": level, "valid_from": status.at}

    def notes(self) -> list[str]:
        """A note on drives with parts in several groups, where there are any."""
        drives = {drive: group for drive, other, group in self.parts if other != group}
        if not drives:
            return []
        drive, group = next(iter(drives.items()))
        others = sorted({other for one, other, _ in self.parts if one == drive and other != group})
        count = count_of(len(drives), "drive")
        return [f"parts of {count} are in several groups, such as {drive} in {group}, which counts, and {', '.join(others)}"]

    def sightings(self) -> pl.DataFrame:
        """Host, device and instant (`at`, unix seconds) of every device that a look found."""
        epoch = datetime(1970, 1, 1)
        rows = [
            (self.host, leaf.name, (status.at - epoch).total_seconds(), leaf.row)
            for seen in self._looks()
            for status in seen
            for leaf in status.leaves
        ]
        return pl.DataFrame(rows, schema={name: _INTERVAL[name] for name in ("host", "device", "at", "row_no")}, orient="row")

    def health(self) -> Iterator[dict[str, Any]]:
        """The pool's counts of each drive since it was cleared, the last of a day: errors, and I/Os slower than `zio_slow_io_ms`. Those of
        parts of one drive add up.
        """
        last = [status for seen in self._looks() for status in {status.at.date(): status for status in seen if status.leaves}.values()]
        for status in last:
            first: dict[str, Leaf] = {}
            counts: dict[tuple[str, str], int] = {}
            for leaf in status.leaves:
                drive = self._drive(leaf)
                first.setdefault(drive, leaf)
                for name, number in zip(_ERRORS, leaf.counts, strict=True):
                    if number is not None:
                        counts[drive, name] = counts.get((drive, name), 0) + number
            for (drive, name), number in counts.items():
                yield {**self._record(first[drive], status.at), "read_at": status.at, "attribute": name, "raw_value": number}

    def events(self, with_influx: bool) -> Iterator[dict[str, Any]]:
        """Scrubs of every drive of a pool but its spares, and resilvers of those that they concern.

        with_influx: by what influx prints too, which does not say whom a resilver concerns.
        """
        for seen in self._looks()[: 2 if with_influx else 1]:
            yield from self._work(seen)

    def _work(self, seen: list[Status]) -> Iterator[dict[str, Any]]:
        leaves = {self._drive(leaf): leaf for status in reversed(seen) for leaf in reversed(status.leaves)}
        at_work = [(one.at, {(self._drive(leaf), work) for leaf, work in one.working()}) for one in seen]
        for (drive, work), begun, ended in spans(at_work):
            detail = "zfs: scrub" if work == "scrub" else "zfs: resilver, expansion or removal"
            record = {**self._record(leaves[drive], ended or begun), "event_type": work, "occurred_at": begun, "ended_at": ended}
            yield {**record, "detail": detail}
