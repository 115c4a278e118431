-- How long fsync and fdatasync took in the jobs of fio. Grain: experiment_id, config_id, job.
with syncs as (
    select
        experiment_id, config_id,
        regexp_replace(test, '\.sync\.lat_[a-z0-9]+$', '') as job,
        regexp_extract(test, 'lat_([a-z0-9]+)$', 1) as measure,
        value, p999
    from {{ ref('fct_bench_results') }}
    where benchmark = 'fio' and test like '%.sync.lat_%'
)

select
    experiment_id, config_id, job,
    count(case when measure = 'mean' then 1 end) as n,
    avg(case when measure = 'mean' then value end) as mean_us,
    avg(case when measure = 'p99' then value end) as p99_us,
    avg(p999) as p999_us
from syncs
group by experiment_id, config_id, job
