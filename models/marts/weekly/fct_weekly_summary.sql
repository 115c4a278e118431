-- How slow each ISO week (UTC) was, what could not be measured, which drives changed their state, and how the weeks just before it were.
-- Grain: week_utc, kind, one of them `all`.
{%- set reasons = ('low_coverage', 'no_io', 'too_few_drives', 'zero_median') %}
{%- set states = ('new', 'continuing', 'reopened', 'resolved', 'unseen') %}
{%- set of_drives = ['reported_drive_hours', 'drive_hours', 'slow_drive_hours', 'drive_count', 'slow_drive_count'] %}
{%- for reason in reasons %}{% do of_drives.append(reason ~ '_drive_hours') %}{% endfor %}
{%- set of_narrow_groups = ['narrow_group_drive_hours'] %}
{%- set of_groups = ['raid_hours', 'tail_hours', 'raid_group_count', 'tail_raid_group_count'] %}
{%- set of_states = [] %}
{%- for state in states %}{% do of_states.append(state ~ '_drive_count') %}{% endfor %}
with drive_weeks as (
    select
        week_utc, kind,
        cast(sum(reported_hours) as bigint) as reported_drive_hours,
        cast(sum(slowdown_hours) as bigint) as drive_hours,
        cast(sum(slow_hours) as bigint) as slow_drive_hours,
{%- for reason in reasons %}
        cast(sum({{ reason }}_hours) as bigint) as {{ reason }}_drive_hours,
{%- endfor %}
        count(distinct drive_id) as drive_count,
        count(distinct case when slow_hours > 0 then drive_id end) as slow_drive_count
    from {{ ref('int_drive_days__outcomes') }}
    group by week_utc, kind
),

-- data drives of groups too small to have peers are in no population
narrow_weeks as (
    select
        cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp) as week_utc,
        drives.kind,
        cast(sum({{ hour_count('days.data_in & ~days.in_population_in') }}) as bigint) as narrow_group_drive_hours
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('int_drives') }} as drives on days.drive_id = drives.drive_id
    where (days.data_in & ~days.in_population_in) <> 0
    group by cast(date_trunc('week', cast(days.day_utc as timestamp)) as timestamp), drives.kind
),

raid_weeks as (
    select
        cast(date_trunc('week', hour_utc) as timestamp) as week_utc,
        kind,
        count(*) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        count(distinct raid_group_id) as raid_group_count,
        count(distinct case when is_tail_hour then raid_group_id end) as tail_raid_group_count
    from {{ ref('fct_raid_hours') }}
    group by cast(date_trunc('week', hour_utc) as timestamp), kind
),

state_weeks as (
    select
        week_utc,
        kind
{%- for state in states %},
        count(case when state = '{{ state }}' then 1 end) as {{ state }}_drive_count
{%- endfor %}
    from {{ ref('fct_weekly_drive_states') }}
    group by week_utc, kind
),

weeks as (
    select week_utc, kind from drive_weeks
    union
    select week_utc, kind from narrow_weeks
    union
    select week_utc, kind from raid_weeks
    union
    -- a kind that was slow and has gone silent
    select week_utc, kind from state_weeks
),

kinds as (
    select
        weeks.week_utc,
        weeks.kind
{%- for column in of_drives %},
        coalesce(drive_weeks.{{ column }}, 0) as {{ column }}
{%- endfor %}
{%- for column in of_narrow_groups %},
        coalesce(narrow_weeks.{{ column }}, 0) as {{ column }}
{%- endfor %}
{%- for column in of_groups %},
        coalesce(raid_weeks.{{ column }}, 0) as {{ column }}
{%- endfor %}
{%- for column in of_states %},
        coalesce(state_weeks.{{ column }}, 0) as {{ column }}
{%- endfor %}
    from weeks
    left join drive_weeks on weeks.week_utc = drive_weeks.week_utc and weeks.kind = drive_weeks.kind
    left join narrow_weeks on weeks.week_utc = narrow_weeks.week_utc and weeks.kind = narrow_weeks.kind
    left join raid_weeks on weeks.week_utc = raid_weeks.week_utc and weeks.kind = raid_weeks.kind
    left join state_weeks on weeks.week_utc = state_weeks.week_utc and weeks.kind = state_weeks.kind
    where {{ is_whole_week('weeks.week_utc') }}
),

totals as (
    select * from kinds
    union all
    -- a drive and a RAID group have one kind, so these add up
    select
        week_utc,
        'all' as kind
{%- for column in of_drives + of_narrow_groups + of_groups + of_states %},
        cast(sum({{ column }}) as bigint) as {{ column }}
{%- endfor %}
    from kinds
    group by week_utc
),

baselines as (
    select
        totals.week_utc, totals.kind,
        count(case when earlier.reported_drive_hours + earlier.raid_hours > 0 then 1 end) as baseline_week_count,
        coalesce(cast(sum(earlier.slow_drive_hours) as bigint), 0) as baseline_slow_drive_hours,
        coalesce(cast(sum(earlier.drive_hours) as bigint), 0) as baseline_drive_hours,
        coalesce(cast(sum(earlier.tail_hours) as bigint), 0) as baseline_tail_hours,
        coalesce(cast(sum(earlier.raid_hours) as bigint), 0) as baseline_raid_hours
    from totals
    left join totals as earlier
        on totals.kind = earlier.kind
        and earlier.week_utc < totals.week_utc
        and earlier.week_utc >= totals.week_utc - interval {{ var('chronic_window_days') }} day
    group by totals.week_utc, totals.kind
),

rated_weeks as (
    select
        totals.*,
        cast(totals.slow_drive_hours as double) / nullif(totals.drive_hours, 0) as slow_drive_hour_ratio,
        cast(totals.tail_hours as double) / nullif(totals.raid_hours, 0) as tail_hour_ratio,
        baselines.baseline_week_count, baselines.baseline_slow_drive_hours, baselines.baseline_drive_hours,
        cast(baselines.baseline_slow_drive_hours as double) / nullif(baselines.baseline_drive_hours, 0) as baseline_slow_drive_hour_ratio,
        baselines.baseline_tail_hours, baselines.baseline_raid_hours,
        cast(baselines.baseline_tail_hours as double) / nullif(baselines.baseline_raid_hours, 0) as baseline_tail_hour_ratio
    from totals
    inner join baselines on totals.week_utc = baselines.week_utc and totals.kind = baselines.kind
)

select
    *,
    slow_drive_hour_ratio / nullif(baseline_slow_drive_hour_ratio, 0.0) as slow_drive_hour_change,
    tail_hour_ratio / nullif(baseline_tail_hour_ratio, 0.0) as tail_hour_change
from rated_weeks
