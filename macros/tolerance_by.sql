{#- Savings of reading around slow drives, by the keys of a mart: exact, from the tails of each RAID-hour, with two parities as fast as the
    median. A slow drive is late (lab/docs/toleraid.md). -#}
{% macro tolerance_by(keys, fct_raid_hours, draws, share_limits) -%}
with raid_hours as (
    select
        {{ keys | map('replace', 'week_utc', "cast(date_trunc('week', hour_utc) as timestamp) as week_utc") | join(', ') }},
        raid_group_id, slow_at, raid_io_count, is_tail_hour,
        cast(least(slow_drive_count, 2) as double) / data_drive_count as extra_ratio,
        raid_io_count * (cast(least(slow_drive_count, 2) as double) / data_drive_count) as extra_ios,
        -- an adaptive read goes around two drives, and takes what the third does
        is_tail_hour and slow_drive_count < 3 as is_avoided,
        -- a reactive read ends one base latency after it has begun to wait for too long
        tail_1 > slow_at + 1 and tail_3 <= slow_at + 1 as is_shortened
    from {{ fct_raid_hours }}
),

raid_groups as (
    select
        {{ keys | join(', ') }},
        raid_group_id,
        sum(cast(is_tail_hour as int)) as tail_hours,
        sum(cast(is_avoided as int)) as tail_hours_avoided
    from raid_hours
    group by {{ keys | join(', ') }}, raid_group_id
),

resampled_groups as (
    select
        {{ keys | join(', ') }},
        draws.replicate,
        cast(sum(draws.draw_count * raid_groups.tail_hours_avoided) as double)
        / nullif(sum(draws.draw_count * raid_groups.tail_hours), 0) as avoided_ratio
    from raid_groups
    inner join {{ draws }} as draws on raid_groups.raid_group_id = draws.raid_group_id
    where raid_groups.tail_hours > 0
    group by {{ keys | join(', ') }}, draws.replicate
),

ends as (
    select
        {{ keys | join(', ') }},
        percentile_cont(0.025) within group (order by avoided_ratio) as low,
        percentile_cont(0.975) within group (order by avoided_ratio) as high
    from resampled_groups
    group by {{ keys | join(', ') }}
),

totals as (
    select
        {{ keys | join(', ') }},
        count(*) as raid_hours,
        count(case when is_tail_hour then 1 end) as tail_hours,
        count(case when is_avoided then 1 end) as tail_hours_avoided,
        count(case when is_shortened then 1 end) as tail_hours_shortened,
        max(slow_at) + 1 as shortened_to,
        coalesce(
            {{ mean_of_group('extra_ios') }} * count(extra_ios) / nullif(sum(raid_io_count), 0),
            {{ mean_of_group('extra_ratio') }}
        ) as extra_read_ratio
    from raid_hours
    group by {{ keys | join(', ') }}
)

select
{%- for key in keys %}
    totals.{{ key }},
{%- endfor %}
    totals.raid_hours, totals.tail_hours, totals.tail_hours_avoided,
    -- a bootstrap of 2 of 2 hours gives 2 to 2: of few hours the interval is exact
    coalesce(limits.low, ends.low) * totals.tail_hours as tail_hours_avoided_low,
    coalesce(limits.high, ends.high) * totals.tail_hours as tail_hours_avoided_high,
    totals.extra_read_ratio, totals.tail_hours_shortened, totals.shortened_to
from totals
left join {{ share_limits }} as limits on totals.tail_hours = limits.trial_count and totals.tail_hours_avoided = limits.event_count
left join ends on {% for key in keys %}totals.{{ key }} = ends.{{ key }}{{ " and " if not loop.last }}{% endfor %}
{%- endmacro %}
