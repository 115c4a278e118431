-- What kind a drive counts as, its clock, its age and its class. Grain: drive_id, of drives with a drive-hour or an inventory period.
-- Drive-hours are counted by all four (int_day_counts, int_clock_hours), so a drive of another kind than before touches all its hours.
with drives as (
    select drive_id from {{ ref('int_drives__spans') }}
    union
    select drive_id from {{ ref('int_drives__attributes') }}
)

select
    drives.drive_id,
    -- without any period, what the delivery was said to be of
    coalesce(attributes.kind, spans.declared_kind, 'unknown') as kind,
    coalesce(attributes.timezone, 'unknown') as timezone,
    attributes.deployed_on,
    -- what is unknown is left out
    concat_ws(
        ', ',
        'capacity ' || cast(attributes.capacity_bytes as varchar),
        'rpm ' || cast(attributes.rpm as varchar),
        'interface ' || attributes.interface
    ) as drive_class
from drives
left join {{ ref('int_drives__attributes') }} as attributes on drives.drive_id = attributes.drive_id
left join {{ ref('int_drives__spans') }} as spans on drives.drive_id = spans.drive_id
