-- The paper's numbers of ToleRAID beside those of the latest run set up as the paper's. Grain: id.
with set_up as (
    select
        runs.*,
        case distributions.name when 'rare' then '12a' else '12b' end as figure,
        row_number() over (
            partition by distributions.name, runs.jitter, runs.policy order by runs.created_at desc, runs.run_id asc
        ) as latest
    from {{ ref('fct_tolerance_runs') }} as runs
    inner join {{ ref('dim_slowdown_distributions') }} as distributions on runs.distribution_id = distributions.distribution_id
    where distributions.name in ('rare', 'periodic')
        and runs.data_drives = 6
        and runs.parity = 2
        and runs.layout = 'fixed'
        and runs.arrivals = 'poisson'
        and runs.st = 2
        and runs.sr = 3
),

found_results as (
    select
        paper.id,
        runs.run_id,
        case paper.measure
            when 'share_up_to' then 100 * (
                select max(curves.y)
                from {{ ref('fct_tolerance_curves') }} as curves
                where curves.run_id = runs.run_id and curves.policy = runs.policy and curves.x <= paper.x
            )
            when 'p90' then runs.p90
            when 'p95' then runs.p95
            when 'p99' then runs.p99
            when 'p999' then runs.p999
            when 'max' then runs.max
            when 'tail' then 100 * runs.share_2_ratio
            when 'tail_per_drive' then 100 * runs.share_2_ratio / runs.data_drives
            when 'extra_reads' then 100 * runs.extra_read_ratio
            when 'st' then runs.st
            when 'rescued' then runs.st + 1
            when 'parity' then runs.parity
            when 'drives' then runs.data_drives + runs.parity
            when 'data_drives' then runs.data_drives
        end as value
    from {{ ref('tolerance_references') }} as paper
    inner join set_up as runs
        on paper.figure = runs.figure and paper.policy = runs.policy and paper.jitter = runs.jitter and runs.latest = 1
),

judged_results as (
    select
        paper.id,
        found_results.run_id,
        paper.figure, paper.policy, paper.measure, paper.x,
        found_results.value,
        paper.value as paper_value,
        paper.unit,
        case paper.rule
            when 'ratio' then paper.tolerance * paper.value
            -- two samples of the size that the paper drew
            when 'requests' then 300 * sqrt(2 * paper.value / 100 * (1 - paper.value / 100) / paper.tolerance)
            when 'points' then paper.tolerance
        end as tolerance,
        paper.reason
    from {{ ref('tolerance_references') }} as paper
    left join found_results on paper.id = found_results.id
)

select
    *,
    case
        when tolerance is null then 'not comparable'
        when value is null then 'no data'
        when abs(value - paper_value) <= tolerance then 'agrees'
        else 'differs'
    end as verdict
from judged_results
