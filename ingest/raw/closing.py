"""The end of a call: staged records are judged against what has landed, and the tables of the delivery are written."""

from __future__ import annotations

import polars as pl

from ingest.contract.fleet import INGESTED_FILES, REJECTED_RECORDS
from ingest.contract.values import DEFAULT_MIN_COVERAGE, RAW_KINDS, TWO_MACHINES, utc_now
from ingest.raw.judge import Verdict, judge_table, judge_timed
from ingest.raw.landing import Landing


def close(landing: Landing) -> dict[str, int]:
    """Judge all that was staged and write the tables of the delivery; returns stored rows by table."""
    stored = {f"{state}{record_kind}": 0 for record_kind in RAW_KINDS for state in ("", "retired_")}
    # most deliveries are small and of few kinds: nothing is asked of the others
    for record_kind, parts in landing.staged.timed.items():
        if not parts:
            continue
        verdict = judge_timed(landing.staged, record_kind, lambda done, total: landing.on_progress("judge", done, total))
        landing.staged.drop_rows(verdict.dropped, record_kind)
        stored[record_kind] = sum(len(part.hashes) for part in parts)
        stored[f"retired_{record_kind}"] = landing.staged.write_table(f"retired_{record_kind}", verdict.retired)
        if record_kind == "drive_hours":  # which samples came follows from it
            _recount(landing, verdict, pl.concat(landing.samples) if landing.samples else None)
            _note(landing, verdict.contradicted)
        elif record_kind not in (*landing.derived, "drive_samples"):
            _recount(landing, verdict, None)
    for record_kind, tables in landing.tables.items():
        if not tables:
            continue
        rows = pl.concat(tables)
        verdict = judge_table(landing.staged, record_kind, rows)
        kept = rows.join(verdict.dropped, on=["file_no", "row_no"], how="anti", maintain_order="left")
        stored[record_kind] = landing.staged.write_table(record_kind, kept)
        stored[f"retired_{record_kind}"] = landing.staged.write_table(f"retired_{record_kind}", verdict.retired)
        if record_kind not in landing.derived:  # what is derived was not delivered, so no file counts it
            _recount(landing, verdict, None)
    stored["rejected_records"] = landing.staged.write_table("rejected_records", rejected_records(landing))
    stored["ingested_files"] = landing.staged.write_table("ingested_files", ingested_files(landing))
    return stored


def _note(landing: Landing, contradicted: pl.DataFrame) -> None:
    """Say which drive-hours contradict what has landed."""
    if contradicted.height:
        file_no, device, hour, *counts = contradicted.row(0)
        ios, before = (f"{ios} I/Os that took {busy / 1000:.0f} ms" for ios, busy in (counts[::2], counts[1::2]))
        landing.by_no[file_no].notes.append(
            f"{contradicted.height} drive-hours differ from those that have landed of the same devices and times, such as {device} {hour}: "
            f"{ios}, before {before}; one of each counts. {TWO_MACHINES} docs/sources/{landing.source}.md says how to tell hosts apart"
        )


def _recount(landing: Landing, verdict: Verdict, samples: pl.DataFrame | None) -> None:
    by_no = landing.by_no
    for ids, count in ((verdict.duplicate, "rows_duplicate"), (verdict.superseded, "rows_superseded")):
        if samples is None:
            counts = ids.group_by("file_no").len()
        else:
            counts = ids.join(samples, on=["file_no", "row_no"]).group_by("of_file_no").agg(pl.col("samples").sum())
        for file_no, rows in counts.iter_rows():
            result = by_no[file_no]
            result.rows_accepted -= rows
            setattr(result, count, getattr(result, count) + rows)


def rejected_records(landing: Landing, limit: int | None = None) -> pl.DataFrame:
    """The rejected records of the call, by file and row; the first `limit` of them."""
    now = utc_now()
    frames = [pl.DataFrame(schema=REJECTED_RECORDS)]
    left = limit
    for result in landing.results:
        for rows in landing.rejections.get(result.file_no or 0, []):
            rows = rows if left is None else rows.head(left)
            left = None if left is None else left - rows.height
            frames.append(
                rows.with_columns(
                    pl.lit(landing.source).alias("source"),
                    pl.lit(result.file).alias("file"),
                    pl.lit(now, pl.Datetime("us")).alias("rejected_at"),
                    pl.lit(landing.staged.seq, pl.Int64()).alias("delivery_seq"),
                ).select(pl.col(name).cast(dtype) for name, dtype in REJECTED_RECORDS.items())
            )
    return pl.concat(frames)


def ingested_files(landing: Landing) -> pl.DataFrame:
    """The files of the call that no earlier delivery holds."""
    min_coverage = DEFAULT_MIN_COVERAGE if landing.min_coverage is None else landing.min_coverage
    rows = [
        {
            **{name: getattr(result, name) for name in INGESTED_FILES if hasattr(result, name)},
            "source": landing.source,
            "min_coverage": min_coverage,
            "declared_kind": landing.kind,
            "delivery_seq": landing.staged.seq,
        }
        for result in landing.results
        if result.file_no is not None
    ]
    return pl.DataFrame(rows, schema=INGESTED_FILES)
