-- Every RAID group of a drive-hour or of inventory, with its width and the time it was observed. Grain: raid_group_id.
with widths as (
    select
        raid_group_id, data_drive_count,
        cast(sum(raid_hours) as bigint) as raid_hours,
        min(first_hour_utc) as first_hour_utc,
        max(last_hour_utc) as last_hour_utc
    from {{ ref('int_raid_group_days') }}
    group by raid_group_id, data_drive_count
),

ranked_widths as (
    select
        *,
        row_number() over (
            partition by raid_group_id order by raid_hours desc, data_drive_count desc nulls last
        ) as width_rank
    from widths
    where raid_hours > 0
),

observed_groups as (
    select
        raid_group_id,
        max(case when width_rank = 1 then data_drive_count end) as data_drive_count,
        min(first_hour_utc) as first_hour_utc,
        max(last_hour_utc) as last_hour_utc
    from ranked_widths
    group by raid_group_id
),

-- drives that are in it now
members as (
    select
        current_raid_group_id as raid_group_id,
        max(case when is_group_guessed then 1 else 0 end) = 1 as is_guessed,
{%- for place in ('host', 'site') %}
        case when min({{ place }}) = max({{ place }}) then min({{ place }}) end as {{ place }},
        count(distinct {{ place }}) as {{ place }}_count{{ ',' if not loop.last }}
{%- endfor %}
    from {{ ref('int_drives') }}
    where current_raid_group_id is not null
    group by current_raid_group_id
),

raid_groups as (
    select raid_group_id from widths
    union
    select raid_group_id from {{ ref('int_raid_groups__kinds') }}
),

-- the array's name on its host, as last reported; a suffix names the kind of drives that are compared separately
group_names as (
    select
        periods.raid_group_id,
        max_by(
            drives.host || ' ' || drives.array_name || replace(periods.raid_group_id, drives.raid_group_id, ''),
            (coalesce(drives.collected_at, timestamp '{{ var("beginning_of_time") }}'), drives.host)
        ) as name
    from {{ ref('stg_raw__drives') }} as drives
    inner join (select distinct raid_group_id, named_raid_group_id from {{ ref('int_drives__periods') }}) as periods
        on drives.raid_group_id = periods.named_raid_group_id
    where drives.array_name is not null
    group by periods.raid_group_id
)

select
    raid_groups.raid_group_id,
    coalesce(group_names.name, raid_groups.raid_group_id) as name,
    coalesce(attributes.kind, 'unknown') as kind,
    attributes.raid_level,
    observed_groups.data_drive_count, observed_groups.first_hour_utc, observed_groups.last_hour_utc,
    ({{ hours_between('observed_groups.first_hour_utc', 'observed_groups.last_hour_utc') }} + 1) / 24 as duration_days,
    members.host, members.site,
    coalesce(members.host_count, 0) as host_count,
    coalesce(members.site_count, 0) as site_count,
    coalesce(members.is_guessed, false) as is_guessed
from raid_groups
left join {{ ref('int_raid_groups__kinds') }} as attributes on raid_groups.raid_group_id = attributes.raid_group_id
left join observed_groups on raid_groups.raid_group_id = observed_groups.raid_group_id
left join members on raid_groups.raid_group_id = members.raid_group_id
left join group_names on raid_groups.raid_group_id = group_names.raid_group_id
