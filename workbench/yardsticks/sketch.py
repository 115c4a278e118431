"""A day's stages in plain DuckDB SQL, with whole-number keys given out at landing: python -m workbench.yardsticks.sketch FOLDER OUT.

No provenance and no lateness: it says what the arithmetic of a day costs when a whole day is computed at once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb

from workbench.yardsticks import EDGES, MIN_COVERAGE, MIN_DRIVES, SLOW

PARQUET = "(format parquet, compression zstd, compression_level 1, dictionary_size_limit 1000)"
DELIVERED = """read_ios, write_ios, read_latency_us, write_latency_us, read_blocks, write_blocks, block_bytes, coverage, collected_at"""
PERIODS = """
create temp view periods as
select drive_id, raid_group_id, coalesce(role, 'data') = 'data' as is_data,
    coalesce(date_trunc('hour', valid_from), timestamp '0001-01-01') as from_hour_utc,
    coalesce(date_trunc('hour', valid_to), timestamp '9999-01-01') as to_hour_utc
from numbered
"""
REJECTED = """(
    drive_id is null or raid_group_id is null or hour_utc is null or hour_utc <> date_trunc('hour', hour_utc)
    or read_ios < 0 or write_ios < 0 or (read_ios is null) <> (write_ios is null)
    or read_ios > 0 and not coalesce(isfinite(read_latency_us) and read_latency_us >= 0, false)
    or write_ios > 0 and not coalesce(isfinite(write_latency_us) and write_latency_us >= 0, false)
    or not coalesce(coverage, 1) between 0 and 1
)"""
MEASURED = f"""
create temp table measured as
select h.drive_id, h.raid_group_id, h.hour_utc,
    (case when read_ios > 0 then read_ios * read_latency_us else 0 end + case when write_ios > 0 then write_ios * write_latency_us else 0 end)
        / nullif(read_ios + write_ios, 0) as latency_us,
    read_ios + write_ios as io_count,
    (coalesce(read_blocks, 0) + coalesce(write_blocks, 0)) * coalesce(block_bytes, 4096) / nullif(read_ios + write_ios, 0) as io_size_bytes,
    case when read_ios > 0 then read_latency_us end as read_latency_us,
    case when write_ios > 0 then write_latency_us end as write_latency_us,
    coalesce(coverage, 1) >= {MIN_COVERAGE} as is_peer
from raw as h left join periods as p
    on h.drive_id = p.drive_id and p.from_hour_utc <= h.hour_utc and p.to_hour_utc > h.hour_utc
where coalesce(p.is_data, true)
"""
MEDIANS = f"""
create temp table medians as
select * replace (case when latency_count >= {MIN_DRIVES} and median_latency_us > 0 then median_latency_us end as median_latency_us)
from (
    select raid_group_id, hour_utc, count(*) as drive_count, count(latency_us) as latency_count,
        median(latency_us) as median_latency_us, median(io_count) as median_io_count, median(io_size_bytes) as median_io_size_bytes,
        median(read_latency_us) as median_read_latency_us, median(write_latency_us) as median_write_latency_us,
        sum(io_count) as raid_io_count
    from measured where is_peer group by all
)
"""
SLOWDOWNS = """
create temp table slowdowns as
select m.drive_id, m.raid_group_id, m.hour_utc,
    case when is_peer then m.latency_us / r.median_latency_us end as slowdown,
    case when is_peer then m.io_count / nullif(r.median_io_count, 0) end as rate_imbalance,
    case when is_peer then m.io_size_bytes / nullif(r.median_io_size_bytes, 0) end as size_imbalance,
    case when is_peer then m.read_latency_us / nullif(r.median_read_latency_us, 0) end as read_slowdown,
    case when is_peer then m.write_latency_us / nullif(r.median_write_latency_us, 0) end as write_slowdown
from measured as m left join medians as r using (raid_group_id, hour_utc)
"""
HOUR_BEFORE = """
create temp table hour_before as
select now.drive_id, now.hour_utc, before.slowdown as previous_slowdown
from slowdowns as now inner join slowdowns as before
    on now.drive_id = before.drive_id and now.raid_group_id = before.raid_group_id and now.hour_utc = before.hour_utc + interval 1 hour
where now.slowdown >= 1.5 or before.slowdown >= 1.5
"""
_COUNTS = ", ".join(f"count(*) filter (slowdown >= {edge}) as hours_from_{int(edge * 10)}" for edge in EDGES)
DRIVE_DAYS = f"""
create temp table drive_days as
select drive_id, raid_group_id, cast(hour_utc as date) as day_utc, bit_or(1::bigint << hour(hour_utc)) as reported_hours,
    count(slowdown) as drive_hours, {_COUNTS}
from slowdowns group by all
"""
RAID_HOURS = f"""
create temp table tails as
select raid_group_id, hour_utc, max(slowdown, 3) as tails, arg_max(drive_id, slowdown) as slowest_drive_id,
    count(*) filter (slowdown >= {SLOW}) as slow_drive_count
from slowdowns where slowdown is not null group by all
"""
WRITTEN = {
    "drive_hours": "select drive_id, raid_group_id, hour_utc, slowdown, rate_imbalance, size_imbalance, read_slowdown, write_slowdown from slowdowns",
    "raid_hours": "select * exclude (tails), tails[1] as tail_1, tails[2] as tail_2, tails[3] as tail_3 from medians inner join tails using (raid_group_id, hour_utc)",
    "drive_days": "from drive_days",
    "slow_hours": "from slowdowns where slowdown >= 1.5",
    "slowdown_bins": "select cast(floor(slowdown * 200) as integer) as bin, count(*) as drive_hours from slowdowns where slowdown < 20 group by all",
    "hour_before": "from hour_before",
}


def landing(folder: Path, out: Path) -> dict[str, str]:
    """Statements that write raw.parquet, by stage; each drive and RAID group has a number in a register."""
    hours, drives = f"read_parquet('{folder}/drive_hours*.parquet')", f"read_parquet('{folder}/drives.parquet')"
    known = {name: f"select {name} from {drives} union select {name} from {hours}" for name in ("drive_id", "raid_group_id")}
    numbers = {name: f"(select number from {name}_register as r where r.{name} = d.{name})" for name in known}
    return {
        "register of whole numbers": "; ".join(
            f"create temp table {name}_register as select {name}, cast(row_number() over (order by {name}) as integer) as number from ({each}); "
            f"copy {name}_register to '{out}/{name}_register.parquet' (format parquet)"
            for name, each in known.items()
        ),
        "landing with whole numbers": f"""
            copy (
                select h.hour_utc, d.number as drive_id, g.number as raid_group_id, {DELIVERED}
                from {hours} as h
                inner join drive_id_register as d using (drive_id) inner join raid_group_id_register as g using (raid_group_id)
                where not {REJECTED.replace("drive_id", "h.drive_id").replace("raid_group_id", "h.raid_group_id")}
            ) to '{out}/raw.parquet' {PARQUET};
            create temp view raw as from read_parquet('{out}/raw.parquet');
            create temp table numbered as select * replace ({", ".join(f"{of} as {name}" for name, of in numbers.items())}) from {drives} as d;
            {PERIODS}
        """,
    }


def main(folder: Path, out: Path) -> None:
    """Run the stages and print wall and CPU seconds of each."""
    out.mkdir(parents=True, exist_ok=True)
    connection = duckdb.connect(config={"preserve_insertion_order": "false", "memory_limit": "12GB"})
    stages = {
        "checks of the delivery": f"select count(*), count(*) filter {REJECTED} from read_parquet('{folder}/drive_hours*.parquet')",
        **landing(folder, out),
        "one row per drive and hour": "select count(*) from (select 1 from raw group by drive_id, hour_utc having count(*) > 1)",
        "measured, data drives": MEASURED,
        "five medians": MEDIANS,
        "slowdowns and imbalance": SLOWDOWNS,
        "the hour before": HOUR_BEFORE,
        "counts by drive and day": DRIVE_DAYS,
        "tails by RAID-hour": RAID_HOURS,
        **{f"write {name}": f"copy ({query}) to '{out}/{name}.parquet' {PARQUET}" for name, query in WRITTEN.items()},
    }
    for name, statement in stages.items():
        wall, cpu = time.perf_counter(), time.process_time()
        connection.execute(statement).fetchall()
        print(f"{time.perf_counter() - wall:6.2f} s {time.process_time() - cpu:6.2f} s CPU  {name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
