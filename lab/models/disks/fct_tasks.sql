-- Tasks in the slots of their nodes, each with what its slot did before. Grain: experiment_id, delivery_seq, listing, task_index.
select
    listings.experiment_id, listings.delivery_seq, listings.listing,
    tasks."row" as task_index,
    listings.file, listings.config_id, listings.phase, listings.run_number,
    tasks.task_id, tasks.node, tasks.slot,
    listings.offset_s + tasks.started_s as started_s,
    listings.offset_s + tasks.ended_s as ended_s,
    tasks."bytes",
    max(listings.offset_s + tasks.ended_s) over (
        partition by listings.experiment_id, listings.config_id, listings.phase, listings.run_number, tasks.node, tasks.slot
        order by
            listings.offset_s + tasks.started_s asc, listings.offset_s + tasks.ended_s asc, listings.listed_at asc, tasks."row" asc
        rows between unbounded preceding and 1 preceding
    ) as busy_until_s
from {{ source('lab', 'tasks') }} as tasks
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
