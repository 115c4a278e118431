"""The past as release 0.1.0 pruned it: batches of hours, converted once into files by day (engine/retention.py).

A batch was a folder `raw/pruned/batch-NNNNNN` with a file for each model. The newest had three remainders of all pruned drive-hours too:
each drive's totals (`pruned_drives`) and span (`pruned_spans`), and the slowdowns that a chronic window may reach (`pruned_drive_hours`).
`raw/pruned.json` in the new form is the commit: a conversion that is killed before is done again.
"""

from __future__ import annotations

import json
import shutil
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb

from engine.errors import ModelError
from engine.plan import row_count
from engine.retention import PRUNED_MODEL, Kept, Past, write_past
from engine.warehouse import Warehouse, quoted
from ingest.raw.durable import sync_tree
from ingest.raw.store import list_deliveries, pruned_files, pruned_record, source_of

REMAINDERS = ("pruned_drives", "pruned_drive_hours", "pruned_spans")

DRIVE_DAYS = """
with numbered as (
    select
        *,
        row_number() over (partition by drive_id order by slowdown_hours = 0, day_utc desc, raid_group_id) = 1 as has_totals
    from {rows}
)

-- only sums and maxima of a drive's totals are ever read: one of its days has them
select
    days.* exclude (has_totals),
    day_utc + interval 1 hour * cast(log2(reported_in & -reported_in) as bigint) as first_hour_utc,
    day_utc + interval 1 hour * cast(floor(log2(reported_in)) as bigint) as last_hour_utc,
    bit_count(reported_in) as reported_hours,
    spans.declared_kind,
    -- of drives that hosts see it was not kept: then inventory says
    case when spans.drive_id is not null then false end as is_group_guessed,
    totals.max_slowdown,
    coalesce(totals.interval_count, 0) as interval_count,
    coalesce(totals.normal, 0) as normal_hours,
    coalesce(totals.to_slow, 0) as to_slow_hours,
    coalesce(totals.slow_persist, 0) as slow_persist_hours,
    coalesce(totals.back_to_stable, 0) as back_to_stable_hours
from numbered as days
left join {pruned_spans} as spans on days.drive_id = spans.drive_id
left join {pruned_drives} as totals on days.drive_id = totals.drive_id and days.has_totals
"""

RAID_GROUP_DAYS = """
with valid as (
    select
        cast(hour_utc as date) as day_utc,
        raid_group_id,
        data_drive_count,
        reporting_drive_count = data_drive_count as is_complete,
        cast(sum(cast(1 as bigint) << hour(hour_utc)) as bigint) as valid_in,
        min(hour_utc) as first_hour_utc,
        max(hour_utc) as last_hour_utc
    from {int_raid_hours}
    where is_valid
    group by all
)

select days.*, coalesce(valid.valid_in, 0) as valid_in, valid.first_hour_utc, valid.last_hour_utc
from {rows} as days
left join valid using (day_utc, raid_group_id, data_drive_count, is_complete)
"""

DERIVED = {"int_drive_days": DRIVE_DAYS, "int_raid_group_days": RAID_GROUP_DAYS}
"""Queries of the models that have columns now which a batch did not have. `rows`: the model's rows."""


def convert_earlier_past(warehouse: Warehouse) -> None:
    """Convert what an earlier release pruned, where it did. Hold the builder's lock. Raises: ModelError where raw has lost some of it."""
    pruned = warehouse.raw / "pruned"
    try:
        record: dict[str, Any] = json.loads(pruned_record(warehouse.root).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    if "kept" in record:
        for left in pruned.glob("int_*"):  # by a conversion that was killed
            shutil.rmtree(left)
        folders = [pruned / f"batch-{kept['build_seq']:06d}" for kept in record["kept"]]
        for folder in folders:
            if not folder.is_dir():
                raise ModelError(
                    f"{folder}: is missing; pruned data are nowhere else in the warehouse: "
                    "put it back from a copy (docs/runbooks/pruned.md)"
                )
        version = record["kept"][-1]["models"]
        files = [Kept(model, day, file, version) for model, day, file in _write_days(folders, pruned)]
        before = datetime.fromisoformat(record["before_utc"])
        # what hosts saw was kept in raw then
        from_hosts = [
            path for each in list_deliveries(warehouse.root) for path in pruned_files(each, before) if source_of(path) is not None
        ]
        warehouse.note("convert", before=before, files=len(files))
        write_past(warehouse, Past(before, record["row_count"] + row_count(from_hosts), files))
    for folder in pruned.glob("batch-*"):
        shutil.rmtree(folder)


def _write_days(folders: list[Path], pruned: Path) -> list[tuple[str, date, str]]:
    """Write the rows of some batches as one file for each model and day. Returns: model, day, and the file's path below the store."""
    models = sorted({path.stem for folder in folders for path in folder.glob("int_*.parquet")} - {PRUNED_MODEL})
    relations = {name: f"read_parquet({quoted(folders[-1] / f'{name}.parquet')}, hive_partitioning = false)" for name in REMAINDERS}
    for model in models:
        names = ", ".join(quoted(path) for folder in folders for path in folder.glob(f"{model}.parquet"))
        relations[model] = f"(select * exclude (build_seq) from read_parquet([{names}], union_by_name = true, hive_partitioning = false))"
    queries = {model: DERIVED.get(model, "select * from {rows}").format(rows=relations[model], **relations) for model in models}
    # the newest batch has those of all
    # a slowdown is worked out of a latency and a median when it is read
    queries[PRUNED_MODEL] = f"""
        select drive_id, hour_utc, true as is_peer, slowdown as latency_us, cast(1 as double) as median_latency_us
        from {relations["pruned_drive_hours"]}
    """
    found = []
    with duckdb.connect() as connection:
        # one file for each day
        connection.execute("set threads = 1")
        for model, query in queries.items():
            columns = {row[0] for row in connection.execute(f"describe {query}").fetchall()}
            rows = query if "day_utc" in columns else f"select *, cast(hour_utc as date) as day_utc from ({query})"
            (pruned / model).mkdir(parents=True)
            connection.execute(
                f"""
                copy (select * from ({rows}) order by day_utc) to {quoted(pruned / model)}
                (format parquet, compression zstd, partition_by (day_utc), filename_pattern '000000.')
                """
            )
            for path in sorted((pruned / model).glob("day_utc=*/*.parquet")):
                found.append((model, date.fromisoformat(path.parent.name.removeprefix("day_utc=")), str(path.relative_to(pruned))))
    sync_tree(pruned)
    return found
