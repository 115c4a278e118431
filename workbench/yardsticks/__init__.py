"""One day of drive-hours computed by hand: what the bench compares the product with.

Each module is a script: `python -m workbench.yardsticks.with_pandas FOLDER OUT`. FOLDER holds drive_hours*.parquet and drives.parquet;
OUT receives the same answer from each of them:

- drive_hours.parquet: drive_id (of the sketch a number; drive_id_register.parquet has the names), raid_group_id, hour_utc, slowdown, rate_imbalance, size_imbalance; one row per drive-hour of a data drive
- raid_hours.parquet: raid_group_id, hour_utc, median_latency_us, latency_count, slow_drive_count, tail_1, tail_2, tail_3
- drive_days.parquet: drive_id, raid_group_id, day_utc, and counts of hours by slowdown, rate imbalance and size imbalance

A row with I/Os and no finite latency >= 0 is left out, as the product rejects it. They read a day as the simulator writes it: one row per drive and hour, at most one inventory period per drive that is not a data drive's.
`sketch` does more: the stages of the product's own day (landing, checks, seven medians, a look at the hour before, 35 counts).
"""

EDGES = (0.5, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 4.0, 5.0, 8.0)
"""Slowdowns from which hours are counted by drive and day."""
MIN_COVERAGE, MIN_DRIVES, SLOW = 0.5, 3, 2.0
SCRIPTS = {"DuckDB": "sketch", "pandas": "with_pandas"}
"""Module of each script."""
