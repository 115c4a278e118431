{%- set cause_event_hours = 1 %}{#- hours from the start of a slow interval within which a drive event counts as its cause -#}
{%- set cause_cohort_drives = 5 %}{#- slow drives of a model or firmware in a day that may share a cause, and how many others would have to be slow at their rate -#}
{%- set cause_cohort_raid_groups = 2 %}{#- in at least this many RAID groups -#}
{%- set cause_cohort_ratio = 3.0 %}{#- and their share at least this many times that of the other drives of the kind -#}
-- Evidence for each cause of a slow interval: a row for every rule of the seed cause_rules that holds, `unexplained` always.
-- Made of the slow drive-hours alone, and of other sparse records about them. Grain: drive_id, started_at, cause.
with slow_hours as (
    select
        slow.drive_id, slow.hour_utc, slow.raid_group_id, slow.rate_imbalance, slow.size_imbalance,
        slow.is_side_in_ticks or ({{ is_multiple_in_ticks('slow.latency_us', 'slow.median_latency_us') }}) as is_in_ticks,
        -- an interval begins at every slow hour that does not follow another
        max(case when not coalesce(slow.was_slow, false) then slow.hour_utc end) over (
            partition by slow.drive_id order by slow.hour_utc rows between unbounded preceding and current row
        ) as started_at,
        drives.kind
    from {{ ref('int_drive_hours__slow') }} as slow
    inner join {{ ref('int_drives') }} as drives on slow.drive_id = drives.drive_id
    where slow.is_slow
),

rebuild_hours as (
    select distinct slow_hours.drive_id, slow_hours.hour_utc
    from slow_hours
    inner join {{ ref('int_drive_events__placed') }} as events
        on slow_hours.raid_group_id = events.raid_group_id
        and (slow_hours.drive_id = events.drive_id or not coalesce(events.is_of_drive, false))
    where events.event_type in ('rebuild', 'scrub')
        and {{ is_during('events', 'slow_hours.hour_utc') }}
),

maintenance_hours as (
    select distinct slow_hours.drive_id, slow_hours.hour_utc
    from slow_hours
    inner join {{ ref('int_drive_events__identified') }} as events on slow_hours.drive_id = events.drive_id
    where events.event_type = 'maintenance'
        and {{ is_during('events', 'slow_hours.hour_utc') }}
),

-- RAID-hours with a slow drive, and their own past: windows over every RAID-hour would cost a hundred times as much
looked_at as (
    select distinct slow_hours.raid_group_id, slow_hours.hour_utc - weeks.week * interval 7 day as hour_utc
    from slow_hours
    cross join (values{% for week in range(var('group_past_weeks') + 1) %} ({{ week }}){{ ',' if not loop.last }}{% endfor %}) as weeks (week)
),

raid_hours as (
    select
        raid_hours.raid_group_id, raid_hours.hour_utc, raid_hours.median_latency_us, raid_hours.reporting_drive_count,
        raid_hours.slow_drive_count
    from {{ ref('int_raid_hours') }} as raid_hours
    inner join looked_at on raid_hours.raid_group_id = looked_at.raid_group_id and raid_hours.hour_utc = looked_at.hour_utc
    where raid_hours.is_valid
),

judged_raid_hours as (
    select
        raid_group_id, hour_utc,
        median_latency_us / {{ usual_median('raid_hours') }} >= {{ var('group_slowdown') }} as is_above_usual,
        {{ is_most_of_its_drives('raid_hours') }} as is_most_of_its_drives
    from raid_hours
),

group_hours as (
    select raid_group_id, hour_utc, coalesce(is_above_usual, false) as is_above_usual, is_most_of_its_drives
    from judged_raid_hours
    where is_above_usual or is_most_of_its_drives
),

-- on a tie, prefer the enclosure
neighbour_hours as (
    select
        drive_id, hour_utc,
        max(2 * drive_count + case place_type when 'enclosure' then 1 else 0 end) as place_rank,
        max_by(
            cast(drive_count as string) || ' drives of ' || place_type || ' ' || place_id,
            2 * drive_count + case place_type when 'enclosure' then 1 else 0 end
        ) as crowd
    from {{ ref('int_drive_hours__together') }}
    where drive_count >= {{ var('together_drives') }} and place_type <> 'raid_group'
    group by drive_id, hour_utc
),

counted_intervals as (
    select
        slow_hours.drive_id, slow_hours.started_at,
        count(*) as interval_hours,
        count(case when slow_hours.rate_imbalance >= {{ var('imbalanced') }} then 1 end) as rate_hours,
        max(slow_hours.rate_imbalance) as max_rate,
        count(case when slow_hours.size_imbalance >= {{ var('imbalanced') }} then 1 end) as size_hours,
        max(slow_hours.size_imbalance) as max_size,
        count(rebuild_hours.hour_utc) as rebuild_hours,
        count(maintenance_hours.hour_utc) as maintenance_hours,
        count(group_hours.hour_utc) as group_hours,
        count(case when group_hours.is_above_usual then 1 end) as above_usual_hours,
        count(case when group_hours.is_most_of_its_drives then 1 end) as most_drives_hours,
        count(neighbour_hours.hour_utc) as neighbour_hours,
        max_by(neighbour_hours.crowd, neighbour_hours.place_rank) as crowd,
        count(case when slow_hours.is_in_ticks then 1 end) as tick_hours
    from slow_hours
    left join rebuild_hours on slow_hours.drive_id = rebuild_hours.drive_id and slow_hours.hour_utc = rebuild_hours.hour_utc
    left join maintenance_hours on slow_hours.drive_id = maintenance_hours.drive_id and slow_hours.hour_utc = maintenance_hours.hour_utc
    left join group_hours on slow_hours.raid_group_id = group_hours.raid_group_id and slow_hours.hour_utc = group_hours.hour_utc
    left join neighbour_hours on slow_hours.drive_id = neighbour_hours.drive_id and slow_hours.hour_utc = neighbour_hours.hour_utc
    group by slow_hours.drive_id, slow_hours.started_at
),

intervals as (
    select drive_id, started_at
    from {{ ref('int_slowdown_intervals') }}
    where degree = 'slow'
),

starts as (
    select distinct drive_id, started_at from slow_hours
),

events as (
    select starts.drive_id, starts.started_at, count(*) as event_count, min(events.event_type) as event_type
    from starts
    inner join {{ ref('int_drive_events__identified') }} as events on starts.drive_id = events.drive_id
    where events.event_type in ('{{ var("explicit_event_types") | join("', '") }}')
        and events.hour_utc >= starts.started_at - interval {{ cause_event_hours }} hour
        and events.hour_utc <= starts.started_at + interval {{ cause_event_hours }} hour
    group by starts.drive_id, starts.started_at
),

-- drives of one model, and of one model with one firmware; the whole kind has no name
cohort_drives as (
    select drive_id, kind, cast(null as string) as cohort, first_hour_utc, last_hour_utc
    from {{ ref('int_drives') }}
    union all
    select drive_id, kind, 'model ' || model as cohort, first_hour_utc, last_hour_utc
    from {{ ref('int_drives') }}
    where model is not null
    union all
    select drive_id, kind, 'model ' || model || ' firmware ' || firmware as cohort, first_hour_utc, last_hour_utc
    from {{ ref('int_drives') }}
    where model is not null and firmware is not null
),

slow_drive_days as (
    select drive_id, cast(hour_utc as date) as day_utc, min(raid_group_id) as raid_group_id
    from slow_hours
    group by drive_id, cast(hour_utc as date)
),

slow_cohort_days as (
    select
        cohort_drives.kind, cohort_drives.cohort,
        slow_drive_days.day_utc,
        count(*) as slow_drive_count,
        count(distinct slow_drive_days.raid_group_id) as raid_group_count
    from slow_drive_days
    inner join cohort_drives on slow_drive_days.drive_id = cohort_drives.drive_id
    group by cohort_drives.kind, cohort_drives.cohort, slow_drive_days.day_utc
    having count(*) >= {{ cause_cohort_drives }}
),

-- drives that are in service as long as each other are counted once
cohort_spans as (
    select
        kind, cohort,
        cast(first_hour_utc as date) as first_day_utc,
        cast(last_hour_utc as date) as last_day_utc,
        count(*) as drive_count
    from cohort_drives
    where first_hour_utc is not null
    group by kind, cohort, cast(first_hour_utc as date), cast(last_hour_utc as date)
),

cohort_days as (
    select
        slow_cohort_days.kind, slow_cohort_days.cohort, slow_cohort_days.day_utc, slow_cohort_days.slow_drive_count,
        slow_cohort_days.raid_group_count,
        cast(sum(cohort_spans.drive_count) as bigint) as drive_count
    from slow_cohort_days
    inner join cohort_spans
        on slow_cohort_days.kind = cohort_spans.kind
        and coalesce(slow_cohort_days.cohort, '') = coalesce(cohort_spans.cohort, '')
        and cohort_spans.first_day_utc <= slow_cohort_days.day_utc
        and cohort_spans.last_day_utc >= slow_cohort_days.day_utc
    group by
        slow_cohort_days.kind, slow_cohort_days.cohort, slow_cohort_days.day_utc,
        slow_cohort_days.slow_drive_count, slow_cohort_days.raid_group_count
),

beside_others as (
    select
        cohort_days.*,
        kind_days.slow_drive_count - cohort_days.slow_drive_count as other_slow_drive_count,
        kind_days.drive_count - cohort_days.drive_count as other_drive_count
    from cohort_days
    inner join cohort_days as kind_days on cohort_days.kind = kind_days.kind and cohort_days.day_utc = kind_days.day_utc
    where cohort_days.cohort is not null and kind_days.cohort is null
),

-- how many of the others would have been slow at the cohort's rate: too many for chance, and too many compared with those that were
bad_cohorts as (
    select *
    from beside_others
    where raid_group_count >= {{ cause_cohort_raid_groups }}
        and slow_drive_count * other_drive_count >= {{ cause_cohort_drives }} * drive_count
        and slow_drive_count * other_drive_count >= {{ cause_cohort_ratio }} * other_slow_drive_count * drive_count
),

-- the narrower one is named
cohorts as (
    select
        starts.drive_id, starts.started_at,
        min(
            bad_cohorts.cohort || ': ' || cast(bad_cohorts.slow_drive_count as string) || ' of ' || cast(bad_cohorts.drive_count as string)
            || ' drives slow that day, of the other drives ' || cast(bad_cohorts.other_slow_drive_count as string) || ' of '
            || cast(bad_cohorts.other_drive_count as string)
        ) as evidence
    from starts
    inner join cohort_drives on starts.drive_id = cohort_drives.drive_id
    inner join bad_cohorts
        on cohort_drives.kind = bad_cohorts.kind
        and cohort_drives.cohort = bad_cohorts.cohort
        and cast(starts.started_at as date) = bad_cohorts.day_utc
    group by starts.drive_id, starts.started_at
),

{%- set in_most_hours = [
    ('workload_rate', 'rate_hours', "'its peers'' I/Os times ' || " ~ to_tenths('max_rate') ~ " || ' at most, times " ~ var('imbalanced') ~ " or more'"),
    ('workload_size', 'size_hours', "'its peers'' I/O size times ' || " ~ to_tenths('max_size') ~ " || ' at most, times " ~ var('imbalanced') ~ " or more'"),
    ('rebuild_or_scrub', 'rebuild_hours', "'rebuild or scrub'"),
    ('maintenance', 'maintenance_hours', "'planned maintenance'"),
    ('whole_group', 'group_hours', "'RAID group above its usual latency (' || cast(above_usual_hours as string) || ' h) or with as many slow drives as can show (' "
        ~ "|| cast(most_drives_hours as string) || ' h)'"),
    ('neighbours', 'neighbour_hours', "crowd || ' slow at once'"),
    ('latency_quantum', 'tick_hours', "'exact multiple of its peers'' latency in ticks of " ~ var('latency_quantum_us') ~ " us'"),
] %}

hours_of_causes as (
    select
        counted_intervals.*,
        causes.cause,
        case causes.cause{% for cause, hours, evidence in in_most_hours %} when '{{ cause }}' then counted_intervals.{{ hours }}{% endfor %} end as cause_hours
    from counted_intervals
    cross join (values{% for cause, hours, evidence in in_most_hours %} ('{{ cause }}'){{ ',' if not loop.last }}{% endfor %}) as causes (cause)
)

select
    drive_id, started_at, cause,
    case cause
{%- for of_cause, hours, evidence in in_most_hours %}
        when '{{ of_cause }}' then {{ evidence }}
{%- endfor %}
    end || ' in ' || cast(cause_hours as string) || ' of ' || {{ counted_noun('interval_hours', 'hour') }} as evidence
from hours_of_causes
where 2 * cause_hours > interval_hours
union all
select
    drive_id, started_at,
    'drive_event' as cause,
    cast(event_count as string) || ' within {{ cause_event_hours }} h of its start, such as ' || event_type as evidence
from events
union all
select drive_id, started_at, 'cohort' as cause, evidence from cohorts
union all
select drive_id, started_at, 'unexplained' as cause, 'none of the rules holds' as evidence
from intervals
