-- Drive events, the losers of conflicts left out. Grain: drive_id, occurred_at, event_type.
select
    delivered.occurred_at,
    delivered.drive_id,
    delivered.event_type,
    delivered.raid_group_id,
    delivered.slot,
    delivered.ended_at,
    delivered.detail,
    date_trunc('hour', delivered.occurred_at) as hour_utc
from {{ source('raw', 'drive_events') }} as delivered
where not exists (
    select 1
    from {{ source('raw', 'retired_drive_events') }} as retired
    where retired.delivery_seq = delivered.delivery_seq
        and retired.file_no = delivered.file_no
        and retired.row_no = delivered.row_no
)
