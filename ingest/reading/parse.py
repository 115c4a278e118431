"""Rows as delivered -> accepted records of contract types, and one rejection per bad row for its first failing column."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import polars as pl

from ingest.contract.fleet import CONTRACT, DAY, IDENTITY, LONGEST_NAME_BYTES, NAMES, REAL, TEXT, TIME
from ingest.contract.values import DRIVE_KINDS, EVENT_TYPES, ROLES
from ingest.reading.batches import REJECTION, TOO_LONG, Batch
from ingest.reading.readers import SHOWN_VALUE_CHARS, RawChunk

HOUR_US = 3_600_000_000
FOR_EVER = {"valid_to": r"^\s*(?:9999-12-31|infinity\s*$)"}
"""Columns in which the last day that can be written, or `infinity`, says that there is no end, and how a text of it begins."""
# that day begins earlier in the east
_LAST_DAY = datetime(9999, 12, 30, 10)
# year 1 to year 9999, what every reader of raw can show
_FIRST_US, _END_US = -62_135_596_800_000_000, 253_402_300_800_000_000

_ISO = (
    r"^\s*(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2})(?::?(\d{2})(?::?([0-5]\d)(?:[.,](\d+))?)?)?"
    r"\s*([Zz]|UTC|[+-]\d{2}(?::?\d{2})?)?)?\s*$"
)


@dataclass(frozen=True)
class Check:
    """A rule on one column: rows for which `fails` is true are rejected."""

    column: str
    reason: str
    fails: pl.Expr


def parse(chunk: RawChunk, record_kind: str) -> Batch:
    """Convert, check and normalise one chunk.

    Latencies in microseconds, counts in int64, instants in UTC without zone. A direction without I/O gets its latency
    nulled; an unknown event type becomes `other` and is kept in `detail`.
    """
    frame, unreadable = convert(chunk.frame, CONTRACT[record_kind])
    checks = _in_contract_order([*_CHECKS[record_kind](frame, unreadable), *_name_checks(record_kind)], record_kind)
    frame, rejected = split(chunk, frame, checks)
    return Batch(record_kind, frame.with_columns(_NORMALISE[record_kind](frame)).select(*CONTRACT[record_kind], "row_no"), rejected)


def split(chunk: RawChunk, frame: pl.DataFrame, checks: list[Check]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of the converted `frame` that pass every check, and the rejections (columns of `REJECTION`) by row.

    A row is rejected once, for the first check in the list that it fails; the value shown is the one delivered.
    """
    fails = frame.select(pl.any_horizontal(check.fails.fill_null(False) for check in checks).alias("fails")).to_series()
    rejected = pl.DataFrame([(row.row_no, row.reason, row.column, row.value) for row in chunk.broken], schema=REJECTION, orient="row")
    if fails.any():
        rejected = pl.concat([rejected, _rejections(chunk.frame, frame, checks, fails)]).sort("row", maintain_order=True)
        frame = frame.filter(~fails)
    return frame, rejected


def _rejections(delivered: pl.DataFrame, frame: pl.DataFrame, checks: list[Check], fails: pl.Series) -> pl.DataFrame:
    bad = fails.arg_true()
    number = pl.coalesce(pl.when(check.fails.fill_null(False)).then(pl.lit(n, pl.Int32)) for n, check in enumerate(checks))
    first = frame[bad].select(number.alias("check")).to_series()
    texts = [
        pl.when(pl.col("column") == name).then(pl.col(name).cast(TEXT, strict=False)) for name in delivered.columns if name != "row_no"
    ]
    return (
        delivered[bad]
        .with_columns(
            first.replace_strict(range(len(checks)), [check.column for check in checks], return_dtype=TEXT).alias("column"),
            first.replace_strict(range(len(checks)), [check.reason for check in checks], return_dtype=TEXT).alias("reason"),
        )
        .select(pl.col("row_no").alias("row"), "reason", "column", pl.coalesce(texts).str.slice(0, SHOWN_VALUE_CHARS).alias("value"))
    )


def completed(rows: pl.DataFrame, record_kind: str) -> pl.DataFrame:
    """Records made by a source that has only some of the contract columns: the missing ones null, then what it is not sure of
    (`is_alias`, `is_group_guessed`) and its span within the hour where it says so, then `file_no` and `row_no`. The rest of a name that is
    too long becomes a digest.
    """
    for name in NAMES[record_kind]:
        rows = _shortened(rows, name) if name in rows.columns else rows
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in CONTRACT[record_kind].items() if name not in rows.columns]
    seen = [name for name in IDENTITY[record_kind] if name in rows.columns and name != "source"]
    return rows.with_columns(missing).select(*CONTRACT[record_kind], *seen, "file_no", "row_no")


def _shortened(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """The same where no name is too long, as in all but hostile deliveries."""
    if (rows[name].cast(TEXT).str.len_bytes().max() or 0) <= LONGEST_NAME_BYTES:  # type: ignore[operator]
        return rows

    def short(text: str) -> str:
        is_long = len(text.encode()) > LONGEST_NAME_BYTES
        return f"{text[: LONGEST_NAME_BYTES // 5]}...{hashlib.sha256(text.encode()).hexdigest()[:16]}" if is_long else text

    return rows.with_columns(pl.col(name).map_elements(short, return_dtype=TEXT))


# Types -----------------------------------------------------------------------------------------------------------


def convert(delivered: pl.DataFrame, types: dict[str, pl.DataType]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Every column of `types` in its type, null where absent or unreadable, then `row_no`.

    For a column with unreadable values the frame has a flag `\\0<column>`, and the dict says what was expected.
    """
    columns: list[pl.Series] = []
    flags: list[pl.Series] = []
    unreadable: dict[str, str] = {}
    for name, dtype in types.items():
        if name not in delivered.columns:
            columns.append(_nulls(delivered.height, dtype).alias(name))
            continue
        given = delivered[name]
        if given.dtype == TEXT and (given == "").any():
            given = given.set(given == "", None)
        if name in FOR_EVER:
            given = given.set(_is_for_ever(given, FOR_EVER[name]), None)
        reader, expected = _READERS[dtype]
        value = reader(given).alias(name)
        if value.null_count() != given.null_count():
            unreadable[name] = expected
            flags.append((value.is_null() & given.is_not_null()).alias("\0" + name))
        columns.append(value)
    return pl.DataFrame([*columns, delivered["row_no"], *flags]), unreadable


def _is_for_ever(given: pl.Series, text: str) -> pl.Series:
    if given.dtype == TEXT:
        return given.str.contains(text).fill_null(False)
    if given.dtype == DAY or (isinstance(given.dtype, pl.Datetime) and given.dtype.time_unit != "ns"):
        return (given.cast(pl.Datetime("ms")) >= _LAST_DAY).fill_null(False)
    return pl.Series([False]).new_from_index(0, given.len())


def _nulls(count: int, dtype: pl.DataType) -> pl.Series:
    return _null(dtype).new_from_index(0, count)


@cache
def _null(dtype: pl.DataType) -> pl.Series:
    return pl.Series([None], dtype=dtype)


def _text(given: pl.Series) -> pl.Series:
    return given if given.dtype == TEXT else given.cast(TEXT, strict=False)


def _integer(given: pl.Series) -> pl.Series:
    if given.dtype.is_integer():
        return given.cast(pl.Int64, strict=False)
    if given.dtype.is_float():
        whole = given.is_finite() & (given == given.floor())
        return given.cast(pl.Int64, strict=False).set(~whole.fill_null(False), None)
    text = _text(given)
    value = text.cast(pl.Int64, strict=False)
    if value.null_count() == text.null_count():
        return value
    # the rare spellings of a whole number: blanks around it, '3.0', '1e3'
    trimmed = text.str.strip_chars()
    plain = trimmed.str.replace(r"\.0*$", "").cast(pl.Int64, strict=False)
    real = trimmed.cast(pl.Float64, strict=False)
    exact = (real.is_finite() & (real == real.floor()) & (real.abs() <= 2.0**53)).fill_null(False)
    return value.zip_with(value.is_not_null(), plain.zip_with(plain.is_not_null(), real.set(~exact, None).cast(pl.Int64, strict=False)))


def _real(given: pl.Series) -> pl.Series:
    if given.dtype.is_numeric():
        value = given.cast(pl.Float64, strict=False)
    elif given.dtype.is_temporal():
        return _nulls(given.len(), REAL)
    else:
        text = _text(given)
        value = text.cast(pl.Float64, strict=False)
        if value.null_count() != text.null_count():
            value = text.str.strip_chars().cast(pl.Float64, strict=False)
    return value + 0.0  # -0.0 and 0.0 are one value, or the survivor of a duplicate would depend on the order


def _instant(given: pl.Series) -> pl.Series:
    if given.dtype == DAY:
        given = given.cast(pl.Datetime("us"))
    if isinstance(given.dtype, pl.Datetime):
        number = given.to_physical()
        if given.dtype.time_unit == "ns":
            number = number // 1000
        elif given.dtype.time_unit == "ms":
            readable = number.is_between(_FIRST_US // 1000, _END_US // 1000).fill_null(True)
            number = number.set(~readable, None) * 1000
        return _in_range(number)
    if given.dtype != TEXT:
        return _nulls(given.len(), TIME)
    # many rows share few instants: read each spelling once
    spellings = given.unique()
    if spellings.len() * 4 < given.len():
        return given.replace_strict(spellings, _instant_of_text(spellings), return_dtype=TIME)
    return _instant_of_text(given)


def _in_range(number: pl.Series) -> pl.Series:
    readable = ((number >= _FIRST_US) & (number < _END_US)).fill_null(True)
    if not readable.all():
        number = number.set(~readable, None)
    return number.cast(TIME)


def _instant_of_text(text: pl.Series) -> pl.Series:
    day, hour, minute, second, fraction, zone = (pl.col("text").str.extract(_ISO, group) for group in range(1, 7))
    stamp = pl.concat_str(day, pl.lit("T"), *(part.fill_null("00") + end for part, end in ((hour, ":"), (minute, ":"), (second, ""))))
    base = stamp.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False).to_physical()
    micros = fraction.fill_null("0").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64, strict=False)
    digits = pl.when(zone.str.contains(r"^[+-]")).then(zone.str.replace_all(r"[^0-9]", ""))
    zone_hours, zone_minutes = (digits.str.slice(at, 2).cast(pl.Int64, strict=False).fill_null(0) for at in (0, 2))
    east = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    number = base + micros - east * (zone_hours * 60 + zone_minutes) * 60_000_000
    # in one query: a small delivery spends most of its time on queries
    number = pl.when((zone_hours <= 23) & (zone_minutes <= 59)).then(number)
    return _in_range(text.alias("text").to_frame().select(number=number).to_series())


def _day(given: pl.Series) -> pl.Series:
    return _instant(given).cast(DAY)


_READERS: dict[pl.DataType, tuple[Callable[[pl.Series], pl.Series], str]] = {
    TEXT: (_text, "not text"),
    pl.Int64(): (_integer, "not an integer"),
    REAL: (_real, "not a number"),
    TIME: (_instant, "not a timestamp"),
    DAY: (_day, "not a date"),
}


# Rules -----------------------------------------------------------------------------------------------------------


def _in_contract_order(checks: list[Check], record_kind: str) -> list[Check]:
    order = list(CONTRACT[record_kind])
    return sorted(checks, key=lambda check: order.index(check.column))


def type_checks(unreadable: dict[str, str], only_where: dict[str, pl.Expr] | None = None) -> list[Check]:
    """A check for every column that `convert` found unreadable values in, at rows where it is needed."""
    where = only_where or {}
    return [Check(name, reason, pl.col("\0" + name) & where.get(name, pl.lit(True))) for name, reason in unreadable.items()]


def null_checks(*names: str) -> list[Check]:
    """These columns must be given."""
    return [Check(name, "null, expected a value", pl.col(name).is_null()) for name in names]


def _name_checks(record_kind: str) -> list[Check]:
    """Names are no longer than any that a source writes."""
    return [Check(name, TOO_LONG, pl.col(name).str.len_bytes() > LONGEST_NAME_BYTES) for name in NAMES[record_kind]]


def negative_checks(*names: str) -> list[Check]:
    """These columns must not be below zero."""
    return [Check(name, "negative", pl.col(name) < 0) for name in names]


def _latency_checks(name: str, where: pl.Expr, null_where: pl.Expr) -> list[Check]:
    value = pl.col(name)
    return [
        Check(name, "null although the drive had I/Os", null_where & value.is_null()),
        Check(name, "NaN", where & value.is_nan()),
        Check(name, "infinite", where & value.is_infinite()),
        Check(name, "negative", where & (value < 0)),
    ]


def _is_idle_merged() -> pl.Expr:
    """Only the merged count is known and it says: no I/O."""
    return ~_is_split() & (pl.col("io_count") == 0).fill_null(False)


def _is_split() -> pl.Expr:
    return pl.col("read_ios").is_not_null() & pl.col("write_ios").is_not_null()


def _is_active(count: str) -> pl.Expr:
    return (pl.col(count) > 0).fill_null(False)


def _drive_hour_checks(frame: pl.DataFrame, unreadable: dict[str, str]) -> list[Check]:
    # an idle direction's latency is nulled whatever it held, so there it need not be a number
    needed = {"latency_us": ~_is_idle_merged()}
    for direction in ("read", "write"):
        needed[f"{direction}_latency_us"] = _is_active(f"{direction}_ios")
    checks = type_checks(unreadable, needed)
    checks += null_checks("hour_utc", "drive_id", "raid_group_id")
    checks.append(_time_check("hour_utc"))
    checks.append(Check("hour_utc", "not on the hour", pl.col("hour_utc").to_physical() % HOUR_US != 0))
    counts = [name for name, dtype in CONTRACT["drive_hours"].items() if dtype == pl.Int64()]
    given = [name for name in counts if frame[name].null_count() < frame.height]
    checks += negative_checks(*given)
    # sums over a group stay whole numbers of 64 bits, and each count is exact as a double
    checks += [Check(name, "above 2^53, more than a drive can count", pl.col(name) > 2**53) for name in given]
    for one, other in (("read_ios", "write_ios"), ("read_blocks", "write_blocks")):
        checks.append(Check(one, f"null where {other} is given", pl.col(one).is_null() & pl.col(other).is_not_null()))
        checks.append(Check(other, f"null where {one} is given", pl.col(other).is_null() & pl.col(one).is_not_null()))
    for direction in ("read", "write"):
        active = _is_active(f"{direction}_ios")
        checks += _latency_checks(f"{direction}_latency_us", active, active)
    if not (frame["latency_us"].null_count() == frame.height and frame["io_count"].null_count() == frame.height):
        checks += _latency_checks("latency_us", ~_is_split() & ~_is_idle_merged(), ~_is_split() & _is_active("io_count"))
    checks.append(Check("coverage", "outside 0..1", pl.col("coverage").is_nan() | (pl.col("coverage") < 0) | (pl.col("coverage") > 1)))
    return checks


def _drive_event_checks(frame: pl.DataFrame, unreadable: dict[str, str]) -> list[Check]:
    blank = pl.col("event_type").str.strip_chars() == ""
    return [
        *type_checks(unreadable),
        *null_checks("occurred_at", "drive_id", "event_type"),
        _time_check("occurred_at"),
        Check("event_type", "blank, expected an event type", blank),
        Check("ended_at", "before occurred_at; correct it, or leave it empty", pl.col("ended_at") < pl.col("occurred_at")),
    ]


def _time_check(name: str) -> Check:
    """Weeks around it can be counted."""
    in_years = pl.col(name).is_between(datetime(2, 1, 1), datetime(9999, 1, 1), closed="left")
    return Check(name, "outside the years 2 to 9998", ~in_years)


def period_check() -> Check:
    """A period lasts."""
    said = "not after valid_from, so the period covers no time; correct it, or leave it empty if it has not ended"
    return Check("valid_to", said, pl.col("valid_to") <= pl.col("valid_from"))


def _drive_checks(frame: pl.DataFrame, unreadable: dict[str, str]) -> list[Check]:
    return [
        *type_checks(unreadable),
        *null_checks("drive_id", "raid_group_id"),
        Check("role", f"not one of {', '.join(ROLES)}", ~_plain("role").is_in(ROLES)),
        Check("kind", f"not one of {', '.join(DRIVE_KINDS)}", ~_plain("kind").is_in(DRIVE_KINDS)),
        *negative_checks("capacity_bytes", "rpm"),
        period_check(),
    ]


def _drive_health_checks(frame: pl.DataFrame, unreadable: dict[str, str]) -> list[Check]:
    nothing = pl.col("raw_value").is_null() & pl.col("normalised_value").is_null()
    return [
        *type_checks(unreadable),
        *null_checks("read_at", "drive_id", "attribute"),
        _time_check("read_at"),
        Check("attribute", "blank, expected the name of an attribute", pl.col("attribute").str.strip_chars() == ""),
        Check("raw_value", "null, and so is normalised_value", nothing),
        *negative_checks("raw_value", "normalised_value"),
        *(Check(name, "above 2^53", pl.col(name) > 2**53) for name in ("raw_value", "normalised_value")),
    ]


def _plain(name: str) -> pl.Expr:
    return pl.col(name).str.strip_chars().str.to_lowercase()


def _normal_drive_hours(frame: pl.DataFrame) -> list[pl.Expr]:
    idle = [pl.when(pl.col(f"{d}_ios") > 0).then(pl.col(f"{d}_latency_us")).alias(f"{d}_latency_us") for d in ("read", "write")]
    if frame["latency_us"].null_count() < frame.height:
        idle.append(pl.when(~_is_idle_merged()).then(pl.col("latency_us")).alias("latency_us"))
    return idle


def _normal_drive_events(frame: pl.DataFrame) -> list[pl.Expr]:
    known = _plain("event_type").is_in(EVENT_TYPES)
    original = pl.col("event_type").str.strip_chars()
    detail = pl.when(pl.col("detail").is_null()).then(original).otherwise(original + ": " + pl.col("detail"))
    return [
        pl.when(known).then(_plain("event_type")).otherwise(pl.lit("other")).alias("event_type"),
        pl.when(known).then(pl.col("detail")).otherwise(detail).alias("detail"),
    ]


_CHECKS: dict[str, Callable[[pl.DataFrame, dict[str, str]], list[Check]]] = {
    "drive_hours": _drive_hour_checks,
    "drive_events": _drive_event_checks,
    "drives": _drive_checks,
    "drive_health": _drive_health_checks,
}
_NORMALISE: dict[str, Callable[[pl.DataFrame], list[pl.Expr]]] = {
    "drive_hours": _normal_drive_hours,
    "drive_events": _normal_drive_events,
    "drives": lambda _: [_plain("role"), _plain("kind")],
    "drive_health": lambda _: [_plain("attribute")],
}
