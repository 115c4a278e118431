{{ config(materialized="batch_file", stored_by="day") }}
-- What each RAID group showed in a day, in counts that add up, by width: S cannot show that half a group is slow, so tails depend on it.
-- The batch's days as they are after it. Grain: day_utc, raid_group_id, data_drive_count, is_complete.
with raid_hours as (
    {{ signed_rows('raid_hours', 'is_valid') }}
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        raid_group_id,
        data_drive_count,
        reporting_drive_count = data_drive_count as is_complete,
        cast(sum(sign) as bigint) as raid_hours,
        cast(sum(sign * reporting_drive_count) as bigint) as drive_hours,
        cast(sum(sign * slow_drive_count) as bigint) as slow_drive_hours
{%- for rank in (1, 2, 3) %}
{%- for edge in var('tail_edges') %},
        {{ counted('tail_' ~ rank ~ ' >= ' ~ edge) }} as tail_{{ rank }}_{{ edge_name(edge) }}
{%- endfor %}
{%- for edge in (var('mild_threshold'), var('slow_threshold')) %},
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
    from raid_hours
    group by cast(hour_utc as date), raid_group_id, data_drive_count, reporting_drive_count = data_drive_count
)

{{ day_totals(['day_utc', 'raid_group_id', 'data_drive_count', 'is_complete'], [
    'raid_hours', 'drive_hours', 'slow_drive_hours', 'tail_1_120', 'tail_1_150', 'tail_1_200', 'tail_1_300', 'tail_1_400',
    'tail_1_500', 'tail_1_800', 'tail_2_120', 'tail_2_150', 'tail_2_200', 'tail_2_300', 'tail_2_400', 'tail_2_500', 'tail_2_800',
    'tail_3_120', 'tail_3_150', 'tail_3_200', 'tail_3_300', 'tail_3_400', 'tail_3_500', 'tail_3_800', 'tail_1_is_150',
    'tail_1_is_200', 'tail_2_is_150', 'tail_2_is_200', 'tail_3_is_150', 'tail_3_is_200', 'stable_to_stable', 'stable_to_stable_rio',
    'stable_to_stable_rio_120', 'stable_to_stable_rio_150', 'stable_to_stable_rio_200', 'stable_to_stable_rio_300',
    'stable_to_stable_rio_400', 'stable_to_stable_rio_800', 'stable_to_tail', 'stable_to_tail_rio', 'stable_to_tail_rio_120',
    'stable_to_tail_rio_150', 'stable_to_tail_rio_200', 'stable_to_tail_rio_300', 'stable_to_tail_rio_400', 'stable_to_tail_rio_800',
    'tail_to_stable', 'tail_to_stable_rio', 'tail_to_stable_rio_120', 'tail_to_stable_rio_150', 'tail_to_stable_rio_200',
    'tail_to_stable_rio_300', 'tail_to_stable_rio_400', 'tail_to_stable_rio_800', 'tail_to_tail', 'tail_to_tail_rio',
    'tail_to_tail_rio_120', 'tail_to_tail_rio_150', 'tail_to_tail_rio_200', 'tail_to_tail_rio_300', 'tail_to_tail_rio_400',
    'tail_to_tail_rio_800'
], source('plan', 'stored_raid_group_days')) }}
