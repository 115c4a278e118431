{{ config(materialized='view') }}
-- State of each decision on a drive, as long as it was the last one on the drive. Grain: decision_seq, from_utc.
with periods as (
    select
        decision_seq,
        decided_at as from_utc,
        least(replaced_at, superseded_at) as to_utc,
        open_state as state
    from {{ ref('fct_drive_decisions') }}
    union all
    select
        decision_seq,
        -- the swap may have been before anybody wrote the decision down
        greatest(decided_at, replaced_at) as from_utc,
        superseded_at as to_utc,
        'replaced' as state
    from {{ ref('fct_drive_decisions') }}
    where replaced_at is not null
)

select decision_seq, from_utc, to_utc, state
from periods
where to_utc is null or from_utc < to_utc
