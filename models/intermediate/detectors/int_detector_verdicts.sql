{%- set iaso_slow_score = 50 %}{#- ours -#}
{%- set own_least_hours = 12 %}{#- least hours of the day and of the one before: ours -#}
{%- set own_floors_us = {'disk': 15000, 'ssd': 10000, 'nvme': 10000} %}{#- nothing faster is slow: read_avg_lim and write_avg_lim that ai_block_io comes with; of an unknown kind the greatest -#}
{%- set perseus_slow_risk = 50 %}{#- such a sum is that of a slow drive -#}
-- Verdict of each detector on a drive and day; where it has nothing against the drive there is no row. Grain: drive_id, detector, day_utc.
with mild_hours as (
    select
        *,
        row_number() over (partition by drive_id, day_utc order by slowdown desc, hour_utc asc) as worst_rank
    from {{ ref('int_drive_hours__slow') }}
    where is_mild
),

mild_days as (
    select
        drive_id, day_utc,
        count(*) as mild_hours,
        count(case when is_slow then 1 end) as slow_hours,
        max(slowdown) as max_slowdown,
        max(slow_at) as slow_at,
        max(mild_at) as mild_at,
        max(
            case
                when worst_rank = 1
                    then cast(hour_utc as string) || ': ' || {{ rounded_text('latency_us') }} || ' us, median ' || {{ rounded_text('median_latency_us') }} || ' us'
            end
        ) as worst
    from mild_hours
    group by drive_id, day_utc
),

hdfs_hours as (
    select
        *,
        latency_us / hdfs_limit_us as over_limit,
        row_number() over (
            partition by drive_id, day_utc order by latency_us / hdfs_limit_us desc, hour_utc asc
        ) as worst_rank
    from {{ ref('int_drive_hours__outlying') }}
    where is_hdfs_outlier
),

sigma_hours as (
    select
        *,
        row_number() over (partition by drive_id, day_utc order by sigmas_above_mean desc, hour_utc asc) as worst_rank
    from {{ ref('int_drive_hours__outlying') }}
    where sigmas_above_mean is not null
),

sit_out_hours as (
    select
        *,
        cast(hour_utc as date) as day_utc,
        row_number() over (partition by drive_id, cast(hour_utc as date) order by outlier_count desc, hour_utc asc) as worst_rank
    from {{ ref('int_drive_hours__sit_out') }}
),

fail_slow_hours as (
    select
        *,
        cast(hour_utc as date) as day_utc,
        row_number() over (partition by drive_id, cast(hour_utc as date) order by fail_slow_count desc, hour_utc asc) as worst_rank
    from {{ ref('int_drive_hours__fail_slow') }}
),

own_days as (
    select
        today.drive_id, today.day_utc, today.drive_hours, today.high_latency_us,
        before.q1_latency_us, before.q3_latency_us,
        before.q3_latency_us + {{ var('own_history_ranges') }} * (before.q3_latency_us - before.q1_latency_us) as limit_us
    from {{ ref('int_drive_days__spread') }} as today
    inner join {{ ref('int_drive_days__spread') }} as before
        on today.drive_id = before.drive_id and before.day_utc = cast(today.day_utc - interval 1 day as date)
    where today.drive_hours >= {{ own_least_hours }} and before.drive_hours >= {{ own_least_hours }}
)

{% for threshold, hours in (('slow', 'slow_hours'), ('mild', 'mild_hours')) -%}
select
    drive_id,
    '{{ {"slow": "slow_2x", "mild": "slow_1_5x"}[threshold] }}' as detector,
    day_utc,
    max_slowdown as score,
    true as is_flagged,
    {{ counted_noun(hours, 'hour') }} || ' at ' || cast({{ threshold }}_at as string) || ' or more; the worst ' || worst as evidence
from mild_days
where {{ hours }} > 0
union all
{% endfor -%}
select
    drive_id,
    'chronic' as detector,
    cast(day_utc as date) as day_utc,
    cast(window_chronic_hours as double) / window_drive_hours as score,
    is_chronic as is_flagged,
    cast(window_chronic_hours as string) || ' of ' || cast(window_drive_hours as string)
    || ' hours of {{ var("chronic_window_days") }} days at {{ var("chronic_slowdown") }} or more; the RAID group has '
    || cast(window_raid_hours as string) as evidence
from {{ ref('int_drive_days__chronic') }}
where 2 * window_chronic_hours > window_drive_hours
union all
select
    drive_id,
    'hdfs_outlier' as detector,
    day_utc,
    max(over_limit) as score,
    true as is_flagged,
    {{ counted_noun('count(*)', 'hour') }} || ' above the limit; the worst ' || max(
        case
            when worst_rank = 1
                then cast(hour_utc as string) || ': ' || {{ rounded_text('latency_us') }} || ' us, limit ' || {{ rounded_text('hdfs_limit_us') }} || ' us, median '
                || {{ rounded_text('median_latency_us') }} || ' us of ' || cast(peer_count as string) || ' drives'
        end
    ) as evidence
from hdfs_hours
group by drive_id, day_utc
union all
select
    drive_id,
    'zfs_sit_out' as detector,
    day_utc,
    cast(max(outlier_count) as double) as score,
    max(outlier_count) > {{ var('zfs_outlier_limit') }} as is_flagged,
    {{ counted_noun('count(*)', 'rise') }} || '; the count is '
    || max(
        case
            when worst_rank = 1
                then cast(outlier_count as string) || ' of {{ var("zfs_outlier_limit") }} at ' || cast(hour_utc as string) || ': '
                || {{ rounded_text('latency_us') }} || ' us, fence ' || {{ rounded_text('fence_us') }} || ' us of ' || cast(peer_count as string) || ' drives'
        end
    ) as evidence
from sit_out_hours
group by drive_id, day_utc
union all
{% for detector, score, floor, slow_score in (
    ('tikv_slow_score', 'tikv_score', 1, var('tikv_slow_score')), ('iaso_aimd', 'iaso_score', 0, iaso_slow_score)
) -%}
select
    drive_id,
    '{{ detector }}' as detector,
    day_utc,
    {{ score }} as score,
    {{ score }} >= {{ slow_score }} as is_flagged,
    cast(slow_hours as string) || ' of ' || cast(drive_hours as string) || ' hours at ' || cast(slow_at as string) || ' or more, '
    || {{ counted_noun('quiet_days', 'day') }} || ' since such an hour; the score is ' || {{ rounded_text(score) }} as evidence
from {{ ref('int_drive_days__scored') }}
where {{ score }} > {{ floor }}
union all
{% endfor -%}
select
    drive_id,
    'mean_3_sigma' as detector,
    day_utc,
    max(sigmas_above_mean) as score,
    true as is_flagged,
    {{ counted_noun('count(*)', 'hour') }} || '; the worst ' || max(
        case
            when worst_rank = 1
                then cast(hour_utc as string) || ': ' || {{ rounded_text('latency_us') }} || ' us, ' || {{ rounded_text('sigmas_above_mean') }}
                || ' standard deviations above the mean of ' || cast(peer_count as string) || ' drives'
        end
    ) as evidence
from sigma_hours
group by drive_id, day_utc
union all
select
    drive_id,
    'ceph_mad' as detector,
    day_utc,
    cast(max(fail_slow_count) as double) as score,
    max(fail_slow_count) >= {{ var('ceph_persistence') }} as is_flagged,
    {{ counted_noun('count(*)', 'hour') }} || '; the count is '
    || max(
        case
            when worst_rank = 1
                then cast(fail_slow_count as string) || ' of {{ var("ceph_persistence") }} at ' || cast(hour_utc as string) || ': '
                || {{ rounded_text('latency_us') }} || ' us, median ' || {{ rounded_text('median_latency_us') }} || ' us and '
                || {{ rounded_text('fail_slow_score') }} || ' deviations of ' || {{ rounded_text('mad_us') }} || ' us of ' || cast(peer_count as string) || ' drives'
        end
    ) as evidence
from fail_slow_hours
group by drive_id, day_utc
union all
select
    own_days.drive_id,
    'own_history' as detector,
    own_days.day_utc,
    own_days.high_latency_us / own_days.limit_us as score,
    true as is_flagged,
    'a fifth of ' || cast(own_days.drive_hours as string) || ' hours at ' || {{ rounded_text('own_days.high_latency_us') }} || ' us or more, limit '
    || {{ rounded_text('own_days.limit_us') }} || ' us by the day before, whose quartiles are ' || {{ rounded_text('own_days.q1_latency_us') }} || ' and '
    || {{ rounded_text('own_days.q3_latency_us') }} || ' us' as evidence
from own_days
left join {{ ref('int_drives') }} as kinds on own_days.drive_id = kinds.drive_id
where own_days.high_latency_us > greatest(
    own_days.limit_us,
    case kinds.peer_kind{% for kind, floor_us in own_floors_us.items() %} when '{{ kind }}' then cast({{ floor_us }} as double){% endfor %} else cast({{ own_floors_us.values() | max }} as double) end
)
union all
select
    drive_id,
    'perseus' as detector,
    day_utc,
    cast(window_risk as double) as score,
    window_risk >= {{ perseus_slow_risk }} as is_flagged,
    cast(event_count as string) || ' of ' || cast(window_count as string) || ' windows of {{ var("perseus_window_minutes") }} minutes above the bound, '
    || {{ rounded_text('event_ratio') }} || ' times it on average; the worst ' || cast(worst_window_utc as string) || ': ' || {{ rounded_text('worst_ratio') }}
    || ' times; risk ' || cast(risk as string) || ' of the day, ' || cast(window_risk as string) || ' of {{ var("perseus_days") }} days' as evidence
from {{ ref('int_drive_days__at_risk') }}
where risk > 0
