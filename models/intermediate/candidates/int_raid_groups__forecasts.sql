{%- set forecast_prior_drives = 10 %}{#- as the base rate says, added to those seen of each class -#}
-- How likely it was, by what was known at a week boundary, that a slow interval of a drive begins within each horizon, and of how many it did: the drives
-- of a RAID group that a rule holds to be alike have one probability. Grain: week_no, kind, raid_group_id, horizon_days, rule, forecast_class.
with known_until as (
    select last_hour_utc + interval 1 hour as until_utc from {{ ref('stg_raw__publication') }}
),

drive_weeks as (
    select * from {{ ref('int_drive_weeks__next') }}
),

raid_group_days as (
    select distinct raid_group_id, day_utc from {{ ref('int_raid_group_days') }} where raid_hours > 0
),

-- of horizons that are over, and of RAID groups that were there on their last day
outcomes as (
{%- for days in var('forecast_horizon_days') %}
    select
        drive_weeks.*,
        {{ days }} as horizon_days,
        coalesce(drive_weeks.next_started_at < drive_weeks.boundary_utc + interval {{ days }} day, false) as is_slow_after
    from drive_weeks
    cross join known_until
    inner join raid_group_days
        on drive_weeks.raid_group_id = raid_group_days.raid_group_id
        and raid_group_days.day_utc = cast(drive_weeks.boundary_utc + interval {{ days | int - 1 }} day as date)
    where drive_weeks.boundary_utc + interval {{ days }} day <= known_until.until_utc
{{- "
    union all" if not loop.last }}
{%- endfor %}
),

cells as (
{%- for rule in ('base_rate', 'slow_28d', 'most_slow_hours_28d', 'model') %}
    select
        week_no,
        kind,
        raid_group_id,
        horizon_days,
        '{{ rule }}' as rule,
        {{ "'all'" if rule == 'base_rate' else rule ~ '_class' }} as forecast_class,
        count(*) as drive_count,
        {{ counted('is_slow_after') }} as slow_count
    from outcomes
    group by week_no, kind, raid_group_id, horizon_days{{ "" if rule == 'base_rate' else ", " ~ rule ~ "_class" }}
{{- "
    union all" if not loop.last }}
{%- endfor %}
),

class_weeks as (
    select
        week_no,
        kind,
        horizon_days,
        rule,
        forecast_class,
        sum(drive_count) as drive_count,
        sum(slow_count) as slow_count
    from cells
    group by week_no, kind, horizon_days, rule, forecast_class
),

boundaries as (
    select distinct week_no, kind from drive_weeks
),

known as (
    select
        boundaries.week_no,
        boundaries.kind,
        class_weeks.horizon_days,
        class_weeks.rule,
        class_weeks.forecast_class,
        cast(sum(class_weeks.drive_count) as double) as drive_count,
        cast(sum(class_weeks.slow_count) as double) as slow_count
    from boundaries
    inner join class_weeks
        on boundaries.kind = class_weeks.kind
        and {{ is_known_by('class_weeks', 'boundaries') }}
    group by boundaries.week_no, boundaries.kind, class_weeks.horizon_days, class_weeks.rule, class_weeks.forecast_class
)

select
    cells.week_no,
    cells.kind,
    cells.raid_group_id,
    cells.horizon_days,
    cells.rule,
    cells.forecast_class,
    cells.drive_count,
    cells.slow_count,
    -- a class of few drives stays next to the base rate
    (coalesce(alike.slow_count, 0.0) + {{ forecast_prior_drives }} * (base.slow_count / base.drive_count))
    / (coalesce(alike.drive_count, 0.0) + {{ forecast_prior_drives }}) as slow_probability
from cells
inner join known as base
    on cells.week_no = base.week_no
    and cells.kind = base.kind
    and cells.horizon_days = base.horizon_days
    and base.rule = 'base_rate'
left join known as alike
    on cells.week_no = alike.week_no
    and cells.kind = alike.kind
    and cells.horizon_days = alike.horizon_days
    and cells.rule = alike.rule
    and cells.forecast_class = alike.forecast_class
