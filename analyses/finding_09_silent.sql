-- Finding 9: does a slow drive say so? Errors of data drives, those near a slow hour, and how often a drive that does not spin or answer is slow then.
with errors as (
    select kind, event_type, slow_within_window
    from marts.fct_drive_events
    where is_in_population
        and event_type in ('not_spinning', 'not_responding', 'response_timeout', 'scsi_timeout', 'media_error')
)

select
    kind,
    count(*) as error_count,
    count(case when slow_within_window then 1 end) as errors_near_a_slow_hour,
    count(case when event_type in ('not_spinning', 'not_responding') then slow_within_window end) as not_spinning_or_responding,
    count(case when event_type in ('not_spinning', 'not_responding') and slow_within_window then 1 end) as leading_to_a_slow_hour
from errors
group by kind
order by kind asc
