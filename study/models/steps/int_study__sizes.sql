-- Sizes of the data set, in the study's terms. Grain: measure, kind.
with raid_group_totals as (
    select
        days.raid_group_id,
        coalesce(kinds.kind, 'unknown') as kind,
        sum(days.raid_hours) as raid_hours,
        sum(days.tail_hours) as tail_hours
    from {{ source('intermediate', 'int_raid_group_days') }} as days
    left join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
    group by days.raid_group_id, coalesce(kinds.kind, 'unknown')
),

raid_hours as (
    select kind, sum(raid_hours) as raid_hours, sum(tail_hours) as tail_hours
    from raid_group_totals
    group by kind
),

raid_groups as (
    select
        kind,
        count(*) as raid_groups,
        min(data_drive_count) as smallest_width,
        max(data_drive_count) as largest_width,
        min(ceil(duration_days)) as shortest_duration_days,
        max(ceil(duration_days)) as longest_duration_days,
        {{ mean_of_group('duration_days') }} as mean_duration_days
    from {{ source('intermediate', 'int_raid_groups') }}
    where data_drive_count is not null
    group by kind
),

drives as (
    select
        kind,
        count(*) as drives,
        sum(slowdown_hours) as drive_hours,
        count(distinct case when flash_cell = 'SLC' and model is not null then vendor end) as slc_vendors,
        count(distinct case when flash_cell = 'MLC' and model is not null then vendor end) as mlc_vendors
    from {{ ref('int_study__drives') }}
    group by kind
),

slow_hours as (
    select
        drives.kind,
        count(*) as slow_drive_hours,
        count(distinct slow_hours.drive_id) as slow_drives,
        count(case when slow_hours.slowdown >= 100 and slow_hours.slowdown < 1000 then 1 end) as three_digit_drive_hours,
        count(case when slow_hours.slowdown >= 1000 and slow_hours.slowdown < 10000 then 1 end) as four_digit_drive_hours
    from {{ source('intermediate', 'int_drive_hours__slow') }} as slow_hours
    inner join {{ source('intermediate', 'int_drives') }} as drives on slow_hours.drive_id = drives.drive_id
    where slow_hours.is_slow
    group by drives.kind
),

sizes as (
    select
        kinds.kind,
        {% for size in ('drives.drives', 'drives.drive_hours', 'drives.slc_vendors', 'drives.mlc_vendors', 'raid_groups.raid_groups',
                        'raid_hours.raid_hours', 'raid_hours.tail_hours', 'slow_hours.slow_drive_hours', 'slow_hours.three_digit_drive_hours',
                        'slow_hours.four_digit_drive_hours') -%}
        coalesce({{ size }}, 0) as {{ size.split('.')[1] }},
        {% endfor -%}
        raid_groups.smallest_width, raid_groups.largest_width, raid_groups.shortest_duration_days, raid_groups.longest_duration_days,
        raid_groups.mean_duration_days,
        coalesce(drives.drive_hours, 0) / cast(nullif(raid_hours.raid_hours, 0) as double) as drives_per_raid_hour,
        coalesce(drives.drives, 0) / cast(raid_groups.raid_groups as double) as drives_per_raid_group,
        drives.drive_hours / (24.0 * drives.drives) as days_per_drive,
        slow_hours.slow_drive_hours / cast(nullif(slow_hours.slow_drives, 0) as double) as slow_hours_per_slow_drive
    from (select 'disk' as kind union all select 'ssd' as kind) as kinds
    left join drives on kinds.kind = drives.kind
    left join raid_groups on kinds.kind = raid_groups.kind
    left join raid_hours on kinds.kind = raid_hours.kind
    left join slow_hours on kinds.kind = slow_hours.kind
)
{% for size in (
    'drives', 'drive_hours', 'slc_vendors', 'mlc_vendors', 'raid_groups', 'smallest_width', 'largest_width', 'shortest_duration_days',
    'longest_duration_days', 'mean_duration_days', 'raid_hours', 'tail_hours', 'slow_drive_hours', 'three_digit_drive_hours',
    'four_digit_drive_hours', 'drives_per_raid_hour', 'drives_per_raid_group', 'days_per_drive', 'slow_hours_per_slow_drive'
) %}
select '{{ size }}' as measure, kind, cast({{ size }} as double) as size from sizes
{% if not loop.last %}union all{% endif %}
{%- endfor %}
