{{ config(meta={'made': 'by_day'}) }}
-- Day of each RAID group, in counts that add up, by width: S cannot show that half a group is slow, so tails depend on it.
-- Grain: day_utc, raid_group_id, data_drive_count, is_complete.
-- Also RAID-hours without a valid median: they may have one of reads alone.
select
    day_utc, raid_group_id, data_drive_count,
    reporting_drive_count = data_drive_count as is_complete,
    {{ counted('is_valid') }} as raid_hours,
    {{ counted_hours('is_valid') }} as valid_in,
    min(case when is_valid then hour_utc end) as first_hour_utc,
    max(case when is_valid then hour_utc end) as last_hour_utc,
    cast(sum(reporting_drive_count) as bigint) as drive_hours,
    cast(sum(slow_drive_count) as bigint) as slow_drive_hours,
    {{ counted('is_tail_hour') }} as tail_hours,
    {{ counted('is_valid and slow_drive_count >= 2') }} as second_tail_hours,
    {{ counted('is_valid and slow_drive_count >= 3') }} as third_tail_hours,
    {{ counted('is_mild_tail_hour') }} as mild_tail_hours
{%- for rank in (1, 2, 3) %}
{%- for edge in var('tail_edges') %},
    {{ counted('tail_' ~ rank ~ ' >= ' ~ edge) }} as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- for edge in var('study_edges') %},
    {{ counted('tail_' ~ rank ~ ' = ' ~ edge) }} as tail_{{ rank }}_is_{{ edge_name(edge) }}
{%- endfor %}
{%- endfor %}
{%- for transition in ('stable_to_stable', 'stable_to_tail', 'tail_to_stable', 'tail_to_tail') %},
    {{ counted("transition = '" ~ transition ~ "'") }} as {{ transition }},
    {{ counted("transition = '" ~ transition ~ "' and rio_degradation is not null") }} as {{ transition }}_rio,
{%- for edge in var('rio_edges') %}
    {{ counted("transition = '" ~ transition ~ "' and rio_degradation >= " ~ edge) }} as {{ transition }}_rio_{{ edge_name(edge) }}
    {%- if not loop.last %},{% endif %}
{%- endfor %}
{%- endfor %}
from {{ ref('int_raid_hours') }}
group by day_utc, raid_group_id, data_drive_count, reporting_drive_count = data_drive_count
