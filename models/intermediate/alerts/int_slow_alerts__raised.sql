{{ config(meta={'made': 'each_build'}) }}
{%- set judged_in = 'in_population_in & slowdown_in & ~(' ~ reasons_not_judged() | join('_in | ') ~ '_in)' %}
-- Alerts of single drives and of RAID groups that are slow as a whole, also those that a floor of concern holds back. Grain: alert_id.
with hours as (
    select
        hours.*,
        max(hours.hour_utc) over (partition by hours.subject_type, hours.subject_id) as last_of_subject_utc
    from {{ ref('int_slow_alerts__hours') }} as hours
    where hours.held_back_by is null
),

alert_hours as (
    select
        hours.*,
        episodes.alert_number, episodes.episode_number, episodes.raised_at, episodes.reached_at, episodes.is_reopened,
        row_number() over (
            partition by hours.subject_type, hours.subject_id, episodes.alert_number order by hours.slowdown desc, hours.hour_utc asc
        ) as worst_rank
    from hours
    inner join {{ ref('int_slow_alerts__episodes') }} as episodes
        on hours.subject_type = episodes.subject_type
        and hours.subject_id = episodes.subject_id
        and hours.hour_utc between episodes.first_slow_hour_utc and episodes.last_slow_hour_utc
),

alerts as (
    select
        subject_type, subject_id, alert_number,
        coalesce(min(case when reached_at is not null then raised_at end), min(raised_at)) as raised_at,
        max(case when is_reopened then raised_at end) as reopened_at,
        max(episode_number) as episode_count,
        max(latency_us) as max_latency_us,
        max(peer_kind) as peer_kind,
        max(floor_us) as floor_us,
        min(hour_utc) as first_slow_hour_utc,
        max(hour_utc) as last_slow_hour_utc,
        -- the more often it came back, the longer it has to be quiet
        max(hour_utc) + {{ time_to_clear('max(episode_number)') }} as quiet_at,
        max(last_of_subject_utc) as last_of_subject_utc,
        max_by(raid_group_id, hour_utc) as raid_group_id,
        count(*) as slow_hours,
        count(case when is_imbalanced then 1 end) as imbalanced_hours,
        count(rate_imbalance) as load_known_hours,
        {{ median_of_group('rate_imbalance') }} as load_ratio,
        {{ median_of_group('slowdown') }} as median_slowdown,
        max(slowdown) as max_slowdown,
        max(despite_work) as despite_work,
        max(case when worst_rank = 1 then hour_utc end) as worst_hour_utc,
        max(case when worst_rank = 1 then latency_us end) as latency_us,
        max(case when worst_rank = 1 then median_latency_us end) as median_latency_us
    from alert_hours
    group by subject_type, subject_id, alert_number
),

-- hours without evidence do not show that a drive has become quiet: it may hang
judged_drives as (
    select
        drive_id,
        {{ hour_at("max(" ~ last_hour_in(judged_in, hour_index('cast(day_utc as timestamp)')) ~ ")") }} as last_judged_hour_utc
    from {{ ref('int_drive_days') }}
    where drive_id in (select subject_id from alerts where subject_type = 'drive') and ({{ judged_in }}) > 0
    group by drive_id
)

select
    alerts.*,
    case when alerts.max_latency_us < alerts.floor_us then {{ below_the_floor() }} end as held_back_by,
    alerts.subject_type || ' ' || alerts.subject_id || case alerts.subject_type when 'drive' then ' acute ' else ' whole_group ' end
    || cast(alerts.raised_at as string) as alert_id,
    case alerts.subject_type when 'drive' then 'acute' else 'whole_group' end as reason,
    -- the drive has gone, or was quiet for long enough. That is known once there are judged hours as late as that, or a later run; where no more hours of the drive
    -- are expected, once there are hours of its RAID group
    least(
        case when standing.left_at is not null then greatest(standing.left_at, alerts.last_slow_hour_utc + interval 1 hour) end,
        case
            when greatest(
                case when standing.is_expected then judged_drives.last_judged_hour_utc else raid_groups.last_hour_utc end,
                alerts.last_of_subject_utc
            ) >= alerts.quiet_at
                then alerts.quiet_at
        end
    ) as cleared_at,
    case alerts.subject_type when 'drive' then 1 else raid_groups.data_drive_count end as drive_count
from alerts
left join {{ ref('int_drives') }} as drives on alerts.subject_type = 'drive' and alerts.subject_id = drives.drive_id
left join {{ ref('int_drives__standing') }} as standing on drives.drive_id = standing.drive_id
left join judged_drives on drives.drive_id = judged_drives.drive_id
left join {{ ref('int_raid_groups') }} as raid_groups
    on raid_groups.raid_group_id = case alerts.subject_type when 'drive' then drives.current_raid_group_id else alerts.subject_id end
