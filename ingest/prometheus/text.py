"""Files with samples -> readings: node_exporter's text format, OpenMetrics, and the output of `promtool tsdb dump`.

All three are lines of `series value [time]`. The text format gives milliseconds or, scraped by hand, no time at all: then the
scrape's own `node_time_seconds` is the time. OpenMetrics gives seconds, the dump milliseconds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
from prometheus_client.parser import text_string_to_metric_families

from ingest.devices import drive_of, whole_drives
from ingest.errors import UnreadableFile
from ingest.parse import REJECTION
from ingest.prometheus.readings import COUNTERS, IDENTITY, READING, named_hosts
from ingest.readers import SHOWN_VALUE_CHARS, text_blocks
from ingest.schema import ROLES

EXPECTED = "node_exporter's text format, OpenMetrics, or the output of `promtool tsdb dump`"
INFO, MEMBER = "node_disk_info", "drivetail_md_member"
CLOCK, UNAME = "node_time_seconds", "node_uname_info"
_WANTED = (*COUNTERS, INFO, MEMBER, CLOCK, UNAME)

_LABELS = r'\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\}'
_LINE = rf"^[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*(?:{_LABELS})?|{_LABELS})[ \t]+([^ \t#]+)(?:[ \t]+([-+0-9.eE]+))?[ \t]*(?:#.*)?\r?$"
_DUMPED = re.compile(r'^\{__name__="([a-zA-Z_:][a-zA-Z0-9_:]*)"(?:, ?)?(.*)\}$', re.DOTALL)
# Milliseconds since 1970 are larger than this since 1973, seconds smaller until the year 5138.
_LEAST_MS = 1e11
_END_US = 253_402_300_800_000_000  # the year 10000
# what a machine is called that nobody has named
_UNNAMED = ("", "(none)", "localhost")
_PLACE = ["host", "device", "path", "at"]


@dataclass(frozen=True)
class Labels:
    """Which labels say where a drive is. `group`: those that name its RAID group together; none = nobody says."""

    host: str = "instance"
    device: str = "device"
    group: tuple[str, ...] = ()


@dataclass
class Samples:
    """What one file holds. `readings`: READING and `row_no`, the line of the reading's first counter; `broken`: REJECTION.

    `duplicates`: readings that the file holds again, value by value.
    """

    readings: pl.DataFrame
    broken: pl.DataFrame
    duplicates: int = 0
    notes: list[str] = field(default_factory=list)


def read_samples(path: Path, folder: str, labels: Labels) -> Samples:
    """The readings in a file. `folder` names the host where neither a label nor `node_uname_info` does.

    Raises: UnreadableFile where no line is a counter of a drive, or samples have no time.
    """
    frames: list[pl.DataFrame] = []
    broken: list[pl.DataFrame] = []
    done = 0
    for block in text_blocks(path, EXPECTED):
        lines = pl.DataFrame({"line": block.decode("utf-8", "replace").removesuffix("\n").split("\n")})
        lines = lines.with_columns(pl.int_range(done + 1, done + lines.height + 1, dtype=pl.Int64).alias("row_no"))
        if not done and block.startswith(b"HTTP/"):
            # what curl -i writes above the answer
            lines = lines.slice(lines.select(pl.col("line").str.strip_chars().eq("").arg_max()).item())
        done += lines.height
        sample = lines.filter(~pl.col("line").str.contains(r"^\s*(#|$)")).with_columns(
            pl.col("line").str.extract(_LINE, group).alias(name) for group, name in ((1, "series"), (2, "value"), (3, "time"))
        )
        broken.append(_rejected(sample.filter(pl.col("series").is_null()), "not a sample, expected: series value [time]", "line"))
        frames.append(sample.filter(pl.col("series").str.contains_any(list(_WANTED))).drop("line"))
    lines = pl.concat(frames)
    named = _named(lines["series"].unique().to_list())
    lines = lines.join(named, on="series", maintain_order="left").filter(pl.col("metric").is_in(_WANTED))
    if not lines["metric"].is_in(list(COUNTERS)).any():
        raise UnreadableFile(f"no node_disk_* counter in {done} lines; expected {EXPECTED}")
    lines = lines.with_columns(pl.col("value").cast(pl.Float64, strict=False).alias("number"))
    lines = lines.with_columns(_time(lines))
    unread = lines["number"].is_null()
    broken.append(_rejected(lines.filter(unread), "not a number", "value", "value"))
    lines = lines.filter(~unread)
    untimed = lines["at"].is_null()
    if untimed.all():
        raise UnreadableFile("no sample has a time and there is no node_time_seconds to tell when they were taken")
    broken.append(_rejected(lines.filter(untimed & pl.col("metric").is_in(list(COUNTERS))), "no time, or one that is none", "time", "time"))
    lines = lines.filter(~untimed)
    lines, read, notes = _located(lines, named, folder, labels)
    counters, contradicted, again = _once(lines.filter(pl.col("metric").is_in(list(COUNTERS))))
    broken.append(_rejected(contradicted, "one of several values of the same series at the same time", "value", "value"))
    readings = _readings(counters, lines, read)
    return Samples(readings, pl.concat(broken).sort("row", maintain_order=True), again, notes)


def _rejected(lines: pl.DataFrame, reason: str, column: str, value: str = "line") -> pl.DataFrame:
    return lines.select(
        pl.col("row_no").alias("row"),
        pl.lit(reason).alias("reason"),
        pl.lit(column).alias("column"),
        pl.col(value).str.slice(0, SHOWN_VALUE_CHARS).alias("value"),
    ).cast(REJECTION)  # type: ignore[arg-type]


def _named(series: Sequence[str]) -> pl.DataFrame:
    """Every distinct series: its metric and its labels as JSON, in order of their names; null metric where it is none."""
    rows = []
    for text in series:
        dumped = _DUMPED.match(text)
        line = f"{dumped[1]}{{{dumped[2]}}} 1\n" if dumped else f"{text} 1\n"
        try:
            (sample,) = (sample for family in text_string_to_metric_families(line) for sample in family.samples)
        except (ValueError, KeyError, IndexError):  # what the parser raises on labels that are none
            continue
        rows.append((text, sample.name, json.dumps(sample.labels, sort_keys=True)))
    return pl.DataFrame(rows, schema={"series": pl.String(), "metric": pl.String(), "labels": pl.String()}, orient="row")


def _time(lines: pl.DataFrame) -> pl.Series:
    """When each sample was taken: its own time, else the clock that the same scrape shows, which stands below the drives."""
    own = lines["time"].cast(pl.Float64, strict=False)
    micros = (own * 1e6).set(own.abs() >= _LEAST_MS, None).fill_null(own * 1e3)
    clock = lines.select(pl.when(pl.col("metric") == CLOCK).then(pl.col("number") * 1e6).backward_fill()).to_series()
    micros = micros.zip_with(lines["time"].is_not_null(), clock)
    micros = micros.set(~micros.is_between(0, _END_US).fill_null(False), None)
    return micros.round().cast(pl.Int64).cast(pl.Datetime("us")).alias("at")


def _located(
    lines: pl.DataFrame, named: pl.DataFrame, folder: str, labels: Labels
) -> tuple[pl.DataFrame, dict[str, dict[str, str]], list[str]]:
    """Lines with what `located_by` says of them, counters of whole drives only; the labels of each text of them; notes."""
    read = {labels_text: json.loads(labels_text) for labels_text in named["labels"].to_list()}
    uname = lines.filter(pl.col("metric") == UNAME)["labels"].to_list()
    told = read[uname[0]].get("nodename", "") if uname else ""
    unlabelled = folder if told in _UNNAMED else told
    hosts = named_hosts([one[labels.host] for one in read.values() if labels.host in one])
    located = pl.DataFrame(
        [located_by(text, one, hosts, labels, unlabelled) for text, one in read.items()],
        schema={"labels": pl.String(), "host": pl.String(), "device": pl.String(), "path": pl.String(), "told_group": pl.String()},
        orient="row",
    ).unique("labels")
    lines = lines.join(located, on="labels", maintain_order="left")
    is_counter = lines["metric"].is_in(list(COUNTERS))
    is_whole = lines.select(whole_drives("device").fill_null(False)).to_series()
    left_out = lines.filter(is_counter & ~is_whole)["device"].unique().sort().to_list()
    notes = [f"left out {len(left_out)} devices that are no whole drive: {', '.join(map(str, left_out[:8]))}"] if left_out else []
    return lines.filter(~is_counter | is_whole), read, notes


def _once(counters: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Counters that have one value at one instant, the lines of those that have several, and how many readings were there again.

    Who has two values of one counter has none: the other counters of that reading go, too.
    """
    each = counters.group_by(*_PLACE, "metric").agg(pl.len(), pl.col("number").n_unique().alias("values"))
    if each.height == counters.height:
        return counters, counters.clear(), 0
    several = each.filter(pl.col("values") > 1)
    contradicted = counters.join(several, on=[*_PLACE, "metric"], how="semi")
    again = each.join(several, on=_PLACE, how="anti").group_by(_PLACE).agg(pl.col("len").max() - 1)["len"].sum()
    return counters.join(several, on=_PLACE, how="anti"), contradicted, int(again)


def _readings(counters: pl.DataFrame, lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> pl.DataFrame:
    readings = (
        counters.sort("row_no")
        .group_by(_PLACE, maintain_order=True)
        .agg(
            *(pl.col("number").filter(pl.col("metric") == metric).first().alias(name) for metric, name in COUNTERS.items()),
            pl.col("told_group").first(),
            pl.col("row_no").first(),
        )
    )
    infos = identities(lines.filter(pl.col("metric") == INFO), read)
    members = memberships(lines.filter(pl.col("metric") == MEMBER), read)
    return with_identity(readings, infos, members).select(*READING, "row_no")


def located_by(
    text: str, labels: dict[str, str], hosts: dict[str, str], names: Labels, unlabelled: str
) -> tuple[str, str, str | None, str, str | None]:
    """(labels as text, host, device, path, group) of a series: the path is what is left of its labels."""
    given = labels.get(names.host)
    told = [labels[name] for name in names.group if labels.get(name)]
    rest = {name: value for name, value in sorted(labels.items()) if name not in ("__name__", names.device)}
    return (
        text,
        hosts[given] if given else unlabelled,
        labels.get(names.device),
        json.dumps(rest) if rest else "",
        "/".join(told) if told and len(told) == len(names.group) else None,
    )


def identities(lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> pl.DataFrame:
    """`node_disk_info`: host, device, at, serial, wwn, model, firmware, is_rotating; what is empty is null."""
    rows = [
        (host, device, at, *(info.get(name) or None for name in ("serial", "wwn", "model", "revision")), info.get("rotational"))
        for host, device, at, info in _with_labels(lines, read)
    ]
    names = ("serial", "wwn", "model", "firmware", "rotational")
    schema = {"host": pl.String(), "device": pl.String(), "at": pl.Datetime("us"), **dict.fromkeys(names, pl.String())}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        # udev gives blanks as underscores
        pl.col("model").str.replace_all("_", " "),
        pl.col("rotational").replace_strict({"1": True, "0": False}, default=None, return_dtype=pl.Boolean()).alias("is_rotating"),
    )
    return frame.drop("rotational").unique(["host", "device", "at"], keep="first", maintain_order=True)


def memberships(lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> pl.DataFrame:
    """`drivetail_md_member`: host, device, at, raid_group_id (the array's UUID, else host and name), role.

    A role that is a place in the array is that of a data drive: md rotates parity.
    """
    rows = [
        (host, drive_of(device or ""), at, labels.get("uuid") or f"{host}/{labels.get('md', '')}", role if role in ROLES else "data")
        for host, device, at, labels in _with_labels(lines, read)
        for role in (labels.get("role"),)
    ]
    schema = {"host": pl.String(), "device": pl.String(), "at": pl.Datetime("us"), "raid_group_id": pl.String(), "role": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row").unique(["host", "device", "at"], keep="first", maintain_order=True)


def _with_labels(lines: pl.DataFrame, read: dict[str, dict[str, str]]) -> list[tuple[str, str | None, object, dict[str, str]]]:
    rows = lines.select("host", "device", "at", "labels").unique(maintain_order=True).iter_rows()
    return [(host, device, at, read[text]) for host, device, at, text in rows]


def with_identity(readings: pl.DataFrame, infos: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Readings with what was last said of the drive and its membership at or before their time (IDENTITY)."""
    readings = readings.sort("at", maintain_order=True)
    for said in (infos, members):
        readings = readings.join_asof(said.sort("at"), on="at", by=["host", "device"], strategy="backward", check_sortedness=False)
    return readings.with_columns(pl.coalesce("told_group", "raid_group_id").alias("raid_group_id")).with_columns(
        pl.col(name).cast(dtype) for name, dtype in IDENTITY.items()
    )
