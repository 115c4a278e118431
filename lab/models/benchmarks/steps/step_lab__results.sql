-- Results of benchmarks of the files that stand, and which of them a file listed later replaces.
-- Grain: experiment_id, delivery_seq, listing, row.
select
    listings.experiment_id, listings.delivery_seq, listings.listing,
    results."row",
    listings.file, listings.config_id, listings.phase, listings.run_number,
    coalesce(results."pass", listings."pass") as "pass",
    results.benchmark, results.test, results.parameter, results.size_bytes, results.value, results.unit, results.p999,
    results.options, results.rate_limit,
    listings.listed_at < max(listings.listed_at) over (
        partition by
            listings.experiment_id, listings.config_id, listings.phase, listings.run_number,
            coalesce(results."pass", listings."pass"),
            results.benchmark, results.test, results.parameter, results.size_bytes
    ) as is_superseded
from {{ source('lab', 'bench_results') }} as results
inner join {{ ref('step_lab__listings') }} as listings using (experiment_id, delivery_seq, listing)
