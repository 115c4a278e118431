-- Whether what was expected came, and as often within its interval as it says: over all week boundaries whose outcome is known.
-- Grain: kind, band.
select
    kind,
    band,
    count(distinct boundary_utc) as boundary_count,
    count(*) as prediction_count,
    cast(sum(cast(round(1000000 * expected_tail_hours) as bigint)) as double) / 1000000.0 as expected_tail_hours,
    cast(sum(tail_hours_caused_after) as bigint) as tail_hours_caused,
    count(tail_hours_high) as interval_count,
    count(case when tail_hours_caused_after between tail_hours_low and tail_hours_high then 1 end) as covered_count,
    count(case when tail_hours_caused_after between tail_hours_low and tail_hours_high then 1 end)
    / cast(nullif(count(tail_hours_high), 0) as double) as covered_ratio,
    cast({{ var('candidate_interval') }} as double) as promised_ratio
from {{ ref('int_drive_weeks__intervals') }}
where tail_hours_caused_after is not null and training_drive_weeks > 0
group by kind, band
