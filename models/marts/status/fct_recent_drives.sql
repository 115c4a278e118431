-- Drive-hours of each drive in the status window by what came of them, and those that are missing between them. Grain: drive_id, raid_group_id.
{%- set reasons = ['low_coverage', 'no_io', 'too_few_drives', 'zero_median'] + reasons_not_judged() %}
-- sets of hours (hour_bit) by day instead of hours: a twentieth of the rows, read by every build. The first day of the window may be cut
with days as (
    select
        days.*,
        case
            when days.day_utc = cast(status_window.first_hour_utc as date) then ~({{ hour_bit('status_window.first_hour_utc') }} - 1)
            else cast(-1 as bigint)
        end as hours_within
    from {{ ref('int_drive_days') }} as days
    inner join {{ ref('fct_status_window') }} as status_window on days.day_utc >= cast(status_window.first_hour_utc as date)
),

cut_days as (
    select
        drive_id, raid_group_id,
        {{ hour_index('cast(day_utc as timestamp)') }} as day_index,
        reported_in & hours_within as reported_in,
        in_population_in & slowdown_in & hours_within as slowdown_in,
        in_population_in & undirected_in & hours_within as undirected_in,
        reported_in & ~data_in & hours_within as other_role_in,
        data_in & ~in_population_in & hours_within as narrow_group_in
{%- for reason in reasons %},
        {{ reason }}_in & hours_within as {{ reason }}_in
{%- endfor %}
    from days
    where (reported_in & hours_within) <> 0
),

recent_days as (
    select
        drive_id, raid_group_id,
        {{ hour_at('min(' ~ first_hour_in('reported_in', 'day_index') ~ ')') }} as first_hour_utc,
        {{ hour_at('max(' ~ last_hour_in('reported_in', 'day_index') ~ ')') }} as last_hour_utc
{%- for hours in ['reported', 'slowdown', 'undirected', 'other_role', 'narrow_group'] + reasons %},
        cast(sum({{ hour_count(hours ~ '_in') }}) as bigint) as {{ 'hours' if hours == 'reported' else hours ~ '_hours' }}
{%- endfor %}
    from cut_days
    group by drive_id, raid_group_id
),

counted_drives as (
    select *, count(*) over (partition by drive_id) as raid_group_count
    from recent_days
),

-- hours in which any of its drives reported
group_days as (
    select raid_group_id, day_index, bit_or(reported_in) as reported_in
    from cut_days
    group by raid_group_id, day_index
),

followed_groups as (
    select
        raid_group_id,
        {{ hour_at('day_index') }} as day_utc,
        reported_in,
        sum({{ hour_count('reported_in') }}) over (partition by raid_group_id order by day_index) as hours_by_then
    from group_days
)

select
    counted_drives.drive_id, counted_drives.raid_group_id, counted_drives.first_hour_utc, counted_drives.last_hour_utc, counted_drives.hours, counted_drives.slowdown_hours,
    counted_drives.undirected_hours, counted_drives.low_coverage_hours, counted_drives.no_io_hours, counted_drives.too_few_drives_hours, counted_drives.zero_median_hours,
    counted_drives.narrow_group_hours, counted_drives.other_role_hours, counted_drives.too_few_ios_hours, counted_drives.unlike_load_hours, counted_drives.no_peers_hours,
    -- its group's hours up to its last, less those before its first and its own. Of a drive that changed RAID groups it is not known which
    -- group's hours it should have
    case
        when counted_drives.raid_group_count = 1
            then cast(
                latest.hours_by_then - {{ hour_count('latest.reported_in & -(2 * ' ~ hour_bit('counted_drives.last_hour_utc') ~ ')') }}
                - earliest.hours_by_then + {{ hour_count('earliest.reported_in & -' ~ hour_bit('counted_drives.first_hour_utc')) }}
                - counted_drives.hours as bigint
            )
    end as missing_hours
from counted_drives
inner join followed_groups as earliest
    on counted_drives.raid_group_id = earliest.raid_group_id and cast(date_trunc('day', counted_drives.first_hour_utc) as timestamp) = earliest.day_utc
inner join followed_groups as latest
    on counted_drives.raid_group_id = latest.raid_group_id and cast(date_trunc('day', counted_drives.last_hour_utc) as timestamp) = latest.day_utc
