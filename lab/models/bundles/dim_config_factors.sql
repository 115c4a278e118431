-- What sets configurations apart: settings and what else the manifest names. Grain: experiment_id, config_id, factor.
select
    config_factors.experiment_id,
    config_factors.config_id,
    config_factors.factor,
    config_factors.value
from {{ source('lab', 'config_factors') }} as config_factors
inner join {{ ref('step_lab__manifests') }} as manifests
    on config_factors.experiment_id = manifests.experiment_id and config_factors.delivery_seq = manifests.delivery_seq
