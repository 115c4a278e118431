"""Source `fio`: results of fio (JSON or JSON+) on Linux md arrays, or on drives by themselves; every run is an hour of its array.

fio's `disk_util` lists the md device and, right after it, the disks it is made of, with the I/Os each completed and its
`ticks`: what /sys/block/DISK/stat gained over the run, the milliseconds of all its I/Os added up. So ticks over I/Os is
the mean latency of an I/O. A run takes a minute, not an hour: its hour is its place among the runs of its array.
The bins of latencies are of jobs. They are a drive's where each job has one drive to itself (`filename=/dev/sdb`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.raw.store import Folder, drive_hour_files, table_files
from ingest.reading.batches import Batch, rejections
from ingest.reading.devices import is_whole_drive
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import drive_device
from ingest.reading.parse import completed
from ingest.reading.readers import HALF_A_PAIR, SHOWN_VALUE_CHARS
from ingest.reading.text import one_line, utf8

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "*.json, each the result of one fio run (--output-format=json or json+), in a folder per array"
recognise = named("disk_util", r".*\.json")
FIGURES = ("read_ios", "write_ios", "read_ticks", "write_ticks")
_COUNTS = FIGURES[:2]
MAX_BYTES = 256 << 20
HOUR = timedelta(hours=1)

_MD = re.compile(r"md[\d_]")
_OPENING = re.compile(r"^[ \t]*\{", re.MULTILINE)
_END_MS = 32_503_680_000_000  # the year 3000: leaves room for an hour per run
_MOST = 2**53  # exact as a double, as for every count

_DISK: dict[str, pl.DataType] = {
    "raid_group_id": pl.String(),
    "drive_id": pl.String(),
    "collected_at": pl.Datetime("us"),
    **dict.fromkeys(FIGURES, pl.Int64()),
    "bins": pl.List(pl.Struct({"upper_us": pl.Float64(), "io_count": pl.Int64()})),
    "file_no": pl.Int64(),
    "row_no": pl.Int64(),
}


@dataclass
class Run:
    """One fio run: when it ended (UTC), its disks as dicts of `_DISK` without the file, its rejections as rows of `REJECTION`."""

    ended_at: datetime
    disks: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[tuple[int, str, str, str | None]] = field(default_factory=list)


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every run, place the runs of every array in hours, and stage the drive-hours and the inventory.

    Counts are in disks of an array; a run without an array counts as one row.
    """
    disks = pl.concat([pl.DataFrame(schema=_DISK), *(rows.select(*_DISK) for rows in landing.read(files, _batches))])
    if not disks.height:
        return
    placed, late = place(disks, landing.staged.folders)
    landing.turn_away(late)
    if not placed.height:
        return
    landing.accept("drives", _drives(placed), None)
    landing.count_samples(placed.select("file_no", "row_no", of_file_no="file_no", samples=pl.lit(1, pl.Int64())))
    landing.accept("drive_hours", _drive_hours(placed), None)
    if (latencies := placed.explode("bins").unnest("bins").drop_nulls("upper_us")).height:
        landing.accept("drive_latencies", completed(latencies, "drive_latencies"), None)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    run = read_run(file.path, "/".join(file.parts[-3:-1]), result.notes)
    yield Batch(None, pl.DataFrame(run.disks, schema=_DISK), rejections(run.rejected))


# One file ---------------------------------------------------------------------------------------------------------


def read_run(path: Path, folder: str, notes: list[str]) -> Run:
    """The disks of the md arrays of one run; `folder` is what the arrays' ids begin with.

    Raises: UnreadableFile where the file does not hold the whole result of one fio run.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableFile(f"more than {MAX_BYTES >> 20} MiB; expected the result of one fio run")
        document = document_of(path.read_bytes().decode("utf-8-sig", "replace"), notes)
        run = Run(_ended_at(document))
        _take_arrays(run, document.get("disk_util") or [], folder, _jobs_of_drives(document["jobs"], document.get("global options")))
    except (OSError, MemoryError, RecursionError, ValueError) as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error
    return run


def document_of(text: str, notes: list[str]) -> dict[str, Any]:
    """The one result of a fio run in a text; what fio or a shell wrote around it is left out with a note.

    Raises: UnreadableFile for none, or several.
    """
    opening = _OPENING.search(text)
    if opening is None:
        found = f"it starts with {text.strip()[:60]!r}" if text.strip() else "it is empty"
        raise UnreadableFile(f"no JSON object in it, {found}; expected the output of fio --output-format=json")
    try:
        document, end = json.JSONDecoder().raw_decode(text, opening.end() - 1)
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"no whole JSON object: {error.msg} at line {error.lineno}, column {error.colno}; is it cut off?") from error
    before, after = text[: opening.start()].strip(), text[end:].strip()
    if _OPENING.search(after):
        raise UnreadableFile("more than one JSON object in it (--status-interval, or results appended to one file); expected one per run")
    if before or after:
        notes.append(f"left out the text around the JSON, which starts with {(before or after).splitlines()[0][:60]!r}")
    if "fio version" not in document or not isinstance(document.get("jobs"), list):
        found = ", ".join(repr(name[:60]) for name in list(document)[:10]) or "nothing"
        raise UnreadableFile(f"not the result of a local fio run: expected 'fio version' and a list of 'jobs', found {found}")
    return document  # type: ignore[no-any-return]


def _ended_at(document: dict[str, Any]) -> datetime:
    """When fio wrote the result, UTC; fio before 3 gives whole seconds only."""
    name, unit_ms = ("timestamp_ms", 1) if "timestamp_ms" in document else ("timestamp", 1000)
    value = document.get(name)
    if not _is_count(value) or not 0 < value * unit_ms < _END_MS:
        raise UnreadableFile(f"{name} is {_shown(value)}; expected {'milliseconds' if unit_ms == 1 else 'seconds'} since 1970")
    return datetime.fromtimestamp(0, UTC).replace(tzinfo=None) + timedelta(milliseconds=value * unit_ms)


def _jobs_of_drives(jobs: list[Any], common: Any) -> dict[str, list[dict[str, Any]]]:
    """The jobs of each drive; empty where one has a file, an array, or several drives."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        options = [each for each in (common, job.get("job options") if isinstance(job, dict) else None) if isinstance(each, dict)]
        device = drive_device(next((str(of["filename"]) for of in reversed(options) if "filename" in of), ""))
        if not is_whole_drive(device):
            return {}
        found.setdefault(device, []).append(job)
    return found


def _bins(jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """I/Os by the time they took, in ranges that double, none without json+. Raises: ValueError, AttributeError."""
    counts: Counter[int] = Counter()
    for job in jobs:
        for way in ("read", "write", "trim"):
            for took_ns, count in job.get(way, {}).get("clat_ns", {}).get("bins", {}).items():
                if not (took_ns.isdecimal() and _is_count(count) and 0 <= count <= _MOST):
                    raise ValueError
                counts[1 << int(took_ns).bit_length()] += count
    return [{"upper_us": upper / 1000, "io_count": count} for upper, count in sorted(counts.items()) if count]


def _take_arrays(run: Run, devices: Any, folder: str, jobs: dict[str, list[dict[str, Any]]]) -> None:
    if not isinstance(devices, list) or not all(isinstance(device, dict) and isinstance(device.get("name"), str) for device in devices):
        raise UnreadableFile("disk_util is not a list of disks with names, as fio writes it")
    names = [device["name"] for device in devices]
    arrays = [at for at, name in enumerate(names) if _MD.match(name)]
    if not devices:
        run.rejected.append((1, "empty, expected the disks of the run (fio leaves them out with --disk_util=0)", "disk_util", None))
    elif jobs and jobs.keys() == set(names):  # group_reporting names but one of them
        for at, name in enumerate(names):
            _take_disk(run, devices[at], at + 1, folder or "drives", jobs[name])
    elif not arrays:
        reason = "no md array, and no job for each drive; other devices, such as hardware RAID, do not show the drives behind them"
        run.rejected.append((1, reason, "disk_util", ", ".join(names)))
    below = _below(devices)
    for array in arrays:
        if not below[array]:
            reason = "the disks listed after the array do not have the means it gives for its members (aggr_read_ios, aggr_write_ios)"
            if "aggr_read_ios" not in devices[array]:
                reason = "the array is listed without its members (no aggr_read_ios)"
            run.rejected.append((array + 1, reason, "name", names[array]))
        group = "/".join(filter(None, (folder, names[array])))
        for at in below[array]:
            _take_disk(run, devices[at], at + 1, group)


def _below(devices: list[dict[str, Any]]) -> list[list[int]]:
    """For every device the positions of those it is made of.

    fio lists these right after it, each followed by what that is made of itself (dm-0 of sdc), and says nowhere how many
    there are; but the device's aggr_* are their means, rounded down. An array takes all up to the last device that fits,
    because idle ones fit early, and none beyond the next array; any other device the first that fit.
    """
    below: list[list[int]] = [[] for _ in devices]
    ends = list(range(1, len(devices) + 1))  # the position after a device and all below it
    stop = len(devices)
    for at in reversed(range(len(devices))):
        is_array = _MD.match(devices[at]["name"]) is not None
        means = [devices[at].get(f"aggr_{name}") for name in _COUNTS]
        sums = [0, 0]
        found: list[int] = []
        end = at + 1
        while _is_count(means[0]) and end < stop:
            counts = [devices[end].get(name) for name in _COUNTS]
            sums = [total + count for total, count in zip(sums, counts, strict=True) if _is_count(count)]
            if len(sums) < len(means):
                break
            found.append(end)
            end = ends[end]
            if [total // len(found) for total in sums] == means:
                below[at], ends[at] = list(found), end
                if not is_array:
                    break
        if is_array:
            stop = at
    return below


def _take_disk(run: Run, device: dict[str, Any], row: int, group: str, jobs: Sequence[dict[str, Any]] = ()) -> None:
    for name in FIGURES:
        value = device.get(name)
        if not _is_count(value) or value > _MOST:
            reason = "not a whole number up to 2^53"
        elif value < 0:
            reason = "negative; did the kernel's 32-bit counter start again at 0 during the run?"
        else:
            continue
        run.rejected.append((row, reason, name, None if value is None else _shown(value)))
        return
    if utf8(device["name"]) != device["name"]:
        run.rejected.append((row, HALF_A_PAIR, "name", device["name"]))
        return
    try:
        bins = _bins(jobs)
    except (ValueError, AttributeError):
        run.rejected.append((row, "the bins of its jobs are not whole numbers of 0 or more", "bins", None))
        return
    figures = {name: device[name] for name in FIGURES}
    identity = {"raid_group_id": group, "drive_id": f"{group}/{device['name']}", "collected_at": run.ended_at, "row_no": row}
    run.disks.append({**identity, **figures, "bins": bins})


def _is_count(value: Any) -> TypeGuard[int]:
    return type(value) is int  # true and 1.0 are none


def _shown(value: Any) -> str:
    return json.dumps(value)[:SHOWN_VALUE_CHARS]


# Runs in hours ----------------------------------------------------------------------------------------------------


def place(disks: pl.DataFrame, folders: Collection[Folder]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Disks (columns of `_DISK`) with their `hour_utc`, and those that have no place any more, as `Landing.turn_away` takes them.

    A run is known by its array and the time it ended. The first run of an array takes the UTC hour it ended in, every
    later one the hour after the run before it. Runs that come after others of their array have landed go on from there; one
    that ended before the last of those would move their hours, so it is rejected.
    """
    hours: dict[tuple[str, datetime], datetime] = {}
    last: dict[str, datetime] = {}
    next_hour: dict[str, datetime] = {}
    for group, ended_at, hour in sorted(_landed_runs(disks["raid_group_id"].unique().to_list(), folders)):
        hours[group, ended_at] = hour
        last[group], next_hour[group] = ended_at, hour + HOUR
    for group, ended_at in disks.select("raid_group_id", "collected_at").unique().sort(pl.all()).iter_rows():
        if (group, ended_at) in hours or (group in last and ended_at < last[group]):
            continue
        hours[group, ended_at] = next_hour.get(group, ended_at.replace(minute=0, second=0, microsecond=0))
        next_hour[group] = hours[group, ended_at] + HOUR
    known = pl.DataFrame(
        [(*run, hour) for run, hour in hours.items()],
        schema={**{name: _DISK[name] for name in ("raid_group_id", "collected_at")}, "hour_utc": pl.Datetime("us")},
        orient="row",
    )
    placed = disks.join(known, on=["raid_group_id", "collected_at"], how="left", maintain_order="left")
    late = placed.filter(pl.col("hour_utc").is_null()).select(
        "file_no",
        "row_no",
        pl.lit(
            "a later run of the array has landed and has the hour of this one; ingest all its runs together, into a new warehouse"
        ).alias("reason"),
        pl.lit("timestamp").alias("column"),
        pl.col("collected_at").dt.to_string("%Y-%m-%d %H:%M:%S%.3f").alias("value"),
    )
    return placed.filter(pl.col("hour_utc").is_not_null()), late


def _landed_runs(groups: list[str], folders: Collection[Folder]) -> list[tuple[str, datetime, datetime]]:
    """(raid_group_id, end, hour) of the runs of these arrays in earlier deliveries."""
    paths = table_files(folders, "ingested_files")
    if not paths:
        return []
    ours = set(pl.scan_parquet(paths, glob=False).filter(source="fio").select("delivery_seq").collect().to_series())
    files = [path for folder in folders if not ours.isdisjoint(folder.numbers()) for path in drive_hour_files(folder)]
    if not files:
        return []
    rows = pl.scan_parquet(files, glob=False).filter(pl.col("raid_group_id").is_in(groups))
    return rows.select("raid_group_id", "collected_at", "hour_utc").unique().collect().rows()


def _drive_hours(placed: pl.DataFrame) -> pl.DataFrame:
    latencies = [
        pl.when(pl.col(f"{way}_ios") > 0).then(pl.col(f"{way}_ticks") * 1000.0 / pl.col(f"{way}_ios")).alias(f"{way}_latency_us")
        for way in ("read", "write")
    ]
    return completed(placed.with_columns(latencies), "drive_hours").sort("hour_utc", "drive_id", maintain_order=True)


def _drives(placed: pl.DataFrame) -> pl.DataFrame:
    first = placed.sort("drive_id", "hour_utc", "file_no", "row_no").unique("drive_id", keep="first", maintain_order=True)
    # without collected_at: an inventory that every delivery repeats
    drives = first.select("drive_id", "raid_group_id", "file_no", "row_no", role=pl.lit("data"))
    return completed(drives, "drives")
