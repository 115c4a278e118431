"""Source `arrays`: the drives of an HPE MSA, Dell PowerVault ME or Seagate array, by its own answers (docs/sources/arrays.md).

Reads `show disks` and `show disk-statistics` as the array's API gives them, XML or JSON, in `ARRAY/FILE` below a line `TS seconds`. The
one has the mean response time of each drive, its place and its disk group, the other counts reads, writes and bytes since a reset. I/Os are
what was counted from one look to the next; the latency of an hour is the mean of those of its looks, weighed by their I/Os.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import polars as pl

from ingest.contract.errors import UnreadableFile
from ingest.raw.known import unknown_rows
from ingest.reading.batches import Batch, Rejection, rejections
from ingest.reading.devices import is_placeholder
from ingest.reading.files import FileResult, SourceFile, named
from ingest.reading.hosts import each_look, host_of, json_documents, spans
from ingest.reading.overlap import behind, each_once
from ingest.reading.parse import HOUR_US, completed
from ingest.reading.readers import HALF_A_PAIR, count_in, opened, text_in
from ingest.reading.spans import with_spans
from ingest.reading.text import utf8

if TYPE_CHECKING:
    from ingest.raw.landing import Landing

EXPECTED = "ARRAY/*.xml, *.json or *.txt: answers of an MSA or ME to `show disks` and `show disk-statistics`, below a line `TS seconds`"
recognise = named("answers", r".+\.(xml|json|txt|csv)(\.gz|\.zst)?")
MAX_GAP_US = 900_000_000
"""Looks further apart say too little of when the I/Os were."""
BLOCK_BYTES = 512
DISKS, STATISTICS = "drives", "disk-statistics"
_NUMBERS = {
    DISKS: ("avg-rsp-time",),
    STATISTICS: ("number-of-reads", "number-of-writes", "data-read-numeric", "data-written-numeric"),
}
_HEAD_BYTES = 4096
_KINDS = {"HDD": "disk", "SSD": "ssd"}
# what others print of drives, and why no latency can be made of it
_REFUSED = {
    r"Port\s+Status\s+Unit": "this is dpmstat of 3ware: means over a time that it does not say, reads and writes together, in whole "
    "milliseconds, without the number of I/Os",
    r"(?m)^[^\n]*,[^\n]*,": "this is a table; the columns of the history that an array hands out (`get perf`) are in no public document",
}
_ROW: dict[str, pl.DataType] = {
    **dict.fromkeys(("what", "host", "serial", "enclosure", "slot", "group", "role"), pl.String()),
    **dict.fromkeys(("kind", "vendor", "model", "firmware", "interface"), pl.String()),
    "at": pl.Datetime("us"),
    **dict.fromkeys(("capacity_bytes", "mean_us", "ios", "bytes", "row_no"), pl.Int64()),
}
_PLACE = ["host", "serial"]
_FACTS = ["serial", "enclosure", "slot", "group", "role", "kind", "vendor", "model", "firmware", "interface", "capacity_bytes"]


def land(files: list[SourceFile], landing: Landing) -> None:
    """Read every answer, take the differences of each drive over all files, and stage hours and inventory.

    Counts are drives in an answer.
    """
    read = pl.concat([pl.DataFrame(schema={**_ROW, "file_no": pl.Int64()}), *landing.read(files, _batches)])
    key = ["what", *_PLACE, "at"]
    rows = each_once(read, key, ["ios", "bytes", "mean_us"], landing.by_no).sort(*key)
    disks, counted = rows.filter(what=DISKS), rows.filter(what=STATISTICS)
    both = counted.join(
        disks.select(*_PLACE, "at", "mean_us", "group"), on=[*_PLACE, "at"], how="left", maintain_order="left", suffix="_said"
    )
    _stage_hours(both.with_columns(pl.col("mean_us_said").alias("mean_us"), pl.col("group_said").alias("group")), landing)
    _stage_inventory(disks, landing)


def _batches(file: SourceFile, result: FileResult) -> Iterator[Batch]:
    host = host_of(file)
    with opened(file.path) as stream:
        before = re.split("[<{]", stream.read(_HEAD_BYTES).decode("utf-8", "replace"), maxsplit=1)[0]
    if why := next((why for pattern, why in _REFUSED.items() if re.search(pattern, before)), None):
        raise UnreadableFile(f"{why}; expected {EXPECTED}")
    rows: list[dict[str, Any]] = []
    rejected: list[Rejection] = []
    number = 0
    for look in each_look(file):
        # a prompt repeats the command
        for what, given in _objects("\n".join(line for _, line in look.lines if not line.startswith("#"))):
            number += 1
            found = _row(what, given)
            if isinstance(found, dict):
                rows.append({"what": what, "host": host, "at": look.at, "row_no": number, **found})
            else:
                rejected.append((number, *found))
    if not number:
        raise UnreadableFile(f"no drive is in it; expected {EXPECTED}")
    yield Batch(None, pl.DataFrame(rows, schema=_ROW), rejections(rejected))


def _objects(text: str) -> Iterator[tuple[str, Any]]:
    """The drives of the answers in a look, each by the table that it is of; an answer that cannot be read comes as its text."""
    if "<RESPONSE" not in text:
        for document in json_documents(text):
            tables = document.items() if isinstance(document, dict) else [("", [document])]
            yield from ((name, each) for name, table in tables if name != "status" and isinstance(table, list) for each in table)
        return
    for part in re.split(r"(?=<RESPONSE\b)", text)[1:]:
        answer = part.partition("</RESPONSE>")
        try:
            root = ElementTree.fromstring("".join(answer[:2]))
        except (ElementTree.ParseError, ValueError):
            yield "", part
            continue
        for each in root.iterfind("OBJECT"):
            if (name := each.get("basetype", "")) != "status":
                yield name, {one.get("name"): one.text for one in each.iterfind("PROPERTY")}


def _row(what: str, given: Any) -> dict[str, Any] | tuple[str, str, str | None]:
    """Columns of a drive in an answer; or why it is rejected: reason, column, value."""
    if what not in _NUMBERS:
        return "not of `show disks` or `show disk-statistics`; or is the answer cut off?", "answer", what or str(given)[:80]
    if not isinstance(given, dict) or (serial := text_in(given.get("serial-number"))) is None:
        return "a drive without a serial number", "serial-number", str(given)[:80]
    if (torn := next((name for name, value in given.items() if isinstance(value, str) and utf8(value) != value), None)) is not None:
        return HALF_A_PAIR, torn, given[torn]
    if is_placeholder(serial):
        return "a placeholder, no serial number", "serial-number", serial
    numbers = {name: count_in(given.get(name)) for name in _NUMBERS[what]}
    for name, number in numbers.items():
        if number is None:
            return "no whole number of 0 or more", name, None if given.get(name) is None else str(given[name])
    if what == STATISTICS:
        reads, writes, *moved = numbers.values()
        return {"serial": serial, "ios": reads + writes, "bytes": sum(moved)}  # type: ignore[operator]
    texts = {name: text_in(value) or (str(value) if type(value) is int else None) for name, value in given.items()}
    enclosure, _, slot = (texts.get("location") or "").rpartition(".")
    blocks, size = count_in(given.get("blocks")), count_in(given.get("blocksize")) or BLOCK_BYTES
    return {
        "serial": serial,
        "mean_us": numbers["avg-rsp-time"],
        "enclosure": texts.get("enclosure-id") or enclosure or None,
        "slot": texts.get("slot") or slot or None,
        "group": texts.get("disk-group"),
        "role": "spare" if re.search(r"\bSP\b", texts.get("usage") or "") else "data",
        "kind": _KINDS.get(texts.get("architecture") or ""),
        "capacity_bytes": blocks * size if blocks and blocks * size <= 2**53 else None,
        "firmware": texts.get("revision"),
        **{name: texts.get(name) for name in ("vendor", "model", "interface")},
    }


def _stage_inventory(disks: pl.DataFrame, landing: Landing) -> None:
    """Each drive from the first look that finds it so to the first that does not."""
    found: list[dict[str, Any]] = []
    for (host,), of_host in disks.partition_by("host", as_dict=True, maintain_order=True).items():
        looks: dict[datetime, dict[tuple[Any, ...], tuple[int, int]]] = {}
        for row in of_host.sort("at", "row_no").iter_rows(named=True):
            looks.setdefault(row["at"], {})[tuple(row[name] for name in _FACTS)] = (row["file_no"], row["row_no"])
        last, there = max(looks.items())
        for facts, begun, ended in spans(list(looks.items())):
            is_there = facts in there and ended in (None, last)
            file_no, row_no = looks[begun][facts]
            said = {**dict(zip(_FACTS, facts, strict=True)), "host": host, "file_no": file_no, "row_no": row_no}
            found.append({**said, "valid_from": begun, "valid_to": None if is_there else ended})
    names = {name: dtype for name, dtype in _ROW.items() if name in (*_FACTS, "host", "row_no")}
    times = dict.fromkeys(("valid_from", "valid_to"), pl.Datetime("us"))
    drives = pl.DataFrame(found, schema={**names, **times, "file_no": pl.Int64()}).sort("valid_from", "host", "serial")
    if drives.height:
        known = completed(_named(drives), "drives").with_columns(pl.col("drive_id").alias("seen_as"))
        landing.accept("drives", completed(unknown_rows(known, "drives", landing), "drives"), None)


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows under the drive's serial number and its RAID group: the disk group of the array, or else all of the array."""
    return rows.with_columns(
        pl.col("serial").alias("drive_id"),
        pl.concat_str("host", "group", separator="/", ignore_nulls=True).alias("raid_group_id"),
        pl.col("group").is_null().alias("is_group_guessed"),
        pl.lit(False).alias("is_alias"),
    )


def _stage_hours(looks: pl.DataFrame, landing: Landing) -> None:
    """Drive-hours of the looks at the counts (_ROW, `file_no`), with the mean and the group that `show disks` had at that look."""
    of = {name: pl.col(name).shift(1).over(_PLACE) for name in ("at", "ios", "bytes")}
    steps = looks.with_columns(
        of["at"].cast(pl.Int64).alias("begins_us"),
        pl.col("at").cast(pl.Int64).alias("ends_us"),
        # an instant on the hour ends the hour before
        ((pl.col("at").cast(pl.Int64) - 1) // HOUR_US).alias("hour"),
        *((pl.col(name) - of[name]).alias(f"{name}_more") for name in ("ios", "bytes")),
    ).filter(pl.col("begins_us").is_not_null())
    is_reset = (pl.col("ios_more") < 0) | (pl.col("bytes_more") < 0)
    steps = steps.with_columns((is_reset | (pl.col("ends_us") - pl.col("begins_us") > MAX_GAP_US)).alias("is_lost"))
    unsaid = (
        pl.when(pl.col("mean_us").is_null())
        .then(pl.lit("`show disks` of the same look does not have the drive"))
        .when((pl.col("mean_us") == 0) & (pl.col("ios_more") > 0))
        .then(pl.lit("0 although I/Os were counted: this firmware measures no response times"))
    )
    steps = steps.with_columns(pl.when(~pl.col("is_lost")).then(unsaid).alias("reason"))
    without = steps.filter(pl.col("reason").is_not_null())
    landing.turn_away(without.with_columns(pl.lit("avg-rsp-time").alias("column"), pl.col("mean_us").cast(pl.String()).alias("value")))
    is_gap = pl.col("is_lost") | pl.col("reason").is_not_null()
    spanned = with_spans(steps.sort(*_PLACE, "ends_us"), _PLACE, is_gap=is_gap).filter(~is_gap)
    place = [*_PLACE, "hour", "span_no"]
    hours = spanned.group_by(place, maintain_order=True).agg(
        pl.col("ios_more").sum().alias("io_count"),
        pl.col("bytes_more").sum().alias("bytes"),
        ((pl.col("mean_us").cast(pl.Float64) * pl.col("ios_more")).sum() / pl.col("ios_more").sum()).alias("latency_us"),
        ((pl.col("ends_us") - pl.col("begins_us")).sum() / HOUR_US).clip(upper_bound=1.0).alias("coverage"),
        pl.col("at").max().alias("collected_at"),
        pl.col("group").last(),
        pl.col("from_utc", "to_utc", "file_no", "row_no").first(),
    )
    if hours.height:
        hours = hours.with_columns(
            (pl.col("hour") * HOUR_US).cast(pl.Datetime("us")).alias("hour_utc"),
            pl.when(pl.col("io_count") > 0).then("latency_us").alias("latency_us"),
        )
        landing.accept("drive_hours", completed(_named(hours), "drive_hours"), None)
        landing.count_samples(behind(spanned, hours, place))
