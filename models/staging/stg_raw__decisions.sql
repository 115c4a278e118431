-- People's decisions on drives, in order. Grain: decision_seq.
select
    decision_seq, drive_id, verdict, decided_by, decided_at, note, until_utc, publication_id, ticket,
    cast(date_trunc('hour', decided_at) as timestamp) as hour_utc,
    lead(decided_at) over (partition by drive_id order by decision_seq) as superseded_at
from {{ source('raw', 'decisions') }}
