"""`make mutants`: faults are planted in a copy of the repository, one at a time, and the tests have to turn red.

A fault is a replacement of text in one file. For each the copy is changed, the detecting tests run until the first failure, and the
copy is put back. A model: its own unit tests, in a process that stays and so has dbt at hand, then the marts against the independent
reference on fixed seeds in three ways of delivery, then tests/ingest. A macro: the unit tests of the models that use it, then the same.
Else the reference or, for ingest, tests/ingest first. A fault that no test finds is a gap in the tests; the run then exits 1.
Writes docs/results/mutants.md, a row as soon as a fault is judged; `--only` refreshes the rows of some, `--new` adds those that are not there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Queue
from threading import Timer
from typing import Any

from workbench.commit import ROOT, current_commit

RESULT = ROOT / "docs/results/mutants.md"
SEEDS = "5,17"
JOBS = 2
LIMIT_SECONDS = 1800
PYTEST = ("-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", "--tb=short")
MISSED = "**not found**"
ANSWER = "answer:"
OWN, REFERENCE, UNIT, INGEST = "its unit tests", "reference", "unit tests", "tests/ingest"
PRUNE, WITHOUT, FEEDS, OF_SAMPLES = "tests of prune", "drives taken out of raw", "tests of inboxes and servers", "Perseus over samples"
OF_PRUNE = ("engine/past.py", "engine/prune.py", "engine/publish.py")
OF_FEEDS = ("drivetail/inbox.py", "drivetail/outcomes.py", "drivetail/pulls.py", "drivetail/settings.py", "ingest/prometheus/known.py")


@dataclass(frozen=True)
class Fault:
    """What breaks, and how: `old` occurs `count` times in the file, and each becomes `new`."""

    breaks: str
    file: str
    old: str
    new: str
    count: int = 1

    @property
    def stages(self) -> list[str]:
        """The tests in the order most likely to find it soon."""
        if self.file in OF_PRUNE:
            return [PRUNE]
        if self.file in OF_FEEDS:
            return [FEEDS]
        if self.file.startswith("ingest/"):
            return [INGEST, REFERENCE, UNIT, PRUNE]
        if self.file == WHAT_IF:
            return [WITHOUT]
        if self.file in PERSEUS:
            return [OF_SAMPLES] if self.file.endswith(".py") else [OWN, OF_SAMPLES]
        if self.file.startswith(("models/", "macros/")):
            return [OWN, REFERENCE, INGEST, PRUNE]
        return [REFERENCE, UNIT, INGEST, PRUNE, OF_SAMPLES]

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.old) != self.count:
            raise SystemExit(f"{self.file}: {self.old!r} is there {text.count(self.old)} times: {self.breaks!r} is out of date")
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


HOURS = "models/intermediate/slowdown/int_drive_hours.sql"
MEASURED = "models/intermediate/slowdown/int_drive_hours__measured.sql"
MEDIANS = "models/intermediate/slowdown/int_raid_hours__medians.sql"
RAID_HOURS = "models/intermediate/slowdown/int_raid_hours.sql"
SPANS = "models/intermediate/slowdown/int_drives__spans.sql"
TOUCHED = "models/intermediate/lateness/int_raid_hours__touched.sql"
REASSIGNED = "models/intermediate/lateness/int_drives__reassigned.sql"
PLACED = "models/intermediate/events/int_drive_events__placed.sql"
INTERVALS = "models/marts/slowdown/fct_slowdown_intervals.sql"
ARRIVALS = "models/marts/slowdown/fct_slowdown_arrivals.sql"
WINDOWED = "models/intermediate/slowdown/int_drive_hours__windowed.sql"
SLOWNESS = "models/marts/slowdown/fct_drive_slowness.sql"
SAMPLES = "models/marts/slowdown/fct_drive_samples.sql"
STAGED_SAMPLES = "models/staging/stg_raw__drive_samples.sql"
ALERTS = "models/marts/slowdown/fct_slow_alerts.sql"
TOGETHER = "macros/raised_together.sql"
OUTLYING, SIT_OUTS, SCORED, LABELLED = (
    f"models/intermediate/detectors/{model}.sql"
    for model in ("int_drive_hours__outlying", "int_drive_hours__sit_out", "int_drive_days__scored", "int_detectors__labelled")
)
PERSEUS = DRIVE_SAMPLES, FITTED, SAMPLED, AT_RISK, PERSEUS_RISK = (
    "models/intermediate/detectors/int_drive_samples.sql",
    "models/intermediate/detectors/int_raid_group_days__fitted.py",
    "models/intermediate/detectors/int_sampled_days.sql",
    "models/intermediate/detectors/int_drive_days__at_risk.sql",
    "macros/perseus.sql",
)
VERDICTS, AGREEMENT, SCORES, SCORE_COSTS = (
    f"models/marts/detectors/{model}.sql" for model in ("fct_detector_verdicts", "detector_agreement", "detector_scores", "detector_costs")
)
OUTLIERS, SIT_OUT_COUNTS, SLOW_SCORES = "macros/outliers.sql", "macros/engine/sit_out_counts.sql", "macros/slow_scores.sql"
CHRONIC_DAYS = "models/intermediate/counts/int_drive_days__chronic.sql"
LATENCY_RANK, PLACED_GROUP = "macros/latency_rank.sql", "macros/placed_group.sql"
USUAL_MEDIAN, MOST_DRIVES = "macros/usual_median.sql", "macros/is_most_of_its_drives.sql"
PLACES = "models/intermediate/causes/int_drives__places.sql"
EVIDENCE = "models/intermediate/causes/int_intervals__evidence.sql"
WEEKLY_TAILS = "models/marts/weekly/fct_weekly_tails.sql"
DRIVE_STATES = "models/marts/weekly/fct_weekly_drive_states.sql"
DRIVE_EVIDENCE = "models/marts/weekly/fct_weekly_drive_evidence.sql"
CLASSES = "models/marts/weekly/fct_weekly_classes.sql"
GROUP_HOURS = "models/marts/slowdown/fct_slow_group_hours.sql"
WEEKLY_EVENTS = "models/marts/weekly/fct_weekly_events.sql"
CAUSES, CAUSE_SHARES = "models/marts/causes/fct_interval_causes.sql", "models/intermediate/causes/int_causes__shares.sql"
COUNTERFACTUAL = "models/intermediate/slowdown/int_raid_hours__counterfactual.sql"
COSTS, COSTS_BY, WHAT_IF = (
    "models/marts/causes/fct_drive_costs.sql",
    "macros/drive_costs_by.sql",
    "drivetail/what_if.sql",
)
SLO, SLO_SHARES = "models/marts/causes/fct_fleet_slo.sql", "models/intermediate/causes/int_fleet__slo_shares.sql"
PANEL, OUTCOMES, EXPECTED, RANKED = (
    f"models/intermediate/candidates/int_drive_weeks{of}.sql" for of in ("", "__outcomes", "__expected", "__ranked")
)
REPLACEMENTS, BACKTEST_SUMMARY = (
    f"models/marts/candidates/{model}.sql" for model in ("replacement_candidates", "candidate_backtest_summary")
)
SLOW_HOURS = "models/intermediate/slowdown/int_drive_hours__slow.sql"
FCT_HOURS = "models/marts/slowdown/fct_drive_hours.sql"
DECISIONS = "models/marts/events/fct_drive_decisions.sql"
EPISODES = "models/marts/events/fct_unplug_episodes.sql"
EVENTS = "models/marts/events/fct_drive_events.sql"
FOLLOWED = "models/intermediate/events/int_drive_events__followed.sql"
GROUPS = "models/marts/fleet/dim_raid_groups.sql"
STG_DRIVES = "models/staging/stg_raw__drives.sql"
STG_HOURS = "models/staging/stg_raw__drive_hours.sql"
COUNTS, STUDY = "models/intermediate/counts", "models/intermediate/study/int_study_"
DRIVE_DAYS, GROUP_DAYS, DAY_COUNTS = (f"{COUNTS}/{model}.sql" for model in ("int_drive_days", "int_raid_group_days", "int_day_counts"))
OF_PERCENTILES, OF_EVENTS, OF_INTERVALS, OF_SLOW_HOURS, OF_CURVES = (
    f"{STUDY}_{subject}.sql" for subject in ("percentiles", "event_counts", "interval_counts", "slow_hour_counts", "curve_counts")
)
OF_SHARES = "macros/study/share_estimates.sql"
CANDIDATES = "models/marts/candidates/replacement_candidates.sql"
REPLACED = "models/intermediate/events/int_drives__replaced.sql"
READINGS = "ingest/prometheus/readings.py"
ESTIMATES, STATEMENTS, SURVIVALS, VARIANTS, OF_EVENT_VARIANTS = (
    f"{STUDY}_{subject}.sql" for subject in ("estimates", "statements", "survivals", "variant_counts", "event_variant_counts")
)
RESULTS, CURVES = "models/marts/study/study_results.sql", "models/marts/study/study_curves.sql"
MIN_DRIVES = "{{ var('min_reporting_drives') }}"
SLOW, MILD = "{{ var('slow_threshold') }}", "{{ var('mild_threshold') }}"

FAULTS = (
    # thresholds and medians
    Fault("a slowdown of exactly 2 is not slow", FCT_HOURS, f"coalesce(slowdown >= {SLOW}", f"coalesce(slowdown > {SLOW}"),
    Fault("a slowdown of exactly 1.5 is not mildly slow", FCT_HOURS, f"coalesce(slowdown >= {MILD}", f"coalesce(slowdown > {MILD}"),
    Fault(
        "the lower median instead of the mean of the middle two",
        MEDIANS,
        "median(peer_latency_us) as",
        "quantile_disc(peer_latency_us, 0.5) as",
    ),
    Fault("two latencies make a median", MEDIANS, f"reported.latency_count >= {MIN_DRIVES}", "reported.latency_count >= 2"),
    Fault(
        "an hour with a median of zero is kept",
        MEDIANS,
        "reported.median_latency_us > 0 as is_valid",
        "reported.median_latency_us >= 0 as is_valid",
    ),
    Fault("hours of low coverage are kept", MEASURED, ">= drive_hours.min_coverage as is_covered", ">= 0 as is_covered"),
    Fault(
        "half an hour observed is not enough",
        MEASURED,
        ">= drive_hours.min_coverage as is_covered",
        "> drive_hours.min_coverage as is_covered",
    ),
    Fault(
        "R_med leaves out idle drives", MEDIANS, "median(cast(peer_io_count as double))", "median(cast(nullif(peer_io_count, 0) as double))"
    ),
    Fault(
        "Z_med takes in idle drives",
        MEDIANS,
        "median(peer_io_size_bytes)",
        "median(case when peer_io_count is not null then coalesce(peer_io_size_bytes, 0) end)",
    ),
    Fault(
        "two readers make a read median", MEDIANS, f"raid_hours.read_latency_count >= {MIN_DRIVES}", "raid_hours.read_latency_count >= 2"
    ),
    # membership
    Fault(
        "parity drives are peers",
        MEASURED,
        "coalesce(own_role, inventory_role, 'data') = 'data'",
        "coalesce(own_role, inventory_role, 'data') <> 'spare'",
    ),
    Fault(
        "spares are peers",
        MEASURED,
        "coalesce(own_role, inventory_role, 'data') = 'data'",
        "coalesce(own_role, inventory_role, 'data') in ('data', 'spare')",
    ),
    Fault(
        "the role is of another group's period", MEASURED, "coalesce(own_role, inventory_role, 'data')", "coalesce(inventory_role, 'data')"
    ),
    Fault(
        "N counts rows only",
        MEDIANS,
        "coalesce(steps.expected_drive_count, 0) + reported",
        "0 * coalesce(steps.expected_drive_count, 0) + reported",
    ),
    Fault(
        "N counts a drive that reports from elsewhere",
        MEDIANS,
        "- coalesce(absent.absent_drive_count, 0)",
        "- 0 * coalesce(absent.absent_drive_count, 0)",
    ),
    Fault(
        "valid_to is inclusive",
        STG_DRIVES,
        "date_trunc('hour', delivered.valid_to)",
        "date_trunc('hour', delivered.valid_to) + interval 1 hour",
    ),
    Fault("groups of two are kept", HOURS, "is_data_drive and data_drive_count >= {{ var('min_group_width') }} as", "is_data_drive as"),
    Fault("modal N: a tie goes to the smaller", GROUPS, "data_drive_count desc nulls last", "data_drive_count asc nulls last"),
    Fault(
        "attributes of the oldest period",
        "models/intermediate/inventory/int_drives__attributes.sql",
        "valid_from desc nulls last",
        "valid_from asc nulls last",
    ),
    Fault(
        "a group's kind: a tie goes to the greater text",
        "models/intermediate/inventory/int_raid_groups__attributes.sql",
        "drives.kind asc",
        "drives.kind desc",
    ),
    # intervals, arrivals, slowness
    Fault(
        "any later row follows, not that of the next hour",
        INTERVALS,
        "drive_hours.next_hour_utc = drive_hours.hour_utc + interval 1 hour",
        "drive_hours.next_hour_utc is not null",
    ),
    Fault(
        "the hour before in another group counts as before", HOURS, "        and drive_hours.raid_group_id = previous.raid_group_id\n", ""
    ),
    Fault(
        "severity of 1.5 by the first slowdown, not the greatest",
        INTERVALS,
        "when intervals.max_slowdown <",
        "when intervals.first_slowdown <",
    ),
    Fault(
        "severity of 2 by the greatest slowdown, not the first",
        INTERVALS,
        "severity('intervals.first_slowdown')",
        "severity('intervals.max_slowdown')",
    ),
    Fault(
        "a wait is rounded instead of counted in hours of the clock",
        INTERVALS,
        "{{ hour_index('unplugs.unplugged_at') }} - {{ hour_index('intervals.started_at') }}",
        "cast({{ hours_between('intervals.started_at', 'unplugs.unplugged_at') }} as bigint)",
    ),
    Fault(
        "an unplug in the interval's first hour does not end the wait",
        INTERVALS,
        "intervals.started_at <= events.hour_utc",
        "intervals.started_at < events.hour_utc",
    ),
    Fault("a gap counts its end", ARRIVALS, " - 1 as gap_hours", " as gap_hours"),
    Fault(
        "the chronic window is closed at its start",
        SLOWNESS,
        "drive_hours.hour_utc > windows.last_hour_utc",
        "drive_hours.hour_utc >= windows.last_hour_utc",
    ),
    Fault(
        "a median of exactly 1.2 is not chronic",
        SLOWNESS,
        "median_slowdown >= {{ var('chronic_slowdown') }}",
        "median_slowdown > {{ var('chronic_slowdown') }}",
    ),
    Fault("the slowest drive: a tie goes to the greater id", RAID_HOURS, "min(case when is_slowest", "max(case when is_slowest"),
    Fault(
        "RIO is compared over other drives than the hour before",
        RAID_HOURS,
        "            and tails.same_drive_count = raid_hours.previous_covered_drive_count\n",
        "",
    ),
    Fault(
        "an unknown I/O count adds nothing to the group's",
        MEDIANS,
        "when reported.io_count_count = reported.covered_drive_count then",
        "when reported.io_count_count > 0 then",
    ),
    # events
    Fault("who stood in the slot before the decision is its successor", DECISIONS, "and periods.from_hour_utc >= decisions.hour_utc", ""),
    Fault("a replacement after another decision ends the first", DECISIONS, "replacements.replaced_at <= decisions.superseded_at", "true"),
    Fault("a replacement that is told of before the decision ends it", DECISIONS, "and events.occurred_at >= decisions.decided_at", ""),
    Fault(
        "a replacement in another's slot counts for nobody", DECISIONS, "or (events.raid_group_id = decisions.raid_group_id", "or (false"
    ),
    Fault(
        "the day of a swap counts as after it",
        DECISIONS,
        "days.day_utc > judged.divided_on then",
        "days.day_utc >= judged.divided_on then",
        count=2,
    ),
    Fault(
        "a drive that is watched is to be replaced", DECISIONS, "when judged.verdict = 'replace' then 'pending'", "when true then 'pending'"
    ),
    Fault(
        "a replug at the unplug's own instant counts",
        EPISODES,
        "events.occurred_at > unplugs.unplugged_at",
        "events.occurred_at >= unplugs.unplugged_at",
    ),
    Fault(
        "a replug at the next unplug's instant does not count",
        EPISODES,
        "events.occurred_at <= unplugs.next_unplugged_at",
        "events.occurred_at < unplugs.next_unplugged_at",
    ),
    Fault(
        "recurrence is sought from the unplug on",
        EPISODES,
        "date_trunc('hour', episodes.replugged_at)",
        "case when episodes.replugged_at is not null then date_trunc('hour', episodes.unplugged_at) end",
    ),
    Fault(
        "another serial must come after the unplug's hour",
        EPISODES,
        "periods.from_hour_utc >= episodes.hour_utc",
        "periods.from_hour_utc > episodes.hour_utc",
    ),
    Fault(
        "an event's own group before its drive's row",
        PLACED,
        "coalesce(placed.reported_raid_group_id, placed.raid_group_id,",
        "coalesce(placed.raid_group_id, placed.reported_raid_group_id,",
    ),
    Fault("only the event's own hour is looked at", EVENTS, "followed.hours_until_slowdown <= 1", "followed.hours_until_slowdown <= 0"),
    Fault("the hour of an event is not looked at", FOLLOWED, "for hours in range((", "for hours in range(1, ("),
    Fault("a day after an event is 23 hours", FOLLOWED, "| max) + 1)", "| max))"),
    Fault("any hour of a drive's day is the event's", PLACED, "    where {{ has_hour('days.reported_in', 'asked.hour_utc') }}\n", ""),
    Fault("hours that reported are of the population", DRIVE_DAYS, "counted_hours('is_in_population')", "counted_hours('true')"),
    Fault(
        "an hour computed again comes twice",
        "macros/counted.sql",
        "then sign * {{ hour_bit('hour_utc') }}",
        "then {{ hour_bit('hour_utc') }}",
    ),
    Fault(
        "events that lost a conflict are kept",
        "models/staging/stg_raw__drive_events.sql",
        "{{ is_live('drive_events', 'delivered') }}",
        "true",
        count=2,
    ),
    # identity
    Fault("a row stays under its alias", STG_HOURS, "coalesce(aliases.drive_id, delivered.drive_id)", "delivered.drive_id"),
    Fault(
        "the source believed last counts",
        STG_HOURS,
        "{{ latency_rank('seen_from_hosts') }} asc",
        "{{ latency_rank('seen_from_hosts') }} desc",
    ),
    Fault("an hour that was hardly seen counts before one that was", LATENCY_RANK, "| length + 1", "| length * 0"),
    Fault(
        "a host stays a RAID group that inventory knows better",
        PLACED_GROUP,
        "coalesce({{ segments }}.raid_group_id, {{ drive_hours }}.raid_group_id)",
        "{{ drive_hours }}.raid_group_id",
    ),
    Fault("an operator's mapping gives way to the group of a row", PLACED_GROUP, " or {{ segments }}.is_mapped)", ")"),
    Fault("a mapping moves what an array says of itself", PLACED_GROUP, "{{ drive_hours }}.source is not null and ", ""),
    Fault(
        "a row that comes again too thin leaves the other sources' where it was",
        TOUCHED,
        "where has_arrived and hour_utc in",
        "where false and hour_utc in",
    ),
    Fault(
        "every document tells its errors again",
        "models/staging/stg_raw__drive_events.sql",
        "told.counted > before.counted_before",
        "told.counted >= before.counted_before",
    ),
    Fault(
        "a day of deployment moves with every document",
        "models/staging/stg_raw__drive_periods.sql",
        "then min(seen_from_hosts.deployed_on) over (",
        "then max(seen_from_hosts.deployed_on) over (",
    ),
    Fault(
        "an alias that names another drive touches nothing",
        TOUCHED,
        "to_hour_utc from {{ ref('int_aliases__changed') }}",
        "to_hour_utc from {{ ref('int_aliases__changed') }} where false",
    ),
    # lateness
    Fault(
        "a row that lost a conflict leaves its old group as it was",
        TOUCHED,
        "where retired_by_delivery_seq in (select delivery_seq",
        "where false and retired_by_delivery_seq in (select delivery_seq",
    ),
    Fault(
        "the hour after is not computed again",
        TOUCHED,
        "touched.hour_utc + interval 1 hour = stored.hour_utc",
        "touched.hour_utc = stored.hour_utc",
    ),
    Fault(
        "late inventory changes nothing before",
        TOUCHED,
        "select raid_group_id, hour_utc from reassigned",
        "select raid_group_id, hour_utc from reassigned where false",
    ),
    Fault(
        "a group that inventory named in vain is not computed again",
        TOUCHED,
        "select raid_group_id, hour_utc from displaced",
        "select raid_group_id, hour_utc from displaced where false",
    ),
    Fault(
        "inventory that was taken back is not looked for",
        REASSIGNED,
        "    union\n    (select * from said_now",
        "    intersect\n    (select * from said_now",
    ),
    Fault(
        "batches of the hour after are not looked at",
        "engine/build.py",
        "live_batches(connection, first, hour_after(last))",
        "live_batches(connection, first, last)",
    ),
    Fault(
        "the hour before midnight is not read",
        "engine/build.py",
        "self.files_between(hour_before(batch.first_hour_utc),",
        "self.files_between(batch.first_hour_utc,",
    ),
    Fault(
        "a RAID-hour computed again is shown twice",
        "engine/store.py",
        "and recomputed.build_seq > stored.build_seq)",
        "and recomputed.build_seq > stored.build_seq + 1)",
    ),
    # what was pruned
    Fault("a record of a pruned hour is taken", "ingest/run.py", "    if before is None:\n        return", "    if True:\n        return"),
    Fault("a pruned RAID-hour is computed again", TOUCHED, "where hour_utc >= coalesce(", "where true or hour_utc >= coalesce("),
    Fault(
        "what was pruned of a drive is not added to its hours",
        "engine/past.py",
        'past.kept[-1].batch, name))})"',
        'past.kept[-1].batch, name))}) where false"',
    ),
    Fault(
        "the windows of RAID groups that stopped lose what was pruned",
        WINDOWED,
        "        slowdowns.hour_utc > last_hours.last_hour_utc",
        "        false and slowdowns.hour_utc > last_hours.last_hour_utc",
    ),
    Fault(
        "what an earlier prune kept of a window is pruned by the next",
        WINDOWED,
        "from {{ source('plan', 'pruned_drive_hours') }}",
        "from {{ source('plan', 'pruned_drive_hours') }} where false",
    ),
    Fault(
        "a week of which some hours were pruned is shown",
        "macros/is_whole_week.sql",
        "date_trunc('week', {{ instant }}) >= ",
        "{{ instant }} >= ",
    ),
    Fault("the day before the pruned ones goes too", "ingest/raw_store.py", "timedelta(days=2)", "timedelta(days=1)"),
    Fault("raw is pruned under readers", "engine/publish.py", "if reach and None not in horizons:", "if reach:"),
    Fault(
        "of batches that cross the horizon nothing but what was pruned is left",
        "engine/prune.py",
        "        if crossing:\n            report",
        "        if False:\n            report",
    ),
    Fault(
        "counts of days from the horizon on are pruned",
        "engine/past.py",
        "update state.days set build_seq = ? where build_seq in",
        "delete from state.days where build_seq = ? or build_seq in",
    ),
    Fault("a prune that died is forgotten by maintenance", "engine/publish.py", "kept.update(missing_folders(", "len(missing_folders("),
    Fault(
        "a build database of a pruned warehouse begins with models that know of no past",
        "engine/build.py",
        "if self.past is None and not self.warehouse.build_database",
        "if not self.warehouse.build_database",
    ),
    Fault(
        "drives whose rows were pruned are forgotten by a rebuild",
        "models/intermediate/lateness/int_drives__own_spans.sql",
        "where drive_id not in (select drive_id from arrived)",
        "where false",
    ),
    # counts by day
    Fault("hours computed again are counted twice", "macros/counted.sql", "cast(-1 as integer) as sign", "cast(1 as integer) as sign"),
    Fault("what a day held before is forgotten", "macros/day_totals.sql", "from {{ stored }}", "from {{ stored }} where false"),
    Fault("a key whose counts have all gone stays", "macros/day_totals.sql", "where {{ counts | join(' <> 0 or ') }} <> 0", "where true"),
    Fault("the other counts of rows come and go by one", "macros/counted.sql", "then sign else 0 end", "then 1 else 0 end"),
    Fault("the day's stored counts are those of another day", "engine/build.py", "model, days=days)", "model, days=(days[1], days[1]))"),
    Fault(
        "what was computed before is not taken out of the counts",
        "engine/build.py",
        "where rows.hour_utc between timestamp '{batch.first_hour_utc}'",
        "where false and rows.hour_utc between timestamp '{batch.first_hour_utc}'",
    ),
    Fault(
        "a drive of another kind now leaves its counts where they were",
        TOUCHED,
        "select raid_group_id, hour_utc from reclassified",
        "select raid_group_id, hour_utc from reclassified where false",
    ),
    Fault("a value on an edge is counted below it", "macros/counted.sql", " as double) then 1\n", " as double) then 0\n"),
    Fault("a value just below an edge is counted on it", "macros/counted.sql", "then -1\n", "then 0\n"),
    Fault("bins below 1.5 are 0.05 wide", "macros/counted.sql", "< {{ var('mild_threshold') }}", "< 0"),
    Fault("bins from 8 on are 0.05 wide", "macros/counted.sql", "< {{ var('severity_8x') }}", "< 1e12"),
    # Findings 1 to 3
    Fault("F1: a slowdown of an edge is not counted at it", DRIVE_DAYS, "counted('slowdown >= ' ~ edge)", "counted('slowdown > ' ~ edge)"),
    Fault(
        "F1: drive-hours without a slowdown are drive-hours",
        DRIVE_DAYS,
        "{{ counted('slowdown is not null') }} as slowdown_hours",
        "{{ counted('true') }} as slowdown_hours",
    ),
    Fault("F2: a tail of exactly an edge is not counted at it", GROUP_DAYS, "~ rank ~ ' >= ' ~ edge", "~ rank ~ ' > ' ~ edge"),
    Fault("F2: RAID-hours that are not valid count", GROUP_DAYS, "counted('is_valid')", "counted('true')"),
    Fault("RAID-hours that are valid by reads alone do not count", GROUP_DAYS, "'raid_hours', 'true'", "'raid_hours', 'is_valid'"),
    Fault("one slow drive by reads makes no tail", GROUP_DAYS, "_slow_drive_count >= ' ~ rank", "_slow_drive_count > ' ~ rank"),
    Fault("a RAID-hour without reads counts by reads", GROUP_DAYS, "_drive_count > 0", "_drive_count >= 0"),
    Fault(
        "mildly slow by reads is slow by reads",
        RAID_HOURS,
        f"{{{{ side }}}}_slowdown >= {MILD} then 1 end) as {{{{ side }}}}_mild",
        f"{{{{ side }}}}_slowdown >= {SLOW} then 1 end) as {{{{ side }}}}_mild",
    ),
    Fault(
        "mildly slow against the mean is slow", HOURS, "mean_latency_us >= {{ var(degree ~ '_threshold') }}", f"mean_latency_us >= {SLOW}"
    ),
    Fault("the mean is of whole microseconds", "macros/mean_of_group.sql", "parts = 4503599627370496", "parts = 1"),
    Fault("drives with few I/Os are held against those with many", HOURS, "coalesce(io_count, {{ floor }}) >= {{ floor }}", "true"),
    Fault("Figure 4 prints the share of tails, not of those below", VARIANTS, "{% if rank > 1 %}raid_hours - {% endif %}", ""),
    Fault("tails by reads are out of all RAID-hours", VARIANTS, "'read', 'read_raid_hours'", "'read', 'raid_hours'"),
    Fault(
        "F3: after cutting tails the first is looked at again",
        f"{STUDY}_raid_hour_counts.sql",
        "cast({{ at_edge('edges.x', var('tail_edges'), 'tail_' ~ rank) }} as bigint)",
        "cast({{ at_edge('edges.x', var('tail_edges'), 'tail_1') }} as bigint)",
    ),
    # Findings 4 to 7
    Fault("F4: an interval of an hour is longer than an hour", OF_INTERVALS, "interval_hours <= edges.x", "interval_hours < edges.x"),
    Fault(
        "F4: intervals at 1.5 are counted with those at 2",
        OF_INTERVALS,
        f"    where threshold = {SLOW}\n    group by kind, raid_group_id, interval_hours",
        "    group by kind, raid_group_id, interval_hours",
    ),
    Fault("F5: a gap of 23 hours is not within a day", OF_INTERVALS, "gap_hours <= edges.x", "gap_hours < edges.x"),
    Fault("F6: a drive whose worst is exactly 16 did not get there", OF_INTERVALS, "max_slowdown >= edges.x", "max_slowdown > edges.x"),
    Fault("F6: drives that were never slow are left out", OF_INTERVALS, "left join slow_drives on", "inner join slow_drives on"),
    Fault("F7: 4 slow hours are not fewer than 5", OF_INTERVALS, "slow_hours <= edges.x", "slow_hours < edges.x"),
    Fault(
        "F7: mild hours are slow hours",
        OF_INTERVALS,
        f"    where slowdown >= {SLOW}\n    group by drive_id",
        "    group by drive_id",
    ),
    # Finding 8 and exact multiples
    Fault("F8: exactly twice the median is no imbalance", OF_SLOW_HOURS, "imbalances.ratio >= edges.x", "imbalances.ratio > edges.x"),
    Fault(
        "F8: hours of an unknown rate are balanced",
        OF_SLOW_HOURS,
        f"where slowdown >= {SLOW} and rate_imbalance is not null",
        f"where slowdown >= {SLOW}",
    ),
    Fault(
        "F8: imbalanced hours at exactly twice the median are left out",
        f"{COUNTS}/int_imbalanced_days.sql",
        "where rate_imbalance >= ",
        "where rate_imbalance > ",
    ),
    Fault(
        "F8: the lesser share is taken for the greatest",
        ESTIMATES,
        "shares.share else -shares.share end",
        "shares.share else shares.share end",
    ),
    Fault("a median of odd ticks is taken for whole ones", OF_SLOW_HOURS, " and {{ is_in_ticks('median_latency_us') }} as", " as"),
    Fault("1.5 times the median is no multiple", "macros/exact_multiples.sql", "3 * {{ nanoseconds(median_us) }}, 4", "4"),
    Fault(
        "parts of a nanosecond count", "macros/exact_multiples.sql", "floor(({{ latency_us }}) * 1000 + 0.5)", "(({{ latency_us }}) * 1000)"
    ),
    Fault("multiples of reads are those of writes", HOURS, "{{ is_multiple(side ~ '_latency_us'", "{{ is_multiple('write_latency_us'"),
    Fault("a latency of nearly 1.5 medians is told by one comparison", "macros/exact_multiples.sql", "1.4 *", "1.6 *"),
    Fault(
        "a drive at twice the median is its hour's slowest", OF_SLOW_HOURS, "slower.slowdown > slow_hours.slowdown", "slower.slowdown < 0"
    ),
    # Finding 9
    Fault(
        "F9: events of the hour after do not count",
        OF_EVENTS,
        "and events.occurred_at < slow_hours.hour_utc + interval {{ (var('event_window_hours') | max) + 1 }} hour",
        "and events.occurred_at < slow_hours.hour_utc + interval 1 hour",
    ),
    Fault(
        "F9: events of the hours before do not count",
        OF_EVENTS,
        ">= slow_hours.hour_utc - interval {{ var('event_window_hours') | max }} hour",
        ">= slow_hours.hour_utc",
    ),
    Fault("F9: an unplug is an explicit event", OF_EVENTS, "where events.is_explicit", "where true"),
    Fault(
        "F9: events that nothing is known after count",
        OF_EVENTS,
        "inner join windows on events.hours_until_slowdown <= windows.window_hours",
        "cross join windows",
    ),
    Fault(
        "F9: a slow hour counts from its event on, not within the window",
        OF_EVENTS,
        "hours_until_slow <= windows",
        "hours_until_slowdown <= windows",
    ),
    Fault(
        "F14: an interval that began mild and went far is mild",
        OF_EVENT_VARIANTS,
        "severity('intervals.max_slowdown')",
        "severity('intervals.first_slowdown')",
    ),
    Fault(
        "F15: unplugs at the end of the data count as followed", OF_EVENT_VARIANTS, "unplugged_at + interval 10 hour <=", "unplugged_at <="
    ),
    Fault("F5: within 24 hours is the same calendar day", VARIANTS, "cast(previous_hour_utc as date) = cast(hour_utc as date)", "true"),
    # Findings 10 to 12
    Fault("F10: a drive's first year is year 0", "macros/age_year.sql", " as bigint) + 1", " as bigint)"),
    Fault("F10: on its first day a drive has no age", "macros/age_year.sql", ">= 0\n", "> 0\n"),
    Fault("F10: a drive is as old as it was last", f"{STUDY}_drives.sql", "min(day_utc) as first_day_utc", "max(day_utc) as first_day_utc"),
    Fault("F10: drives of unknown age count", f"{STUDY}_fleet_counts.sql", "where drives.first_age_year is not null\n", ""),
    Fault(
        "F11: drives without a model have a cell",
        f"{STUDY}_drive_classes.sql",
        "case when drives.model is not null then drives.flash_cell end",
        "drives.flash_cell",
    ),
    Fault(
        "F11: shares above are taken off each other",
        ESTIMATES,
        "        denominator - numerator as numerator,\n        denominator,\n        1 - share as share,",
        "        denominator - numerator as numerator,\n        denominator,\n        share,",
    ),
    Fault("F12: vendor A has the fewest drives", f"{STUDY}_drive_classes.sql", "count(*) desc", "count(*) asc"),
    Fault("F12: of a tie the last name is vendor A", f"{STUDY}_drive_classes.sql", "vendor asc", "vendor desc"),
    Fault(
        "F12: an hour at exactly the edge is above it",
        f"{STUDY}_drive_hour_counts.sql",
        "- coalesce(max(at_edge_totals.hour_count), 0)",
        "- 0 * coalesce(max(at_edge_totals.hour_count), 0)",
    ),
    # Finding 13
    Fault("F13: half the I/Os is no degradation of 2", GROUP_DAYS, "rio_degradation >= ", "rio_degradation > "),
    Fault(
        "F13: the difference's interval takes the other share's wrong end",
        ESTIMATES,
        "power(others.share_high - others.share, 2)",
        "power(others.share - others.share_low, 2)",
    ),
    Fault(
        "F13: pairs whose I/Os cannot be compared count",
        GROUP_DAYS,
        """transition = '" ~ transition ~ "' and rio_degradation is not null\")""",
        """transition = '" ~ transition ~ "'\")""",
    ),
    # Findings 14 and 15
    Fault("F14: a drive waits as long as for its last unplug", OF_EVENTS, "min(intervals.wait_hours)", "max(intervals.wait_hours)"),
    Fault(
        "F14: drives that were never unplugged are left out",
        OF_EVENTS,
        "as edges on waits.class = edges.class",
        "as edges on waits.class = edges.class and waits.wait_hours is not null",
    ),
    Fault("F14: 24 hours are not within a day", OF_EVENTS, "waits.wait_hours <= edges.x", "waits.wait_hours < edges.x"),
    Fault("F14: the figure waits for the last unplug", OF_CURVES, "min(intervals.wait_hours)", "max(intervals.wait_hours)"),
    Fault("F15: a drive whose replug is implied is still out", OF_EVENTS, "when is_replugged then", "when replugged_at is not null then"),
    Fault(
        "F15: drives that were not slow again are left out",
        OF_EVENTS,
        "as edges on recurrences.class = edges.class",
        "as edges on recurrences.class = edges.class and recurrences.recur_hours is not null",
    ),
    Fault("F15: drives that are still out recur", OF_EVENTS, "    where episodes.replugged_at is not null\n", ""),
    Fault("F15: outages that nobody timed count", OF_EVENTS, "where episodes.outage_hours is not null\n", ""),
    # intervals of confidence
    Fault(
        "hours of a RAID group are independent",
        OF_SHARES,
        "squared_residuals * cluster_count",
        "0 * squared_residuals * cluster_count",
    ),
    Fault("the variance is over G, not G - 1", OF_SHARES, "/ (cluster_count - 1)", "/ cluster_count"),
    Fault(
        "none of many hours of few RAID groups is certain",
        OF_SHARES,
        "in (0, denominator) then cast(cluster_count as double)",
        "in (0, denominator) then cast(denominator as double)",
    ),
    Fault("one RAID group makes an interval", OF_SHARES, "when cluster_count = 1 then 1.0", "when false then 1.0"),
    Fault("Wilson's interval is one of 90%", "macros/study/wilson.sql", "1.959963984540054", "1.6448536269514722", 2),
    Fault("Wilson's interval is the naive one", "macros/study/wilson.sql", " + 0.9603647051735313 / {{ n }}", ""),
    Fault("a percentile's rank is rounded down", OF_PERCENTILES, "+ 99999) / 100000", ") / 100000"),
    Fault("a percentile's hours are independent", OF_PERCENTILES, "population * effects.independence", "population"),
    Fault(
        "a percentile looks for dependence at the least edge",
        OF_PERCENTILES,
        "case when shares.x <= estimates.value then -shares.x else shares.x end",
        "shares.x",
    ),
    # verdicts
    Fault("ten expected events are too few", RESULTS, "expected_events < {{", "expected_events <= {{", 2),
    Fault("events are expected on the paper's side, however common", RESULTS, "least(paper_value, 100 - paper_value)", "paper_value"),
    Fault("what the paper saw in all expects no events", RESULTS, "        when paper_value in (0, 100) then 1\n", ""),
    Fault(
        "percentiles are compared as they stand",
        RESULTS,
        "case judged_as when 'percentile' then 100 - value else value end as compared_value",
        "value as compared_value",
    ),
    Fault("a printed number is exact", RESULTS, "ci_low <= paper_value + paper_half_digit", "ci_low <= paper_value"),
    Fault(
        "a value too low agrees",
        RESULTS,
        "and compared_paper_value <= {{ var('comparable_factor') }} * compared_value",
        "and compared_value is not null",
    ),
    Fault("any interval agrees", RESULTS, "when is_met\n", "when true\n"),
    # figures, statements and variants
    Fault("y leaves out what lies on the edge", CURVES, "cast(below_count + equal_count as double)", "cast(below_count as double)"),
    Fault("Figure 6a leaves out drives that were never slow", OF_CURVES, "left join slow_drives on", "inner join slow_drives on"),
    Fault(
        "Figure 11 leaves out drives that were never unplugged",
        CURVES,
        "sum(value_count) over (partition by figure, curve) as",
        "sum(case when x is not null then value_count end) over (partition by figure, curve) as",
    ),
    Fault("hours of the day are UTC's", STATEMENTS, "case when timezone = 'unknown' then 'UTC' else timezone end", "'UTC'", 2),
    Fault("Cramer's V does not matter", STATEMENTS, "and cramers_v <= 0.02 ", ""),
    Fault(
        "values on an edge are taken for those above it",
        STATEMENTS,
        "case when places.is_on_edge then 0 else 1 end",
        "case when places.is_on_edge then 1 else 0 end",
    ),
    Fault(
        "hours of a drive of another speed stay counted as they were",
        "models/intermediate/lateness/int_drives__reclassified.sql",
        "    or kinds.drive_class <> counted.drive_class\n",
        "",
    ),
    Fault(
        "all drives are of one class",
        DAY_COUNTS,
        "select sign, kind, drive_class, hour_utc, 'slowdown'",
        "select sign, kind, 'all' as drive_class, hour_utc, 'slowdown'",
    ),
    Fault("slow shares of classes may differ", STATEMENTS, "and largest_factor <= 1.25 ", ""),
    Fault(
        "drives of no known class are not among all",
        STATEMENTS,
        "    from binned\n    group by kind\n",
        "    from classed\n    group by kind\n",
    ),
    Fault(
        "of years as common as each other the first by its text",
        ESTIMATES,
        "instr(',' || wanted.class || ',', ',' || shares.class || ',')\n        ) as choice",
        "shares.class\n        ) as choice",
    ),
    Fault(
        "a drive that nobody watched recurs never",
        SURVIVALS,
        "case when plain.watched_count > 0 then",
        "case when plain.denominator > 0 then",
    ),
    Fault("intervals that were cut off have ended", SURVIVALS, "not is_right_censored as is_ended", "true as is_ended"),
    Fault("those who left are still at risk", SURVIVALS, "order by hours desc", "order by hours asc"),
    Fault("incomplete groups are complete", VARIANTS, "from raid_days where is_complete", "from raid_days"),
    Fault("an interval follows one in another group", VARIANTS, "    where previous_raid_group_id = raid_group_id\n", "", 2),
    Fault(
        "the lift is over slow hours",
        "models/marts/study/study_variants.sql",
        "slow_hours.share / nullif(shares.share, 0.0)",
        "shares.share / nullif(slow_hours.share, 0.0)",
    ),
    # ingest
    Fault("a latency that is NaN is accepted", "ingest/parse.py", "where & value.is_nan()", "where & value.is_nan() & False"),
    Fault("a latency below zero is accepted", "ingest/parse.py", "where & (value < 0)", "where & (value < -2)"),
    Fault("an idle direction keeps its latency", "ingest/parse.py", 'pl.when(pl.col(f"{d}_ios") > 0)', 'pl.when(pl.col(f"{d}_ios") >= 0)'),
    Fault(
        "the row's order decides before collected_at", "ingest/judge.py", 'return ["collected_at", *rest]', 'return [*rest, "collected_at"]'
    ),
    Fault(
        "the record that came last wins",
        "ingest/judge.py",
        'return ["collected_at", *rest]',
        'return ["delivery_seq", "row_no", "collected_at", *rest]',
    ),
    Fault(
        "no collected_at is the newest",
        "ingest/judge.py",
        "(b > a).fill_null(False) | (a.is_null() & b.is_not_null())",
        "(b > a).fill_null(False) | (b.is_null() & a.is_not_null())",
    ),
    Fault("exact duplicates are stored", "ingest/landing.py", "self.staged.drop_rows(verdict.dropped, record_kind)", "pass"),
    Fault(
        "duplicates are counted as superseded",
        "ingest/landing.py",
        '(verdict.duplicate, "rows_duplicate")',
        '(verdict.duplicate, "rows_superseded")',
    ),
    Fault(
        "rejected rows are dropped silently",
        "ingest/landing.py",
        'self._write("rejected_records", self.rejected())',
        'self._write("rejected_records", self.rejected(0))',
    ),
    # finer samples
    Fault("within the hour drives of low coverage are peers", SAMPLES, "    where is_covered\n", ""),
    Fault("minutes are held against minutes of another length", SAMPLES, "measured.to_utc = medians.to_utc", "true"),
    Fault("within the hour spares are compared", SAMPLES, "where drive_hours.is_data_drive", "where drive_hours.is_data_drive is not null"),
    Fault(
        "within the hour two latencies make a median",
        SAMPLES,
        f"when medians.latency_count >= {MIN_DRIVES}",
        "when medians.latency_count >= 2",
    ),
    Fault("of two samples the one that saw less counts", STAGED_SAMPLES, "coalesce(coverage, 1.0) desc", "coalesce(coverage, 1.0) asc"),
    Fault("samples that lost a conflict count", STAGED_SAMPLES, "where {{ is_live('drive_samples', 'rows_of_raw') }}", "where true"),
    Fault(
        "an idle direction makes the merged latency unknown",
        "macros/merged.sql",
        "coalesce(cast(read_ios as double) * read_latency_us, 0.0)",
        "cast(read_ios as double) * read_latency_us",
    ),
    Fault("samples of a rejected hour stay", "ingest/landing.py", "self._drop_samples_of(broken)", "pass"),
    Fault("five minutes take in what was counted long before", "ingest/prometheus/readings.py", "- min(span_us, LOOKBACK_US)", "- HOUR_US"),
    Fault(
        "a drive that is gone still counts in its place",
        "ingest/prometheus/pull.py",
        'serials.filter(pl.col("serials") > 1)',
        'serials.filter(pl.col("serials") > 2)',
    ),
    Fault("five minutes take in a long gap", "ingest/diskstats.py", '(pl.col("span") - 1) * seconds', '(pl.col("span") - 9) * seconds'),
    Fault("five minutes take in what sar saw of ten", "ingest/sysstat.py", "<= seconds + 1", "<= seconds * 9"),
    # the server that is asked
    Fault("credentials follow to another address", "ingest/prometheus/client.py", "allow_redirects=False", "allow_redirects=True"),
    Fault("the authority that is named is not asked", "ingest/prometheus/client.py", "verify=self._authority", "verify=None"),
    Fault(
        "what a server says may hold a credential",
        "ingest/prometheus/client.py",
        "super().__init__(without_secrets(message))",
        "super().__init__(message)",
    ),
    # servers and inboxes
    Fault("a run of the past goes by later pulls", "drivetail/pulls.py", "for end in ends if end <= until]", "for end in ends]"),
    Fault(
        "an hour is not asked for again for its late scrapes",
        "drivetail/pulls.py",
        "first = until - server.hours * HOUR",
        "first = until - HOUR",
    ),
    Fault("the hour before a gap is not asked for again", "drivetail/pulls.py", "(server.hours - 1) * HOUR", "0 * HOUR"),
    Fault(
        "what a server did not give counts as brought",
        "drivetail/pulls.py",
        ' if record["outcome"] in BROUGHT]',
        "]",
    ),
    Fault(
        "held hours are asked for for ever",
        "drivetail/pulls.py",
        "BROUGHT = (LANDED, NOTHING_NEW, HELD)",
        "BROUGHT = (LANDED, NOTHING_NEW)",
    ),
    Fault(
        "a server is pulled without its settings",
        "drivetail/inbox.py",
        '"source_options": feed.options})]',
        '"source_options": {}})]',
    ),
    Fault(
        "of what was collected the first part lands",
        "drivetail/inbox.py",
        "for source, options in calls_of(feed.source, [path], feed.options)]",
        "for source, options in calls_of(feed.source, [path], feed.options)[:1]]",
    ),
    Fault("one decision settles all that is held", "drivetail/outcomes.py", "{self.quarantine, *self.also_held}", "{self.quarantine}"),
    Fault(
        "a part that cannot be read is passed over",
        "drivetail/outcomes.py",
        "            what = UNREADABLE\n",
        "            what = what\n",
    ),
    Fault(
        "an inbox that is not mounted holds up the others",
        "drivetail/inbox.py",
        "        except OSError as error:\n            entries.append",
        "        except MemoryError as error:\n            entries.append",
    ),
    Fault("who was replaced stays where an earlier pull saw them", "macros/held_until.sql", "and unbounded following", "and current row"),
    Fault(
        "every pull tells all inventory again",
        "ingest/prometheus/known.py",
        "return rows.filter(~pl.int_range(pl.len()).is_in(known.implode()))",
        "return rows",
    ),
    Fault(
        "what a drive has become is not told",
        "ingest/prometheus/known.py",
        '        *(pl.col(column).eq_missing(pl.col(f"{column}_told")) for column in says),\n',
        "",
    ),
    Fault(
        "after a gap nothing is told again",
        "ingest/prometheus/known.py",
        '.join(seen, on=["drive_id", "hour_utc"], how="semi")["number"]',
        '["number"]',
    ),
    # alerts
    Fault(
        "three slow hours in 25 raise an alert",
        ALERTS,
        "+ interval {{ var('alert_window_hours') }} hour,\n            false\n        ) as is_acute",
        "+ interval 25 hour,\n            false\n        ) as is_acute",
    ),
    Fault(
        "the first day of a RAID group makes drives chronic", ALERTS, "window_raid_hours >= {{ var('alert_chronic_raid_hours') }}", "true"
    ),
    Fault("two slow hours raise an alert", ALERTS, "so_many_before(var('alert_slow_hours') - 1", "so_many_before(1"),
    Fault(
        "a slow hour after 24 quiet ones is of the same alert",
        ALERTS,
        "order by hour_utc) + interval {{ var('alert_clear_hours') }} hour, false",
        "order by hour_utc) + interval 25 hour, false",
    ),
    Fault(
        "23 quiet hours clear an alert",
        ALERTS,
        ">= runs.last_slow_hour_utc + interval {{ var('alert_clear_hours') }} hour",
        ">= runs.last_slow_hour_utc + interval 23 hour",
    ),
    Fault(
        "a later run does not clear the earlier one",
        ALERTS,
        "greatest(raid_groups.last_hour_utc, runs.last_of_subject_utc)",
        "raid_groups.last_hour_utc",
    ),
    Fault(
        "an alert clears without evidence",
        ALERTS,
        "greatest(raid_groups.last_hour_utc, runs.last_of_subject_utc)",
        "timestamp '9999-01-01'",
    ),
    Fault("slow hours of any event of the drive are left out", ALERTS, "\n                and events.event_type = 'maintenance'", "", 2),
    Fault("maintenance of any drive counts", ALERTS, "events.drive_id = slow.drive_id\n                and ", ""),
    Fault(
        "maintenance without an end takes no hour",
        ALERTS,
        "events.occurred_at + interval 1 hour) > slow.hour_utc",
        "events.occurred_at) > slow.hour_utc",
    ),
    Fault(
        "maintenance counts only in hours that it fills from their start",
        ALERTS,
        "events.occurred_at < slow.hour_utc + interval 1 hour",
        "events.occurred_at <= slow.hour_utc",
    ),
    Fault(
        "maintenance that ended on the hour takes the next one too",
        ALERTS,
        "+ interval 1 hour) > slow.hour_utc",
        "+ interval 1 hour) >= slow.hour_utc",
    ),
    Fault(
        "a mildly slow hour counts for an alert",
        ALERTS,
        "slow.slowdown >= {{ var('slow_threshold') }}",
        "slow.slowdown >= {{ var('mild_threshold') }}",
    ),
    Fault(
        "the RAID group of an alert is that of its first hour", ALERTS, "max_by(raid_group_id, hour_utc)", "min_by(raid_group_id, hour_utc)"
    ),
    Fault("the worst hour is the last of equals", ALERTS, "order by slowdown desc, hour_utc asc", "order by slowdown desc, hour_utc desc"),
    Fault("a larger size alone is no imbalance", ALERTS, " or slow.size_imbalance >= {{ var('imbalanced') }}", ""),
    Fault("half of its hosts' slow drives are enough for an enclosure", ALERTS, "own.alert_id) > count", "own.alert_id) >= count"),
    Fault(
        "an enclosure with a minority of its hosts' slow drives is told", ALERTS, "coalesce(beside.alert_id, own.alert_id)", "own.alert_id"
    ),
    Fault(
        "what an enclosure does not explain is told drive by drive",
        ALERTS,
        "    where place_type = 'host'\n        and not",
        "    where false\n        and not",
    ),
    Fault("a host takes what its enclosure was told of", ALERTS, "where of_enclosures.alert_id = by_place.alert_id)", "where false)"),
    Fault(
        "two hosts share an enclosure though both fill a slot of it",
        PLACES,
        " and count(case when is_taken and slot is not null then 1 end) = 0",
        "",
    ),
    Fault("unknown slots are one slot", PLACES, "is_taken and slot is not null", "is_taken"),
    Fault(
        "a slot that another host had before is taken",
        PLACES,
        "first_hour_utc <= max(last_hour_utc) over",
        "true or first_hour_utc <= max(last_hour_utc) over",
    ),
    Fault("an enclosure of two sites is one", PLACES, "on drives.site = shared.site and drives.enclosure", "on drives.enclosure"),
    Fault("an enclosure of one host is its site's", PLACES, "having min(host) <> max(host) and count", "having count"),
    Fault("a drive whose host is not known has one", PLACES, "\nwhere host is not null\n", "\n"),
    Fault("an enclosure's name is no other's", PLACES, "drives.host || '/' || drives.enclosure", "drives.enclosure"),
    Fault("of a host and its enclosure the host is told", EVIDENCE, "when 'enclosure' then 1", "when 'host' then 1"),
    Fault(
        "enclosures of one name are one place to candidates",
        PANEL,
        "coalesce(described.host, described.site",
        "coalesce(described.enclosure, described.host, described.site",
    ),
    Fault("enclosures of two sites are one place to candidates", PANEL, "described.site || '/' || described.enclosure, ", ""),
    Fault("who has no host has no place to candidates", PANEL, ", described.enclosure) is not null", ") is not null"),
    Fault("who is there begins anew with every span of a dump", READINGS, 'pl.coalesce("since", ', "pl.coalesce("),
    Fault("a drive that nobody names any more stays where it was", READINGS, '| pl.col("since").is_not_null()', ""),
    Fault("two drives of a host are together", TOGETHER, "so_many_before(var('alert_together_drives') - 1", "so_many_before(1"),
    Fault(
        "three drives in 25 hours are together",
        TOGETHER,
        "+ interval {{ var('alert_window_hours') }} hour",
        "+ interval 25 hour",
    ),
    Fault(
        "a drive that follows a day later does not join",
        TOGETHER,
        "raised_at <= lag(raised_at)",
        "raised_at < lag(raised_at)",
    ),
    Fault(
        "a host's alert clears with its first drive's",
        ALERTS,
        "case when count(cleared_at) = count(*) then max(cleared_at) end",
        "min(cleared_at)",
    ),
    Fault(
        "a host's alert clears while a drive's is open",
        ALERTS,
        "case when count(cleared_at) = count(*) then max(cleared_at) end",
        "max(cleared_at)",
    ),
    Fault(
        "an alert of several RAID groups names one of them",
        ALERTS,
        "case when min(raid_group_id) = max(raid_group_id) then min(raid_group_id) end",
        "min(raid_group_id)",
    ),
    Fault(
        "a host's alert is raised with its first drive's",
        ALERTS,
        "min(case when is_together then raised_at end) as raised_at",
        "min(raised_at) as raised_at",
    ),
    Fault(
        "a group at exactly twice its past is not slow as a whole",
        ALERTS,
        "usual_median_latency_us >= {{ var('alert_group_slowdown') }}",
        "usual_median_latency_us > {{ var('alert_group_slowdown') }}",
    ),
    Fault(
        "a group is looked at for 28 days and an hour",
        ALERTS,
        "group_hours.hour_utc > group_hours.last_hour_utc",
        "group_hours.hour_utc >= group_hours.last_hour_utc",
    ),
    Fault(
        "the past of a group's oldest hours is not read",
        ALERTS,
        "var('alert_group_days') + 7 * var('group_past_weeks')",
        "var('alert_group_days')",
    ),
    Fault(
        "maintenance of any drive holds back a group's alert",
        ALERTS,
        "drives.current_raid_group_id = group_hours.raid_group_id\n                and ",
        "",
    ),
    Fault(
        "a group takes the last hour of the drive of that name",
        ALERTS,
        "runs.subject_type = 'drive' and runs.subject_id = drives",
        "runs.subject_id = drives",
    ),
    Fault(
        "a group's alert stands for one drive",
        ALERTS,
        "when 'drive' then 1 else raid_groups.data_drive_count end",
        "when 'drive' then 1 else 1 end",
    ),
    Fault(
        "half of the hours at 1.2 are most",
        CHRONIC_DAYS,
        "2 * windows.window_chronic_hours > windows.window_drive_hours",
        "2 * windows.window_chronic_hours >= windows.window_drive_hours",
    ),
    Fault(
        "half of the RAID group's hours are too few for a chronic drive",
        CHRONIC_DAYS,
        "2 * windows.window_drive_hours >= windows.window_raid_hours",
        "2 * windows.window_drive_hours > windows.window_raid_hours",
    ),
    Fault(
        "a chronic drive that is seen no more stays open",
        CHRONIC_DAYS,
        "2 * windows.window_drive_hours < windows.window_raid_hours\n    or ",
        "",
    ),
    Fault(
        "a chronic drive with half of its hours at 1.1 is not well",
        CHRONIC_DAYS,
        "2 * windows.window_doubtful_hours <= windows.window_drive_hours",
        "2 * windows.window_doubtful_hours < windows.window_drive_hours",
    ),
    Fault(
        "a chronic drive is well below 1.2",
        CHRONIC_DAYS,
        "edge_name(var('alert_chronic_clear_slowdown'))",
        "edge_name(var('chronic_slowdown'))",
    ),
    Fault("a day counts before it is over", CHRONIC_DAYS, "\n    and windows.day_utc + interval 23 hour <= raid_groups.last_hour_utc", ""),
    Fault("the chronic window has 27 days", CHRONIC_DAYS, "var('chronic_window_days') - 1", "var('chronic_window_days') - 2"),
    Fault("the chronic window has 29 days", CHRONIC_DAYS, "var('chronic_window_days') - 1", "var('chronic_window_days')"),
    Fault("a drive that is neither chronic nor well is chronic anew", ALERTS, " or is_well\n", " or true\n"),
    Fault(
        "a chronic drive's last hour is that of the day it is well",
        ALERTS,
        "max(case when is_chronic then day_utc end) + interval 23 hour",
        "max(day_utc) + interval 23 hour",
    ),
    Fault("a group's own past is the days before", USUAL_MEDIAN, "7 * week", "week", 2),
    Fault(
        "a group's own past is all hours of the weeks before",
        USUAL_MEDIAN,
        "and interval ' ~ 7 * week ~ ' day preceding",
        "and interval ' ~ 7 ~ ' day preceding",
    ),
    Fault("a group's own past begins five weeks before", USUAL_MEDIAN, "var('group_past_weeks') + 1", "var('group_past_weeks') + 2"),
    Fault("a group is held against the past of all groups", USUAL_MEDIAN, "partition by ' ~ raid_hours ~ '.raid_group_id order", "order"),
    # detectors
    Fault("squares of seconds have no more than 18 digits", "macros/outliers.sql", "as decimal(20, 0))", "as decimal(13, 0))"),
    Fault("four drives are enough for HDFS", OUTLYING, "peer_count >= {{ var('hdfs_min_drives') }}", "peer_count >= 4"),
    Fault("HDFS has no low bound", OUTLYING, "cast({{ var('hdfs_low_us') }} as double)", "0.0"),
    Fault("three medians are above HDFS's limit", OUTLYING, "latency_us > hdfs_limit_us", "latency_us >= hdfs_limit_us"),
    Fault("HDFS's deviations are not scaled", OUTLYING, " * {{ var('hdfs_mad_factor') }}", ""),
    Fault("drives out of the population are peers of a detector", OUTLYING, "where is_in_population and slowdown", "where slowdown"),
    Fault("RAID-hours up to eleven medians hold no outlier", OUTLYING, ">= {{ least_outlying_slowdown() }}", "> 11"),
    Fault("the middle one is in the upper half", OUTLYING, "2 * place > peer_count + 1", "2 * place > peer_count"),
    Fault("the middle one is in the lower half", OUTLYING, "2 * place <= peer_count", "2 * place <= peer_count + 1"),
    Fault("equal peers have no interquartile range", OUTLYING, "spreads.q1_latency_us * {{ var('zfs_least_iqr') }}", "0.001"),
    Fault("a latency at ZFS's fence is above", OUTLYING, "when latency_us > fence_us", "when latency_us >= fence_us"),
    Fault("ZFS's count rises without bound", OUTLYING, "cast({{ var('zfs_greatest_rise') }} as double)", "1e9"),
    Fault("ZFS's count may rise by nothing", OUTLYING, "greatest(1.0, least(", "greatest(0.0, least("),
    Fault("ZFS counts no fewer than seven drives", OUTLYING, "peer_count >= {{ var('zfs_min_drives') }}", "peer_count >= 7"),
    Fault("of equally slow drives ZFS counts the greatest", OUTLYING, "peers.drive_id desc", "peers.drive_id asc"),
    Fault("two standard deviations are three", OUTLIERS, "var('sigma_multiple') ** 2", "var('sigma_multiple')"),
    Fault(
        "rises of a RAID group drop no counts",
        SIT_OUT_COUNTS,
        "case when last.states[-1].total + rise.rise >= rise.peers then {{ var('zfs_drop') }} else 0 end",
        "0",
    ),
    Fault(
        "ZFS's counts fall below nothing",
        SIT_OUT_COUNTS,
        "                        0\n                    ) + case when number",
        "                        -9\n                    ) + case when number",
    ),
    Fault(
        "counts go on after a sit-out",
        SIT_OUT_COUNTS,
        "case when list_max(last.states[-1].counts) > {{ var('zfs_outlier_limit') }} then 0 else count end",
        "count",
    ),
    Fault("a count at the limit is a sit-out", SIT_OUTS, "outlier_count > {{", "outlier_count >= {{"),
    Fault("a day without a slowdown is a round", SCORED, "    having sum(days.slowdown_hours) > 0\n", ""),
    Fault("quiet days between slow ones bring no score down", SCORED, "coalesce(quiet_days_before, 0)", "0"),
    Fault("a day has 24 hours for TiKV", SCORED, "/ drive_hours, {{", "/ 24, {{"),
    Fault("scores rise without bound", SCORED, "'least(100.0, '", "'least(1000.0, '", 2),
    Fault("TiKV's score falls to 0", SLOW_SCORES, "greatest(1.0,", "greatest(0.0,"),
    Fault("IASO's score never ends", SLOW_SCORES, ">= 1.0", ">= 0.0"),
    Fault("TiKV and IASO flag above their bound only", VERDICTS, "{{ score }} >= {{ slow_score }}", "{{ score }} > {{ slow_score }}"),
    Fault("a mild day is a slow one", VERDICTS, "where {{ hours }} > 0", "where true"),
    Fault(
        "the worst hour of a verdict is the last of equals",
        VERDICTS,
        "order by slowdown desc, hour_utc asc",
        "order by slowdown desc, hour_utc desc",
    ),
    Fault("half of the hours at 1.2 have a verdict", VERDICTS, "where 2 * window_chronic_hours > window_drive_hours", "where true"),
    Fault("a verdict that is no flag counts for agreement", AGREEMENT, "where verdicts.is_flagged", "where true"),
    Fault("the last 28 days are 27", AGREEMENT, "var('detector_recent_days') - 1", "var('detector_recent_days') - 2"),
    Fault("the last 28 days are 29", AGREEMENT, "var('detector_recent_days') - 1", "var('detector_recent_days')"),
    Fault("drives without a slowdown could be flagged", AGREEMENT, "days.slowdown_hours > 0", "days.slowdown_hours >= 0"),
    Fault("a verdict that is no flag finds a drive", LABELLED, "    where is_flagged\n", ""),
    Fault("a label of a drive that was never seen is a miss", SCORES, "is_seen and is_slow and not", "is_slow and not"),
    Fault("a miss costs what a needless replacement does", SCORE_COSTS, "ratios.miss_cost_ratio * scores", "scores"),
    Fault(
        "of two labels of a drive slow counts, whenever it was said",
        "ingest/schema.py",
        '"labelled_on": DAY,\n        "verdict": TEXT,',
        '"verdict": TEXT,\n        "labelled_on": DAY,',
    ),
    Fault("a label without a verdict is one", "ingest/labels.py", ".fill_null(False)", ""),
    # Perseus
    Fault("any cluster is what is usual", FITTED, ".argmax()", ".argmin()"),
    Fault(
        "noise is a cluster",
        FITTED,
        "labels == np.bincount(labels[labels >= 0]).argmax()",
        "labels == np.bincount(labels + 1).argmax() - 1",
    ),
    Fault("bytes and microseconds are one measure", FITTED, "scores = scaler.transform(points)", "scores = points"),
    Fault("the bound is that of the mean, not of a sample", FITTED, "spread[0] += 1.0", "spread[0] += 0.0"),
    Fault("the bound is the upper end of 90%", FITTED, "t.ppf((1 + level) / 2, freedom)", "t.ppf(level, freedom)"),
    Fault("of more samples than are fitted the first are", FITTED, "* count // min(count, most)", ""),
    Fault(
        "two drives are fitted",
        FITTED,
        'fewest_drives = dbt.config.meta_get("fewest_drives")',
        'fewest_drives = 1 + 0 * dbt.config.meta_get("fewest_drives")',
    ),
    Fault(
        "hours that a batch leaves are not of the day",
        DRIVE_SAMPLES,
        "{{ source('plan', 'kept_drive_hours') }} where",
        "{{ source('plan', 'kept_drive_hours') }} where false and",
    ),
    Fault("samples of low coverage are fitted", DRIVE_SAMPLES, "    where coalesce(samples.coverage, 1.0) >= samples.min_coverage\n", ""),
    Fault(
        "bytes count for the time that nobody looked", DRIVE_SAMPLES, "60 * sample_minutes * coalesce(coverage, 1.0)", "60 * sample_minutes"
    ),
    Fault("a quarter of an hour is a window", DRIVE_SAMPLES, "where sample_minutes <= {{ var('perseus_window_minutes') }}", "where true"),
    Fault(
        "longer samples than the shortest are looked at",
        DRIVE_SAMPLES,
        "        and measured.sample_minutes = shortest.sample_minutes\n",
        "",
    ),
    Fault("the whole window makes its median", SAMPLED, "    where ratio >= median_ratio\n", ""),
    Fault(
        "a window at the bound is an event",
        SAMPLED,
        "upper_ratio > {{ var('perseus_event_ratio') }}",
        "upper_ratio >= {{ var('perseus_event_ratio') }}",
    ),
    Fault("a bound below zero is one", SAMPLED, "    where bound_us > 0\n", ""),
    Fault("windows that are no event count for the mean", SAMPLED, "sum(case when is_event then upper_ratio end)", "sum(upper_ratio)"),
    Fault(
        "a day that is fitted anew keeps what it was",
        SAMPLED,
        "where touched.raid_group_id = stored.raid_group_id and touched.day_utc = stored.day_utc",
        "where false",
    ),
    Fault("who is not touched loses the day", SAMPLED, "where touched.raid_group_id = stored.raid_group_id and", "where"),
    Fault("15 days are 14", AT_RISK, "var('perseus_days') - 1", "var('perseus_days') - 2"),
    Fault("15 days are 16", AT_RISK, "var('perseus_days') - 1", "var('perseus_days')"),
    Fault("a mean of 5 is below 5", PERSEUS_RISK, "{{ event_ratio }} >= {{ ratio }}", "{{ event_ratio }} > {{ ratio }}"),
    Fault("24 events are fewer", PERSEUS_RISK, "{{ event_count }} >= {{ events }}", "{{ event_count }} > {{ events }}"),
    Fault(
        "Perseus flags above 50 only",
        VERDICTS,
        "window_risk >= {{ var('perseus_slow_risk') }}",
        "window_risk > {{ var('perseus_slow_risk') }}",
    ),
    Fault("every day of samples has a verdict", VERDICTS, "where risk > 0", "where true"),
    Fault("who has no samples was seen by Perseus", LABELLED, " and detectors.is_of_samples = seen.is_of_samples", ""),
    Fault("Perseus agrees about drives it never saw", AGREEMENT, "detectors.is_of_samples or others.is_of_samples as", "false as"),
    Fault(
        "samples that come without their hour touch nothing",
        TOUCHED,
        "inner join sampled on drive_hours",
        "inner join (select * from sampled where false) as sampled on drive_hours",
    ),
    # candidates
    Fault("an outcome is known three weeks later", "macros/is_known_by.sql", ".week_no - 4", ".week_no - 3"),
    Fault("28 days are three weeks", OUTCOMES, "drive_weeks.week_no + 3", "drive_weeks.week_no + 2"),
    Fault("a RAID group that has stopped says its drives are well", OUTCOMES, "interval 27 day", "interval 1 day"),
    Fault(
        "a drive's past weighs alike", PANEL, "power(0.5, (weekly.week_no - past.week_no)", "power(0.5, 0 * (weekly.week_no - past.week_no)"
    ),
    Fault("an event after a boundary is known at it", PANEL, " and events.occurred_at < weekly.boundary_utc", ""),
    Fault(
        "a RAID group that resumes had been there",
        OUTCOMES,
        "and drive_weeks.boundary_utc = last_days",
        "and drive_weeks.boundary_utc <= last_days",
    ),
    Fault("inventory that begins at a boundary is known at it", PANEL, "boundary_utc > described.from", "boundary_utc >= described.from"),
    Fault("a drive always was with its present host", PANEL, "        and slow_hours.hour_utc < described.to_hour_utc\n", ""),
    Fault("a recurrence to come is known", PANEL, "when recurrences.recurred_at < windows.boundary_utc", "when true"),
    Fault("a wait begins with the last slow hour", PANEL, "coalesce(slow_hours.hours_since_last, 0) <> 1", "true"),
    Fault("the hour after is a recurrence", PANEL, "between 2 and 24", "between 1 and 24"),
    Fault(
        "a tail hour that stays without the drive is its doing",
        "macros/weekly_tail_hours_caused.sql",
        "where tail_1_without_one < ",
        "where tail_1_without_one >= 0 * ",
    ),
    Fault("nothing of an own rate is drawn to the mean", EXPECTED, "mean_after - credibility * mean_own", "mean_after"),
    Fault("a class of few drives counts in full", EXPECTED, "(sum(y) + {{ var('candidate_factor_prior_hours') }})", "(sum(y) + 1)"),
    Fault("who caused least is the model's first", RANKED, "expected_tail_hours desc", "expected_tail_hours asc"),
    Fault("a shared path is replaced", REPLACEMENTS, "2 * priced.together_hours_28d >", "0 * priced.together_hours_28d >"),
    Fault("the expectation alone says replace", REPLACEMENTS, "priced.expected_low > priced", "priced.expected_tail_hours > priced"),
    Fault("labour costs nothing", REPLACEMENTS, "+ {{ var('replace_labour_hours') }} *", "+ 0 * {{ var('replace_labour_hours') }} *"),
    Fault("a superseded decision stands", REPLACEMENTS, "('pending', 'standing')", "('pending', 'standing', 'superseded')"),
    Fault("losses are open", BACKTEST_SUMMARY, "when ends.gain_high < 0 then 'loses'\n", ""),
    # costs
    Fault("users who went home are a slow drive's loss", COSTS, "not io_count_after between", "false and not io_count_after between"),
    Fault(
        "what to expect counts users who went home",
        COSTS,
        "between 1.0 / {{ var('cost_load_factor') }} and {{ var('cost_load_factor') }}",
        "> 0",
    ),
    Fault(
        "the others are held against the median that the drive was part of",
        COUNTERFACTUAL,
        "median(case when tail_rank > {{ removed }} then latency_us end)",
        "median(latency_us)",
    ),
    Fault(
        "without two drives only one is gone",
        COUNTERFACTUAL,
        "max(case when tail_rank > {{ removed }} then latency_us end)",
        "max(case when tail_rank > 1 then latency_us end)",
    ),
    Fault("two drives that are left have a median", COUNTERFACTUAL, ">= {{ var('min_reporting_drives') }} and others", ">= 2 and others"),
    Fault(
        "of drives as slow the one of the greater id goes first", COUNTERFACTUAL, "drive_hours.drive_id asc", "drive_hours.drive_id desc"
    ),
    Fault("a RIO that fell after a tail hour counts", COUNTERFACTUAL, "raid_hours.transition = 'stable_to_tail' and", ""),
    Fault(
        "a tail hour that is one without the drive too is its doing",
        COSTS,
        "count(case when tail_1_without_one < {{ var('slow_threshold') }} then 1 end)",
        "count(case when tail_1_without_one <= {{ var('slow_threshold') }} then 1 end)",
    ),
    Fault(
        "tail hours that cannot be judged are in the mean before",
        COSTS,
        "case when tail_1_without_one is not null then tail_1 end as judged_tail_1",
        "tail_1 as judged_tail_1",
    ),
    Fault("every transition says what RIO to expect", COSTS, "transition = 'stable_to_stable'", "true"),
    Fault("a RAID group is expected to keep its RIO", COSTS, "tails.io_count_before * expected.io_ratio", "tails.io_count_before"),
    Fault("a drive's costs are those of any RAID group it was in", COSTS, "    and slow_hours.raid_group_id = tails.raid_group_id\n", ""),
    Fault("a drive in two RAID groups counts twice", COSTS_BY, "count(distinct drive_id)", "count(drive_id)"),
    Fault("replaced drives stay in the median", WHAT_IF, "    where replaced.drive_id is null\n", ""),
    Fault("RAID-hours of two drives are left", WHAT_IF, "count(*) >= max(thresholds.min_reporting_drives)", "count(*) >= 2"),
    Fault("reads go round one tail at most", WHAT_IF, "else raid_hours.tail_3", "else raid_hours.tail_2"),
    Fault(
        "hours with a median of zero stay without slowdowns",
        WHAT_IF,
        "(slowdown is not null or exclusion_reason = 'zero_median')",
        "slowdown is not null",
    ),
    Fault(
        "the worst drives are those of the smallest ids",
        WHAT_IF,
        "order by count(*) desc, slowest_drive_id asc",
        "order by slowest_drive_id asc",
    ),
    Fault(
        "hours with tails are the good ones",
        SLO_SHARES,
        "raid_hours - tail_hours_{{ loop.index }} as hits",
        "tail_hours_{{ loop.index }} as hits",
    ),
    Fault("a budget is kept where it may be", SLO, "shares.share_low >= 1 -", "shares.share_high >= 1 -"),
    Fault("both thresholds have one budget", SLO, "then {{ var('slo_mild_budget') }} else", "then {{ var('slo_slow_budget') }} else"),
    # causes
    Fault("what was not seen counts before what is known", "seeds/cause_rules.csv", "censored,10,", "censored,0,"),
    Fault(
        "half of an interval's hours are most of them",
        EVIDENCE,
        "where 2 * {{ hours }} > interval_hours",
        "where 2 * {{ hours }} >= interval_hours",
    ),
    Fault(
        "twice the peers' I/Os to the last bit is no cause",
        EVIDENCE,
        "slow_hours.rate_imbalance >= {{ var('imbalanced') }}",
        "slow_hours.rate_imbalance > {{ var('imbalanced') }}",
    ),
    Fault("large I/Os count as many", EVIDENCE, "case when slow_hours.size_imbalance >=", "case when slow_hours.rate_imbalance >="),
    Fault(
        "an event of two hours before the interval is its cause",
        EVIDENCE,
        "counted.started_at - interval {{ var('cause_event_hours') }} hour",
        "counted.started_at - interval 2 hour",
    ),
    Fault(
        "any event is a drive event",
        EVIDENCE,
        """events.event_type in ('{{ var("explicit_event_types") | join("', '") }}')""",
        "events.event_type is not null",
    ),
    Fault("a scrub explains nothing", EVIDENCE, "events.event_type in ('rebuild', 'scrub')", "events.event_type in ('rebuild')"),
    Fault(
        "a rebuild without an end goes on for ever",
        EVIDENCE,
        "on slow_hours.raid_group_id = events.raid_group_id\n    where events.event_type in ('rebuild', 'scrub')\n"
        "        and events.occurred_at < slow_hours.hour_utc + interval 1 hour\n"
        "        and coalesce(events.ended_at, events.occurred_at + interval 1 hour) > slow_hours.hour_utc",
        "on slow_hours.raid_group_id = events.raid_group_id\n    where events.event_type in ('rebuild', 'scrub')\n"
        "        and events.occurred_at < slow_hours.hour_utc + interval 1 hour\n"
        "        and coalesce(events.ended_at > slow_hours.hour_utc, true)",
    ),
    Fault("any work on a drive is planned", EVIDENCE, "where events.event_type = 'maintenance'", "where events.event_type <> 'scrub'"),
    Fault(
        "a RAID group at exactly twice its usual is well",
        EVIDENCE,
        ">= {{ var('cause_group_slowdown') }}",
        "> {{ var('cause_group_slowdown') }}",
    ),
    Fault(
        "one slow drive of four is a whole group",
        MOST_DRIVES,
        "slow_drive_count >= {{ var('cause_group_drives') }}",
        "slow_drive_count >= 1",
    ),
    Fault(
        "who cuts one tail waits for the third drive",
        WEEKLY_TAILS,
        "tail_1_hours - tail_2_hours as saved",
        "tail_1_hours - tail_3_hours as saved",
    ),
    Fault("Sunday is of the next week's tails", WEEKLY_TAILS, "cast(days.day_utc as timestamp)", "days.day_utc + interval 1 day", 2),
    Fault("a drive that nobody measured got well", DRIVE_STATES, "measured.drive_hours > 0", "coalesce(measured.drive_hours, 0) >= 0"),
    Fault(
        "slow a fortnight ago is slow last week",
        DRIVE_STATES,
        "= followed.week_utc - interval 7 day then",
        ">= followed.week_utc - interval 14 day then",
    ),
    Fault(
        "a drive is no longer slow though it is", DRIVE_STATES, "where coalesce(followed.next_slow_week_utc <> weeks.week_utc, true)\n", ""
    ),
    Fault(
        "the longest interval names the cause",
        DRIVE_EVIDENCE,
        "order by cause_hours.cause_hours desc",
        "order by cause_hours.cause_hours asc",
    ),
    Fault("a verdict without a flag counts", DRIVE_EVIDENCE, "    where is_flagged\n", ""),
    Fault("the first event is the last", DRIVE_EVIDENCE, "order by events.occurred_at desc", "order by events.occurred_at asc"),
    Fault("an event of next week was the last", DRIVE_EVIDENCE, " and events.occurred_at < drive_weeks.week_utc + interval 7 day", ""),
    Fault("a few drives are compared", CLASSES, ">= {{ var('class_drives') }} and", ">= 1 and"),
    Fault("drives of a few groups are compared", CLASSES, ">= {{ var('class_raid_groups') }} as", ">= 1 as"),
    Fault(
        "age is that of another day",
        "macros/class_weeks.sql",
        "age_year('drives.deployed_on', 'days.day_utc')",
        "age_year('drives.deployed_on', 'drives.deployed_on')",
        2,
    ),
    Fault("a group's past is next week", GROUP_HOURS, "hour_utc + interval {{ 7 * week }} day", "hour_utc - interval {{ 7 * week }} day"),
    Fault(
        "a group at exactly twice its usual is well",
        GROUP_HOURS,
        "group_slowdown >= {{ var('cause_group_slowdown') }}",
        "group_slowdown > {{ var('cause_group_slowdown') }}",
        2,
    ),
    Fault("an event of which nothing is known is not slow", WEEKLY_EVENTS, "nullif(count(slow_within_window), 0)", "count(*)"),
    Fault("two slow drives of seven are a whole group", MOST_DRIVES, "slow_drive_count + 2", "slow_drive_count + 3"),
    Fault(
        "two slow drives of a host share a cause", EVIDENCE, "having count(*) >= {{ var('cause_together_drives') }}", "having count(*) >= 2"
    ),
    Fault(
        "a host and an enclosure of one name are one place",
        EVIDENCE,
        "on slow_places.place_type = crowded.place_type\n        and slow_places.place_id",
        "on slow_places.place_id",
    ),
    Fault("merged latencies in ticks are not looked at", EVIDENCE, "slow.is_side_in_ticks or (", "slow.is_side_in_ticks and ("),
    Fault(
        "a direction of exactly 1.5 times its peers is slow by ticks",
        SLOW_HOURS,
        "and {{ side }}_slowdown >= {{ var('slow_threshold') }}, false)",
        "and {{ side }}_slowdown >= {{ var('mild_threshold') }}, false)",
    ),
    Fault(
        "slow drives of one RAID group are a cohort",
        EVIDENCE,
        "where raid_group_count >= {{ var('cause_cohort_raid_groups') }}",
        "where raid_group_count >= 1",
    ),
    Fault(
        "a cohort is held against nobody",
        EVIDENCE,
        "and slow_drive_count * other_drive_count >= {{ var('cause_cohort_ratio') }} * other_slow_drive_count * drive_count",
        "",
    ),
    Fault(
        "a drive that left service counts among the others of its kind",
        EVIDENCE,
        "        and cohort_spans.last_day_utc >= slow_cohort_days.day_utc\n",
        "",
    ),
    Fault(
        "an interval whose end was not seen is silent", EVIDENCE, "where is_left_censored or is_right_censored", "where is_left_censored"
    ),
    Fault("the last rule that holds is the cause", CAUSES, "order by rules.cause_rank)", "order by rules.cause_rank desc)"),
    Fault("a RAID group without a cause does not count against it", CAUSE_SHARES, "    left join by_cause\n", "    inner join by_cause\n"),
    Fault(
        "a week begins on Sunday",
        CAUSE_SHARES,
        "date_trunc('week', started_at)",
        "date_trunc('week', started_at + interval 1 day)",
    ),
    # decisions and candidates that time has passed by
    Fault("a drive that was replaced is a candidate", CANDIDATES, "and replaced.drive_id is null", "and true"),
    Fault(
        "a drive that went within its last hour is a candidate",
        CANDIDATES,
        "to_hour_utc < drives.last_hour_utc",
        "to_hour_utc <= drives.last_hour_utc",
    ),
    Fault("one swap ends every decision on the drive", DECISIONS, "and decisions.superseded_at is null", ""),
    Fault("a decision holds an hour longer", DECISIONS, "publication.last_hour_utc + interval 1 hour", "publication.last_hour_utc"),
    Fault(
        "a past replacement is no longer pending",
        DECISIONS,
        "when judged.verdict = 'replace' then 'pending'",
        "when judged.verdict = 'replace' and not judged.is_past_until then 'pending'",
    ),
    Fault("a drive that came back has gone", REPLACED, "and periods.from_hour_utc >= drives.last_hour_utc", ""),
    Fault("a swap to come has been", REPLACED, "where date_trunc('hour', told.replaced_at) <= publication.last_hour_utc", ""),
    Fault("residuals are multiplied out with the wrong sign", OF_SHARES, "- 2 * {{ numerator }}", "+ 2 * {{ numerator }}"),
    # what hosts and servers say that is not whole, or not all
    Fault("a journal of an array holds data", "ingest/mdadm.py", 'elif "(J)" not in member[3]:', "else:"),
    Fault("a drive that is to replace another holds data", "ingest/mdadm.py", ' or "(R)" in member[3]', ""),
    Fault("what stands below an export costs it", "ingest/mdadm.py", ' or text.startswith("Personalities")', ""),
    Fault("every member of an array seen late was added", "ingest/mdadm.py", "elif was is None and group in known:", "elif was is None:"),
    Fault("who quotes the kernel is the kernel", "ingest/kernel_log/__init__.py", "_TAGGED.search(block) is not None", "False"),
    Fault("a USB port stays a drive's", "ingest/kernel_log/__init__.py", "self.by_usb.pop(", "self.by_usb.get("),
    Fault("too many questions make more of them", "ingest/prometheus/client.py", "status != 429 and ", ""),
    Fault("an answer may trickle for ever", "ingest/prometheus/client.py", "answer.result(ANSWER_SECONDS)", "answer.result(60)"),
    Fault(
        "drives that swap letters and swap back lose their serials",
        READINGS,
        'for name in ("host", "device", "serial"))',
        'for name in ("host", "device"))',
    ),
    Fault("who a drive is was said on that day or never", "ingest/prometheus/text.py", "pl.concat([_last(before), ", "pl.concat(["),
    Fault("a day of a dump begins with nothing before it", "ingest/prometheus/__init__.py", "pl.concat([before, once])", "once"),
    Fault(
        "what is said again of a drive hides what was said",
        "ingest/prometheus/__init__.py",
        "        landing.withdraw(record_kind, news)\n",
        "",
    ),
    Fault(
        "who needs more memory is sent a file that is sound",
        "ingest/landing.py",
        "        except MemoryError:  # Arrow's is one of its own errors, too\n            raise\n",
        "",
    ),
    Fault(
        "labels that cannot be read are left out",
        "ingest/prometheus/text.py",
        'sample.filter(pl.col("metric").is_null())',
        "sample.clear()",
    ),
    Fault("a refused file is refused for ever", "ingest/landing.py", "if options != here]", "if False]"),
    Fault("a refused file lands again and again", "ingest/landing.py", "here = json.loads(json.dumps(self.options))", "here = None"),
    Fault("what ended the process is taken first again", "drivetail/inbox.py", "begun.get(each[1], -1)", "-begun.get(each[1], -1)"),
)


def copy_repository(to: Path) -> None:
    """What git tracks or would track, as it lies here now."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


class Copy:
    """One copy of the repository, in which one fault at a time is planted."""

    def __init__(self, folder: Path) -> None:
        self.root, self._scratch = folder / "repository", folder / "scratch"
        copy_repository(self.root)
        self._scratch.mkdir()
        self._environment = {
            **os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1", "DRIVETAIL_SEEDS": SEEDS,
        }  # fmt: skip
        self._asked: subprocess.Popen[str] | None = None

    def failure(self, stages: list[str], file: str = "") -> tuple[str, str] | None:
        """Run the tests stage by stage. Returns: which stage failed and with what; None when all pass."""
        for stage in stages:
            output = self._ask(file) if stage == OWN else self._run(stage)
            if output is not None:
                return stage, reason(output)
        return None

    def _ask(self, file: str) -> str | None:
        """The unit tests of a model, or of the models that use a macro. Returns: what the first that failed says."""
        if self._asked is None:
            self._asked = subprocess.Popen(
                [sys.executable, "-m", "workbench.mutants", "--answer", str(self._scratch / "unit")],
                cwd=self.root, env=self._environment,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        assert self._asked.stdin
        assert self._asked.stdout
        self._asked.stdin.write(file + "\n")
        self._asked.stdin.flush()
        limit = Timer(LIMIT_SECONDS, self._asked.kill)
        limit.start()
        try:
            for line in self._asked.stdout:  # dbt may talk in between
                if line.startswith(ANSWER):
                    return line.removeprefix(ANSWER).strip() or None
        finally:
            limit.cancel()
        self.close()
        return f"E   no answer within {LIMIT_SECONDS} s, or the process that runs unit tests ended"

    def close(self) -> None:
        """End the process that runs unit tests."""
        if self._asked is not None:
            self._asked.communicate()
            self._asked = None

    def _run(self, stage: str) -> str | None:
        """One stage. Returns: its output when it failed."""
        base = self._scratch / "pytest"
        command = {
            REFERENCE: [*PYTEST, f"--basetemp={base}", "tests/proof/test_marts_equal_reference.py"],
            INGEST: [*PYTEST, f"--basetemp={base}", "tests/ingest"],
            PRUNE: [*PYTEST, f"--basetemp={base}", "-m", "soak or not soak", "tests/drivetail/test_prune.py", "tests/proof/test_pruned.py"],
            WITHOUT: [*PYTEST, f"--basetemp={base}", "tests/proof/test_without.py"],
            OF_SAMPLES: [*PYTEST, f"--basetemp={base}", "-m", "soak or not soak", "tests/proof/test_perseus_samples.py"],
            FEEDS: [*PYTEST, f"--basetemp={base}", *(f"tests/drivetail/test_{of}.py" for of in ("inbox", "collect", "pulls"))],
            UNIT: ["-m", "workbench.mutants", "--unit-tests", str(self._scratch / "unit")],
        }[stage]
        try:
            done = subprocess.run(
                [sys.executable, *command], cwd=self.root, env=self._environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"E   no end within {LIMIT_SECONDS} s"
        return None if done.returncode == 0 else done.stdout + done.stderr

    @contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """The copy with a fault in it."""
        path = self.root / fault.file
        whole = path.read_bytes()
        fault.apply(self.root)
        try:
            yield
        finally:
            path.write_bytes(whole)


def reason(output: str) -> str:
    """The line of a failure that says what was found."""
    lines = [line[1:].strip() for line in output.splitlines() if re.match(r"E\s+\S", line)]
    telling = [line for line in lines if re.match(r"(dim|fct|study|rejected|ingested)_\w+|.*ModelError|.*FAIL", line)]
    text = (telling or lines or output.strip().splitlines() or ["?"])[0]
    # where the copy lay says nothing to a reader
    return re.sub(r"^\S*ModelError: |/\S*/mutants-\S*?/scratch/pytest/", "", text)[:120]


def run_unit_tests(folder: Path) -> None:
    """Build a fleet anew, for the columns that unit tests look up, and run all of them. Exits 1 when one fails."""
    import random

    from engine.build import build
    from engine.dbt import ModelError, Project
    from engine.warehouse import Warehouse
    from ingest import ingest
    from tests.reference.fleets import deliveries, random_fleet

    warehouse = Warehouse(folder / "warehouse")
    try:
        shutil.rmtree(folder, ignore_errors=True)
        (bundle,), _ = deliveries(random_fleet(1), "at_once", folder / "deliveries", random.Random(1))
        ingest("bundle", [bundle], warehouse.root)
        build(warehouse)
        Project(warehouse).run("test", "--select", "test_type:unit")
    except ModelError as error:
        sys.exit(f"E   {error}")


def answer(folder: Path) -> None:
    """Read names of files, a line each, and print how their unit tests fail; an empty answer when they pass."""
    from engine.dbt import ModelError, Project
    from engine.warehouse import Warehouse

    for line in sys.stdin:
        Project.forget()  # the file has changed
        told = ""
        try:
            project = Project(Warehouse(folder / "warehouse"))
            models = users(project.manifest, line.strip())
            if models:  # a materialization has none
                project.run("test", "--select", *(f"{model},test_type:unit" for model in models))
        except ModelError as error:
            told = f"E   {error}".replace("\n", " ")
        print(ANSWER + told, flush=True)


def users(manifest: Any, file: str) -> list[str]:
    """The model a file defines, or the models that use its macros, directly or through other macros."""
    if file.startswith("models/"):
        return [Path(file).stem]
    macros = {name for name, macro in manifest.macros.items() if macro.original_file_path == file}
    while further := {name for name, macro in manifest.macros.items() if macros.intersection(macro.depends_on.macros)} - macros:
        macros |= further
    nodes = (node for node in manifest.nodes.values() if node.resource_type == "model")
    return sorted(node.name for node in nodes if macros.intersection(node.depends_on.macros))


def judge(copies: Queue[Copy], fault: Fault) -> tuple[Fault, tuple[str, str] | None, float]:
    """Plant a fault in a free copy and run the tests."""
    copy = copies.get()
    begun = time.monotonic()
    try:
        with copy.planted(fault):
            found = copy.failure(fault.stages, fault.file)
    finally:
        copies.put(copy)
    seconds = time.monotonic() - begun
    print(f"{seconds:6.1f} s  {fault.breaks}: {' - '.join(found) if found else 'NOT FOUND'}", flush=True)
    return fault, found, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="faults whose description or file holds this text")
    parser.add_argument("--new", action="store_true", help="faults that have no row yet")
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--unit-tests", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unit_tests:
        run_unit_tests(options.unit_tests)
        return
    if options.answer:
        answer(options.answer)
        return
    faults = [fault for fault in FAULTS if not options.only or options.only in fault.breaks or options.only in fault.file]
    if options.new:
        judged = RESULT.read_text(encoding="utf-8")
        faults = [fault for fault in faults if key(fault) not in judged]
    begun, commit = time.monotonic(), current_commit()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: Queue[Copy] = Queue()
        made = [Copy(Path(folder) / str(number)) for number in range(options.jobs)]
        for fault in faults:
            with made[0].planted(fault):  # a fault that is out of date shows before an hour of work
                pass
        for copy, stages in zip(made, ([UNIT, REFERENCE, INGEST, PRUNE], *[[UNIT]] * len(made)), strict=False):
            failure = copy.failure(stages)
            if failure:
                sys.exit(f"the tests fail without any fault: {' - '.join(failure)}")
            copies.put(copy)
        missed = 0
        with ThreadPoolExecutor(options.jobs) as pool:
            print(f"{time.monotonic() - begun:6.1f} s  no fault: all pass", flush=True)
            for fault, found, seconds in pool.map(lambda fault: judge(copies, fault), faults):
                enter(fault, found, seconds, commit)
                missed += not found
        for copy in made:
            copy.close()
    print(f"{len(faults) - missed} of {len(faults)} faults found in {time.monotonic() - begun:.0f} s")
    sys.exit(1 if missed else 0)


def enter(fault: Fault, found: tuple[str, str] | None, seconds: float, commit: str) -> None:
    """Write a fault's row into the table of docs/results/mutants.md, in the place of its last one. A run that is cut off leaves what it had."""
    stage, text = found or (MISSED, "")
    shown = text.replace("|", "\\|").replace("<", "&lt;")
    row = f"{key(fault)} {stage} | {shown} | {seconds:.0f} | {commit} | {datetime.now(UTC):%Y-%m-%d %H:%M} |"
    old = RESULT.read_text(encoding="utf-8").splitlines() if RESULT.exists() else []
    rows = [row if each == fault else next((line for line in old if line.startswith(key(each))), None) for each in FAULTS]
    ran = [line for line in rows if line is not None]
    lines = [
        "# Seeded faults",
        "",
        f"Of {len(FAULTS)} faults {len(ran)} were planted, {sum(f' {MISSED} ' not in line for line in ran)} of them found. `make mutants`, "
        f"{os.cpu_count()} cores, seeds {SEEDS}; each fault with the commit it was planted in, times in UTC.",
        "",
        "Each fault is planted alone in a copy of the repository; the tests run until the first failure.",
        "",
        "| fault | file | found by | with | s | commit | at |",
        "|---|---|---|---|--:|---|---|",
        *ran,
    ]
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


def key(fault: Fault) -> str:
    """The beginning of a fault's row."""
    return f"| {fault.breaks} | `{fault.file}` |"


if __name__ == "__main__":
    main()
