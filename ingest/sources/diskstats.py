"""Source `diskstats`: snapshots of `/proc/diskstats`, each below a line `TS seconds`, rolled up to drive-hours.

What a drive's counters gained from one snapshot to the next belongs to the hour the interval ends in. Latency is the milliseconds
the kernel counted over the I/Os it completed, for each direction. A reboot, a gap, or a counter that cannot be explained costs
its interval; coverage is the share of the hour that the other intervals make up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from ingest.contract.values import TWO_MACHINES
from ingest.reading.batches import Batch, Rejection, rejections
from ingest.reading.devices import (
    drive_of,
    head_of,
    is_cut_off,
    is_hidden_path,
    is_no_drive,
    is_path,
    is_whole_drive,
    known_by_device,
    without_whole_disk,
)
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import Look, host_of, looks, read_text
from ingest.reading.overlap import behind, take_back
from ingest.reading.parse import completed
from ingest.reading.resolution import HOUR_SECONDS, as_samples, seconds_of
from ingest.reading.spans import before_end, cut_records, seldom_notes, with_spans

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "HOST/diskstats*: snapshots of /proc/diskstats, each below a line `TS seconds`"
recognise = named("snapshots", "diskstats.*")
SECTOR_BYTES = 512
MAX_GAP_SECONDS = 900
"""Snapshots further apart say too little of when the I/Os were, unless one hour holds both."""

# fields of a line: major, minor, name and 11 (2.6), 15 (4.18) or 17 (5.5) counters; a partition had 4 before 2.6.25
WIDTHS = (14, 18, 20)
"""Fields of a line of a whole drive, and since 2.6.25 of a partition."""
_PARTITION_WIDTH = 7
_COUNTERS = {"read_ios": 3, "read_sectors": 5, "read_ms": 6, "write_ios": 7, "write_sectors": 9, "write_ms": 10}
_WRAP = 2**32
_MOST = 2**53
_EPOCH = datetime(1970, 1, 1)

SNAPSHOT: dict[str, pl.DataType] = {
    "host": pl.String(),
    "device": pl.String(),
    "at": pl.Float64(),
    **dict.fromkeys(_COUNTERS, pl.Int64()),
    "file_no": pl.Int64(),
    "row_no": pl.Int64(),
}
# which boot of the host it is of, null where the look does not say; whether no line of the look is damaged
_SEEN = {**SNAPSHOT, "boot": pl.String(), "is_whole": pl.Boolean()}
BOOT = "boot"
"""Begins a line of a look that names the boot of the host, as /proc/sys/kernel/random/boot_id does."""


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every snapshot, take the differences of each drive over all files of its host, and stage its spans and where they were cut.

    Counts are in lines of drives; those of partitions, loop, ram, dm and md devices are not drives and not counted. A path of a
    multipath NVMe namespace counts: as a duplicate where its head counted the same I/Os.
    """
    seconds = seconds_of(landing.options)
    read = [rows.select(*_SEEN) for rows in landing.read(files, _batches)]
    # the first of one drive and instant stands; a collector repeats the last snapshot it delivered
    place = ["host", "device"]
    snapshots = pl.concat([pl.DataFrame(schema=_SEEN), *read]).sort(*place, "at", "file_no", "row_no")
    snapshots = _before_set_back(snapshots, landing)
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(1) for name in (*place, "at")).fill_null(False)
    take_back(snapshots.filter(same), landing.by_no, "rows_duplicate")
    ios = pl.col("read_ios") + pl.col("write_ios")
    other = snapshots.filter(same & (ios != ios.shift(1)) & (pl.col("file_no") != pl.col("file_no").shift(1)))
    for host, count, device, file_no in other.group_by("host").agg(pl.len(), pl.col("device", "file_no").first()).sort("host").rows():
        landing.by_no[file_no].notes.append(
            f"{count} lines of {host} have other counts than another file has for the same device and time, such as {device}; "
            f"the first file is used. {TWO_MACHINES} Name their folders apart"
        )
    absences = _absences(snapshots)
    gained = gained_in(snapshots.filter(~same), absences)
    if (far := gained.filter("is_far")).height:
        landing.by_no[far["file_no"][-1]].notes += seldom_notes(gained, pl.col("is_far"), MAX_GAP_SECONDS * 1_000_000)
    gained, again = with_paths(gained)
    take_back(again, landing.by_no, "rows_duplicate")
    spans = in_spans(gained, HOUR_SECONDS)
    if (cuts := pl.concat([cuts_of(spans), _came(snapshots, absences)])).height:
        landing.accept("drive_aliases", cuts, None)
    intervals = spans.filter(~pl.col("is_lost"))
    hours, counts = roll_up(intervals)
    if hours.height:
        landing.accept("drive_hours", hours, None)
        if landing.kind is not None:
            landing.accept("drives", known_by_device(intervals.sort(*place, "at", "file_no", "row_no")), None)
        landing.count_samples(counts)
        if seconds is not None:
            landing.accept("drive_samples", as_samples(totals(gained, seconds), seconds), None)


def _before_set_back(snapshots: pl.DataFrame, landing: Landing) -> pl.DataFrame:
    """Those of a clock that goes on. Where one was set back, what it showed a second time is left out, until it shows more than before.
    Adds `is_set_back`, of the last before that: how long it was from there to the next nobody knows.

    A file that goes back to a time within its own is of such a clock where the counter does not go back with it: it went on, or began again
    at a boot, and stands below what was counted just before and just after that time. That of another file put behind it goes back.
    One that goes back to before its first time is too, where it comes by that time again, with another count.
    """
    of, ios = ["host", "device", "file_no"], pl.col("read_ios") + pl.col("write_ios")
    first, comes = pl.col("at").first().over(of), pl.col("at").reverse().cum_max().reverse().over(of)
    around = [ios.shift(step).over(of).alias(name) for step, name in ((1, "ios_before"), (-1, "ios_after"))]
    rows = snapshots.with_columns(around).sort(*of, "row_no").with_columns(
        (pl.col("at") < pl.col("at").cum_max().over(of)).alias("is_behind"),
        (
            (pl.col("at") < pl.col("at").shift(1).over(of))
            & pl.when(pl.col("at") >= first)
            .then((ios >= ios.shift(1).over(of)) | ((ios < pl.col("ios_before")) & (pl.col("ios_before") <= pl.col("ios_after"))))
            .otherwise((comes > first) & (ios > ios.shift(1).over(of)) & (pl.col("ios_before") > ios).first().over(of))
        ).fill_null(False).alias("is_set_back"),
    )  # fmt: skip
    # a clock that ran ahead for a while, over times that nothing shows, is right again once it is set back into these
    is_ahead = pl.col("at") > pl.col("at").reverse().cum_min().reverse().shift(-1).over(of)
    rows = rows.with_columns(is_ahead.fill_null(False).alias("is_ahead"))
    rows = rows.with_columns(
        (~pl.col("is_ahead")).cum_sum().over(of).alias("run"),
        *(pl.when(~pl.col("is_ahead")).then(name).backward_fill().over(of).alias(f"next_{name}") for name in ("at", "is_set_back")),
    )
    ahead = pl.col("at").filter("is_ahead").min().over(*of, "run")
    ran_ahead = rows.filter(
        pl.col("is_ahead") & pl.col("next_is_set_back") & (ahead - pl.col("next_at") > MAX_GAP_SECONDS)
        & (pl.col("at").filter(~pl.col("is_ahead")).first().over(*of, "run") < pl.col("next_at"))
    )  # fmt: skip
    if ran_ahead.height:
        _leave_out(ran_ahead, "the clock of {host} ran ahead, to {first}, and was set back: {count} lines are left out", landing)
        return _before_set_back(snapshots.join(ran_ahead, on=["file_no", "row_no"], how="anti", maintain_order="left"), landing)
    rows = rows.with_columns((~pl.col("is_behind")).cum_sum().over(of).alias("since"), pl.col("at").cum_max().over(of).alias("last_at"))
    shown_before = rows.filter(pl.col("is_behind") & pl.col("is_set_back").any().over(*of, "since"))
    _leave_out(shown_before, "the clock of {host} was set back to {first}: {count} lines are left out, of times it had shown", landing)
    last = shown_before.select("host", "device", pl.col("last_at").alias("at"), pl.lit(True).alias("is_set_back")).unique()
    kept = snapshots.join(shown_before, on=["file_no", "row_no"], how="anti", maintain_order="left")
    return kept.join(last, on=["host", "device", "at"], how="left", maintain_order="left")


def _leave_out(rows: pl.DataFrame, said: str, landing: Landing) -> None:
    """Take snapshots back, with a note on each host and file: `said`, with the `host`, its `first` time and the `count` of lines."""
    for host, file_no, at, count in rows.group_by("host", "file_no").agg(pl.col("at").min(), pl.len().alias("rows")).rows():
        landing.by_no[file_no].notes.append(said.format(host=host, first=_EPOCH + timedelta(seconds=at), count=count))
    take_back(rows, landing.by_no, "rows_superseded")


def cuts_in(host: str, text: str) -> list[datetime]:
    """When the counters of a device of a host began again in a text of snapshots, in order."""
    rows, _, _ = _snapshots(host, looks(text))
    snapshots = rows.with_columns(pl.lit(1, pl.Int64()).alias("file_no")).select(*_SEEN).sort("host", "device", "at", "row_no")
    snapshots = snapshots.unique(["host", "device", "at"], keep="first", maintain_order=True)
    gained, _ = with_paths(gained_in(snapshots, _absences(snapshots)))
    return sorted(set(cuts_of(in_spans(gained, HOUR_SECONDS))["valid_to"]))


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    rows, rejected, notes = _snapshots(host_of(file), looks(read_text(file)))
    result.notes += notes
    yield Batch(None, rows, rejections(rejected))


def _snapshots(host: str, seen: list[Look]) -> tuple[pl.DataFrame, list[Rejection], list[str]]:
    """The lines of drives in looks at a host; those that are cut off or garbled; and a note of partitions that are left out."""
    found: dict[str, list[object]] = {name: [] for name in _SEEN if name != "file_no"}
    rejected: list[Rejection] = []
    names = {fields[2] for look in seen for _, line in look.lines if len(fields := line.split()) in (_PARTITION_WIDTH, *WIDTHS)}
    # a virtual machine may be given partitions: what looks like one is a drive where the drive that it would be on is not there
    alone = {name for name in names if not is_whole_drive(name) and is_no_drive(name) and drive_of(name) not in (name, *names)}
    drives = {name for name in names if is_whole_drive(name) or is_hidden_path(name)} | without_whole_disk(names)
    left_out = {name: 0 for name in sorted(alone - drives) if not is_hidden_path(name)}
    for look in seen:
        at = (look.at - _EPOCH).total_seconds()
        boot, begun, turned_away = None, len(found["at"]), len(rejected)
        for number, line in look.lines:
            fields = line.split()
            if len(fields) == 2 and fields[0] == BOOT:
                boot = fields[1]
                continue
            name = fields[2] if len(fields) > 2 else None
            if not fields or (name not in drives and _is_of_no_drive(fields)):
                if name in left_out:
                    left_out[name] += 1
                continue
            device = name if name in drives and name is not None else "device"
            if len(fields) not in WIDTHS:
                rejected.append((number, f"{len(fields)} fields, expected 14, 18 or 20", device, line))
                continue
            if device == "device" or not (fields[0].isdecimal() and fields[1].isdecimal()):
                rejected.append((number, _unknown(fields), device, line))
                continue
            try:
                values = {name: int(fields[place]) for name, place in _COUNTERS.items()}
            except ValueError:
                values = {}
            if not values or not all(0 <= value <= _MOST for value in values.values()):
                rejected.append((number, "a counter is no whole number up to 2^53", device, line))
                continue
            for name, value in {"host": host, "device": device, "at": at, "row_no": number, **values}.items():
                found[name].append(value)
        taken = len(found["at"]) - begun
        found["boot"] += [boot] * taken
        found["is_whole"] += [len(rejected) == turned_away] * taken
    notes = []
    if left_out:
        notes.append(
            f"{sum(left_out.values())} lines of {len(left_out)} partitions are left out whose whole drive is not listed, "
            f"such as {next(iter(left_out))}"
        )
    return pl.DataFrame(found, schema={name: dtype for name, dtype in _SEEN.items() if name != "file_no"}), rejected, notes


def _unknown(fields: list[str]) -> str:
    """Why a line with as many fields as a drive's is none."""
    is_whole = all(field.isdecimal() for field in (*fields[:2], *fields[3:]))
    if is_whole and re.fullmatch(r"[A-Za-z][\w!/.-]*", fields[2]) and not is_cut_off(fields[2]):
        return f"{fields[2]} is a name of a device that is not known here; is it a vendor's name of a drive, or of what is made of drives?"
    return "no numbers and name of a device known here; is another text within it?"


def _is_of_no_drive(fields: list[str]) -> bool:
    """Whether a line is whole and of a partition, or of what is made of other devices; a line that is not whole may be a drive's."""
    if len(fields) not in (_PARTITION_WIDTH, *WIDTHS) or not is_no_drive(fields[2]) or is_hidden_path(fields[2]):
        return False
    return all(field.lstrip("-").isdecimal() for field in (*fields[:2], *fields[3:]))


def gained_in(snapshots: pl.DataFrame, absences: pl.DataFrame | None = None) -> pl.DataFrame:
    """Snapshots in order of host, device and instant (columns of `SNAPSHOT`) -> the intervals between them, with what was gained in each.

    `is_lost`: it counts for nobody. `is_reset`: that is because the counters began again within it; `is_far`: else because nobody knows
    of which hour it is.

    absences: host, device, at of looks that did not list a device; one that is back has counters of its own.
    """
    place = ["host", "device"]
    before = {name: pl.col(name).shift(1).over(place) for name in ("at", *_COUNTERS)}
    gained = snapshots.with_columns(
        (pl.col("at") - before["at"]).alias("seconds"),
        *((pl.col(name) - before[name]).alias(f"d_{name}") for name in _COUNTERS),
        *(before[name].alias(f"b_{name}") for name in _COUNTERS),
        ((pl.col("at") - 1e-6) // 3600).cast(pl.Int64).alias("hour"),
        # null, no, where one of the two does not say
        ((pl.col("boot") != pl.col("boot").shift(1).over(place)) if "boot" in snapshots.columns else pl.lit(False)).alias("is_booted"),
        (pl.col("is_set_back").shift(1).over(place) if "is_set_back" in snapshots.columns else pl.lit(False)).alias("is_after_set_back"),
    ).filter(pl.col("seconds") > 0)
    # a counter of 32 bits started again at 0 where it stood in its last quarter, is in its first now, and another one went on
    fell = {name: pl.col(f"d_{name}") < 0 for name in _COUNTERS}
    wrapped = {
        name: fell[name] & (pl.col(f"b_{name}") >= _WRAP * 3 // 4) & (pl.col(f"b_{name}") < _WRAP) & (pl.col(name) < _WRAP // 4)
        for name in _COUNTERS
    }
    went_on = pl.any_horizontal((pl.col(f"d_{name}") >= 0) & (pl.col(f"b_{name}") > 0) for name in _COUNTERS)
    is_reset = pl.any_horizontal(fell[name] & ~(wrapped[name] & went_on) for name in _COUNTERS)
    if absences is not None and absences.height:
        seen = gained.select(*place, "at", (pl.col("at") - pl.col("seconds")).alias("since")).sort("at")
        back = absences.join_asof(seen, on="at", by=place, strategy="forward", coalesce=False, check_sortedness=False)
        # one before the device was seen at all is none
        back = (
            back.filter(pl.col("at") > pl.col("since"))
            .select(*place, pl.col("at_right").alias("at"), pl.lit(True).alias("is_back"))
            .unique()
        )
        gained = gained.join(back, on=[*place, "at"], how="left", maintain_order="left")
        is_reset |= pl.col("is_back").fill_null(False)
    is_near = (pl.col("seconds") <= MAX_GAP_SECONDS) | ((pl.col("at") - pl.col("seconds")) >= pl.col("hour") * 3600)
    gained = gained.with_columns((is_reset | pl.col("is_booted").fill_null(False)).alias("is_reset"))
    gained = gained.with_columns((~is_near & ~pl.col("is_reset")).alias("is_far"))
    return gained.with_columns(
        (pl.col("is_reset") | pl.col("is_far") | pl.col("is_after_set_back").fill_null(False)).alias("is_lost"),
        *(pl.when(wrapped[name]).then(pl.col(f"d_{name}") + _WRAP).otherwise(pl.col(f"d_{name}")).alias(f"d_{name}") for name in _COUNTERS),
    )


def _absences(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Looks (host, device, at) without a device that its file lists in others; of a look with a damaged line nobody knows."""
    whole = snapshots.filter("is_whole").select("host", "file_no", "at").unique()
    listed = snapshots.select("host", "device", "file_no").unique().join(whole, on=["host", "file_no"]).select("host", "device", "at")
    return listed.join(snapshots, on=["host", "device", "at"], how="anti").sort("at")


def _came(snapshots: pl.DataFrame, absences: pl.DataFrame) -> pl.DataFrame:
    """Cuts at the last look that did not list a device before it came: it may be another drive than earlier files describe."""
    place = ["host", "device"]
    first = snapshots.filter(~is_path("device")).unique(place, keep="first", maintain_order=True).sort("at", maintain_order=True)
    absent = absences.with_columns(pl.col("at").alias("absent_at"))
    came = first.join_asof(absent, on="at", by=place, allow_exact_matches=False, check_sortedness=False).drop_nulls("absent_at")
    at = (pl.col("absent_at") * 1e6).round().cast(pl.Int64)
    return cut_records(came.with_columns(at.alias("at_us"), pl.lit(None, pl.Int64()).alias("seen_us")))


def with_paths(intervals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals (of `gained_in`) -> those of drives, and those left out, of paths whose head counted the same I/Os. Adds `covered_seconds`.

    Where the head counts no I/O in an hour, its hidden paths' intervals are its own: their I/Os add up, its own intervals cover the time.
    """
    place = ["host", "device", "hour"]
    heads = intervals.filter(~is_path("device")).with_columns(pl.col("seconds").alias("covered_seconds"))
    paths = intervals.filter(is_path("device"))
    share = pl.col("seconds") / pl.col("device").n_unique().over("host", head_of("device"), "hour")
    paths = paths.with_columns(share.alias("covered_seconds")).with_columns(head_of("device").alias("device"))
    ios = heads.filter(~pl.col("is_lost")).group_by(place).agg((pl.col("d_read_ios") + pl.col("d_write_ios")).sum().alias("head_ios"))
    paths = paths.join(ios, on=place, how="left", maintain_order="left")
    used = paths.filter(pl.col("head_ios").fill_null(0) == 0).with_columns(
        pl.when(pl.col("head_ios").is_null()).then("covered_seconds").otherwise(0.0).alias("covered_seconds")
    )
    return pl.concat([heads, used.drop("head_ios")]), paths.filter((pl.col("head_ios") > 0) & ~pl.col("is_lost"))


def in_spans(intervals: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals with the span of an hour, or of a part of it, that each is of (`with_spans`). One that `is_lost` is a span of its own.

    Intervals of one device that end together, such as those of paths, are of one span: that of the first.
    """
    key = ["host", "device", "at"]
    is_lost = pl.col("is_lost") if "is_lost" in intervals.columns else pl.lit(False)
    steps = intervals.select(
        *key,
        ((pl.col("at") - pl.col("seconds")) * 1e6).round().cast(pl.Int64).alias("begins_us"),
        (pl.col("at") * 1e6).round().cast(pl.Int64).alias("ends_us"),
        ((pl.col("at") - 1e-6) // seconds).cast(pl.Int64).alias("hour"),
        is_lost.alias("is_alone"),
    ).sort(key, maintain_order=True)  # fmt: skip
    steps = steps.unique(key, keep="first", maintain_order=True)
    spans = with_spans(steps, key[:2], is_gap=pl.col("is_alone"), part_us=seconds * 1_000_000)
    return intervals.join(spans.select(*key, "span_no", "is_long", "from_utc", "to_utc"), on=key, how="left", maintain_order="left")


def cuts_of(spans: pl.DataFrame) -> pl.DataFrame:
    """Who bears a device's name has to be seen again after these intervals: the drive or its counters began again, or a gap was too long.

    The name passed between two looks; the end of a gap is as `before_end` has it.
    """
    # a path that began again says nothing of its head, which comes first
    cut = spans.unique(["host", "device", "at"], keep="first", maintain_order=True).filter(pl.col("is_reset") | pl.col("is_long"))
    at, length = ((pl.col(name) * 1e6).round().cast(pl.Int64) for name in ("at", "seconds"))
    after = pl.when("is_long").then(before_end(at, length)).otherwise(at).alias("at_us")
    return cut_records(cut.with_columns(after, (at - length).alias("seen_us")))


def roll_up(intervals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals that count -> drive-hours, one for each span, and the lines behind each."""
    spans = intervals if "span_no" in intervals.columns else in_spans(intervals, HOUR_SECONDS)
    hours = _summed(spans.with_columns(pl.col("hour").alias("part")), HOUR_SECONDS)
    return completed(hours, "drive_hours"), behind(spans, hours.rename({"part": "hour"}), ["host", "device", "hour", "span_no"])


def totals(intervals: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals -> what each drive did in a part of an hour, one row for each span in it.

    A part of an hour has no interval that began before the part before. Intervals that are lost (`is_lost`) only cut.
    """
    parts = in_spans(intervals, seconds).with_columns(((pl.col("at") - 1e-6) // seconds).cast(pl.Int64).alias("part"))
    is_lost = pl.col("is_lost") if "is_lost" in intervals.columns else pl.lit(False)
    return _summed(parts.filter(~is_lost & (pl.col("at") - pl.col("seconds") > (pl.col("part") - 1) * seconds)), seconds)


def _summed(spans: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals of spans (`in_spans`) -> a row for each. It is named by the file and row of the snapshot that ends its first interval;
    `hour_utc` is where the hour, or part of it, begins.
    """
    # milliseconds without an I/O to share them are those of requests still under way; they come with the I/Os of a later interval
    rows = (
        spans.group_by("host", "device", "part", "span_no", maintain_order=True)
        .agg(
            *(pl.col(f"d_{name}").sum().alias(name) for name in _COUNTERS),
            pl.col("covered_seconds").sum().alias("seconds"),
            pl.col("at").max(),
            pl.col("from_utc", "to_utc", "file_no", "row_no").first(),
        )
        .sort("part", "host", "device", "span_no")
    )
    latencies = [
        pl.when(pl.col(f"{way}_ios") > 0).then(pl.col(f"{way}_ms") * 1000.0 / pl.col(f"{way}_ios")).alias(f"{way}_latency_us")
        for way in ("read", "write")
    ]
    return rows.with_columns(
        *latencies,
        (pl.col("part") * (seconds * 1_000_000)).cast(pl.Datetime("us")).alias("hour_utc"),
        (pl.col("host") + "/" + pl.col("device")).alias("drive_id"),
        pl.col("host").alias("raid_group_id"),
        pl.col("read_sectors").alias("read_blocks"),
        pl.col("write_sectors").alias("write_blocks"),
        pl.lit(SECTOR_BYTES, pl.Int64()).alias("block_bytes"),
        (pl.col("seconds") / seconds).clip(upper_bound=1.0).alias("coverage"),
        (pl.col("at") * 1e6).round().cast(pl.Int64).cast(pl.Datetime("us")).alias("collected_at"),
        pl.lit(True).alias("is_alias"),
        pl.lit(True).alias("is_group_guessed"),
    )
