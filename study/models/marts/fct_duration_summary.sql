{{ config(schema='report', meta={'made': 'each_day'}) }}
-- How long things last, in the few numbers one can say: shares up to an hour and a day, from 8 hours, the median. Grain: measure, kind.
select
    measure, kind, population_count,
    max(cumulative_count) as ended_count,
    cast(max(cumulative_count) as double) / population_count as ended_share,
    coalesce(max(case when hours <= 0 then cumulative_count end), 0) as up_to_0_hours_count,
    coalesce(max(case when hours <= 0 then share end), 0.0) as up_to_0_hours_share,
    coalesce(max(case when hours <= 1 then cumulative_count end), 0) as up_to_1_hour_count,
    coalesce(max(case when hours <= 1 then share end), 0.0) as up_to_1_hour_share,
    coalesce(max(case when hours <= 24 then cumulative_count end), 0) as up_to_24_hours_count,
    coalesce(max(case when hours <= 24 then share end), 0.0) as up_to_24_hours_share,
    max(cumulative_count) - coalesce(max(case when hours < 8 then cumulative_count end), 0) as from_8_hours_count,
    cast(max(cumulative_count) - coalesce(max(case when hours < 8 then cumulative_count end), 0) as double) / population_count
        as from_8_hours_share,
    -- nearest rank; null where more than half never ended
    min(case when 2 * cumulative_count >= population_count then hours end) as median_hours,
    max(hours) as longest_hours
from {{ ref('fct_duration_shares') }}
group by measure, kind, population_count
