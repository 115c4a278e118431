-- Slices of probes under the drives' serial numbers. Grain: suspect_id, probed_at, drive_id, pattern, slice_no.
with named_probes as (
    select
        delivered.*,
        coalesce(names.drive_id, delivered.drive_id) as named_drive_id
    from {{ ref('stg_raw__drive_probes') }} as delivered
    {{ joined_names('probed_at') }}
)

select
    -- every slice is of the suspect's probe: the name that the suspect has in it
    coalesce(max(case when drive_id = suspect_id then named_drive_id end) over (partition by suspect_id, probed_at), suspect_id) as suspect_id,
    probed_at,
    named_drive_id as drive_id,
    drive_id = suspect_id as is_suspect,
    pattern, slice_no, read_count, failed_count, seconds, mean_us, p50_us, p90_us, p95_us, p99_us, other_ios, read_by
from named_probes
