"""Source `sysstat`: what sar and iostat measured, interval by interval, rolled up to drive-hours.

`sadf -j`, `sadf -d` and `sar -d` know one latency for reads and writes together (await), so their hours are merged; iostat's JSON
has reads and writes apart. Both give rates over an interval that ends at the time given, so I/Os are rate times seconds, and a
latency is the mean over those I/Os. An interval counts for the hour of its middle: sar writes a second late. What is missing, a
restart and a change of the tool cut an hour into spans.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ingest.contract.errors import IngestError, UnreadableFile
from ingest.contract.findings import some_of
from ingest.reading.batches import REJECTION, Batch
from ingest.reading.clocks import Clock, plain_time, zone_of
from ingest.reading.devices import (
    head_of,
    is_cut_off,
    is_hidden_path,
    is_no_drive,
    is_path,
    is_whole_drive,
    kernel_name,
    known_by_device,
    without_whole_disk,
)
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.overlap import behind, each_once, take_back
from ingest.reading.parse import HOUR_US, completed
from ingest.reading.readers import SHOWN_VALUE_CHARS, text_blocks, whole
from ingest.reading.resolution import HOUR_SECONDS, as_samples, seconds_of
from ingest.reading.spans import GAP, before_end, cut_records, with_spans
from ingest.reading.text import one_line, utf8

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

SUFFIXES = (".json", ".csv", ".txt", ".sar", ".log")
EXPECTED = f"*{', *'.join(SUFFIXES)} (also .gz, .zst): the output of sadf -j, sadf -d, sar -d or iostat -xt -o JSON"
recognise = named("intervals", rf".*({'|'.join(map(re.escape, SUFFIXES))})(\.gz|\.zst)?")
ORDERS = ("mdy", "dmy")
LONGEST = timedelta(hours=1)
MOST_OF_USUAL = 1.5
"""How much longer than usual an interval of iostat may be, which sleeps the same time before each."""
CLOSE_US = 2_000_000
"""Intervals so close to each other, or half of the second, follow each other: times and lengths are whole seconds."""
EARLIEST, LATEST = datetime(1970, 1, 1), datetime(3000, 1, 1)
MAX_BYTES = 512 << 20
# kB and MB of 1024, sectors of 512: what was read and written is called in sadf -j, in sadf -d, sar and iostat, in older versions
_SIZES = {
    ("rkB", "wkB"): 1024, ("rkB/s", "wkB/s"): 1024, ("rMB/s", "wMB/s"): 1 << 20,
    ("rd_sec", "wr_sec"): 512, ("rd_sec/s", "wr_sec/s"): 512, ("rsec/s", "wsec/s"): 512, ("rMB", "wMB"): 1 << 20, ("rsec", "wsec"): 512,
}  # fmt: skip
# names of the rates in iostat's JSON of sysstat 11.5 and 11.6
_OLD_NAMES = {"r": "r/s", "w": "w/s"}
# by its names, older versions' last: the mean size of a request, of reads, of writes, and of all with discards
_REQUESTS = {"read": {"rareq-sz": 1024}, "write": {"wareq-sz": 1024}, "all": {"areq-sz": 1024, "avgrq-sz": 512}}
_DISCARDED = {"dkB/s": 1024, "dkB": 1024, "dMB/s": 1 << 20, "dc_sec/s": 512}
_ONLY_SPLIT = ("r/s", "w/s", "r_await", "w_await")
_SD_MAJORS = (8, *range(65, 72), *range(128, 136))
# fixed major numbers: ram, floppies, loop, md, CDs, nbd
_NO_DRIVE_MAJORS = (1, 2, 7, 9, 11, 43)


INTERVAL: dict[str, pl.DataType] = {
    "host": pl.String(),
    "device": pl.String(),
    "ends": pl.Datetime("us"),
    "seconds": pl.Float64(),
    "is_split": pl.Boolean(),
    **dict.fromkeys(("rate", "await_ms", "bytes_per_s"), pl.Float64()),
    **dict.fromkeys(("read_rate", "write_rate", "read_await_ms", "write_await_ms", "read_bytes_per_s", "write_bytes_per_s"), pl.Float64()),
    "busy_ratio": pl.Float64(),
    "row_no": pl.Int64(),
}
LOOK = {name: INTERVAL[name] for name in ("host", "ends")}


@dataclass
class Found:
    """Contents of one file: intervals as rows of INTERVAL, and rejections as rows of REJECTION. Rows count drives in an interval.

    `contradicted`: by the names of two columns the values of the first interval whose bytes they contradict. `restarts`: host and instant.
    """

    intervals: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[tuple[int, str, str, str | None]] = field(default_factory=list)
    contradicted: dict[tuple[str, str], str] = field(default_factory=dict)
    contradicted_count: int = 0
    restarts: list[tuple[str, datetime]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    row: int = 0

    @property
    def left_out(self) -> list[str]:
        """Names of devices that are no drive, partition or the like known here, and of partitions without their whole drive."""
        unknown = {name for name in self.names if not (is_whole_drive(name) or is_hidden_path(name) or is_no_drive(name))}
        return sorted(unknown | without_whole_disk(self.names))

    @property
    def notes(self) -> list[str]:
        """Left out without a rejection: devices, and bytes that contradict their record, by the columns, with the first of them."""
        left_out = [f"left out {len(self.left_out)} devices that are no whole drive: {some_of(self.left_out)}"] if self.left_out else []
        return left_out + [
            f"{' and '.join(names)} do not fit requests and their size, such as {shown}: {self.contradicted_count} intervals "
            "have no bytes; sysstat 12.2.0 prints MB/s in sectors, print kB/s (without -m)"
            for names, shown in self.contradicted.items()
        ]


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every file, roll its intervals up together with the others', and stage drive-hours and inventory."""
    zone, seconds = zone_of(landing.options.get("timezone")), seconds_of(landing.options)
    order = landing.options.get("date_order")
    if order not in (None, *ORDERS):
        raise IngestError(f"--date-order {order}: give mdy (month first) or dmy (day first)")
    run = _run_of(landing.options, zone)
    restarts: list[tuple[str, datetime]] = []
    damaged = [pl.DataFrame(schema=LOOK)]

    def batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
        found = read_intervals(file.path, zone, order, run)
        result.notes += found.notes
        restarts.extend(found.restarts)
        rejected = pl.DataFrame(found.rejected, schema=REJECTION, orient="row")
        intervals = pl.DataFrame(found.intervals, schema=INTERVAL, orient="row")
        damaged.append(damaged_looks(intervals, rejected))
        yield Batch(None, intervals, rejected)

    read = pl.concat([pl.DataFrame(schema={**INTERVAL, "file_no": pl.Int64()}), *landing.read(files, batches)])
    key = ["host", "device", "is_split", "ends"]
    intervals = each_once(read, key, [name for name in INTERVAL if name not in (*key, "row_no")], landing.by_no)
    if not intervals.height:
        return
    used, unused = of_one_tool(with_arrivals(with_paths(intervals), pl.concat(damaged)))
    take_back(unused, landing.by_no, "rows_superseded")
    used, restarted = with_restarts(used, restarts)
    spans = in_spans(used, HOUR_SECONDS)
    if (cuts := cuts_of(spans, restarted)).height:
        landing.accept("drive_aliases", cuts, None)
    hours = totals(spans, HOUR_SECONDS)
    since = (pl.col("ends").to_physical() - pl.col("seconds") * 1_000_000).cast(pl.Int64).cast(pl.Datetime("us"))
    seen = used.with_columns(since.alias("valid_from")).sort("host", "device", "ends", "file_no", "row_no")
    landing.accept("drives", known_by_device(seen), None)
    landing.count_samples(behind(spans.rename({"hour": "part"}), hours, ["host", "device", "part", "span_no"]))
    landing.accept("drive_hours", completed(hours, "drive_hours"), None)
    if seconds is not None:
        # a second more, because times are whole seconds; a longer interval says nothing of so short a time
        parts = in_spans(used.filter(pl.col("seconds") <= seconds + 1), seconds)
        landing.accept("drive_samples", as_samples(totals(parts, seconds), seconds), None)


def with_paths(intervals: pl.DataFrame) -> pl.DataFrame:
    """Intervals with the I/Os of a hidden NVMe path as those of its head, where the head counts none; several paths add up."""
    if not intervals.select(is_path("device").any()).item():
        return intervals
    place = ["host", "device", "is_split", "ends"]
    rates = {"await_ms": "rate", "read_await_ms": "read_rate", "write_await_ms": "write_rate"}
    heads = intervals.filter(~is_path("device"))
    # by its busiest direction: null where the tool does not say
    busy = pl.max_horizontal("rate", "read_rate", "write_rate") > 0
    idle = heads.filter(~busy).select(place)
    paths = intervals.filter(is_path("device")).with_columns(head_of("device").alias("device")).join(idle, on=place, how="semi")
    weighted = [((pl.col(wait) * pl.col(rate)).sum() / pl.col(rate).sum()).alias(wait) for wait, rate in rates.items()]
    summed = [
        pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name)
        for name in INTERVAL
        if name.endswith(("rate", "bytes_per_s"))
    ]
    found = paths.group_by(place).agg(*weighted, *summed, pl.col("busy_ratio").max())
    return heads.update(found, on=place)


# Rolling up -------------------------------------------------------------------------------------------------------


def damaged_looks(intervals: pl.DataFrame, rejected: pl.DataFrame) -> pl.DataFrame:
    """Looks at a host (LOOK) next to a row of the file that was turned away: it may be of any device of theirs."""
    rows, looks = rejected.select(pl.col("row").alias("row_no")).sort("row_no"), intervals.select(*LOOK, "row_no").sort("row_no")
    sides = [rows.join_asof(looks, on="row_no"), rows.join_asof(looks, on="row_no", strategy="forward")]
    return pl.concat(sides).select(*LOOK).drop_nulls().unique()


def with_arrivals(intervals: pl.DataFrame, damaged: pl.DataFrame) -> pl.DataFrame:
    """Intervals, with the `look` before each, and `has_come` where it lists others of the host but not the device, which counts from 0.
    Since when it has been there within the interval nobody knows, so that its I/Os are those of the last second. A `damaged` look lists
    no one.
    """
    of_tool = ["host", "is_split", "ends"]
    looks = intervals.select(of_tool).unique().sort(of_tool).with_columns(pl.col("ends").shift(1).over("host", "is_split").alias("look"))
    looks = looks.join(damaged, left_on=["host", "look"], right_on=list(LOOK), how="anti")
    found = intervals.join(looks, on=of_tool, how="left", maintain_order="left")
    before = found.select("host", "device", "is_split", pl.col("ends").alias("look"), pl.lit(True).alias("was_there"))
    found = found.join(before, on=["host", "device", "is_split", "look"], how="left", maintain_order="left")
    follows = (pl.col("ends") - pl.col("look")).dt.total_microseconds() <= pl.col("seconds") * 1_000_000 + CLOSE_US
    found = found.with_columns((follows & pl.col("was_there").is_null()).fill_null(False).alias("has_come"))
    second = pl.when("has_come").then(pl.col("seconds")).otherwise(1.0)
    rates = [name for name in INTERVAL if name.endswith(("rate", "per_s"))]
    return found.with_columns(pl.col(rates) * second, pl.col("seconds") / second).drop("was_there")


def of_one_tool(intervals: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals (INTERVAL, `file_no`) -> those that count, with `middle`, by which they belong, and `is_cut`; and those that do not count.

    Where both tools saw an hour of a drive, the one counts that saw more of it, of two alike the one with reads and writes apart; and
    what only the other saw.
    """
    place, ends = ["host", "device"], pl.col("ends").to_physical()
    length = (pl.col("seconds") * 1_000_000).cast(pl.Int64)
    middle = ends - length // 2
    steps = intervals.with_columns(middle.alias("middle"), (middle // HOUR_US).alias("hour"), ends.alias("ends_us"))
    steps = steps.sort(*place, "is_split", "ends")
    begins, before = pl.col("ends_us") - length, pl.col("ends_us").shift(1).over(*place, "is_split")
    close = (length // 2).clip(upper_bound=CLOSE_US).alias("close_us")
    steps = steps.with_columns(close, pl.when((begins - before).abs() <= close).then(before).otherwise(begins).alias("begins_us"))
    seen = steps.group_by(*place, "hour", "is_split", maintain_order=True).agg(pl.col("seconds").sum())
    best = seen.sort(*place, "hour", "seconds", "is_split").unique([*place, "hour"], keep="last", maintain_order=True)
    of_tool = [*place, "is_split", "hour"]
    used = steps.join(best.select(of_tool), on=of_tool, how="semi")
    others = steps.join(best.select(of_tool), on=of_tool, how="anti")
    if others.height:
        # the last that begins before this one ends, give or take a second
        met = used.select(*place, pl.col("begins_us").alias("met_us"), pl.col("ends_us").alias("met_to_us")).sort("met_us")
        others = others.with_columns((pl.col("ends_us") - pl.col("close_us")).alias("until_us")).sort("until_us")
        others = others.join_asof(met, left_on="until_us", right_on="met_us", by=place, check_sortedness=False)
        is_apart = (pl.col("met_to_us") <= pl.col("begins_us") + pl.col("close_us")).fill_null(True)
        used = pl.concat([used, others.filter(is_apart).select(used.columns)])
        others = others.filter(~is_apart)
    used = used.sort(*place, "ends", "is_split")
    is_other_tool = (pl.col("is_split") != pl.col("is_split").shift(1).over(place)).fill_null(False)
    return used.with_columns(is_other_tool.alias("is_cut")), others.select("file_no")


def with_restarts(used: pl.DataFrame, restarts: list[tuple[str, datetime]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Intervals with a cut where their host was restarted; and when, for each device: host, device, at, file_no and row_no."""
    place = ["host", "device"]
    schema = {"host": pl.String(), "at": pl.Datetime("us")}
    known = pl.DataFrame(restarts, schema=schema, orient="row").unique().select("host", pl.col("at").to_physical()).sort("at")
    begun = used.with_columns((pl.col("begins_us") + pl.col("close_us")).alias("until_us")).sort("until_us")
    begun = begun.join_asof(known, left_on="until_us", right_on="at", by="host", check_sortedness=False).sort(*place, "ends", "is_split")
    is_new = pl.col("at").is_not_null() & pl.col("at").ne_missing(pl.col("at").shift(1).over(place))
    begun = begun.with_columns(is_new.alias("is_new"), (pl.col("is_cut") | is_new).alias("is_cut"))
    after = begun.group_by(place, maintain_order=True).last().drop("at").join(known.group_by("host").agg(pl.col("at").max()), on="host")
    # an interval may stand for the restart before it and for one that nothing follows
    after = after.filter(pl.col("at") > pl.col("until_us")).with_columns(-pl.col("row_no"))
    found = [begun.filter("is_new").with_columns(pl.min_horizontal("at", "begins_us").alias("at")), after]
    restarted = pl.concat([rows.select(*place, "at", "file_no", "row_no") for rows in found])
    return begun.drop("at", "until_us", "is_new"), restarted


def in_spans(used: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals that count with the span of an hour, or of a part of it, that each is of (`with_spans`)."""
    steps = used.with_columns((pl.col("middle") // (seconds * 1_000_000)).alias("hour"))
    return with_spans(steps, ["host", "device"], pl.col("is_cut"), None, pl.col("has_come"), seconds * 1_000_000, 0.5)


def cuts_of(spans: pl.DataFrame, restarted: pl.DataFrame) -> pl.DataFrame:
    """Who bears a device's name has to be seen again after a restart, after a gap of more than two intervals, and where the device came."""
    place = ["host", "device"]
    spans = spans.with_columns(pl.col("ends_us").shift(1).over(place).alias("before_us"))
    missing = pl.col("begins_us") - pl.col("before_us")
    length = pl.col("ends_us") - pl.col("begins_us")
    late = pl.when("is_long").then(before_end(pl.col("ends_us"), length)).otherwise(before_end(pl.col("begins_us"), missing))
    has_come = (pl.col("has_come") & pl.col("before_us").is_null()).alias("has_come")
    cut = spans.filter(has_come | pl.col("is_long") | (missing > GAP * pl.col("seconds") * 1_000_000).fill_null(False))
    # the name passed between two looks, and one may have been within the gap
    early = pl.when("is_long").then("begins_us").otherwise("before_us").alias("seen_us")
    late = pl.when(has_come).then(pl.col("look").to_physical()).otherwise(late).alias("at_us")
    cut = cut.join(restarted, on=["file_no", "row_no"], how="anti").select(*place, late, early, "file_no", "row_no")
    return cut_records(pl.concat([cut, restarted.rename({"at": "at_us"})], how="diagonal_relaxed"))


def totals(spans: pl.DataFrame, seconds: int) -> pl.DataFrame:
    """Intervals of spans (`in_spans`) -> what each drive did in each; `hour_utc` is where the hour, or part of it, begins."""
    summed = spans.group_by("host", "device", "is_split", pl.col("hour").alias("part"), "span_no", maintain_order=True).agg(
        pl.col("seconds").sum(),
        *(_total(rate) for rate in ("rate", "read_rate", "write_rate", "bytes_per_s", "read_bytes_per_s", "write_bytes_per_s")),
        *(
            _mean(latency, rate)
            for latency, rate in (("await_ms", "rate"), ("read_await_ms", "read_rate"), ("write_await_ms", "write_rate"))
        ),
        pl.col("ends").max().alias("collected_at"),
        pl.col("from_utc", "to_utc", "file_no", "row_no").first(),
    )
    return summed.select(
        "host",
        "device",
        "part",
        "span_no",
        "from_utc",
        "to_utc",
        (pl.col("part") * (seconds * 1_000_000)).cast(pl.Datetime("us")).alias("hour_utc"),
        pl.concat_str("host", pl.lit("/"), "device").alias("drive_id"),
        pl.col("host").alias("raid_group_id"),
        *(_where_split(pl.col(f"{way}_rate").round().cast(pl.Int64)).alias(f"{way}_ios") for way in ("read", "write")),
        *(_where_split(_latency(f"{way}_await_ms", f"{way}_rate")).alias(f"{way}_latency_us") for way in ("read", "write")),
        *(_where_split(pl.col(f"{way}_bytes_per_s").round().cast(pl.Int64)).alias(f"{way}_blocks") for way in ("read", "write")),
        _where_split(pl.lit(1, pl.Int64())).alias("block_bytes"),
        pl.when(~pl.col("is_split")).then(_latency("await_ms", "rate")).alias("latency_us"),
        pl.when(~pl.col("is_split")).then(pl.col("rate").round().cast(pl.Int64)).alias("io_count"),
        pl.when(~pl.col("is_split")).then(pl.col("bytes_per_s").round().cast(pl.Int64)).alias("bytes"),
        (pl.col("seconds") / seconds).clip(upper_bound=1.0).alias("coverage"),
        "collected_at",
        pl.lit(True).alias("is_alias"),
        pl.lit(True).alias("is_group_guessed"),
        "file_no",
        "row_no",
    ).sort("hour_utc", "drive_id", "span_no")


def _total(rate: str) -> pl.Expr:
    """I/Os or bytes: rates times seconds; a sum of what is partly unknown is unknown."""
    return pl.when(pl.col(rate).is_not_null().all()).then((pl.col(rate) * pl.col("seconds")).sum()).alias(rate)


def _mean(latency: str, rate: str) -> pl.Expr:
    ios = pl.col(rate) * pl.col("seconds")
    return ((pl.col(latency) * ios).sum() / ios.sum()).alias(latency)


def _where_split(value: pl.Expr) -> pl.Expr:
    return pl.when("is_split").then(value)


def _latency(latency: str, ios: str) -> pl.Expr:
    """Microseconds; null where the I/Os round to none."""
    return pl.when(pl.col(ios).round() > 0).then(pl.col(latency) * 1000)


# One file ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """How iostat was run, where what it wrote does not say: when it printed its first figures (UTC), and the seconds between them."""

    began: datetime
    seconds: int


def _run_of(options: Mapping[str, Any], zone: tzinfo | None) -> Run | None:
    """Values of --interval and --began. Raises: IngestError where one of them is invalid, or given without the other."""
    interval, began_text = options.get("interval"), options.get("began")
    if not interval and not began_text:
        return None
    if not interval or not began_text:
        given, other = ("--interval", "--began TIME") if interval else ("--began", "--interval 10s")
        raise IngestError(f"{given} needs {other}: give both, as iostat was run")
    match = re.fullmatch(r"(\d{1,4})([sm]?)", str(interval))
    seconds = int(match[1]) * (60 if match[2] == "m" else 1) if match else 0
    if not 0 < seconds <= LONGEST.total_seconds():
        raise IngestError(f"--interval {interval}: give the seconds or minutes from one report to the next, such as 10s or 1m, 1h at most")
    try:
        began = datetime.fromisoformat(str(began_text))
        began = (began if began.tzinfo else began.replace(tzinfo=zone or UTC)).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError) as error:
        raise IngestError(
            f"--began {began_text}: give a time such as 2026-01-05T10:00:00Z; without an offset it is read in --timezone, or UTC"
        ) from error
    return Run(began, seconds)


def read_intervals(path: Path, zone: tzinfo | None, order: str | None = None, run: Run | None = None) -> Found:
    """The intervals of whole drives in one file; `order` is that of its dates with slashes, one of ORDERS.

    Raises: UnreadableFile where it has another format, or its times are not known.
    """
    try:
        text = b"".join(text_blocks(path, EXPECTED))
        if len(text) > MAX_BYTES:
            raise UnreadableFile(f"more than {MAX_BYTES >> 20} MiB; split it by day")
        content = _plain_clocks(text.decode("utf-8", "replace").lstrip("\r\n"))
        if content.lstrip().startswith("{"):
            return _read_json(content, zone, order or _unambiguous_order(content), run)
        # its first lines may be damaged; the banner of sar is found at once, so that its text is not searched for lines of sadf
        if content.startswith("#") or (not _BANNER.search(content) and _SADF_LINE.search(content)):
            found = _read_sadf(content, zone)
        elif _IOSTAT_TEXT.search(content):
            raise UnreadableFile("this is iostat's own text; run it with -o JSON: S_TIME_FORMAT=ISO iostat -xt -o JSON 60")
        elif _SADF_OTHERWISE.search(content):
            raise UnreadableFile("this is what sadf prints with -p, which is its default, or -x; use sadf -j FILE -- -d")
        else:
            found = _read_sar(content, zone, order or _unambiguous_order(content))
    except (OSError, EOFError, MemoryError, RecursionError, ValueError) as error:
        raise UnreadableFile(f"cannot be read: {one_line(error)}") from error
    if not found.row:
        locale = "" if content.isascii() else "; is it printed in another language? print it with LC_ALL=C"
        raise UnreadableFile(f"no line of a drive in it{_only(found)}{locale}; expected {EXPECTED}")
    return found


def _only(found: Found) -> str:
    """Names that are of no drive, where a file has no others."""
    return f": left out {some_of(found.left_out)}; print the kernel's names of whole drives, without -j and -N" if found.left_out else ""


# a line for each figure of a drive, or XML
_SADF_OTHERWISE = re.compile(r"\A<\?xml |^[^\t\n]+\t-?\d+\t[^\t\n]+\t\S+\t[\w%/-]+\t[\d.,]+$", re.MULTILINE)
_IOSTAT_TEXT = re.compile(r"^(avg-cpu:|Device:?\s+(tps|r/s|rrqm/s)\s)", re.MULTILINE)
_NUMBERED = re.compile(r"dev(\d{1,4})-(\d{1,7})")
# major numbers of device mapper, which differ by kernel
_A_NAME = re.compile(r"[\w.+:@#%=/!\\-]+")


def _reject(found: Found, reason: str, column: str, value: str | None) -> None:
    found.row += 1
    found.rejected.append((found.row, reason, column, None if value is None else utf8(value[:SHOWN_VALUE_CHARS])))


def _drive(device: str, found: Found) -> str | None:
    """The drive that a tool calls so; null for another device, and for a name that cannot be one, which is turned away."""
    name = kernel_name(device)
    if is_whole_drive(name) or is_hidden_path(name):
        found.names.add(name)
        return name
    if (numbered := _NUMBERED.fullmatch(name)) is not None:
        major, minor = int(numbered[1]), int(numbered[2])
        if major in _SD_MAJORS:
            # 16 numbers for each drive, the first of them its own; those beyond 256 drives come round again
            return None if minor % 16 else _sd_name(_SD_MAJORS.index(major) * 16 + (minor >> 4 & 15) + (minor & ~255))
        if major not in _NO_DRIVE_MAJORS:
            _reject(found, "the drive has no name; print names with sar -p, or sadf FILE -- -d -p", "device", device)
    elif is_cut_off(name) or not _A_NAME.fullmatch(name):
        _reject(found, "no name of a device; is it cut off, or another text within it?", "device", device)
    else:
        found.names.add(name)
    return None


def _sd_name(index: int) -> str:
    """The name of a number: 0 is sda, 25 sdz, 26 sdaa."""
    letters = ""
    while index >= 0:
        letters, index = chr(ord("a") + index % 26) + letters, index // 26 - 1
    return f"sd{letters}"


def _take(found: Found, host: str, named: str, ends: datetime, seconds: float, values: dict[str, Any]) -> None:
    """One drive in one interval; `values` by the names of the tool."""
    device = _drive(named, found)
    if device is None:
        return
    found.row += 1
    if "r_await" in values or "w_await" in values:
        values = {_OLD_NAMES.get(name, name): value for name, value in values.items()}
    # a record of iostat -x that lost a key is still one of reads and writes apart
    is_split = any(name in values for name in _ONLY_SPLIT)
    numbers: dict[str, float] = {}
    needed = _ONLY_SPLIT if is_split else ("tps", "await")
    sizes = next((pair for pair in _SIZES if pair[0] in values and pair[1] in values), None)
    for name in (*needed, *(sizes or ())):
        if name not in values:
            continue
        number = _number(values[name])
        if number is None or not 0 <= number < 1e15:
            found.rejected.append((found.row, "not a number of 0 or more", name, utf8(str(values[name])[:SHOWN_VALUE_CHARS])))
            return
        numbers[name] = number
    missing = [name for name in needed if name not in numbers]
    if missing:
        reason = "missing, though others of its kind are there; is the record cut off?"
        if not is_split and "await" in missing:
            reason = "missing; was it printed without -x, or cut off?"
        found.rejected.append((found.row, reason, missing[0], None))
    elif not EARLIEST <= ends < LATEST:
        found.rejected.append((found.row, "not a time of the years 1970 to 2999", "timestamp", f"{ends} UTC"))
    elif not 0 < seconds <= LONGEST.total_seconds():
        found.rejected.append((found.row, "not an interval of more than 0 s and 1 h at most", "interval", f"{seconds:g} s"))
    else:
        read, written = (numbers[name] * _SIZES[sizes] for name in sizes) if sizes else (None, None)
        if sizes and not _is_size_told(values, numbers, read, written, _SIZES[sizes]):
            read = written = None
            found.contradicted.setdefault(sizes, f"{values.get(sizes[0])} and {values.get(sizes[1])}")
            found.contradicted_count += 1
        known = {
            "rate": numbers.get("tps"), "await_ms": numbers.get("await"),
            "bytes_per_s": None if read is None or written is None or is_split else read + written,
            "read_rate": numbers.get("r/s"), "write_rate": numbers.get("w/s"),
            "read_await_ms": numbers.get("r_await"), "write_await_ms": numbers.get("w_await"),
            "read_bytes_per_s": read, "write_bytes_per_s": written, "busy_ratio": _busy_ratio(values),
        }  # fmt: skip
        place = {"host": host, "device": device, "ends": ends, "seconds": float(seconds)}
        found.intervals.append({**place, "is_split": is_split, **known, "row_no": found.row})


def _is_size_told(values: Mapping[str, Any], numbers: Mapping[str, float], read: float | None, written: float | None, unit: int) -> bool:
    """Whether the bytes of an interval fit its requests and their mean size: some versions print MB/s in another unit."""
    stated = {"read": (numbers.get("r/s"), read), "write": (numbers.get("w/s"), written)}
    if "tps" in numbers and read is not None and written is not None:
        discarded = sum((_number(values.get(name)) or 0.0) * size for name, size in _DISCARDED.items())
        stated = {"all": (numbers["tps"], read + written + discarded)}
    for way, (rate, bytes_per_s) in stated.items():
        for name, size in _REQUESTS[way].items():
            request = _number(values.get(name))
            if request is None or rate is None or bytes_per_s is None:
                continue
            expected = rate * request * size
            # all three are printed with two decimals
            rounding = 0.01 * (unit + request * size + rate * size)
            if abs(bytes_per_s - expected) > 0.5 * min(bytes_per_s, expected) + rounding:
                return False
    return True


def _busy_ratio(values: Mapping[str, Any]) -> float | None:
    """The share of the interval in which the drive was busy; null where it is not printed, or no share."""
    percent = _number(values.get("%util", values.get("util", values.get("util-percent"))))
    # a little over 100 where clock and counter were read one after the other
    return min(percent / 100, 1.0) if percent is not None and percent >= 0 else None


def _number(value: Any) -> float | None:
    """A number as printed, also with the decimal comma of some locales."""
    try:
        return float(value.replace(",", ".") if isinstance(value, str) else value) if not isinstance(value, bool) else None
    except (TypeError, ValueError):
        return None


# JSON -------------------------------------------------------------------------------------------------------------

_STATISTICS = re.compile(r'"statistics"\s*:\s*\[')
_ELEMENT = re.compile(r'\{\s*"timestamp"\s*:')
_HEADER = re.compile(r'"(nodename|date|file-date|timezone)"\s*:\s*"([^"]*)"')


@dataclass
class _Progress:
    """How far the intervals of a host have been read. `previous`: when the one before ended, null where not known."""

    host: str
    is_iostat: bool
    clock: Clock
    order: str | None
    run: Run | None
    previous: datetime | None = None
    count: int = 0


def _read_json(content: str, zone: tzinfo | None, order: str | None, run: Run | None) -> Found:
    """Output of sadf -j or iostat -o JSON, one host or several; an interval that is not whole costs itself."""
    found = Found()
    decoder = json.JSONDecoder(parse_int=whole)
    begins = list(_STATISTICS.finditer(content))
    if not begins:
        raise UnreadableFile(f"JSON without statistics; expected {EXPECTED}")
    done = 0
    for begin, after in zip(begins, [*begins[1:], None], strict=True):
        header = dict(_HEADER.findall(content[done : begin.start()]))
        progress = _Progress(header.get("nodename", "unknown"), "file-date" not in header, Clock(zone), order, run)
        at, ends = begin.end(), after.start() if after else len(content)
        first = len(found.intervals)
        while (at := _skip(content, at)) < len(content) and content[at] != "]":
            try:
                element, at = decoder.raw_decode(content, at)
            except json.JSONDecodeError as error:
                hint = (
                    "; print it with LC_ALL=C, for numbers that are valid JSON"
                    if re.search(r": \d+,\d\d[,}]", content[at : at + 4000])
                    else ""
                )
                _reject(found, f"no whole JSON ({error.msg}){hint}; is the file cut off?", "statistics", content[at : at + 60])
                another = _ELEMENT.search(content, at + 1, ends)
                if another is None:
                    break
                at, progress.previous = another.start(), None
            else:
                _take_element(found, element, progress)
            progress.count += 1
        if progress.is_iostat:
            _turn_away_unknown_lengths(found, first)
        done = at
        found.restarts += _boots(content[done:ends], progress.host, zone)
    if not found.row:
        raise UnreadableFile(
            f"no interval of a drive in it{_only(found)}; run sadf with -d after --, or iostat with -x, for more than one interval"
        )
    return found


def _turn_away_unknown_lengths(found: Found, first: int) -> None:
    """Reject intervals of a run of iostat, from the first on, that are much longer than usual: its rates may be over less time."""
    lengths = sorted({each["ends"]: each["seconds"] for each in found.intervals[first:]}.values())
    longest = MOST_OF_USUAL * lengths[(len(lengths) - 1) // 2] if lengths else 0.0
    for each in found.intervals[first:]:
        if each["seconds"] > longest:
            reason = "longer than iostat's intervals before and after it, so how long it was is not known; was the clock set?"
            found.rejected.append((each["row_no"], reason, "timestamp", f"{each['seconds']:g} s"))
    found.intervals[first:] = [each for each in found.intervals[first:] if each["seconds"] <= longest]


_BOOT = re.compile(r'"boot"\s*:\s*(\{[^{}]*\})')


def _boots(after: str, host: str, zone: tzinfo | None) -> list[tuple[str, datetime]]:
    """When a host was restarted, by what sadf -j says after its intervals."""
    found, clock = [], Clock(zone)
    for text in _BOOT.findall(after):
        with suppress(ValueError):
            stamp = json.loads(text)
            local = plain_time(f"{stamp.get('date')} {stamp.get('time')}"[:19])
            found.append((host, local if stamp.get("utc") == 1 or stamp.get("tz") == "UTC" else clock.utc(local)))
    return found


def _skip(content: str, at: int) -> int:
    match = re.compile(r"[\s,]*").match(content, at)
    return match.end() if match else at


def _take_element(found: Found, element: Any, progress: _Progress) -> None:
    """One interval of all drives."""
    disks = element.get("disk") if isinstance(element, dict) else None
    if not isinstance(disks, list) and not (progress.is_iostat and isinstance(element, dict) and "timestamp" in element):
        return
    before, progress.previous = progress.previous, None
    try:
        ends, seconds = _iostat_time(element, before, progress) if progress.is_iostat else _sadf_time(element, before, progress)
    except (ValueError, OverflowError):
        _reject(found, "not a time; the drives of its interval are left out", "timestamp", json.dumps(element.get("timestamp")))
        return
    progress.previous = ends
    if not isinstance(disks, list) or (progress.is_iostat and not progress.count):
        return  # iostat's first are since boot
    if progress.is_iostat and before is None:
        _reject(found, "the interval before it is cut off, so the length of this one is not known", "timestamp", f"{ends} UTC")
        return
    for disk in disks:
        if isinstance(disk, dict):
            _take(found, progress.host, str(disk.get("disk_device", disk.get("disk-device", ""))), ends, seconds, disk)
        else:
            _reject(found, "not the figures of a drive", "disk", json.dumps(disk))


def _iostat_time(element: dict[str, Any], previous: datetime | None, progress: _Progress) -> tuple[datetime, float]:
    if "timestamp" not in element and progress.run is not None:
        return progress.run.began + timedelta(seconds=progress.run.seconds * progress.count), progress.run.seconds
    given = element.get("timestamp")
    if not isinstance(given, str):
        raise UnreadableFile(
            "its intervals have no time; run iostat with -t, and S_TIME_FORMAT=ISO in the environment, or give --interval and --began"
        )
    try:
        ends = datetime.strptime(given, "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC).replace(tzinfo=None)
    except ValueError:
        ends = progress.clock.utc(_local(given, progress.order))
    return ends, (ends - previous).total_seconds() if previous else 0.0


def _sadf_time(element: dict[str, Any], previous: datetime | None, progress: _Progress) -> tuple[datetime, float]:
    stamp = element.get("timestamp")
    if not isinstance(stamp, dict):
        raise UnreadableFile("its intervals have no timestamp, as sadf -j gives one")
    local = plain_time(f"{stamp.get('date')} {stamp.get('time')}"[:19])
    is_utc = stamp.get("utc") == 1 or stamp.get("tz") == "UTC"
    ends = local if is_utc else progress.clock.utc(local)
    seconds = _number(stamp.get("interval")) or 0.0
    # it may name more seconds than have passed since the interval before
    return ends, min(seconds, (ends - previous).total_seconds()) if previous and ends > previous else seconds


# Dates with slashes ------------------------------------------------------------------------------------------------

_SLASHED = re.compile(r'(?:^Linux \S+ \([^)\n]*\)\s+|"timestamp"\s*:\s*")(\d\d?)/(\d\d?)/\d', re.MULTILINE)


def _unambiguous_order(content: str) -> str | None:
    """The order of a file's dates with slashes, where one of them can be read in one order only; else null."""
    pairs = [(int(first), int(second)) for first, second in _SLASHED.findall(content)]
    orders = {"mdy" for _, second in pairs if second > 12} | {"dmy" for first, _ in pairs if first > 12}
    if not orders and all(first == second for first, second in pairs):
        return "mdy"
    return orders.pop() if len(orders) == 1 else None


def _day_formats(text: str, order: str | None) -> tuple[str, ...]:
    """The formats that a date may have. Raises: UnreadableFile where it may be one of two days."""
    if order is None and re.match(r"\s*\d\d?/\d\d?/\d", text):
        raise UnreadableFile(
            f"{text[:40]!r} may be month or day first; give --date-order mdy (as LC_ALL=C and en_US print) or dmy (as en_GB), "
            "or print it with S_TIME_FORMAT=ISO"
        )
    slashed = ("%d/%m/%y", "%d/%m/%Y") if order == "dmy" else ("%m/%d/%y", "%m/%d/%Y")
    return ("%Y-%m-%d", *slashed, "%d.%m.%Y")


def _read_as(text: str, formats: Iterable[str]) -> datetime | None:
    """A time in the first of some formats that it fits."""
    for one in formats:
        with suppress(ValueError):
            return datetime.strptime(text, one)
    return None


_MERIDIEMS = {"上午": "AM", "下午": "PM", "午前": "AM", "午後": "PM", "오전": "AM", "오후": "PM"}
_DAY_IN_WORDS = re.compile(r"(\d{4}) ?[年년] ?(\d\d?) ?[月월] ?(\d\d?) ?[日일]")
_TIME_IN_WORDS = re.compile(r"(\d\d?) ?[時时시] ?(\d\d) ?[分분] ?(\d\d) ?[秒초]")
_MERIDIEM_FIRST = re.compile(rf"({'|'.join(_MERIDIEMS)}|[AaPp][Mm])[ \t]*(\d\d?:\d\d:\d\d)")
_DOTTED_MERIDIEM = re.compile(r"(\d\d:\d\d:\d\d) ?([AaPp])\. ?[Mm]\.")


def _plain_clocks(content: str) -> str:
    """A text whose dates and times in Chinese, Japanese and Korean, and halves of the day before the time, are as in other locales."""
    if not content.isascii():
        content = content.replace("\u00a0", " ").replace("\u202f", " ")  # some locales print 10:00:01 a. m. so
        content = _TIME_IN_WORDS.sub(r"\1:\2:\3", _DAY_IN_WORDS.sub(r"\1-\2-\3", content))
    content = _DOTTED_MERIDIEM.sub(r"\1 \2M", content)
    return _MERIDIEM_FIRST.sub(lambda match: f"{match[2]} {_MERIDIEMS.get(match[1], match[1])}", content)


def _local(text: str, order: str | None) -> datetime:
    """A local date and time as a locale prints it. Raises: UnreadableFile."""
    times = ("%H:%M:%S", "%I:%M:%S %p")
    if (local := _read_as(text.strip(), [f"{day} {time}" for day in _day_formats(text, order) for time in times])) is not None:
        return local
    raise UnreadableFile(f"{text[:40]!r} is not a known time; print it with S_TIME_FORMAT=ISO (iostat) or LC_ALL=C (sar)")


# Lines of sadf -d -------------------------------------------------------------------------------------------------

_SADF_LINE = re.compile(r"^[^;\n]+;-?\d+;[^;\n]+;", re.MULTILINE)


def _read_sadf(content: str, zone: tzinfo | None) -> Found:
    """`host;interval;time;DEV;tps;...` under a header; with -h all drives of an interval in one line."""
    found = Found()
    names: list[str] = []
    begins: int | None = None  # where the columns of a drive do; null for other figures
    has_header = False
    clock = Clock(zone)
    lines = content.splitlines()
    unfinished = None if content.endswith(("\n", "\r")) else len(lines)
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            header = [part.strip() for part in line.lstrip("# ").split(";")]
            begins, has_header = header.index("DEV") if "DEV" in header else None, True
            names = [name.removesuffix("[...]") for name in header[begins:]]
            continue
        parts = line.strip().split(";")
        if len(parts) > 3 and "RESTART" in parts[3]:
            with suppress(ValueError, OverflowError, OSError):
                found.restarts += [(parts[0], _sadf_stamp(parts[2], clock))] if begins is not None else []
            continue
        if not line.strip() or (len(parts) > 3 and parts[3].startswith("COM")):
            continue
        if begins is None:
            if not has_header or any(is_whole_drive(part) for part in parts[3:4]):
                _reject(found, "no header of drives above it; is it cut off?", "line", line)
            continue  # figures of something else
        values, count = parts[begins:], len(names)
        if not values or len(values) % count:
            _reject(found, f"{len(values)} columns from DEV on, expected {count} for each drive; is it cut off?", "line", line)
            continue
        if number == unfinished:
            _reject(found, "the text ends within this line; is it cut off?", "line", line)
            continue
        try:
            ends, seconds = _sadf_stamp(parts[2], clock), float(parts[1])
        except (ValueError, OverflowError, OSError):
            _reject(found, "not an interval and a time", "timestamp", line)
            continue
        for at in range(0, len(values), count):
            drive = dict(zip(names, values[at : at + count], strict=True))
            _take(found, parts[0], drive.pop("DEV", ""), ends, seconds, drive)
    return found


def _sadf_stamp(text: str, clock: Clock) -> datetime:
    if text.isdigit():
        return datetime.fromtimestamp(int(text), UTC).replace(tzinfo=None)
    if text.endswith(" UTC"):
        return plain_time(text[:19])
    return clock.utc(plain_time(text[:19]))


# Lines of sar -d --------------------------------------------------------------------------------------------------

# averages, in any language
_SUMMED = re.compile(r"[^\d\[;]+:")
_A_COLUMN = re.compile(r"[\w%][\w%/.*+-]*")
_BANNER = re.compile(r"^Linux \S+ \(([^)]*)\)\s+(\S+)", re.MULTILINE)
_TIMED = re.compile(r"(\d\d?):(\d\d):(\d\d)(?: ?([AaPp][Mm]))?\s+(.*)")


def _read_sar(content: str, zone: tzinfo | None, order: str | None) -> Found:
    """Blocks of lines, each under a header with the time at which its first interval began."""
    found = Found()
    host, names, has_header = "unknown", None, False
    clock, begins, ends = Clock(zone), None, None
    lines = content.splitlines()
    unfinished = None if content.endswith(("\n", "\r")) else len(lines)
    for number, line in enumerate(lines, 1):
        if banner := _BANNER.match(line):
            host, names, has_header = banner[1], None, False
            clock = Clock(zone, _day(banner[2], order))
            continue
        timed = _TIMED.match(line.strip())
        if timed is None or (of_day := _of_day(timed)) is None:
            if names is not None and line.strip() and not _SUMMED.match(line):
                _reject(found, "no time before the figures of a drive; is it cut off, or another text within it?", "line", line)
            continue  # a blank line, an average, or figures of something else
        columns = timed[5].split()
        if "RESTART" in columns:
            found.restarts += [(host, clock.at(of_day))] if names is not None else []
            names, has_header = None, True
            continue
        if "tps" in columns and ("DEV" in columns or "await" in columns):
            names, has_header = columns, True
            begins, ends = clock.at(of_day), None
            continue
        names_drive = any(is_whole_drive(column) or _NUMBERED.fullmatch(column) for column in columns)
        if len(columns) > 1 and not names_drive and all(_A_COLUMN.fullmatch(column) and _number(column) is None for column in columns):
            names, has_header = None, True  # the header of other figures
            continue
        if names is None or begins is None:
            if not has_header or names_drive:
                _reject(found, "no header of drives above it; is it cut off?", "line", line)
            continue
        at = clock.at(of_day)
        if ends is not None and at > ends:
            begins = ends
        ends = at
        if len(columns) != len(names):
            _reject(found, f"{len(columns)} columns, expected {len(names)}", "line", line)
            continue
        if number == unfinished:
            _reject(found, "the text ends within this line; is it cut off?", "line", line)
            continue
        values = dict(zip(names, columns, strict=True))
        _take(found, host, values.pop("DEV", ""), ends, (ends - begins).total_seconds(), values)
    return found


def _of_day(timed: re.Match[str]) -> timedelta | None:
    hour, minute, second = (int(timed[group]) for group in (1, 2, 3))
    if timed[4]:
        hour = hour % 12 + (12 if timed[4].lower() == "pm" else 0)
    return timedelta(hours=hour, minutes=minute, seconds=second) if hour < 24 and minute < 60 and second < 61 else None


def _day(text: str, order: str | None) -> datetime:
    if (day := _read_as(text, _day_formats(text, order))) is not None and EARLIEST <= day < LATEST:
        return day
    raise UnreadableFile(f"{text!r} is not a known day; print it with LC_ALL=C")
