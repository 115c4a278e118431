{%- set grafana_epsilon = 0.55 %}{#- share of the span of a day's values: sensitivity 0.5, (1 - 0.5) * SENSITIVITY_PADDING -#}
{%- set grafana_scores = 2.9211 %}{#- sensitivity 0.5: MAX_T - (MAX_T - MIN_T) * sqrt(0.5) -#}
{%- set datadog_tolerance = 3 %}
{%- set datadog_share = 0.2 %}{#- share of a window's points, above which a series is an outlier -#}
{%- set mad_factor = 1.4826 %}{#- MAD_K: of a normal distribution's standard deviation over its median absolute deviation -#}
{%- set least_drives = 3 %}
-- Outlier monitors of Grafana and Datadog over a day's latencies, only in RAID groups of labelled drives: they are compared, and nobody acts on them.
-- Grain: drive_id, detector, day_utc.
with raid_groups as (
    select distinct days.raid_group_id
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('stg_raw__labels') }} as labels on days.drive_id = labels.drive_id
),

peers as (
    select hours.drive_id, hours.raid_group_id, hours.hour_utc, hours.day_utc, hours.latency_us
    from {{ ref('int_drive_hours') }} as hours
    inner join raid_groups on hours.raid_group_id = raid_groups.raid_group_id
    where hours.is_in_population and hours.slowdown is not null
),

centres as (
    select
        raid_group_id, day_utc,
        {{ median_of_group('latency_us') }} as centre_us,
        {{ grafana_epsilon }} * greatest(max(latency_us) - min(latency_us), 0.1) as epsilon_us
    from peers
    group by raid_group_id, day_utc
),

centred_days as (
    select peers.*, centres.epsilon_us, peers.latency_us - centres.centre_us as deviation_us
    from peers
    inner join centres on peers.raid_group_id = centres.raid_group_id and peers.day_utc = centres.day_utc
),

-- above and below the centre Grafana takes a deviation each, Datadog one for both
spreads as (
    select
        raid_group_id, day_utc,
        {{ median_of_group('abs(deviation_us)') }} as mad_us,
        {{ median_of_group('case when deviation_us >= 0 then deviation_us end') }} as upper_mad_us,
        {{ median_of_group('case when deviation_us <= 0 then -deviation_us end') }} as lower_mad_us
    from centred_days
    group by raid_group_id, day_utc
),

placed_days as (
    select
        *,
        row_number() over (partition by raid_group_id, hour_utc order by latency_us, drive_id) as row_rank,
        count(*) over (partition by raid_group_id, hour_utc) as peer_count,
        latency_us - lag(latency_us) over (partition by raid_group_id, hour_utc order by latency_us, drive_id) > epsilon_us as is_apart
    from centred_days
),

-- no two gaps of an hour are wider than 0.55 of the day's span: it has one cluster, or one on either side
judged_days as (
    select
        placed_days.*,
        placed_days.peer_count >= {{ least_drives }}
        and coalesce(
            2 * (
                max(case when placed_days.is_apart then placed_days.row_rank end) over (
                    partition by placed_days.raid_group_id, placed_days.hour_utc order by placed_days.row_rank rows between unbounded preceding and current row
                ) - 1
            ) >= placed_days.peer_count,
            false
        ) as is_beyond_cluster,
        case
            when spreads.lower_mad_us > 0 and spreads.upper_mad_us > 0 then placed_days.deviation_us / ({{ mad_factor }} * spreads.upper_mad_us)
        end as grafana_score,
        placed_days.deviation_us > {{ datadog_tolerance * mad_factor }} * spreads.mad_us as is_beyond_mad
    from placed_days
    inner join spreads on placed_days.raid_group_id = spreads.raid_group_id and placed_days.day_utc = spreads.day_utc
),

days as (
    select
        drive_id, day_utc,
        count(*) as drive_hours,
        {{ counted('is_beyond_cluster') }} as dbscan_hours,
        {{ counted('grafana_score > ' ~ grafana_scores) }} as grafana_hours,
        {{ counted('is_beyond_mad') }} as datadog_hours
    from judged_days
    group by drive_id, day_utc
)
{% for detector, hours, share in (('grafana_dbscan', 'dbscan_hours', 0), ('grafana_mad', 'grafana_hours', 0), ('datadog_mad', 'datadog_hours', datadog_share)) %}
select
    drive_id,
    '{{ detector }}' as detector,
    day_utc, drive_hours,
    {{ hours }} as outlying_hours,
    {{ hours }} > {{ share }} * drive_hours as is_flagged
from days
where {{ hours }} > 0
{{ 'union all' if not loop.last }}
{%- endfor %}
