-- Results of each policy in each run. Grain: run_id, policy.
select
    *,
    cast(requests_from_2 as double) / nullif(requests, 0) as share_2_ratio,
    cast(requests_above_3 as double) / nullif(requests, 0) as share_3_ratio,
    requests * data_drives as data_reads,
    cast(extra_reads as double) / nullif(requests * data_drives, 0) as extra_read_ratio
from {{ source('toleraid', 'tolerance_runs') }}
