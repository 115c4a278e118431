{%- set no_interval = 'no interval, as these hours are not counted by RAID group' %}{#- so one that does not hold may be chance -#}
-- Statements of the paper without a number, by our own yardsticks. Grain: measure, kind.
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

overall_hours as (
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
        min(clock_hours.slowdown_hours * overall_hours.slow_share) as fewest_expected,
        max(abs(cast(clock_hours.slow_hours as double) / clock_hours.slowdown_hours / nullif(overall_hours.slow_share, 0.0) - 1)) as distance,
        -- chi-squared of slow and not slow over the hours of the day; the smaller side of the table has two rows
        sqrt(
            sum(
                power(clock_hours.slow_hours - clock_hours.slowdown_hours * overall_hours.slow_share, 2)
                / nullif(clock_hours.slowdown_hours * overall_hours.slow_share * (1 - overall_hours.slow_share), 0.0)
            ) / max(overall_hours.slowdown_hours)
        ) as cramers_v,
        cast(max(overall_hours.slow_hours) as bigint) as numerator,
        cast(max(overall_hours.slowdown_hours) as bigint) as denominator,
        cast(max(overall_hours.utc_hours) as bigint) as utc_hours
    from clock_hours
    inner join overall_hours on clock_hours.kind = overall_hours.kind
    group by clock_hours.kind
),

-- classes that drive-hours are counted by, and what each is made of
drive_classes as (
    select distinct drive_class, capacity_bytes, rpm, interface from {{ source('intermediate', 'int_drives') }}
),

binned_counts as (
    select counts.kind, counts.drive_class, counts.edge_per_mille, counts.is_on_edge, sum(counts.hour_count) as hour_count
    from {{ ref('int_day_counts') }} as counts
    where counts.measure = 'slowdown'
    group by counts.kind, counts.drive_class, counts.edge_per_mille, counts.is_on_edge
),

classed_counts as (
{%- for attribute in ('capacity_bytes', 'rpm', 'interface') %}
    select
        binned_counts.kind,
        '{{ attribute }}' as attribute,
        cast(drive_classes.{{ attribute }} as string) as class,
        binned_counts.edge_per_mille, binned_counts.is_on_edge,
        sum(binned_counts.hour_count) as hour_count
    from binned_counts
    inner join drive_classes on binned_counts.drive_class = drive_classes.drive_class
    where drive_classes.{{ attribute }} is not null
    group by binned_counts.kind, drive_classes.{{ attribute }}, binned_counts.edge_per_mille, binned_counts.is_on_edge
    {% if not loop.last %}union all{% endif %}
{%- endfor %}
),

classes as (
    select
        kind, attribute, class,
        sum(hour_count) as slowdown_hours,
        sum(case when edge_per_mille >= 1000 * {{ var('study_edges')[1] }} then hour_count else 0 end) as slow_hours
    from classed_counts
    group by kind, attribute, class
),

-- drives of no known class are among all drives
all_drives as (
    select
        kind,
        sum(hour_count) as slowdown_hours,
        sum(case when edge_per_mille >= 1000 * {{ var('study_edges')[1] }} then hour_count else 0 end) as slow_hours,
        sum(case when edge_per_mille >= 1000 * {{ var('study_edges')[1] }} then hour_count else 0 end)
        / cast(sum(hour_count) as double) as slow_share
    from binned_counts
    group by kind
),

against_rest as (
    select
        *,
        count(*) over (partition by kind, attribute) as class_count,
        sum(slowdown_hours) over (partition by kind, attribute) as all_hours
    from classes
),

-- a bin's edge comes before the rest of the bin: cumulated so, every edge is looked at from both sides
places as (
    select distinct kind, attribute, edge_per_mille, is_on_edge from classed_counts
),

cumulated_counts as (
    select
        classes.kind, classes.attribute, classes.class,
        places.edge_per_mille, places.is_on_edge,
        sum(coalesce(classed_counts.hour_count, 0)) over (
            partition by classes.kind, classes.attribute, classes.class
            order by places.edge_per_mille asc, places.is_on_edge desc
            rows between unbounded preceding and current row
        ) as hours_up_to
    from classes
    inner join places on classes.kind = places.kind and classes.attribute = places.attribute
    left join classed_counts
        on classes.kind = classed_counts.kind
        and classes.attribute = classed_counts.attribute
        and classes.class = classed_counts.class
        and places.edge_per_mille = classed_counts.edge_per_mille
        and places.is_on_edge = classed_counts.is_on_edge
),

beside_all as (
    select
        *,
        sum(hours_up_to) over (partition by kind, attribute, edge_per_mille, is_on_edge) as all_hours_up_to
    from cumulated_counts
),

distances as (
    select
        beside_all.kind, beside_all.attribute, beside_all.class,
        max(
            abs(
                cast(beside_all.hours_up_to as double) / against_rest.slowdown_hours
                - cast(beside_all.all_hours_up_to - beside_all.hours_up_to as double)
                / nullif(against_rest.all_hours - against_rest.slowdown_hours, 0)
            )
        ) as distance
    from beside_all
    inner join against_rest
        on beside_all.kind = against_rest.kind
        and beside_all.attribute = against_rest.attribute
        and beside_all.class = against_rest.class
    group by beside_all.kind, beside_all.attribute, beside_all.class
),

correlation as (
    select
        against_rest.kind,
        max(distances.distance) as distance,
        max(
            greatest(
                against_rest.slow_hours / cast(against_rest.slowdown_hours as double) / all_drives.slow_share,
                -- no slow hour where some are expected: as far away as can be
                coalesce(
                    all_drives.slow_share / nullif(against_rest.slow_hours / cast(against_rest.slowdown_hours as double), 0.0),
                    cast('infinity' as double)
                )
            )
        ) as largest_factor,
        cast(max(all_drives.slow_hours) as bigint) as numerator,
        cast(max(all_drives.slowdown_hours) as bigint) as denominator
    from against_rest
    inner join all_drives on against_rest.kind = all_drives.kind
    inner join distances
        on against_rest.kind = distances.kind
        and against_rest.attribute = distances.attribute
        and against_rest.class = distances.class
    where against_rest.class_count >= 2
        and against_rest.slowdown_hours * all_drives.slow_share >= {{ var('fewest_expected_events') }}
    group by against_rest.kind
)

select
    'clock_hour' as measure,
    kind, numerator, denominator,
    distance as value,
    case
        when fewest_expected < {{ var('fewest_expected_events') }} then 'no data'
        when distance <= 0.1 and cramers_v <= 0.02 then 'agrees'
        else 'cannot tell'
    end as verdict,
    'largest distance of an hour of the day from the overall slow share, of that share; Cramer''s V '
    || {{ rounded_text('cramers_v', 4) }}
    || case when utc_hours > 0 then '; clocks of ' || cast(utc_hours as string) || ' drive-hours unknown, taken as UTC' else '' end || '; {{ no_interval }}' as reason
from evenness
union all
select
    'disk_class' as measure,
    kind, numerator, denominator,
    distance as value,
    case
        when distance < 0.01 and largest_factor <= 1.25 then 'agrees'
        else 'cannot tell'
    end as verdict,
    'largest distance between the slowdowns of a capacity, speed or interface and the rest; '
    || case
        when largest_factor < cast('infinity' as double)
            then 'slow shares differ by up to a factor ' || {{ rounded_text('largest_factor') }}
        else 'one of them has no slow hour'
    end || '; {{ no_interval }}' as reason
from correlation
