-- Every unplug: how long until the drive came back, whether it did, and when it was slow again. Grain: drive_id, unplugged_at.
select * from {{ ref('int_unplug_episodes') }}
