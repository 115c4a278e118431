-- First and last accepted drive-hour of each drive, and where the last one was. Grain: drive_id.
select
    drive_id,
    min(first_hour_utc) as first_hour_utc,
    max(last_hour_utc) as last_hour_utc,
    max_by(raid_group_id, last_hour_utc) as last_raid_group_id,
    max_by(is_group_guessed, last_hour_utc) as last_is_group_guessed,
    max_by(declared_kind, last_hour_utc) as declared_kind
from {{ ref('int_drive_days') }}
group by drive_id
