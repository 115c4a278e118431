-- Factors in which configurations differ: settings and what else the manifest names. Grain: experiment_id, config_id, factor.
select config_factors.* exclude (delivery_seq, revision)
from {{ source('lab', 'config_factors') }} as config_factors
inner join {{ ref('step_lab__manifests') }} using (experiment_id, delivery_seq)
