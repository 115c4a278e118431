-- Finding 13: does the RAID group's throughput fall when a drive turns slow? Hours with at most half the I/Os of the hour before.
select
    kind, transition,
    count(rio_degradation) as raid_hours,
    count(case when rio_degradation >= 2 then 1 end) as halved_raid_hours,
    100.0 * count(case when rio_degradation >= 2 then 1 end) / nullif(count(rio_degradation), 0) as halved_percent
from marts.fct_raid_hours
where transition in ('stable_to_stable', 'stable_to_tail')
group by kind, transition
order by kind asc, transition asc
