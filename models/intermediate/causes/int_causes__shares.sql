-- Share of each cause in slow intervals and in their hours. Grain: measure, class, x, kind.
with weekly_intervals as (
    select
        kind, raid_group_id,
        cast({{ hour_index("cast(date_trunc('week', started_at) as timestamp)") }} as double) as x,
        cause,
        count(*) as interval_count,
        sum(interval_hours) as slow_hours
    from {{ ref('int_interval_causes') }}
    group by kind, raid_group_id, cast(date_trunc('week', started_at) as timestamp), cause
),

by_cause as (
    select kind, raid_group_id, x, cause, interval_count, cast(slow_hours as bigint) as slow_hours
    from weekly_intervals
    union all
    select
        kind, raid_group_id,
        cast(null as double) as x,
        cause,
        cast(sum(interval_count) as bigint) as interval_count,
        cast(sum(slow_hours) as bigint) as slow_hours
    from weekly_intervals
    group by kind, raid_group_id, cause
),

by_group as (
    select kind, raid_group_id, x, cast(sum(interval_count) as bigint) as interval_count, cast(sum(slow_hours) as bigint) as slow_hours
    from by_cause
    group by kind, raid_group_id, x
),

-- a RAID group without an interval of a cause says so
clusters as (
{%- for measure in ('interval_count', 'slow_hours') %}
    select
        '{{ measure }}' as measure,
        rules.cause as class,
        by_group.x, by_group.kind,
        by_group.raid_group_id as cluster_id,
        coalesce(by_cause.{{ measure }}, 0) as hits,
        by_group.{{ measure }} as total
    from by_group
    cross join {{ ref('cause_rules') }} as rules
    left join by_cause
        on by_group.kind = by_cause.kind
        and by_group.raid_group_id = by_cause.raid_group_id
        and coalesce(by_group.x, -1) = coalesce(by_cause.x, -1)
        and rules.cause = by_cause.cause
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
),

{{ share_estimates('clusters', is_pooled=true) }}
