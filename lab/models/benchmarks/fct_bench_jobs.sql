-- Jobs of fio, and why one has no result. Grain: experiment_id, config_id, phase, run_number, file, job.
select
    listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file,
    jobs.job,
    max(jobs.error) as error,
    max(jobs.failure) as failure
from {{ source('lab', 'bench_jobs') }} as jobs
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
group by listings.experiment_id, listings.config_id, listings.phase, listings.run_number, listings.file, jobs.job
