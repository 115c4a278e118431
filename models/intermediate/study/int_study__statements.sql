-- What the paper states without a number: slow hours are spread evenly over the day; capacity, speed and interface do not matter.
-- By our own yardsticks: rates by hour of the local day within 10% of the overall one and Cramer's V at most 0.02; of every class of
-- drives the slow share within a factor 1.25 of the overall one and the Kolmogorov-Smirnov distance to the rest below 0.01, taken at
-- the edges that drive-hours are counted at. Grain: measure, kind.
with clock_hours as (
    select
        kind,
        {{ local_hour('hour_utc', "case when timezone = 'unknown' then 'UTC' else timezone end") }} as local_hour,
        sum(case when timezone = 'unknown' then slowdown_hours else 0 end) as utc_hours,
        sum(slowdown_hours) as slowdown_hours,
        sum(slow_hours) as slow_hours
    from {{ ref('int_clock_hours') }}
    group by kind, {{ local_hour('hour_utc', "case when timezone = 'unknown' then 'UTC' else timezone end") }}
),

overall as (
    select
        kind,
        sum(utc_hours) as utc_hours,
        sum(slowdown_hours) as slowdown_hours,
        sum(slow_hours) as slow_hours,
        cast(sum(slow_hours) as double) / sum(slowdown_hours) as slow_share
    from clock_hours
    group by kind
),

evenness as (
    select
        clock_hours.kind,
        min(clock_hours.slowdown_hours * overall.slow_share) as fewest_expected,
        max(abs(cast(clock_hours.slow_hours as double) / clock_hours.slowdown_hours / nullif(overall.slow_share, 0.0) - 1)) as distance,
        -- chi-squared of slow and not slow over the hours of the day; the smaller side of the table has two rows
        sqrt(
            sum(
                power(clock_hours.slow_hours - clock_hours.slowdown_hours * overall.slow_share, 2)
                / nullif(clock_hours.slowdown_hours * overall.slow_share * (1 - overall.slow_share), 0.0)
            ) / max(overall.slowdown_hours)
        ) as cramers_v,
        cast(max(overall.slow_hours) as bigint) as numerator,
        cast(max(overall.slowdown_hours) as bigint) as denominator,
        cast(max(overall.utc_hours) as bigint) as utc_hours
    from clock_hours
    inner join overall on clock_hours.kind = overall.kind
    where clock_hours.slowdown_hours > 0
    group by clock_hours.kind
),

drives as (
    select
        drives.drive_id,
        drives.kind,
        'capacity ' || cast(drives.capacity_bytes as varchar) as capacity_class,
        'rpm ' || cast(drives.rpm as varchar) as rpm_class,
        'interface ' || drives.interface as interface_class
    from {{ ref('int_study__drives') }} as drives
),

drive_totals as (
    select
        drive_id,
        sum(slowdown_hours) as slowdown_hours
{%- for edge in var('slowdown_edges') %},
        sum(slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from {{ ref('int_drive_days') }}
    group by drive_id
),

classed as (
{%- for attribute in ('capacity', 'rpm', 'interface') %}
    select
        drives.kind,
        '{{ attribute }}' as attribute,
        drives.{{ attribute }}_class as class,
        sum(totals.slowdown_hours) as slowdown_hours
{%- for edge in var('slowdown_edges') %},
        sum(totals.slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from drives
    inner join drive_totals as totals on drives.drive_id = totals.drive_id
    where drives.{{ attribute }}_class is not null
    group by drives.kind, drives.{{ attribute }}_class
    {% if not loop.last %}union all{% endif %}
{%- endfor %}
),

against_rest as (
    select
        classed.kind,
        classed.attribute,
        classed.class,
        count(*) over (partition by classed.kind, classed.attribute) as class_count,
        sum(classed.slowdown_hours) over (partition by classed.kind, classed.attribute) as all_hours,
        sum(classed.slowdown_hours_{{ edge_name(var('slow_threshold')) }}) over (partition by classed.kind, classed.attribute) as all_slow_hours,
        classed.slowdown_hours,
        classed.slowdown_hours_{{ edge_name(var('slow_threshold')) }} as slow_hours,
        greatest(
{%- for edge in var('slowdown_edges') %}
            abs(
                classed.slowdown_hours_{{ edge_name(edge) }} / cast(classed.slowdown_hours as double)
                - (sum(classed.slowdown_hours_{{ edge_name(edge) }}) over (partition by classed.kind, classed.attribute) - classed.slowdown_hours_{{ edge_name(edge) }})
                / nullif(cast(sum(classed.slowdown_hours) over (partition by classed.kind, classed.attribute) - classed.slowdown_hours as double), 0.0)
            ){% if not loop.last %},{% endif %}
{%- endfor %}
        ) as distance
    from classed
    where classed.slowdown_hours > 0
),

correlation as (
    select
        kind,
        max(distance) as distance,
        max(
            greatest(
                slow_hours / cast(slowdown_hours as double) / nullif(all_slow_hours / cast(all_hours as double), 0.0),
                all_slow_hours / cast(all_hours as double) / nullif(slow_hours / cast(slowdown_hours as double), 0.0)
            )
        ) as largest_factor,
        cast(max(all_slow_hours) as bigint) as numerator,
        cast(max(all_hours) as bigint) as denominator
    from against_rest
    where class_count >= 2 and slowdown_hours * (all_slow_hours / cast(all_hours as double)) >= {{ var('fewest_expected_events') }}
    group by kind
)

select
    'clock_hour' as measure,
    kind,
    numerator,
    denominator,
    distance as value,
    case
        when fewest_expected < {{ var('fewest_expected_events') }} then 'no data'
        when distance <= 0.1 and cramers_v <= 0.02 then 'agrees'
        else 'differs'
    end as verdict,
    'largest distance of an hour of the day from the overall slow share, of that share; Cramer''s V '
    || cast(round(cramers_v, 4) as varchar)
    || case when utc_hours > 0 then '; clocks of ' || cast(utc_hours as varchar) || ' drive-hours unknown, taken as UTC' else '' end as reason
from evenness
union all
select
    'disk_class' as measure,
    kind,
    numerator,
    denominator,
    distance as value,
    case
        when distance < 0.01 and largest_factor <= 1.25 then 'agrees'
        else 'differs'
    end as verdict,
    'largest distance between the slowdowns of a capacity, speed or interface and the rest; slow shares differ by up to a factor '
    || cast(round(largest_factor, 2) as varchar) as reason
from correlation
