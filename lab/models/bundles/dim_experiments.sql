-- Experiments as the standing manifest describes them. Grain: experiment_id.
with files as (
    select
        experiment_id,
        count(*) filter (where status = 'accepted') as files_accepted,
        count(*) filter (where status = 'rejected') as files_rejected
    from {{ ref('lab_ingested_files') }}
    group by experiment_id
)

select
    experiments.* exclude (delivery_seq) replace (manifests.revision as revision),
    coalesce(files.files_accepted, 0) as files_accepted,
    coalesce(files.files_rejected, 0) as files_rejected
from {{ ref('step_lab__manifests') }} as manifests
inner join {{ source('lab', 'experiments') }} as experiments using (experiment_id, delivery_seq)
left join files on manifests.experiment_id = files.experiment_id
