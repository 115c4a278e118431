-- Drives' health readings beside how slow they were. Grain: drive_id, day_utc, attribute.
select * from {{ ref('int_drive_health') }}
