-- Numbers that are compared: every number of a drive-day with a slowdown, of drives of a known model. Grain: drive_id, day_utc, attribute, measure.
{%- for measure in ('raw_value', 'raw_change', 'normalised_value') %}
select
    drive_id, day_utc, attribute,
    '{{ measure }}' as measure,
    kind, model, raid_group_id,
    {{ measure }} as value,
    slow_hours > 0 as is_slow
from {{ source('intermediate', 'int_drive_health') }}
where slowdown_hours > 0
    and {{ measure }} is not null
    and model is not null
    and attribute not in ('{{ var("health_clock_attributes") | join("', '") }}')
{{ "union all" if not loop.last }}
{%- endfor %}
