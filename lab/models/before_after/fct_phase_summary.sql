-- Verdicts of the cells of a benchmark, counted. Grain: experiment_id, config_id, benchmark.
select
    experiment_id,
    config_id,
    benchmark,
    count(*) as cells,
    count(*) filter (where verdict = 'before_better') as cells_before_better,
    count(*) filter (where verdict = 'after_better') as cells_after_better,
    count(*) filter (where verdict = 'inconclusive') as cells_inconclusive,
    count(*) filter (where verdict = 'no data') as cells_no_data,
    max(detectable_ratio) as detectable_ratio
from {{ ref('fct_phase_cells') }}
group by experiment_id, config_id, benchmark
