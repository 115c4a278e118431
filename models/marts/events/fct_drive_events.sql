-- Every drive event, and whether the drive was slow then or in the next hour. Grain: drive_id, occurred_at, event_type.
select * from {{ ref('int_drive_events') }}
