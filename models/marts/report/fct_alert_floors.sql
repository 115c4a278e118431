{{ config(meta={'made': 'each_day'}) }}
{%- set alert_floors_us = [100, 300, 1000, 10000] %}{#- floors to try -#}
-- How many alerts that were slow in the last days floors of concern would have held back, and how many of the drives that a person found slow. Alerts of drives and
-- RAID groups, also those that a floor holds back now; of several drives each. Grain: peer_kind, floor_us.
with recent_alerts as (
    select
        coalesce(alerts.peer_kind, 'unknown') as peer_kind,
        alerts.max_latency_us,
        labels.verdict = 'slow' as is_labelled_slow
    from {{ ref('int_slow_alerts') }} as alerts
    inner join {{ ref('publication') }} as publication
        on alerts.last_slow_hour_utc > publication.last_hour_utc - interval {{ var('alert_floor_days') }} day
    left join {{ ref('stg_raw__labels') }} as labels on alerts.subject_type = 'drive' and alerts.subject_id = labels.drive_id
    where alerts.subject_type in ('drive', 'raid_group')
)

{% for floor in alert_floors_us -%}
select
    peer_kind,
    cast({{ floor }} as double) as floor_us,
    count(*) as alert_count,
    {{ counted('max_latency_us < ' ~ floor) }} as held_back_count,
    {{ counted('is_labelled_slow') }} as labelled_count,
    {{ counted('is_labelled_slow and max_latency_us < ' ~ floor) }} as labelled_held_back_count
from recent_alerts
group by peer_kind
{{ 'union all' if not loop.last }}
{% endfor %}
