{{ config(materialized="batch_file", stored_by="day") }}
-- What each RAID group showed in a day, in counts that add up, by width: S cannot show that half a group is slow, so tails depend on it.
-- The batch's days as they are after it. Grain: day_utc, raid_group_id, data_drive_count, is_complete.
with raid_hours as (
    -- also those without a valid median: they may have one of reads alone
    {{ signed_rows('raid_hours', 'true') }}
),

changed as (
    select
        cast(hour_utc as date) as day_utc,
        raid_group_id,
        data_drive_count,
        reporting_drive_count = data_drive_count as is_complete,
        {{ counted('is_valid') }} as raid_hours,
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
{%- for variant in ('read', 'write', 'io_10', 'io_100') %},
        {{ counted(variant ~ '_drive_count > 0') }} as {{ variant }}_raid_hours
{%- endfor %}
{%- for variant in ('read', 'write', 'io_10', 'io_100', 'mean') %}
{%- for rank in (1, 2, 3) %},
        {{ counted(variant ~ '_mild_drive_count >= ' ~ rank) }} as {{ variant }}_tail_{{ rank }}_{{ edge_name(var('mild_threshold')) }},
        {{ counted(variant ~ '_slow_drive_count >= ' ~ rank) }} as {{ variant }}_tail_{{ rank }}_{{ edge_name(var('slow_threshold')) }}
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
    'tail_to_tail_rio_800',
    'read_raid_hours', 'write_raid_hours', 'io_10_raid_hours', 'io_100_raid_hours', 'read_tail_1_150', 'read_tail_1_200',
    'read_tail_2_150', 'read_tail_2_200', 'read_tail_3_150', 'read_tail_3_200', 'write_tail_1_150', 'write_tail_1_200',
    'write_tail_2_150', 'write_tail_2_200', 'write_tail_3_150', 'write_tail_3_200', 'io_10_tail_1_150', 'io_10_tail_1_200',
    'io_10_tail_2_150', 'io_10_tail_2_200', 'io_10_tail_3_150', 'io_10_tail_3_200', 'io_100_tail_1_150', 'io_100_tail_1_200',
    'io_100_tail_2_150', 'io_100_tail_2_200', 'io_100_tail_3_150', 'io_100_tail_3_200', 'mean_tail_1_150', 'mean_tail_1_200',
    'mean_tail_2_150', 'mean_tail_2_200', 'mean_tail_3_150', 'mean_tail_3_200'
], source('plan', 'stored_raid_group_days')) }}
