{{ config(meta={'made': 'by_day_when_asked'}) }}
-- Slowdown of imbalanced hours of a drive, in counts that add up. Grain: day_utc, drive_id, raid_group_id, imbalance.
with drive_hours as (
    select day_utc, drive_id, raid_group_id, slowdown, rate_imbalance, size_imbalance
    from {{ source('intermediate', 'int_drive_hours') }}
    where is_in_population
        and slowdown is not null
        and (rate_imbalance >= {{ var('imbalanced') }} or size_imbalance >= {{ var('imbalanced') }})
),

imbalanced_hours as (
{%- for imbalance in ('rate', 'size') %}
    select day_utc, drive_id, raid_group_id, '{{ imbalance }}' as imbalance, slowdown
    from drive_hours
    where {{ imbalance }}_imbalance >= {{ var('imbalanced') }}
    {{- " union all" if not loop.last }}
{%- endfor %}
)

select
    day_utc, drive_id, raid_group_id, imbalance,
    count(*) as slowdown_hours
{%- for edge in var('imbalanced_edges') %},
    {{ counted('slowdown >= ' ~ edge) }} as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
from imbalanced_hours
group by day_utc, drive_id, raid_group_id, imbalance
