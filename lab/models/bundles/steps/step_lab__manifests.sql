-- The delivery whose experiment.toml stands: the greatest revision. Grain: experiment_id.
select
    experiment_id,
    max(revision) as revision,
    min(delivery_seq) filter (where is_greatest) as delivery_seq
from (
    select
        experiment_id, delivery_seq, revision,
        revision = max(revision) over (partition by experiment_id) as is_greatest
    from {{ source('lab', 'experiments') }}
)
group by experiment_id
