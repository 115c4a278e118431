{{ config(materialized='view') }}
-- From which slowdown a drive-hour is slow, and mildly slow, and which I/Os make it evidence, by the kind of its RAID group. The only place that decides
-- it. Grain: kind.
{% for kind in ('disk', 'ssd', 'unknown') -%}
select
    '{{ kind }}' as kind,
    cast({{ var('slow_threshold_' ~ kind) }} as double) as slow_at,
    cast({{ var('mild_threshold_' ~ kind) }} as double) as mild_at,
    cast({{ var('min_judged_ios_' ~ kind) }} as bigint) as min_judged_ios,
    cast({{ var('min_load_share_' ~ kind) }} as double) as min_load_share
{{ 'union all' if not loop.last }}
{% endfor %}
