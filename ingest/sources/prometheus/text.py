"""Files with samples -> readings: node_exporter's text format, OpenMetrics, and the output of `promtool tsdb dump`.

All three are lines of `series value [time]`. The text format gives milliseconds or, scraped by hand, no time at all: then the
scrape's own `node_time_seconds` (`node_time` before 0.16) is the time. OpenMetrics gives seconds, the dump milliseconds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from ingest.contract.errors import UnreadableFile
from ingest.contract.findings import some_of
from ingest.contract.values import ROLES
from ingest.raw.staging import write_parquet
from ingest.reading.batches import REJECTION
from ingest.reading.devices import drive_of, host_of, is_path, whole_drives, without_whole_disk
from ingest.reading.readers import SHOWN_VALUE_CHARS, text_blocks
from ingest.sources.prometheus.arrays import ARRAY, STATE, arrays_of
from ingest.sources.prometheus.dialects import (
    COLLECTOR,
    COLUMNS,
    ENCLOSURE,
    GROUP,
    LOOKED_FOR,
    OF_RATES,
    OTHER_DRIVES,
    SLOT,
    STEMS,
    TODAY,
    not_read,
    of_today,
)
from ingest.sources.prometheus.health import METRICS as HEALTH
from ingest.sources.prometheus.health import Point
from ingest.sources.prometheus.readings import COUNTERS, IDENTITY, NEEDED, READING, named_hosts, until_reset

EXPECTED = "Prometheus' text format, OpenMetrics, or the output of `promtool tsdb dump`"
INFO, MEMBER = "node_disk_info", "drivetail_md_member"
CLOCKS, UNAME = ("node_time_seconds", "node_time"), "node_uname_info"
_WANTED = (*COUNTERS, INFO, MEMBER, STATE, *CLOCKS, UNAME)

_LABELS = r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}'
_LINE = rf"^[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*(?:{_LABELS})?|{_LABELS})[ \t]+([^ \t#]+)(?:[ \t]+([-+0-9.eE]+))?[ \t]*(?:#.*)?\r?$"
_METRIC = r'^(?:\{__name__=")?([a-zA-Z_:][a-zA-Z0-9_:]*)'
_DUMPED = re.compile(r'^\{__name__="([a-zA-Z_:][a-zA-Z0-9_:]*)"(?:, ?)?(.*)\}$', re.DOTALL)
# Milliseconds since 1970 are larger than this since 1973, seconds smaller until the year 5138.
_LEAST_MS = 1e11
_END_US = 253_370_764_800_000_000  # the year 9999
# the name of a machine without one
_UNNAMED = ("", "(none)", "localhost")
PLACE = ["host", "device", "path", "at"]
"""Columns that identify a reading."""

LINES_AT_ONCE = 2_000_000
"""About how many samples of drives are held at once; a day is, however many it has."""

_SERIES: dict[str, pl.DataType] = {
    "series": pl.String(),
    "series_no": pl.UInt32(),
    "metric": pl.String(),
    "labels": pl.String(),
    # how many of its units are one of the metric's
    "per": pl.Float64(),
}
_SPOOLED: dict[str, pl.DataType] = {
    "series_no": pl.UInt32(),
    "row_no": pl.Int64(),
    "value": pl.String(),
    "number": pl.Float64(),
    "at": pl.Datetime("us"),
}

CONTRADICTED = "one of several values of the same series at the same time"

Span = tuple[datetime, datetime]
"""After the first instant, up to the second."""
ALWAYS: Span = (datetime.min, datetime.max)


@dataclass(frozen=True)
class Labels:
    """Which labels say where a drive is. `group`: those that together name its RAID group; none = not known."""

    host: str = "instance"
    device: str = "device"
    group: tuple[str, ...] = ()

    def group_of(self, labels: Mapping[str, str]) -> str | None:
        """The RAID group that a series names; null without one of its labels."""
        values = [value for name in self.group if (value := labels.get(name))]
        return "/".join(values) if values and len(values) == len(self.group) else labels.get(GROUP)


@dataclass
class Samples:
    """Contents of a file or of a span of it. `readings`: READING and `row_no`, the line of its first counter; `broken`: REJECTION.

    `arrays`: ARRAY. `duplicates`: readings that the file holds again, value by value.
    """

    readings: pl.DataFrame
    arrays: pl.DataFrame
    broken: pl.DataFrame
    duplicates: int


@dataclass
class SampleFile:
    """A file that was read: its samples of drives are spooled (_SPOOLED, a file per block), since a dump has them by series, not by time.

    `series`: series_no, metric, labels, host, device, path, labelled_group. `health`: the last sample of each day of each series that says
    something of a drive's health (_SPOOLED). `broken`: REJECTION, the lines that are no sample of a time.
    """

    spooled: list[Path]
    series: pl.DataFrame
    broken: pl.DataFrame
    notes: list[str]
    lines_by_day: dict[datetime, int]
    health: pl.DataFrame

    def health_points(self) -> Iterator[Point]:
        """The drives' health in the file."""
        said = self.health.join(self.series.select("series_no", "host", "metric", "labels"), on="series_no", maintain_order="left")
        for host, metric, labels, at, number in said.select("host", "metric", "labels", "at", "number").iter_rows():
            yield host, metric, json.loads(labels), at, number

    def pieces(self, spans: Iterable[Span] = (ALWAYS,)) -> Iterator[Samples]:
        """The samples in each of the spans, which follow each other in time. Who a drive is may have been said in an earlier one."""
        read = {text: json.loads(text) for text in self.series["labels"].unique()}
        metric = self.series.select("series_no", "metric", "labels", *PLACE[:-1], "labelled_group")
        infos, members = (say(metric.clear().with_columns(pl.lit(None, pl.Datetime("us")).alias("at")), read) for say in _SAYS.values())
        readings, arrays = pl.DataFrame(schema={**READING, "row_no": pl.Int64()}), pl.DataFrame(schema=ARRAY)
        nothing = Samples(readings, arrays, pl.DataFrame(schema=REJECTION), 0)
        last: list[pl.DataFrame] = []
        for after, until in spans:
            if not any(after <= day < until for day in self.lines_by_day):  # of many files each holds few of the days
                yield nothing
                continue
            lines = pl.scan_parquet(self.spooled, glob=False).filter(pl.col("at") > after, pl.col("at") <= until).collect()
            lines = lines.join(metric, on="series_no").sort("row_no")
            infos, members = (
                pl.concat([_last(before), say(lines.filter(TELLS if name == INFO else pl.col("metric") == name), read)])
                for before, (name, say) in zip((infos, members), _SAYS.items(), strict=True)
            )
            counters, contradicted, again = _once(lines.filter(pl.col("metric").is_in(list(COUNTERS))))
            broken = _rejected(contradicted, CONTRADICTED, "value", "value")
            found = _side_by_side(counters)
            infos, members = (until_reset(said, pl.concat([*last, found])) for said in (infos, members))
            last = [_last(pl.concat([*last, found]))]
            readings = with_identity(found, infos, members).select(*READING, "row_no")
            yield Samples(readings, arrays_of(lines.filter(pl.col("metric") == STATE), members), broken, again)


def spans_of(files: Sequence[SampleFile]) -> list[Span]:
    """The days of the files, as many together as have about LINES_AT_ONCE samples."""
    days: Counter[datetime] = Counter()
    for file in files:
        days.update(file.lines_by_day)
    found: list[Span] = []
    held = 0
    for day, lines in sorted(days.items()):
        held += lines
        if not found or held > LINES_AT_ONCE:
            begins, held = day, lines
        else:
            begins, _ = found.pop()
        found.append((begins, day + timedelta(days=1)))
    return found


def is_watched_twice(files: Sequence[SampleFile]) -> bool:
    """Whether the counters of a device are there by several paths."""
    series = [file.series.filter(pl.col("metric").is_in(list(COUNTERS))).select(PLACE[:-1]) for file in files]
    paths = pl.concat(series).unique() if series else pl.DataFrame(schema=dict.fromkeys(PLACE[:-1], pl.String()))
    return paths.height > paths.select("host", "device").n_unique()


def read_samples(path: Path, folder: str, labels: Labels, scratch: Path) -> SampleFile:
    """The samples of drives in a file. `folder` names the host where neither a label nor `node_uname_info` does.

    scratch: a folder of its own for what was read.

    Raises: UnreadableFile where no line is a counter of a drive, or samples have no time.
    """
    known = pl.DataFrame(schema=_SERIES)
    untimed = pl.DataFrame(schema={**_SPOOLED, "time": pl.String(), "metric": pl.String()})
    broken: list[pl.DataFrame] = []
    spooled: list[Path] = []
    days: Counter[datetime] = Counter()
    health = pl.DataFrame(schema=_SPOOLED)
    done = 0
    others: set[str] = set()
    for block in text_blocks(path, EXPECTED):
        lines = pl.DataFrame({"line": block.decode("utf-8", "replace").removesuffix("\n").split("\n")})
        begun, done = done, done + lines.height
        lines = lines.with_columns(pl.int_range(begun + 1, done + 1, dtype=pl.Int64).alias("row_no"))
        if not begun and block.startswith(b"HTTP/"):
            # what curl -i writes above the answer
            lines = lines.slice(lines.select(pl.col("line").str.strip_chars().eq("").arg_max()).item())
        sample = lines.filter(~pl.col("line").str.contains(r"^\s*(#|$)")).with_columns(
            pl.col("line").str.extract(_LINE, group).alias(name) for group, name in ((1, "series"), (2, "value"), (3, "time"))
        )
        broken.append(_rejected(sample.filter(pl.col("series").is_null()), "not a sample, expected: series value [time]", "line"))
        if not known["metric"].is_in(list(COUNTERS)).any():
            others.update(sample.select(pl.col("series").str.extract(_METRIC)).to_series().drop_nulls().unique())
        sample = sample.filter(pl.col("series").str.contains_any([*_WANTED, *STEMS, "smartmon_", "nvme_"])).drop("line")
        known = pl.concat([known, _named(sample.select(pl.col("series").unique(maintain_order=True)), known, labels)])
        sample = sample.join(known, on="series", maintain_order="left")
        broken.append(_rejected(sample.filter(pl.col("metric").is_null()), "labels that cannot be read", "line", "series"))
        sample = sample.filter(pl.col("metric").is_in(_WANTED) | _is_health())
        sample = sample.with_columns((pl.col("value").cast(pl.Float64, strict=False) / pl.col("per")).alias("number"))
        broken.append(_rejected(sample.filter(pl.col("number").is_null()), "not a number", "value", "value"))
        # the clock may be in the next block; no scrape is longer than one
        sample = _timed(pl.concat([untimed, sample.filter(pl.col("number").is_not_null())], how="diagonal"))
        waits = sample["time"].is_null() & sample["at"].is_null() & (sample["row_no"] > begun)
        untimed = sample.filter(waits).select(untimed.columns)
        broken.append(_no_time(sample.filter(~waits & pl.col("at").is_null())))
        timed = sample.filter(pl.col("at").is_not_null())
        health = _last_of_days(pl.concat([health, timed.filter(_is_health()).select(*_SPOOLED)]))
        timed = timed.filter(~_is_health())
        days.update(dict(timed.select(_day().alias("day"))["day"].value_counts().iter_rows()))
        spooled.append(scratch / f"{len(spooled)}.parquet")
        write_parquet(timed.select(*_SPOOLED), spooled[-1])
    if not known["metric"].is_in(list(COUNTERS)).any() and not health.height:
        said = "; ".join(not_read(others)) or f"looked for those of {LOOKED_FOR}"
        raise UnreadableFile(f"no counter of a drive in {done} lines: {said}; expected {EXPECTED}")
    if not days and not health.height:
        raise UnreadableFile("no sample has a number and a time, and there is no node_time_seconds or node_time for the time of the scrape")
    series, notes = _located(known, folder, labels, pl.scan_parquet(spooled, glob=False))
    health, contradicted = _without_contradicted(health, series)
    broken.append(_rejected(contradicted, CONTRADICTED, "value", "value"))
    return SampleFile(spooled, series, pl.concat([*broken, _no_time(untimed)]).sort("row", maintain_order=True), notes, dict(days), health)


def _day() -> pl.Expr:
    # an instant at midnight ends the day before, as one on the hour ends the hour before
    return (pl.col("at") - pl.duration(microseconds=1)).dt.truncate("1d")


def _is_health() -> pl.Expr:
    return pl.col("metric").str.contains(f"^({HEALTH})$")


def _last_of_days(samples: pl.DataFrame) -> pl.DataFrame:
    """The last sample of each series in each UTC day; several, where it has several values at that instant."""
    is_last = pl.col("at") == pl.col("at").max().over("series_no", pl.col("at").dt.date())
    return samples.filter(is_last).unique(["series_no", "at", "number"], keep="first", maintain_order=True)


def _without_contradicted(health: pl.DataFrame, series: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Samples of health of which a series has one value at an instant, and those of which it has several."""
    said = health.join(series.select("series_no", "metric", "labels"), on="series_no", maintain_order="left")
    is_one = said.select(pl.col("number").n_unique().over("metric", "labels", "at") == 1).to_series()
    return health.filter(is_one), health.filter(~is_one)


def _rejected(lines: pl.DataFrame, reason: str, column: str, value: str = "line") -> pl.DataFrame:
    return lines.select(
        pl.col("row_no").alias("row"),
        pl.lit(reason).alias("reason"),
        pl.lit(column).alias("column"),
        pl.col(value).str.slice(0, SHOWN_VALUE_CHARS).alias("value"),
    ).cast(REJECTION)  # type: ignore[arg-type]


def _no_time(lines: pl.DataFrame) -> pl.DataFrame:
    return _rejected(lines.filter(pl.col("metric").is_in(list(COUNTERS))), "no time, or not a valid one", "time", "time")


def _named(series: pl.DataFrame, known: pl.DataFrame, names: Labels) -> pl.DataFrame:
    """The series that are not known yet (_SERIES): metric and labels as node_exporter gives them, the labels as JSON in order of their
    names; null for other series.
    """
    rows: list[tuple[str, int, str | None, str | None, float]] = []
    for text in series.join(known, on="series", how="anti", maintain_order="left")["series"]:
        dumped = _DUMPED.match(text)
        line = f"{dumped[1]}{{{dumped[2]}}} 1\n" if dumped else f"{text} 1\n"
        key: tuple[str | None, str | None, float] = (None, None, 1.0)
        # errors of the parser for malformed labels
        with suppress(ValueError, KeyError, IndexError):
            (sample,) = (sample for family in text_string_to_metric_families(line) for sample in family.samples)
            metric, labels, per = of_today(sample.name, sample.labels, names.host, names.device)
            key = (metric, json.dumps(labels, sort_keys=True), per)
        rows.append((text, known.height + len(rows), *key))
    return pl.DataFrame(rows, schema=_SERIES, orient="row")


def _timed(lines: pl.DataFrame) -> pl.DataFrame:
    """Lines with `at`, when each sample was taken: its own time, else the clock of the same scrape, which stands below the drives."""
    own = lines["time"].cast(pl.Float64, strict=False)
    micros = (own * 1e6).set(own.abs() >= _LEAST_MS, None).fill_null(own * 1e3)
    clock = lines.select(pl.when(pl.col("metric").is_in(CLOCKS)).then(pl.col("number") * 1e6).backward_fill()).to_series()
    micros = micros.zip_with(lines["time"].is_not_null(), clock)
    micros = micros.set(~micros.is_between(0, _END_US).fill_null(False), None)
    return lines.with_columns(micros.round().cast(pl.Int64).cast(pl.Datetime("us")).alias("at"))


def _located(known: pl.DataFrame, folder: str, labels: Labels, samples: pl.LazyFrame) -> tuple[pl.DataFrame, list[str]]:
    """The series with what `located_by` says of them, counters of whole drives and paths to them only; notes. samples: _SPOOLED."""
    known = known.filter(pl.col("metric").is_in(_WANTED) | _is_health()).drop("series")
    read = {text: json.loads(text) for text in known["labels"].unique(maintain_order=True)}
    uname = known.filter(pl.col("metric") == UNAME)["labels"].to_list()
    nodename = read[uname[0]].get("nodename", "") if uname else ""
    unlabelled = folder if nodename in _UNNAMED else nodename
    targets = {text: target for text, one in read.items() if (target := one.get(labels.host))}
    hosts = named_by_watcher(read.values(), labels.host, _seen(targets, known, samples))
    located = pl.DataFrame(
        [located_by(text, one, hosts, labels, unlabelled) for text, one in read.items()],
        schema={"labels": pl.String(), "host": pl.String(), "device": pl.String(), "path": pl.String(), "labelled_group": pl.String()},
        orient="row",
    )
    series = known.join(located, on="labels", maintain_order="left")
    is_counter = series["metric"].is_in(list(COUNTERS))
    counted = series.filter(is_counter & series["device"].is_not_null()).group_by("host").agg(pl.col("device").unique())
    alone = pl.DataFrame(
        [(host, device) for host, names in counted.iter_rows() for device in without_whole_disk(names)],
        schema={"host": pl.String(), "device": pl.String()},
        orient="row",
    ).with_columns(pl.lit(True).alias("is_alone"))
    is_drive = whole_drives("device") | pl.col("device").str.contains(f"^({OTHER_DRIVES})$") | is_path("device") | pl.col("is_alone")
    is_whole = series.join(alone, on=["host", "device"], how="left", maintain_order="left").select(is_drive.fill_null(False)).to_series()
    left_out = series.filter(is_counter & ~is_whole)["device"].unique().sort().to_list()
    notes = _of_collectors((metric, read[text]) for metric, text in series.filter(is_counter).select("metric", "labels").iter_rows())
    notes += [f"left out {len(left_out)} devices that are no whole drive: {', '.join(map(str, left_out[:8]))}"] if left_out else []
    return series.filter(~is_counter | is_whole), notes


def _of_collectors(counters: Iterable[tuple[str, dict[str, str]]]) -> list[str]:
    """Notes on the collectors other than node_exporter that these are of, and what they lack."""
    by: dict[str, set[str]] = {}
    for metric, labels in counters:
        by.setdefault(labels.get(COLLECTOR, ""), set()).add(COUNTERS[metric])
    needed = {one: COLUMNS if one in OF_RATES else NEEDED for one in by}
    lacks = {f"counters of {one}": [name for name in needed[one] if name not in columns] for one, columns in by.items() if one}
    return [f"{one}, without {some_of(lack)}: no latency can be made of them" if lack else one for one, lack in lacks.items()]


def _once(counters: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Counters that have one value at one instant, the lines of those that have several, and how many readings were there again.

    Who has two values of one counter has none: the other counters of that reading go, too.
    """
    each = counters.group_by(*PLACE, "metric").agg(pl.len(), pl.col("number").n_unique().alias("values"))
    if each.height == counters.height:
        return counters, counters.clear(), 0
    several = each.filter(pl.col("values") > 1)
    contradicted = counters.join(several, on=[*PLACE, "metric"], how="semi")
    again = each.join(several, on=PLACE, how="anti").group_by(PLACE).agg(pl.col("len").max() - 1)["len"].sum()
    return counters.join(several, on=PLACE, how="anti"), contradicted, int(again)


def _side_by_side(counters: pl.DataFrame) -> pl.DataFrame:
    """A reading per drive, path and instant: COUNTERS, `labelled_group`, and `row_no` of the first."""
    return counters.group_by(PLACE, maintain_order=True).agg(
        *(pl.col("number").filter(pl.col("metric") == metric).first().alias(name) for metric, name in COUNTERS.items()),
        pl.col("labelled_group").first(),
        pl.col("row_no").first(),
    )


def _last(said: pl.DataFrame) -> pl.DataFrame:
    """The last facts of each drive by each path."""
    return said.sort("at").unique(PLACE[:-1], keep="last", maintain_order=True)


def located_by(
    text: str, labels: dict[str, str], hosts: dict[str, str], names: Labels, unlabelled: str
) -> tuple[str, str, str | None, str, str | None]:
    """(labels as text, host, device, path, group) of a series: the path is what is left of its labels."""
    given = labels.get(names.host)
    apart = ("__name__", names.device, *(_OF_DRIVE if COLLECTOR in labels else ()))
    rest = {name: value for name, value in sorted(labels.items()) if name not in apart}
    return (
        text,
        hosts[given] if given else unlabelled,
        labels.get(names.device),
        json.dumps(rest) if rest else "",
        names.group_of(labels),
    )


def _seen(targets: Mapping[str, str], known: pl.DataFrame, samples: pl.LazyFrame) -> dict[str, tuple[float, float]]:
    """When each scrape target, by the labels of its series, was first and last there; asked where several are of one host."""
    if len({*targets.values()}) == len({host_of(target) for target in targets.values()}):
        return {}
    at = pl.col("at").cast(pl.Int64)
    times = samples.group_by("series_no").agg(at.min().alias("first"), at.max().alias("last")).collect()
    named = known.with_columns(pl.col("labels").replace_strict(targets, default=None).alias("target")).drop_nulls("target")
    found = named.join(times, on="series_no").group_by("target").agg(pl.col("first").min(), pl.col("last").max())
    return {target: (first, last) for target, first, last in found.iter_rows()}


def named_by_watcher(
    series: Iterable[Mapping[str, str]], host: str, seen: Mapping[str, tuple[float, float]] | None = None
) -> dict[str, str]:
    """Scrape target -> host: targets of one collector that were there at once and differ in the port only are apart (`named_hosts`),
    those of several collectors are one machine.
    """
    targets: dict[str, list[str]] = {}
    for labels in series:
        if host in labels:
            targets.setdefault(labels.get(COLLECTOR, TODAY.collector), []).append(labels[host])
    return {target: name for watched in targets.values() for target, name in named_hosts(watched, seen).items()}


def identities(lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> pl.DataFrame:
    """`node_disk_info`: host, device, path, at, serial, wwn, model, firmware, is_rotating, enclosure, slot; what is empty is null."""
    names = {"serial": "serial", "wwn": "wwn", "model": "model", "firmware": "revision", "rotational": "rotational"}
    names |= {"enclosure": ENCLOSURE, "slot": SLOT}
    said = _said(lines, read, tuple(names), lambda _, device, labels: (device, *(labels.get(name) or None for name in names.values())))
    return said.with_columns(
        # udev gives blanks as underscores
        pl.col("model").str.replace_all("_", " "),
        pl.col("rotational").replace_strict({"1": True, "0": False}, default=None, return_dtype=pl.Boolean()).alias("is_rotating"),
    ).drop("rotational")


def memberships(lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> pl.DataFrame:
    """`drivetail_md_member`: host, device, path, at, raid_group_id (the array's UUID, else host and name), array_name, role,
    member_serial, member_model.

    A role that is a place in the array is that of a data drive: md rotates parity. What is empty is null.
    """

    def say(host: str, device: str | None, labels: dict[str, str]) -> tuple[str | None, ...]:
        role = labels.get("role")
        group = labels.get("uuid") or f"{host}/{labels.get('md', '')}"
        who = (labels.get("serial") or None, labels.get("model") or None)
        return drive_of(device or ""), group, labels.get("md") or None, role if role in ROLES else "data", *who

    return _said(lines, read, ("raid_group_id", "array_name", "role", "member_serial", "member_model"), say)


def _said(
    lines: pl.DataFrame,
    read: dict[str, dict[str, str]],
    names: tuple[str, ...],
    say: Callable[[str, str | None, dict[str, str]], tuple[str | None, ...]],
) -> pl.DataFrame:
    """host, device, path (that of the drive's counters), at, and what labels say: (device, names) by host, device and labels; asked once
    a series, not once a sample.
    """
    place = [*PLACE[:-1], "labels"]
    series = lines.select(place).unique(maintain_order=True)
    described = pl.DataFrame(
        [(path_of_counters(path), *say(host, device, read[text])) for host, device, path, text in series.iter_rows()],
        schema=dict.fromkeys(("counted", "drive", *names), pl.String()),
        orient="row",
    )
    by_series = pl.concat([series, described], how="horizontal")
    said = lines.select(*place, "at").join(by_series, on=place, nulls_equal=True, maintain_order="left")
    said = said.select("host", pl.col("drive").alias("device"), pl.col("counted").alias("path"), "at", *names)
    return said.unique(PLACE, keep="first", maintain_order=True)


_OF_DRIVE = ("serial", "wwn", "model", "revision", "rotational", "path", "major", "minor", "md", "uuid", "role", ENCLOSURE, SLOT, GROUP)


def path_of_counters(path: str | None) -> str:
    """The path of the counters that one exporter shows beside its description of a drive: without the labels of that."""
    labels = {name: value for name, value in json.loads(path or "{}").items() if name not in _OF_DRIVE}
    return json.dumps(labels) if labels else ""


_SAYS = {INFO: identities, MEMBER: memberships}
TELLS = (pl.col("metric") == INFO) | (
    (pl.col("metric") == TODAY.reads) & pl.col("labels").str.contains(f'"{COLLECTOR}": .*"(serial|wwn|{ENCLOSURE})": ')
)
"""Series that say who a drive is: where another collector's counters do, their own."""


def with_identity(readings: pl.DataFrame, infos: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Readings with the last identity and membership of the drive at or before their time (IDENTITY): by the exporter of the counters,
    else by another of the host that does not count it: one that does may be of another machine.
    """
    readings = readings.sort("at", maintain_order=True)
    for said in (infos, members):
        said = said.sort("at")
        own = said.select(PLACE[:-1]).unique()
        parts = []
        for how, by in (("semi", PLACE[:-1]), ("anti", PLACE[:2])):
            some = readings.join(own, on=PLACE[:-1], how=how, maintain_order="left")  # type: ignore[arg-type]
            known = said if how == "semi" else said.join(readings, on=PLACE[:-1], how="anti", maintain_order="left").drop("path")
            parts.append(some.join_asof(known, on="at", by=by, strategy="backward", check_sortedness=False))
        readings = pl.concat(parts).sort("at", maintain_order=True)
    return readings.with_columns(
        pl.coalesce("labelled_group", "raid_group_id").alias("raid_group_id"),
        pl.when(pl.col("labelled_group").is_null()).then("array_name").alias("array_name"),
        # node_exporter before 1.4 says of a drive only that it is there
        pl.coalesce("serial", "member_serial").alias("serial"),
        pl.coalesce("model", "member_model").alias("model"),
        pl.lit(False).alias("is_whole"),
    ).with_columns(pl.col(name).cast(dtype) for name, dtype in IDENTITY.items())
