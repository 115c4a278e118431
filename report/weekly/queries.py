"""Queries of the weekly report: selections only, every number is a mart's. The page shows each question as it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Template

import duckdb

from engine.read import Row, fetch
from engine.warehouse import instant, texts

WEEKS_SHOWN = 12
LIMITS = {
    "drives": 20, "raid_groups": 12, "chronic": 25, "episodes": 50, "states": 100, "group_hours": 100, "decisions": 50, "candidates": 25,
    "actions": 40,
}  # fmt: skip
"""How many rows an answer has at most; a table that is full says so."""


@dataclass(frozen=True)
class WeekFacts:
    """All the report shows of one week: by the name of a question its SQL and its rows, which are an attribute, too, and may be none.

    known_at: what was decided after it is left out (UTC); None: nothing is.
    """

    week: Row
    known_at: datetime | None
    questions: dict[str, str]
    answers: dict[str, list[Row]]

    @property
    def publication(self) -> Row:
        return self.answers["publication"][0]

    @property
    def fleet(self) -> Row:
        return self.answers["fleet"][0]

    def __getattr__(self, name: str) -> list[Row]:
        if name not in QUESTIONS:
            raise AttributeError(f"{name!r} is no question of the report")
        return self.answers[name]


def fetch_publication(connection: duckdb.DuckDBPyConnection) -> Row:
    """Which publication this is, and the newest delivery in it (null without one)."""
    (publication,) = fetch(connection, PUBLICATION)
    return publication


def fetch_weeks(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Weeks with a valid RAID-hour, oldest first."""
    return fetch(connection, "select * from marts.dim_weeks order by week_utc")


def fetch_week(connection: duckdb.DuckDBPyConnection, week: Row, known_at: datetime | None = None) -> WeekFacts:
    """Everything the report shows of the week; known_at: leave out what was decided after it (UTC)."""
    start: datetime = week["week_utc"]
    words = {
        "week": instant(start),
        "end": instant(start + timedelta(days=7)),
        "before": instant(start - timedelta(days=7)),
        "first": instant(start - timedelta(weeks=WEEKS_SHOWN)),
        "known": "timestamp '9999-12-31'" if known_at is None else instant(known_at),
    }
    questions = {"publication": PUBLICATION.strip()}
    answers = {"publication": [fetch_publication(connection)]}

    def ask(names: Sequence[str]) -> None:
        for name in names:
            questions[name] = Template(QUESTIONS[name]).substitute(words).strip() + (f"\nlimit {LIMITS[name]}" if name in LIMITS else "")
            answers[name] = fetch(connection, questions[name])

    ask(["drives", "raid_groups", "actions", "decisions"])
    drawn = {row["drive_id"] for name in ("drives", "actions", "decisions") for row in answers[name]}
    words["drives"] = texts(drawn | {row["successor_drive_id"] for row in answers["decisions"]} - {None})
    words["listed_groups"] = texts(row["raid_group_id"] for row in answers["raid_groups"])
    ask(["drive_series"])
    words["groups"] = texts({row["raid_group_id"] for row in [*answers["drive_series"], *answers["drives"]]})
    ask([name for name in QUESTIONS if name not in answers and name not in ("places", "group_names")])
    rows = [row for found in answers.values() for row in found]
    named = {row[name] for row in rows for name in ("drive_id", "successor_drive_id", "subject_id") if row.get(name) is not None}
    words["named"] = texts(named)
    groups = {row[name] for row in rows for name in ("raid_group_id", "current_raid_group_id", "subject_id") if row.get(name) is not None}
    words["named_groups"] = texts(groups)
    ask(["places", "group_names"])
    return WeekFacts(week, known_at, questions, answers)


PUBLICATION = """
select
    publication_id, published_at, last_hour_utc, pruned_before_utc,
    (select max(delivery_seq) from marts.ingested_files) as last_delivery_seq
from marts.publication
"""

# the last decision on each drive that had any by then, and its state then
DECIDED = """
decided as (
    select decisions.* replace (states.state as state)
    from marts.fct_drive_decisions as decisions
    inner join report.fct_drive_decision_states as states on decisions.decision_seq = states.decision_seq
    where states.from_utc <= $known and coalesce(states.to_utc > $known, true) and states.state <> 'retracted'
)
""".strip()

QUESTIONS = {
    "fleet": "select * from marts.fct_weekly_summary where week_utc = $week and kind = 'all'",
    "landing": "select * from report.fct_landing_totals order by record_kind = 'all' desc, rows_delivered desc, record_kind",
    "rejections": "select * from report.fct_rejection_counts order by row_count desc, source, reason, column_name",
    "coverage": "select * from marts.fct_weekly_coverage where week_utc = $week order by kind",
    "unjudged": "select host, reason, drive_count, drives from status.fct_unjudged_hosts order by reason, drive_count desc, host",
    "alert_floors": "select * from report.fct_alert_floors where alert_count > 0 order by peer_kind, floor_us",
    "guessed": """
select raid_group_id, data_drive_count
from marts.dim_raid_groups
where is_guessed and last_hour_utc >= $week
order by raid_group_id
""",
    "exclusions": """
select *
from (
    unpivot (
        select
            week_utc,
            kind,
            low_coverage_drive_hours as low_coverage,
            no_io_drive_hours as no_io,
            too_few_drives_drive_hours as too_few_drives,
            zero_median_drive_hours as zero_median,
            narrow_group_drive_hours as narrow_group
        from marts.fct_weekly_summary
        where week_utc = $week and kind <> 'all'
    )
    on low_coverage, no_io, too_few_drives, zero_median, narrow_group
    into name exclusion_reason value drive_hours
)
where drive_hours > 0
order by drive_hours desc, kind, exclusion_reason
""",
    "slowness": """
select *
from marts.fct_weekly_summary
where week_utc = $week and kind <> 'all' and (reported_drive_hours > 0 or raid_hours > 0)
order by kind
""",
    "slo": "select * from marts.fct_fleet_slo where week_utc = $week order by kind, threshold",
    "tails": "select * from report.fct_weekly_tails where week_utc = $week order by kind, threshold",
    "thresholds": "select * from marts.thresholds order by name, kind",
    "costs": "select * from report.fct_weekly_costs where week_utc = $week order by kind",
    "tolerance": "select * from report.fct_weekly_tolerance where week_utc = $week order by kind",
    "trend": """
select *
from marts.fct_weekly_summary
where week_utc > $first and week_utc <= $week and kind <> 'all' and (reported_drive_hours > 0 or raid_hours > 0)
order by week_utc, kind
""",
    "fleet_hours": "select * from report.fct_fleet_hours where hour_utc >= $week and hour_utc < $end order by kind, hour_utc",
    "drives": f"""
with {DECIDED},
caused as (
    -- the RAID group of its last hour of the week; a drive that moved has another row
    select * from marts.fct_drive_costs where week_utc = $week
)
select
    costs.*,
    earlier.slow_hours as earlier_slow_hours,
    evidence.* exclude (week_utc, drive_id, slow_hours),
    drives.vendor,
    drives.deployed_on,
    coalesce(slowness.is_chronic, false) as is_chronic,
    states.state,
    caused.tail_hours_caused,
    caused.judged_tail_hours,
    caused.rio_lost,
    decided.verdict as decided_verdict,
    decided.decided_by,
    decided.decided_at
from marts.fct_weekly_drives as costs
left join marts.fct_weekly_drives as earlier on costs.drive_id = earlier.drive_id and earlier.week_utc = $before
left join report.fct_weekly_drive_evidence as evidence on costs.drive_id = evidence.drive_id and evidence.week_utc = $week
left join report.fct_weekly_drive_states as states on costs.drive_id = states.drive_id and states.week_utc = $week
left join caused on costs.drive_id = caused.drive_id and costs.raid_group_id = caused.raid_group_id
left join marts.dim_drives as drives on costs.drive_id = drives.drive_id
left join marts.fct_drive_slowness as slowness on costs.drive_id = slowness.drive_id
left join decided on costs.drive_id = decided.drive_id and decided.state <> 'expired'
where costs.week_utc = $week
order by costs.cost_rank
""",
    "drive_verdicts": """
select drive_id, detector, day_utc, score, evidence
from marts.fct_detector_verdicts
where is_flagged and drive_id in ($drives) and day_utc >= $week and day_utc < $end
qualify row_number() over (partition by drive_id, detector order by score desc, day_utc) = 1
order by drive_id, detector
""",
    "drive_series": """
select drive_id, hour_utc, raid_group_id, slowdown, is_slow, exclusion_reason
from marts.fct_drive_hours
where drive_id in ($drives) and hour_utc >= $week and hour_utc < $end
order by drive_id, hour_utc
""",
    "peer_bands": """
select
    bands.raid_group_id,
    bands.hour_utc,
    bands.lowest_slowdown,
    bands.lower_quartile_slowdown,
    bands.upper_quartile_slowdown,
    raid_hours.tail_1,
    raid_hours.tail_2,
    raid_hours.slow_at,
    raid_hours.slowest_drive_id
from report.fct_peer_bands as bands
inner join marts.fct_raid_hours as raid_hours
    on bands.raid_group_id = raid_hours.raid_group_id and bands.hour_utc = raid_hours.hour_utc
where bands.raid_group_id in ($groups) and bands.hour_utc >= $week and bands.hour_utc < $end
order by bands.raid_group_id, bands.hour_utc
""",
    "drive_events": """
select drive_id, occurred_at, event_type, ended_at, detail, is_explicit
from marts.fct_drive_events
where drive_id in ($drives) and occurred_at >= $week and occurred_at < $end
order by drive_id, occurred_at, event_type
""",
    "state_counts": """
select
    week_utc,
    kind,
    new_drive_count,
    continuing_drive_count,
    reopened_drive_count,
    resolved_drive_count,
    unseen_drive_count
from marts.fct_weekly_summary
where week_utc = $week
    and kind <> 'all'
    and greatest(new_drive_count, continuing_drive_count, reopened_drive_count, resolved_drive_count, unseen_drive_count) > 0
order by kind
""",
    "states": """
select *
from report.fct_weekly_drive_states
where week_utc = $week and state <> 'continuing'
order by state = 'new' desc, state = 'reopened' desc, state = 'unseen' desc, slow_hours desc, earlier_slow_hours desc, drive_id
""",
    "raid_groups": """
select *
from marts.fct_weekly_raid_groups
where week_utc = $week and tail_hours > 0
order by cost_rank
""",
    "group_drives": """
select *
from marts.fct_drive_costs
where week_utc = $week and raid_group_id in ($listed_groups)
order by raid_group_id, tail_hours desc, slow_hours desc, drive_id
""",
    "group_hours": """
select *
from report.fct_slow_group_hours
where hour_utc >= $week and hour_utc < $end
order by greatest(group_slowdown, tail_1) desc, hour_utc, raid_group_id
""",
    "slowness_counts": "select * from report.fct_slowness_counts order by kind",
    "chronic": """
select slowness.*, drives.vendor, drives.model, drives.current_raid_group_id, drives.deployed_on
from marts.fct_drive_slowness as slowness
left join marts.dim_drives as drives on slowness.drive_id = drives.drive_id
where slowness.is_chronic
order by slowness.median_slowdown desc, slowness.drive_id
""",
    "causes": "select * from marts.cause_shares where week_utc = $week and slow_hours > 0 order by kind, slow_hours desc, cause",
    "candidates": f"""
with {DECIDED}
select
    candidates.* exclude (decision, decided_by, decided_at),
    decided.verdict as decision,
    decided.decided_by,
    decided.decided_at
from marts.replacement_candidates as candidates
left join decided on candidates.drive_id = decided.drive_id and decided.state in ('pending', 'standing')
where candidates.verdict <> 'leave'
order by candidates.candidate_rank
""",
    "actions": """
select * exclude (action_undecided, why_undecided) replace (
    case when decided_at > $known then action_undecided else action end as action,
    case when decided_at > $known then why_undecided else why end as why,
    case when decided_at > $known then action_undecided in ('replace', 'check path', 'inspect') else needs_person end as needs_person,
    case when decided_at <= $known then decision end as decision,
    case when decided_at <= $known then decided_by end as decided_by,
    case when decided_at <= $known then ticket end as ticket
)
from marts.drive_actions
order by action_rank
""",
    "wide_alerts": """
select *
from marts.fct_slow_alerts
where subject_type <> 'drive' and part_of is null
    and (cleared_at is null or (first_slow_hour_utc < $week + interval 7 day and last_slow_hour_utc >= $week))
order by cleared_at is null desc, raised_at desc, subject_type, subject_id
""",
    "candidate_quarter": "select * from report.candidate_quarter",
    "group_names": """
select raid_group_id, name
from marts.dim_raid_groups
where raid_group_id in ($named_groups) and name <> raid_group_id
order by raid_group_id
""",
    "places": """
select drive_id, host, device, slot, enclosure, model, left_at
from marts.dim_drives
where drive_id in ($named)
order by drive_id
""",
    "verdict_backtest": "select * from report.candidate_verdict_backtest order by verdict = 'replace' desc, verdict, replace_rule, kind",
    "decisions": f"""
with {DECIDED}
select *
from decided
order by decision_seq desc
""",
    "classes": """
select *
from report.fct_weekly_classes
where week_utc = $week
order by dimension desc, kind, is_comparable desc, slow_ratio desc, class
""",
    "events": "select * from report.fct_weekly_events where week_utc = $week order by is_explicit desc, event_count desc, event_type, kind",
    "unplugs": """
select
    week_utc,
    kind,
    event_count as unplug_count,
    drive_count,
    replugged_count,
    replaced_count,
    after_slowdown_count,
    recurred_count
from report.fct_weekly_events
where week_utc = $week and event_type = 'unplug'
order by kind
""",
    "episodes": """
select episodes.*, drives.model
from marts.fct_unplug_episodes as episodes
left join marts.dim_drives as drives on episodes.drive_id = drives.drive_id
where episodes.unplugged_at >= $week and episodes.unplugged_at < $end
order by episodes.unplugged_at, episodes.drive_id
""",
}
