-- The last reading of each attribute in a day, under the drive's serial number. Grain: drive_id, day_utc, attribute.
with named_readings as (
    select
        delivered.*,
        coalesce(names.drive_id, delivered.drive_id) as named_drive_id,
        cast(delivered.read_at as date) as day_utc
    from {{ ref('stg_raw__drive_health') }} as delivered
    {{ joined_names('read_at') }}
),

ranked_readings as (
    select
        *,
        row_number() over (
            partition by named_drive_id, day_utc, attribute
            order by
                read_at desc,
                {{ source_rank('description', 'source') }} asc,
                source asc nulls first,
                drive_id asc
        ) as reading_rank
    from named_readings
)

select named_drive_id as drive_id, day_utc, attribute, read_at, raw_value, normalised_value, source
from ranked_readings
where reading_rank = 1
