"""Which record of a key stands: exact duplicates collapse, conflicts resolve in a total order (OP-08).

The order: latest `collected_at` (null oldest), then the greatest row column by column in contract order (null least, NaN
greatest, text bytewise), then for drive-hours the greater `min_coverage` and `declared_kind`. It is total, so whatever
the order of delivery the same record is live. Only keys that meet another record of their key are ever looked at in full.
Records of a source that sees drives from a host meet those of their own source only: between sources the models decide
(docs/decisions/0009-identity.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ingest.contract.fleet import CONTRACT, OPTIONS, RETIRED, key_of, raw_columns
from ingest.contract.values import TIMED
from ingest.raw.staging import StagedDelivery, key_hashes
from ingest.raw.store import drive_hour_files, source_of, table_files

ALIKE = 0.1
"""By which share of the greater of them two counts of one measurement may differ."""
# rows of one look at clashing drive-hours; bounds memory when a whole day is sent again
BATCH_ROWS = 1_000_000
# compressed bytes of inventory or events looked at together
BATCH_BYTES = 32 << 20
_ID = {"file_no": pl.Int64(), "row_no": pl.Int64()}
_CONTRADICTED = {
    "file_no": pl.Int64(), "drive_id": pl.String(), "hour_utc": pl.Datetime("us"), "ios": pl.Int64(), "ios_before": pl.Int64(),
    "busy_us": pl.Float64(), "busy_us_before": pl.Float64(),
}  # fmt: skip


def _no_ids() -> pl.DataFrame:
    return pl.DataFrame(schema=_ID)


@dataclass
class Verdict:
    """How the clashing records of one kind were judged. Ids are (file_no, row_no) of records of this delivery.

    `duplicate` and `superseded` count in the file they came in; `dropped` are those that are not stored; `retired` has
    the columns of the table `retired_*`. `contradicted`: drive-hours that another machine must have counted (`_contradicted`).
    """

    retired: pl.DataFrame
    duplicate: pl.DataFrame = field(default_factory=_no_ids)
    superseded: pl.DataFrame = field(default_factory=_no_ids)
    dropped: pl.DataFrame = field(default_factory=_no_ids)
    contradicted: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=_CONTRADICTED))


def judge_timed(staged: StagedDelivery, record_kind: str, on_progress: Callable[[int, int], None]) -> Verdict:
    """Judge the staged records of a TIMED kind against each other and against what is stored for their hours."""
    nothing = Verdict(pl.DataFrame(schema=RETIRED[record_kind]))
    if not staged.timed[record_kind]:
        return nothing
    clashing = _clashing(staged, record_kind, on_progress)
    if not clashing.size:
        return nothing
    batches = _hour_batches(staged, record_kind, clashing)
    verdicts = []
    for number, (first, last) in enumerate(batches):
        parts = [part.path for part in staged.timed[record_kind] if part.overlaps(first, last)]
        files = stored_files(staged, record_kind, first, last)
        mine, theirs = (_clashing_rows(paths, record_kind, first, last, clashing, staged.source) for paths in (parts, files))
        verdict = judge(record_kind, mine, theirs, staged.seq)
        if record_kind == "drive_hours" and staged.source is not None:
            verdict.contradicted = _contradicted(mine, theirs)
        verdicts.append(verdict)
        on_progress(number + 1, len(batches))
    return _joined(verdicts)


def _contradicted(new: pl.DataFrame, stored: pl.DataFrame) -> pl.DataFrame:
    """New drive-hours of a device that has landed with other counts for the same time (_CONTRADICTED).

    What one collector delivers again agrees (docs/decisions/0009-identity.md says how closely): these are two machines of one name.
    """
    ios = pl.coalesce(pl.col("read_ios") + pl.col("write_ios"), "io_count").alias("ios")
    busy = pl.sum_horizontal(pl.col(f"{way}_ios") * pl.col(f"{way}_latency_us") for way in ("read", "write"))
    counts = (ios, pl.coalesce(pl.col("io_count") * pl.col("latency_us"), busy).alias("busy_us"), pl.col("coverage"))
    time = ["drive_id", "hour_utc", "from_utc", "to_utc"]
    met = new.select("file_no", *time, *counts).join(stored.select(*time, *counts), on=time, nulls_equal=True, suffix="_before")
    met = met.filter((pl.col("coverage") - pl.col("coverage_before")).abs() < 0.02, pl.max_horizontal("ios", "ios_before") >= 100)
    apart = {name: (pl.col(name) - pl.col(f"{name}_before")).abs() for name in ("ios", "busy_us")}
    most = {name: pl.max_horizontal(name, f"{name}_before") for name in apart}
    differs = {name: apart[name] > ALIKE * most[name] for name in apart}
    # what one collector saw of a stall at the end of an hour, another may see in the next
    differs_in_all = apart["busy_us"].sum().over("drive_id") > ALIKE * most["busy_us"].sum().over("drive_id")
    met = met.filter(differs["ios"] | (differs["busy_us"] & differs_in_all))
    met = met.unique(["drive_id", "hour_utc"]).sort("drive_id", "hour_utc")
    return met.select(pl.col(name).cast(dtype) for name, dtype in _CONTRADICTED.items())


def judge_table(staged: StagedDelivery, record_kind: str, incoming: pl.DataFrame) -> Verdict:
    """Judge events or inventory (raw columns, all of this delivery) against each other and against all that is stored."""
    if not incoming.height:
        return Verdict(pl.DataFrame(schema=RETIRED[record_kind]))
    hashes = key_hashes(incoming, record_kind)
    ordered = np.sort(hashes)
    clashing = [_repeated(ordered)]
    stored = [pl.DataFrame(schema=raw_columns(record_kind, staged.source))]
    contract = list(CONTRACT[record_kind])
    delivered = incoming.select(contract).hash_rows()
    key = list(key_of(record_kind, incoming.columns))
    of_source = [path for path in table_files(staged.folders, record_kind) if source_of(path) == staged.source]
    for paths in _file_batches(of_source):
        # one scan over many small files: opening them one by one takes longer than reading them
        keys = pl.scan_parquet(paths, glob=False).select(*key, *(["source"] if staged.source else [])).collect()
        theirs = key_hashes(keys, record_kind)
        mine = _is_in(theirs, ordered)
        if not mine.any():
            continue
        clashing.append(theirs[mine])
        rows = pl.scan_parquet(paths, glob=False).collect().filter(pl.Series(mine))
        # an inventory sent every hour has many records of a key; only two can matter: the live one, and one's equal
        is_latest = pl.col("collected_at").eq_missing(pl.col("collected_at").max().over(key))
        is_equal = rows.select(contract).hash_rows().is_in(delivered.implode())
        stored.append(rows.filter(is_latest | is_equal))
    wanted = _distinct(np.concatenate(clashing))
    if not wanted.size:
        return Verdict(pl.DataFrame(schema=RETIRED[record_kind]))
    return judge(record_kind, incoming.filter(pl.Series(_is_in(hashes, wanted))), pl.concat(stored), staged.seq)


def _file_batches(paths: list[Path]) -> Iterator[list[Path]]:
    """Files in batches that fit into memory together."""
    batch: list[Path] = []
    size = 0
    for path in paths:
        batch.append(path)
        size += path.stat().st_size
        if size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def judge(record_kind: str, incoming: pl.DataFrame, stored: pl.DataFrame, seq: int) -> Verdict:
    """Judge records (raw columns) of keys of which `stored` holds every stored record."""
    # stored rows first, then delivered ones; a stable order by hash keeps that within a key
    rows = pl.concat([stored.with_columns(pl.lit(False).alias("is_new")), incoming.with_columns(pl.lit(True).alias("is_new"))])
    hashes = key_hashes(rows, record_kind)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1])) if hashes.size else np.zeros(0, dtype=np.int64)
    sizes = np.diff(np.append(starts, hashes.size))
    pairs = starts[sizes == 2]
    # Nearly all clashes are two records of one key, such as a day sent again: those need no sort over every column.
    paired, verdict = _judge_pairs(record_kind, rows[order[pairs]], rows[order[pairs + 1]], seq)
    rest = np.repeat(sizes > 2, sizes)
    rest[pairs[~paired]] = rest[pairs[~paired] + 1] = True
    return _joined([verdict, _judge_groups(record_kind, rows[order[rest]], seq)])


def _compared(record_kind: str, key: tuple[str, ...]) -> list[str]:
    """The contract columns that decide a conflict, in their order."""
    rest = (name for name in CONTRACT[record_kind] if name not in key and name != "collected_at")
    return ["collected_at", *rest]


def _judge_pairs(record_kind: str, ours: pl.DataFrame, theirs: pl.DataFrame, seq: int) -> tuple[NDArray[np.bool_], Verdict]:
    """Judge row by row `ours` (stored, or delivered first) against `theirs` (new). The mask is false where the keys
    differ after all (their hashes met); those rows are not judged.
    """
    pairs = pl.concat([ours.select(pl.all().name.prefix("a.")), theirs.select(pl.all().name.prefix("b."))], how="horizontal")
    key = key_of(record_kind, ours.columns)
    same_key = pairs.select(pl.all_horizontal(pl.col(f"a.{name}").eq_missing(pl.col(f"b.{name}")) for name in key)).to_series()
    pairs = pairs.filter(same_key)
    compared, options = _compared(record_kind, key), list(OPTIONS[record_kind])
    alike = pl.Series([True]).new_from_index(0, pairs.height)
    for name in compared:
        alike &= pairs[f"a.{name}"].eq_missing(pairs[f"b.{name}"])
    nothing = pl.lit(0, pl.Int8)
    pairs = pl.concat(
        [
            pairs.filter(alike).with_columns(nothing.alias("rows"), _order(options).alias("options")),
            pairs.filter(~alike).with_columns(_order(compared).alias("rows"), nothing.alias("options")),
        ]
    )
    ours_new = pl.col("a.is_new")
    equal = pl.col("rows") == 0
    ours_lose = (pl.col("rows") > 0) | (equal & (pl.col("options") > 0))
    retired = [
        _retired(record_kind, pairs, "a", ours_lose, pl.when(equal).then(pl.lit("duplicate")).otherwise(pl.lit("superseded")), seq),
        _retired(record_kind, pairs, "b", pl.col("rows") < 0, pl.lit("superseded"), seq),
    ]
    verdict = Verdict(
        pl.concat(retired),
        _ids(pairs, "b", equal),
        pl.concat([_ids(pairs, "b", pl.col("rows") < 0), _ids(pairs, "a", ours_new & (pl.col("rows") > 0))]),
        _ids(pairs, "b", equal & (pl.col("options") <= 0)),
    )
    return same_key.to_numpy(), verdict


def _order(names: list[str]) -> pl.Expr:
    """1 where row b is greater than row a, -1 where it is less, 0 where they are equal in these columns."""
    result: pl.Expr = pl.lit(0, pl.Int8)
    for name in reversed(names):
        a, b = pl.col(f"a.{name}"), pl.col(f"b.{name}")
        greater = (b > a).fill_null(False) | (a.is_null() & b.is_not_null())
        less = (b < a).fill_null(False) | (b.is_null() & a.is_not_null())
        result = pl.when(greater).then(pl.lit(1, pl.Int8)).when(less).then(pl.lit(-1, pl.Int8)).otherwise(result)
    return result


def _ids(pairs: pl.DataFrame, side: str, where: pl.Expr) -> pl.DataFrame:
    return pairs.filter(where).select(pl.col(f"{side}.{name}").alias(name) for name in _ID)


def _retired(record_kind: str, pairs: pl.DataFrame, side: str, where: pl.Expr, reason: pl.Expr, seq: int) -> pl.DataFrame:
    given = {"reason": reason, "retired_by_delivery_seq": pl.lit(seq)}
    return pairs.filter(where).select(
        given.get(name, pl.col(f"{side}.{name}")).cast(dtype).alias(name) for name, dtype in RETIRED[record_kind].items()
    )


def _judge_groups(record_kind: str, rows: pl.DataFrame, seq: int) -> Verdict:
    """Judge any number of records of a key (raw columns and `is_new`) by one sort over every column."""
    key, options = key_of(record_kind, rows.columns), list(OPTIONS[record_kind])
    compared = _compared(record_kind, key)
    # Among wholly equal rows the stored one, then the first delivered, shall come last: the last of a key is live.
    order = [*key, *compared, *options, "is_new", "file_no", "row_no"]
    rows = rows.sort(order, descending=[False] * (len(order) - 3) + [True] * 3, nulls_last=False)
    same_key = _same_as_previous(list(key))
    rows = rows.with_columns((~same_key).cum_sum().alias("key_no"), (~(same_key & _same_as_previous(compared))).cum_sum().alias("equal_no"))
    is_last_of_key = (pl.col("key_no") != pl.col("key_no").shift(-1)).fill_null(True)
    is_last_of_equal = (pl.col("equal_no") != pl.col("equal_no").shift(-1)).fill_null(True)
    rows = rows.with_columns(
        is_last_of_key.alias("is_winner"),
        is_last_of_equal.alias("stands_for_equal"),
        (~pl.col("is_new")).any().over("equal_no").alias("is_known"),
    )
    # until now the last stored of a key, in the same order, was the live one
    number = pl.col("number")
    was_live = ~pl.col("is_new") & (number == number.filter(~pl.col("is_new")).max().over("key_no"))
    # numbered first: inside over() a range would count from 0 in every key
    rows = rows.with_row_index("number").with_columns(was_live.alias("was_live"))
    new, winner = pl.col("is_new"), pl.col("is_winner")
    # an equal record that differs in the options only, and is the greater: it takes the place of its equal
    replaces_equal = new & winner & pl.col("is_known")
    stands_alone = pl.col("stands_for_equal") & ~pl.col("is_known")
    duplicate = new & ~stands_alone
    superseded = new & stands_alone & ~winner
    by_equal = replaces_equal.any().over("key_no")
    reason = pl.when(pl.col("was_live") & by_equal).then(pl.lit("duplicate")).otherwise(pl.lit("superseded"))
    retired = rows.with_columns(reason.alias("reason"), superseded.alias("loses")).filter(
        pl.col("loses") | (pl.col("was_live") & ~pl.col("is_winner"))
    )
    return Verdict(
        retired.with_columns(pl.lit(seq, pl.Int64()).alias("retired_by_delivery_seq")).select(
            pl.col(name).cast(dtype) for name, dtype in RETIRED[record_kind].items()
        ),
        rows.filter(duplicate).select(*_ID),
        rows.filter(superseded).select(*_ID),
        rows.filter(duplicate & ~replaces_equal).select(*_ID),
    )


def _same_as_previous(names: list[str]) -> pl.Expr:
    return pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in names) & (pl.int_range(pl.len()) > 0)


def _joined(verdicts: list[Verdict]) -> Verdict:
    return Verdict(
        pl.concat([verdict.retired for verdict in verdicts]),
        pl.concat([verdict.duplicate for verdict in verdicts]),
        pl.concat([verdict.superseded for verdict in verdicts]),
        pl.concat([verdict.dropped for verdict in verdicts]),
        pl.concat([verdict.contradicted for verdict in verdicts]),
    )


def _in_hours(record_kind: str, first: datetime, last: datetime) -> pl.Expr:
    """Records of the closed range of hours [first, last]."""
    return pl.col(TIMED[record_kind]).is_between(first, last + timedelta(hours=1), closed="left")


def _clashing(staged: StagedDelivery, record_kind: str, on_progress: Callable[[int, int], None]) -> NDArray[np.uint64]:
    """Hashes of keys that come more than once, in this delivery or in what is stored for the same hours."""
    parts = staged.timed[record_kind]
    first = min(part.first_hour for part in parts)
    last = max(part.last_hour for part in parts)
    mine = pl.Series(np.concatenate([part.hashes for part in parts])).sort().to_numpy()  # NumPy sorts on one core
    clashing = [_repeated(mine)]
    near = stored_files(staged, record_kind, first, last)
    # key_hashes sees by `source` that hosts saw them
    needed = [*key_of(record_kind, raw_columns(record_kind, staged.source)), *(["source"] if staged.source else [])]
    hours = _in_hours(record_kind, first, last)
    for number, path in enumerate(near):
        theirs = key_hashes(scan_stored(path, record_kind).filter(hours).select(needed).collect(), record_kind)
        clashing.append(theirs[_is_in(theirs, mine)])
        on_progress(number + 1, len(near))
    return _distinct(np.concatenate(clashing))


def scan_stored(path: Path, record_kind: str) -> pl.LazyFrame:
    """Records of a raw file; columns that an earlier release did not write are null."""
    return pl.scan_parquet(path, glob=False, schema=raw_columns(record_kind, source_of(path)), missing_columns="insert")


def stored_files(staged: StagedDelivery, record_kind: str, first: datetime, last: datetime) -> list[Path]:
    """Stored files of a TIMED kind, of the delivery's own source, that may hold an hour of the closed range [first, last]."""
    # the hours of a delivery are those of its drive-hours; samples may come without any
    near = [folder for folder in staged.folders if record_kind != "drive_hours" or folder.overlaps(first, last)]
    return [path for folder in near for path in drive_hour_files(folder, first, last, record_kind) if source_of(path) == staged.source]


def _repeated(ordered: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.asarray(ordered[1:][ordered[1:] == ordered[:-1]])


def _is_in(hashes: NDArray[np.uint64], ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    if not ordered.size:
        return np.zeros(hashes.size, dtype=bool)
    order = np.argsort(hashes)  # sorted needles walk the haystack once; unsorted ones jump about in memory
    at = np.searchsorted(ordered, hashes[order])
    at[at == ordered.size] = 0
    mask = np.empty(hashes.size, dtype=bool)
    mask[order] = ordered[at] == hashes[order]
    return mask


def _distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The distinct hashes in order (`np.unique` hashes instead of sorting, which takes longer here)."""
    hashes = np.sort(hashes)
    return np.asarray(hashes[np.append(True, hashes[1:] != hashes[:-1])]) if hashes.size else hashes


def _hour_batches(staged: StagedDelivery, record_kind: str, clashing: NDArray[np.uint64]) -> list[tuple[datetime, datetime]]:
    """Closed ranges of hours that hold the clashing rows, each with about `BATCH_ROWS` of them."""
    counts = []
    at = TIMED[record_kind]
    for part in staged.timed[record_kind]:
        mask = _is_in(part.hashes, clashing)
        if mask.any():
            instants = pl.read_parquet(part.path, columns=[at], glob=False).filter(pl.Series(mask))
            counts.append(instants.group_by(pl.col(at).dt.truncate("1h").alias("hour_utc")).len())
    by_hour = pl.concat(counts).group_by("hour_utc").agg(pl.col("len").sum()).sort("hour_utc")
    batch = ((pl.col("len").cum_sum() - pl.col("len")) // BATCH_ROWS).alias("batch")
    ranges = by_hour.group_by(batch, maintain_order=True).agg(
        pl.col("hour_utc").min().alias("first"), pl.col("hour_utc").max().alias("last")
    )
    return list(ranges.select("first", "last").iter_rows())


def _clashing_rows(
    paths: Iterable[Path], record_kind: str, first: datetime, last: datetime, clashing: NDArray[np.uint64], source: str | None
) -> pl.DataFrame:
    found = [pl.DataFrame(schema=raw_columns(record_kind, source))]
    for path in paths:
        rows = scan_stored(path, record_kind).filter(_in_hours(record_kind, first, last)).collect()
        found.append(rows.filter(pl.Series(_is_in(key_hashes(rows, record_kind), clashing))))
    return pl.concat(found)
