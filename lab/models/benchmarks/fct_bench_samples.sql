-- Samples of the logs of fio. Grain: experiment_id, config_id, phase, run_number, file, job, metric, sample.
select
    listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file,
    samples.job, samples.metric, samples.sample,
    listings.offset_s + samples.time_ms / 1000.0 as time_s,
    samples.value, samples.unit, samples.direction, samples.block_bytes, samples.offset_bytes
from {{ source('lab', 'bench_samples') }} as samples
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
