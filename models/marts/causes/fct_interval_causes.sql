-- Why each slow interval was slow: the first rule of the seed cause_rules that holds, and what speaks for it. Grain: drive_id, started_at.
select * from {{ ref('int_interval_causes') }}
