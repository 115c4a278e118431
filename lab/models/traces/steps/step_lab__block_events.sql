-- Events of block traces of the files that stand, with their direction. Grain: experiment_id, delivery_seq, listing, line.
select
    events.experiment_id, events.delivery_seq, events.listing, events.line, events.device, events.time_ns, events.action,
    case
        when contains(events.rwbs, 'R') then 'read'
        when contains(events.rwbs, 'W') then 'write'
        when contains(events.rwbs, 'D') then 'discard'
    end as direction,
    events.sector, events.sectors, events.error
from {{ source('lab', 'block_events') }} as events
inner join {{ ref('step_lab__listings') }} using (experiment_id, delivery_seq, listing)
