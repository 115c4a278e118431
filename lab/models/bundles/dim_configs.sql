-- Configurations that an experiment compares. Grain: experiment_id, config_id.
select configs.* exclude (delivery_seq, revision)
from {{ source('lab', 'configs') }} as configs
inner join {{ ref('step_lab__manifests') }} using (experiment_id, delivery_seq)
