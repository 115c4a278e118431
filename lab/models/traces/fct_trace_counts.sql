-- Counts of a block trace by device. Grain: experiment_id, config_id, phase, run_number, file, device.
with events as (
    select
        experiment_id, delivery_seq, listing, device,
        count(*) filter (where action = 'D' and direction is not null and sectors > 0) as issues,
        count(*) filter (where action = 'R' and direction is not null and sectors > 0) as requeues,
        bool_or(action = 'Q') as has_queue_events
    from {{ ref('step_lab__block_events') }}
    group by experiment_id, delivery_seq, listing, device
),

outcomes as (
    select
        experiment_id, delivery_seq, listing, device,
        count(*) filter (where outcome = 'completed') as requests,
        count(*) filter (where outcome = 'requeued') as requeued_issues,
        count(*) filter (where outcome = 'open') as unmatched_issues,
        count(*) filter (where outcome = 'unmatched_completion') as unmatched_completions,
        count(*) filter (where outcome = 'completed' and error <> 0) as errors
    from {{ ref('step_lab__issues') }}
    group by experiment_id, delivery_seq, listing, device
),

losses as (
    select experiment_id, delivery_seq, listing, cast(sum(lost_events) as bigint) as lost_events
    from {{ source('lab', 'trace_losses') }}
    group by experiment_id, delivery_seq, listing
)

select
    listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file,
    events.device, events.issues,
    coalesce(outcomes.requests, 0) as requests,
    coalesce(outcomes.unmatched_issues, 0) as unmatched_issues,
    coalesce(outcomes.unmatched_completions, 0) as unmatched_completions,
    events.requeues,
    coalesce(outcomes.requeued_issues, 0) as requeued_issues,
    coalesce(outcomes.errors, 0) as errors,
    events.has_queue_events,
    coalesce(losses.lost_events, 0) as lost_events
from events
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
left join outcomes using (experiment_id, delivery_seq, listing, device)
left join losses using (experiment_id, delivery_seq, listing)
