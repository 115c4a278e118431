"""Status from raw itself: what has landed, what no publication holds yet, what was rejected."""

from __future__ import annotations

from datetime import timedelta

import duckdb

from drivetail.ask.status.content import HOUR, LISTED, Status, in_hours, listing
from engine.read import Row, fetch
from engine.retention import Past
from engine.warehouse import quoted
from ingest.contract.values import COUNTED_KINDS
from ingest.raw.register import Record
from ingest.raw.store import Delivery, Folder, drive_hour_files, pruned_files

UNBUILT_AFTER = timedelta(hours=2)
"""A landed delivery that no publication holds after this long: an hourly build has then failed at least once."""

WELL = ("landed", "nothing new")
"""Outcomes of an inbox's entry that need nobody (drivetail/feeds/outcomes.py)."""

DELIVERIES = """
select
    delivery_seq, min(source) as source, max(ingested_at) as ingested_at, count(*) as file_count,
    cast(sum(rows_delivered) as bigint) as rows_delivered, cast(sum(rows_rejected) as bigint) as rows_rejected
from landed_files
group by delivery_seq
"""


def collect_landed(status: Status, raw: duckdb.DuckDBPyConnection, folders: list[Folder], count: int, past: Past | None) -> None:
    """Deliveries (`count`), files and rows; over the warehouse a record that lost later counts as superseded. past: what was pruned."""
    # a source that rolls samples up counts samples, and its records are drive-hours: the two do not compare
    raw.execute(
        f"""
        create temp table rolled_up as
        select distinct delivery_seq from landed_files where record_kind not in ({", ".join(map(quoted, COUNTED_KINDS))});
        create temp table lost_later as
        """
        + " union all ".join(
            f"""
            select '{kind}' as record_kind, delivery_seq, file_no, reason, retired_by_delivery_seq > delivery_seq as is_later,
                delivery_seq in (select delivery_seq from rolled_up) as is_rolled_up
            from raw.retired_{kind}
            """
            for kind in COUNTED_KINDS
        )
    )
    by_source = fetch(
        raw,
        """
        with lost as (
            select delivery_seq, file_no, count(*) as lost from lost_later
            where is_later and reason = 'superseded' and not is_rolled_up
            group by delivery_seq, file_no
        )
        select
            files.source, files.record_kind, files.status, count(*) as file_count,
            cast(sum(rows_delivered) as bigint) as delivered,
            cast(sum(rows_accepted - coalesce(lost, 0)) as bigint) as accepted,
            cast(sum(rows_rejected) as bigint) as rejected,
            cast(sum(rows_duplicate) as bigint) as duplicate,
            cast(sum(rows_superseded + coalesce(lost, 0)) as bigint) as superseded,
            max(ingested_at) as last_ingested_at
        from landed_files as files
        left join lost on files.delivery_seq = lost.delivery_seq and files.file_no = lost.file_no
        group by files.source, files.record_kind, files.status
        order by files.source, files.record_kind nulls last, files.status
        """,
    )
    counts = ("delivered", "accepted", "rejected", "duplicate", "superseded")
    files: dict[str, int] = {"landed": 0, "unreadable": 0}
    for row in by_source:
        files[row["status"]] = files.get(row["status"], 0) + row["file_count"]
    ((rolled_up,),) = raw.execute("select count(*) from lost_later where is_later and is_rolled_up").fetchall()
    hours = [hour for folder in folders for hour in (folder.first_hour, folder.last_hour) if hour is not None]
    last = fetch(raw, "from deliveries order by delivery_seq desc limit 1")
    status.landed = {
        "delivery_count": count,
        "first_hour_utc": min(hours, default=None),
        "last_hour_utc": max(hours, default=None),
        "last_delivery": last[0] if last else None,
        "files": files,
        "rows": {name: sum(row[name] for row in by_source) for name in counts},
        "stored_rows": _stored_rows(raw, folders, past),
        "pruned": None if past is None else {"before_utc": past.before_utc, "row_count": past.row_count},
        "rolled_up_superseded": rolled_up,
        "by_source": by_source,
    }


def _stored_rows(raw: duckdb.DuckDBPyConnection, folders: list[Folder], past: Past | None) -> dict[str, int]:
    """Live records of each kind in raw, pruned ones included: those stored less those retired. Drive-hours are counted by
    the files' footers alone.
    """
    retired = dict(raw.execute("select record_kind, count(*) from lost_later group by record_kind").fetchall())
    stored = {}
    for kind in COUNTED_KINDS:
        if kind == "drive_hours":
            rows = _footer_rows(raw, folders, past) + (0 if past is None else past.row_count)
        else:
            ((rows,),) = raw.execute(f"select count(*) from raw.{kind}").fetchall()
        stored[kind] = rows - retired.get(kind, 0)
    return stored


def _footer_rows(raw: duckdb.DuckDBPyConnection, folders: list[Folder], past: Past | None) -> int:
    # pruned files may still be there, for readers
    gone = set() if past is None else {path for folder in folders for path in pruned_files(folder, past.before_utc)}
    files = [path for folder in folders for path in drive_hour_files(folder) if path not in gone]
    if not files:
        return 0
    names = ", ".join(map(quoted, files))
    ((rows,),) = raw.execute(f"select cast(sum(num_rows) as bigint) from parquet_file_metadata([{names}])").fetchall()
    return int(rows)


def collect_unbuilt(status: Status, raw: duckdb.DuckDBPyConnection, unbuilt: list[Delivery]) -> None:
    """Deliveries that came after the publication was made."""
    query = "from deliveries where delivery_seq in (select unnest($numbers::bigint[]))"
    known = {row["delivery_seq"]: row for row in fetch(raw, query, {"numbers": [each.seq for each in unbuilt]})}
    rows: list[Row] = []
    for delivery in unbuilt:
        came = known.get(delivery.seq, {})
        ingested_at = came.get("ingested_at")
        rows.append(
            {
                "delivery_seq": delivery.seq,
                "source": came.get("source"),
                "ingested_at": ingested_at,
                "age_hours": in_hours(status.at - ingested_at) if ingested_at else None,
                "first_hour_utc": delivery.first_hour,
                "last_hour_utc": delivery.last_hour,
                "rows_delivered": came.get("rows_delivered"),
            }
        )
    late = sum(row["age_hours"] is None or row["age_hours"] > UNBUILT_AFTER / HOUR for row in rows)
    status.unbuilt = {"count": len(rows), "late_count": late, "rows": rows[:LISTED]}


def collect_turned_away(status: Status, raw: duckdb.DuckDBPyConnection, entries: list[Record]) -> None:
    """Rejected records by what was wrong, and files that could not be read. entries: what became of those of the inboxes."""
    reasons = fetch(
        raw,
        """
        select
            source, reason, "column", count(*) as count, max(rejected_at) as last_rejected_at,
            max_by(file, (rejected_at, file, -"row")) as file,
            max_by("row", (rejected_at, file, -"row")) as "row",
            max_by({'value': value}, (rejected_at, file, -"row")).value as value
        from raw.rejected_records
        group by source, reason, "column"
        order by count desc, source, "column", reason
        """,
    )
    status.rejected = {"count": sum(row["count"] for row in reasons), "reasons": reasons}
    # the entry in its place may have landed before under another name, so that none of its files is new
    well = [(entry["path"], entry["at"]) for entry in entries if entry["outcome"] in WELL]
    raw.execute(
        "create temp table well_entries as select unnest($1::varchar[]) as path, unnest($2::timestamptz[]) at time zone 'UTC' as began_at",
        [[path for path, _ in well], [at for _, at in well]],
    )
    status.unreadable_files = listing(
        raw,
        """
        select
            source, file, ingested_at, note,
            exists (
                select 1 from landed_files as later
                where later.source = files.source and later.file = files.file and later.status = 'landed'
                    and later.delivery_seq > files.delivery_seq
            ) or exists (
                select 1 from well_entries as later
                where later.began_at >= files.ingested_at
                    and (files.file = later.path or left(files.file, length(later.path) + 1) in (later.path || '/', later.path || '!'))
            ) as is_replaced
        from landed_files as files
        where status = 'unreadable'
        """,
        "is_replaced, ingested_at desc, file",
    )
