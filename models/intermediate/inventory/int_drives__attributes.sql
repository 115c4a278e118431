-- What a drive is: the attributes of its latest period, nulls included. Grain: drive_id.
with ranked as (
    select
        *,
        row_number() over (
            partition by drive_id order by valid_from desc nulls last, valid_to desc nulls first
        ) as period_rank
    from {{ ref('int_drives__periods') }}
)

select
    drive_id,
    raid_group_id,
    slot,
    coalesce(kind, 'unknown') as kind,
    vendor,
    model,
    firmware,
    flash_cell,
    capacity_bytes,
    rpm,
    interface,
    host,
    enclosure,
    site,
    timezone,
    deployed_on,
    deployed_on_source,
    is_group_guessed
from ranked
where period_rank = 1
