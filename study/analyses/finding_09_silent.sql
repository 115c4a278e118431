-- Finding 9: does a slow drive say so? Slow hours with an error within an hour; and drives that do not spin or respond: were they slow then?
with errors as (
    select kind, drive_id, date_trunc('hour', occurred_at) as hour_utc, event_type in ('not_spinning', 'not_responding') as is_gone, slow_within_window
    from marts.fct_drive_events
    where is_in_population
        and event_type in ('not_spinning', 'not_responding', 'response_timeout', 'scsi_timeout', 'media_error')
)

select
    hours.kind,
    count(case when hours.is_slow then 1 end) as slow_drive_hours,
    count(case when hours.is_slow and exists (
        select 1 from errors where errors.drive_id = hours.drive_id and abs(date_diff('hour', errors.hour_utc, hours.hour_utc)) <= 1
    ) then 1 end) as slow_drive_hours_near_an_error,
    (select count(slow_within_window) from errors where errors.kind = hours.kind and is_gone) as gone_count,
    (select count(*) from errors where errors.kind = hours.kind and is_gone and slow_within_window) as gone_and_slow_count
from marts.fct_drive_hours as hours
group by hours.kind
order by hours.kind asc
