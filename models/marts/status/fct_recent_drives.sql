-- Drive-hours of each drive in the status window by what came of them, and those that are missing between them. Grain: drive_id, raid_group_id.
with recent as (
    select
        drive_hours.drive_id,
        drive_hours.raid_group_id,
        min(drive_hours.hour_utc) as first_hour_utc,
        max(drive_hours.hour_utc) as last_hour_utc,
        count(*) as hours,
        count(case when drive_hours.is_in_population then drive_hours.slowdown end) as slowdown_hours,
        count(
            case
                when drive_hours.is_in_population and coalesce(drive_hours.read_slowdown, drive_hours.write_slowdown) is null
                    then drive_hours.slowdown
            end
        ) as undirected_hours,
        count(case when not drive_hours.is_data_drive then 1 end) as other_role_hours,
        count(case when drive_hours.is_data_drive and not drive_hours.is_in_population then 1 end) as narrow_group_hours
{%- for reason in ('low_coverage', 'no_io', 'too_few_drives', 'zero_median') %},
        count(case when drive_hours.is_in_population and drive_hours.exclusion_reason = '{{ reason }}' then 1 end) as {{ reason }}_hours
{%- endfor %}
    from {{ ref('int_drive_hours') }} as drive_hours
    inner join {{ ref('fct_status_window') }} as status_window on drive_hours.hour_utc >= status_window.first_hour_utc
    group by drive_hours.drive_id, drive_hours.raid_group_id
),

counted as (
    select *, count(*) over (partition by drive_id) as raid_group_count
    from recent
),

numbered as (
    select
        raid_hours.raid_group_id,
        raid_hours.hour_utc,
        row_number() over (partition by raid_hours.raid_group_id order by raid_hours.hour_utc) as hour_number
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join {{ ref('fct_status_window') }} as status_window on raid_hours.hour_utc >= status_window.first_hour_utc
)

select
    counted.drive_id,
    counted.raid_group_id,
    counted.first_hour_utc,
    counted.last_hour_utc,
    counted.hours,
    counted.slowdown_hours,
    counted.undirected_hours,
    counted.low_coverage_hours,
    counted.no_io_hours,
    counted.too_few_drives_hours,
    counted.zero_median_hours,
    counted.narrow_group_hours,
    counted.other_role_hours,
    -- a drive that changed RAID groups: it is not known which group's hours it should have
    case when counted.raid_group_count = 1 then latest.hour_number - earliest.hour_number + 1 - counted.hours end as missing_hours
from counted
left join numbered as earliest on counted.raid_group_id = earliest.raid_group_id and counted.first_hour_utc = earliest.hour_utc
left join numbered as latest on counted.raid_group_id = latest.raid_group_id and counted.last_hour_utc = latest.hour_utc
