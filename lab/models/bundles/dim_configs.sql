-- What an experiment compares: configurations. Grain: experiment_id, config_id.
select
    configs.experiment_id,
    configs.config_id,
    configs.device_id,
    configs.filesystem_id,
    configs.is_default,
    configs.writers
from {{ source('lab', 'configs') }} as configs
inner join {{ ref('step_lab__manifests') }} as manifests
    on configs.experiment_id = manifests.experiment_id and configs.delivery_seq = manifests.delivery_seq
