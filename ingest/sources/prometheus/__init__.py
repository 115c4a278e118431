"""Source `prometheus`: node_exporter's disk counters, pulled from a Prometheus-compatible server or read from files.

A pull is written to `WAREHOUSE/pulled/` in pieces of a day, each whole or absent, and then landed like any delivery: a call
that was interrupted goes on where it was, and memory holds a day. Docs: docs/sources/prometheus.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.contract.values import utc_now
from ingest.raw.known import hosts_apart, last_sightings, unknown_rows, without_known_claims
from ingest.raw.staging import write_parquet
from ingest.reading.batches import Batch, batch_of
from ingest.reading.files import FileResult, SourceFile
from ingest.reading.files import named as files_named
from ingest.reading.histograms import BUCKET, drive_latencies
from ingest.reading.overlap import each_once, take_back
from ingest.reading.parse import completed, split
from ingest.reading.readers import RawChunk
from ingest.reading.resolution import as_samples, seconds_of
from ingest.reading.text import one_line
from ingest.sources import SOURCES
from ingest.sources.prometheus.arrays import ARRAY, take_works, works_of
from ingest.sources.prometheus.client import Client, PrometheusError, server_url
from ingest.sources.prometheus.dialects import DIALECTS
from ingest.sources.prometheus.health import Point, health_of
from ingest.sources.prometheus.paths import Naming, contradictions, known_by_all, named, naming_of, watched_by_several, with_names
from ingest.sources.prometheus.pull import HOUR, READS, Selection, chunks, pull, pull_arrays, pull_health, pull_latencies
from ingest.sources.prometheus.readings import CARRIED, READING, Rolled, checks, has_rates, roll_up
from ingest.sources.prometheus.text import EXPECTED as EXPECTED_TEXT
from ingest.sources.prometheus.text import PLACE, Labels, SampleFile, Samples, is_watched_twice, read_samples, spans_of

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

PULLED, TEXT = "readings", "samples"
SUFFIXES = (".prom", ".txt", ".om", ".openmetrics", ".dump")
EXPECTED = f"the address of a server (http://prometheus:9090), or files *{', *'.join(SUFFIXES)}, also .gz or .zst, with {EXPECTED_TEXT}"
recognise = files_named(TEXT, rf".*({'|'.join(map(re.escape, SUFFIXES))})(\.gz|\.zst)?")
DEFAULT_HOURS = 24
ABANDONED_SECONDS = 24 * 3600
"""After which half a piece is of a call that was killed."""

HEALTH_SUFFIX, LATENCIES_SUFFIX, ARRAYS_SUFFIX = ".health", ".latencies", ".arrays"
"""Files beside a piece of a pull, written before it: the drives' health, how long I/Os took, what arrays did, where a server has that."""
HOUR_OF_PIECE = "%Y-%m-%dT%H"
"""How the name of a piece of a pull gives the hour that it begins with, and the one that it ends with."""
_NOTHING = pl.DataFrame()
_HEALTH: dict[str, pl.DataType] = {
    "host": pl.String(),
    "metric": pl.String(),
    "labels": pl.String(),
    "at": pl.Datetime("us"),
    "value": pl.Float64(),
}
_NUMBERED = {**READING, "file_no": pl.Int64(), "row_no": pl.Int64(), **CARRIED}


# Pulling ----------------------------------------------------------------------------------------------------------


def fetch(
    urls: Sequence[str],
    warehouse: Path,
    options: Mapping[str, Any],
    first: datetime | None,
    end: datetime | None,
    on_progress: Callable[[str, int, int], None],
) -> tuple[list[SourceFile], list[str]]:
    """Pull the full hours [first, end) from every server, a file per day; returns the files and notes on them.

    Default: the 24 hours up to the last full one. Raises: PrometheusError where a server does not answer; what was pulled is kept.
    """
    first, end, notes = hours_of(first, end)
    selection, step = selection_of(options), seconds_of(options) or HOUR
    files: list[SourceFile] = []
    pieces = [(url, piece) for url in dict.fromkeys(map(server_url, urls)) for piece in chunks(first, end)]
    for number, (url, (begins, ends)) in enumerate(pieces):
        on_progress("pull", number, len(pieces))
        path = spool(warehouse, url, options) / f"{begins:{HOUR_OF_PIECE}}.{ends:{HOUR_OF_PIECE}}.parquet"
        if not path.exists():
            client = Client(url, is_partial_allowed=bool(options.get("allow_partial")))
            readings = pull(client, selection, begins, ends, step)
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                latencies, left_out = pull_latencies(client, selection, begins, ends)
                if latencies.height:
                    write_parquet(latencies, path.with_suffix(LATENCIES_SUFFIX))
                if left_out:
                    notes.append(f"{left_out} latency counts on {begins:%Y-%m-%d} are left out: the count or its bucket is not a number")
            except PrometheusError as error:  # the readings land without
                notes.append(f"histograms of latencies on {begins:%Y-%m-%d} are left out: {error}")
            try:
                arrays = pull_arrays(client, selection, begins, ends, set(readings["host"]))
                if arrays.height:
                    write_parquet(arrays, path.with_suffix(ARRAYS_SUFFIX))
            except PrometheusError as error:
                notes.append(f"work on md arrays on {begins:%Y-%m-%d} is left out, so alerts are not held back for it: {error}")
            if ends.hour == 0:  # once a day, however many pulls there are: the day's last full hour
                try:
                    _write_health(path.with_suffix(HEALTH_SUFFIX), pull_health(client, selection, ends - timedelta(hours=1)))
                except PrometheusError as error:  # also one that a proxy refuses: the readings land
                    notes.append(f"the drives' health on {begins:%Y-%m-%d} is left out: {error}")
            half = path.with_suffix(f".{os.getpid()}.half")
            write_parquet(readings, half)
            os.replace(half, path)
            notes += [f"{url} says its answers are incomplete: {warning}" for warning in sorted(client.warnings)]
        files.append(SourceFile(path, f"{url}!{path.name}", f"{url}!{path.name}", PULLED))
    on_progress("pull", len(pieces), len(pieces))
    try:
        is_empty = not pl.scan_parquet([file.path for file in files], glob=False).head(1).collect().height
    except FileNotFoundError as error:
        raise IngestError(f"{', '.join(urls)}: another pull of the same hours landed meanwhile; run it again") from error
    if is_empty:
        forget(files)
        raise IngestError(
            f"{', '.join(urls)}: no counter of a drive from {first} to {end} UTC; "
            f"`drivetail doctor prometheus {urls[0]}` says what is there"
        )
    return files, notes


def hours_of(first: datetime | None, end: datetime | None) -> tuple[datetime, datetime, list[str]]:
    """The full hours [first, end) of a pull, no later than now, and what there is to say of them. Raises: IngestError."""
    now = utc_now().replace(minute=0, second=0, microsecond=0)
    notes = []
    if end is None or end > now:
        notes.append(f"pulled up to {now:%Y-%m-%d %H:%M} UTC, the last hour that is over")
        end = now
    first = end - timedelta(hours=DEFAULT_HOURS) if first is None else first
    if any(hour.minute or hour.second or hour.microsecond for hour in (first, end)) or first >= end:
        raise IngestError(f"--from {first} --to {end}: give two full hours (UTC), the first before the second")
    return first, end, notes


def _write_health(path: Path, points: Sequence[Point]) -> None:
    rows = [(host, metric, json.dumps(labels), at, value) for host, metric, labels, at, value in points]
    write_parquet(pl.DataFrame(rows, schema=_HEALTH, orient="row"), path)


def _health_points(path: Path) -> Iterator[Point]:
    for host, metric, labels, at, value in pl.read_parquet(path, glob=False).iter_rows() if path.exists() else ():
        yield host, metric, json.loads(labels), at, value


def spool(warehouse: Path, url: str, options: Mapping[str, Any]) -> Path:
    """Where the pieces of a pull wait until they have landed: a folder per server and selection."""
    asked = {name: options.get(name) for name in SOURCES["prometheus"].all_options}
    # another release may keep other columns, or know other collectors
    key = json.dumps([url, asked, list(READING), [one.title for one in DIALECTS]], sort_keys=True)
    return Path(warehouse) / "pulled" / hashlib.sha256(key.encode()).hexdigest()[:16]


def forget(files: Iterable[SourceFile]) -> None:
    """Remove pieces that have landed, and what a killed call left; other calls may be running."""
    pieces = [file.path for file in files]
    for piece in pieces:
        piece.unlink(missing_ok=True)
        for beside in (HEALTH_SUFFIX, LATENCIES_SUFFIX, ARRAYS_SUFFIX):
            piece.with_suffix(beside).unlink(missing_ok=True)
    for folder in {piece.parent for piece in pieces}:
        for half in folder.glob("*.half"):
            with suppress(FileNotFoundError):
                if time.time() - half.stat().st_mtime > ABANDONED_SECONDS:
                    half.unlink()
        with suppress(OSError):
            folder.rmdir()


def selection_of(options: Mapping[str, Any]) -> Selection:
    """The selection that the options of a call name."""
    return Selection(tuple(options.get("match") or ()), labels_of(options))


def labels_of(options: Mapping[str, Any]) -> Labels:
    """The labels that the options of a call name."""
    given = {name: options.get(f"{name}_label") for name in ("host", "device")}
    return replace(Labels(group=tuple(options.get("group_label") or ())), **{name: label for name, label in given.items() if label})


# Landing ----------------------------------------------------------------------------------------------------------


def land(files: list[SourceFile], landing: Landing) -> None:
    """Roll the readings up and stage drive-hours, inventory and aliases.

    Counts are readings: one scrape of one drive. Files of samples belong together, so that a scrape in one file
    follows that in another, and are taken some days at a time; each piece of a pull stands alone. Hosts have one name throughout.
    """
    apart = hosts_apart(landing)
    pulled = [_looked_through(file) for file in files if file.record_kind == PULLED]
    naming, notes = naming_of([found for found, _ in pulled], apart, [places for _, places in pulled])
    counted = [places for _, places in pulled]
    arrays = [pl.DataFrame(schema={**ARRAY, "file_no": pl.Int64()})]
    read = partial(_read, landing, naming, arrays)
    together = [(result, samples) for result, samples in landing.read_each(files, read) if samples is not None]
    works = [works_of(pl.concat(arrays))]
    before = pl.DataFrame(schema=_NUMBERED)
    series = [file for _, file in together]
    spans = spans_of(series)
    counted += [file.series.filter(pl.col("metric") == READS).select("host", "path") for file in series]
    if series:
        days = zip(*(file.pieces(spans) for file in series), strict=True) if is_watched_twice(series) else ()
        differing = (contradictions(pl.concat([samples.readings for samples in day])) for day in days)
        naming, notes = naming_of(differing, apart, [file.series.select("host", "path") for file in series])
    for found in zip(*(file.pieces(spans) for file in series), strict=True):
        readings = [_counted(samples, landing, result) for (result, _), samples in zip(together, found, strict=True)]
        once = each_once(pl.concat(readings), PLACE, [name for name in READING if name not in PLACE], landing.by_no)
        before = _stage(pl.concat([before, with_names(once, naming)]), landing)
        seen = [_of_file(samples.arrays, result) for (result, _), samples in zip(together, found, strict=True)]
        works.append(works_of(with_names(pl.concat(seen), naming)))
    take_works(pl.concat(works), landing)
    for result, file in together:
        with landing.reading(result):
            _take_health(file.health_points(), naming, landing, result)
    if landing.by_no:
        landing.by_no[max(landing.by_no)].notes += notes + watched_by_several(counted)


def _looked_through(file: SourceFile) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The contradictions in a piece of a pull, and its places (host, path); none where it cannot be read; landing it says so."""
    try:
        readings = pl.read_parquet(file.path, glob=False)
    except (OSError, pl.exceptions.PolarsError):
        readings = pl.DataFrame(schema=READING)
    return contradictions(readings), readings.select("host", "path").unique()


def _read(landing: Landing, naming: Naming, arrays: list[pl.DataFrame], file: SourceFile, result: FileResult) -> SampleFile | None:
    """A file of samples; a piece of a pull is staged at once. arrays: takes what a piece has of arrays (ARRAY, `file_no`)."""
    if file.record_kind != PULLED:
        return _samples(file, landing, result)
    begins = datetime.strptime(file.path.name.partition(".")[0], HOUR_OF_PIECE)
    _stage(with_names(_checked(_pulled(file), landing, result), naming), landing, begins)
    _take_health(_health_points(file.path.with_suffix(HEALTH_SUFFIX)), naming, landing, result)
    if (seen := file.path.with_suffix(ARRAYS_SUFFIX)).exists():
        arrays.append(_of_file(with_names(pl.read_parquet(seen, glob=False), naming), result))
    if (latencies := file.path.with_suffix(LATENCIES_SUFFIX)).exists():
        counts = with_names(pl.read_parquet(latencies, glob=False), naming)
        # what two watch is the same count
        once = counts.group_by("host", "device", "at", "upper_us", maintain_order=True).agg(
            pl.exclude("count").first(), pl.col("count").max()
        )
        landing.take(Batch("drive_latencies", drive_latencies(once.select(*BUCKET)).drop("file_no"), is_beside=True), result)
    return None


def _of_file(arrays: pl.DataFrame, result: FileResult) -> pl.DataFrame:
    return arrays.with_columns(pl.lit(result.file_no, pl.Int64()).alias("file_no"))


def _take_health(points: Iterable[Point], naming: Naming, landing: Landing, result: FileResult) -> None:
    by_name = ((named(host, labels, naming.get(host, ())), metric, labels, at, value) for host, metric, labels, at, value in points)
    health, contradicted = health_of(by_name)
    if contradicted:
        result.notes.append(
            f"{len(contradicted)} readings of health are left out, of which two values were given, such as {contradicted[0]}"
        )
    landing.take(replace(batch_of("drive_health", health), is_beside=True), result)


def _pulled(file: SourceFile) -> pl.DataFrame:
    try:
        readings = pl.read_parquet(file.path, glob=False)
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error
    return readings.with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("row_no"))


def _samples(file: SourceFile, landing: Landing, result: FileResult) -> SampleFile:
    """A file of samples, read but for its counters; its broken lines are counted and rejected."""
    scratch = landing.staged.scratch / f"samples-{result.file_no}"
    scratch.mkdir()
    samples = read_samples(file.path, file.folder, labels_of(landing.options), scratch)
    result.notes += samples.notes
    landing.take(Batch(None, _NOTHING, samples.broken), result)
    return samples


def _counted(samples: Samples, landing: Landing, result: FileResult) -> pl.DataFrame:
    landing.take(Batch(None, _NOTHING, samples.broken, samples.duplicates), result)
    return _checked(samples.readings, landing, result)


def _checked(readings: pl.DataFrame, landing: Landing, result: FileResult) -> pl.DataFrame:
    """The readings that keep what they must (_NUMBERED); the others are rejected."""
    good, rejected = split(RawChunk(readings), readings, checks(has_rates(readings)))
    landing.take(Batch(None, good, rejected), result)
    return good.with_columns(
        pl.lit(result.file_no, pl.Int64()).alias("file_no"),
        pl.lit(False).alias("is_carried"),
        pl.lit(None, CARRIED["since"]).alias("since"),
    ).select(*_NUMBERED)


def _stage(readings: pl.DataFrame, landing: Landing, begins: datetime | None = None) -> pl.DataFrame:
    """Stage the records made from readings, which a pull asked for from `begins` on. Returns: those that later ones follow."""
    if not readings.height:
        return readings
    seconds = seconds_of(landing.options)
    rolled: Rolled = roll_up(known_by_all(readings), seconds, begins)
    notes = landing.by_no[max(readings["file_no"].unique())].notes
    notes += [note for note in rolled.notes if note not in notes]
    take_back(rolled.unused, landing.by_no, "rows_superseded")
    names, drives = (
        completed(rows, record_kind).with_columns(rows["seen_as"])
        for record_kind, rows in (("drive_aliases", without_known_claims(rolled.aliases, landing)), ("drives", rolled.drives))
    )
    names = unknown_rows(names, "drive_aliases", landing)
    # another drive under a name is described, though in the same words as the one before
    described = drives.join(names, on=["seen_as", "valid_from"], how="semi")
    drives = pl.concat([unknown_rows(drives, "drives", landing), described]).unique(maintain_order=True)
    names = pl.concat([names, last_sightings(names, rolled.drive_hours, landing)])
    for record_kind, name, news in (("drives", "drive_id", drives), ("drive_aliases", "alias", names)):
        # what held at the last reading before this span is said again, and now perhaps how long it did
        landing.withdraw(record_kind, news, name, "valid_from")
        landing.accept(record_kind, news, None)
    landing.count_samples(rolled.behind)
    if rolled.drive_hours.height:
        landing.accept("drive_hours", completed(rolled.drive_hours, "drive_hours"), None)
    if seconds is not None and rolled.samples is not None:
        landing.accept("drive_samples", as_samples(rolled.samples, seconds), None)
    return rolled.last
