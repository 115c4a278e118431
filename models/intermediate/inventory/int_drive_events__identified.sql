{{ config(meta={'made': 'each_build'}) }}
{%- set spread_sources = ['ceph'] %}{#- a pool spreads its work over many drives: it slows those that it names, and not all their peers -#}
-- Drive events, one row per event under the drive it happened to. Grain: drive_id, occurred_at, event_type.
-- smartctl reports a lifetime count. It is an event only where the count rose since the previous document.
with reported_events as (
    select
        delivered.*,
        coalesce(names.drive_id, delivered.drive_id) as named_drive_id,
        case
            when delivered.source = 'smartctl'
                then cast(nullif(regexp_extract(delivered.detail, '^smartctl: ([0-9]+) counted so far$', 1), '') as bigint)
        end as counted
    from {{ ref('stg_raw__drive_events') }} as delivered
    {{ joined_names('occurred_at') }}
    where delivered.source is not null
),

-- a delivery may end while an array works: the same work in another delivery, within an hour, is one event with it
work_parts as (
    select
        *,
        replace(detail, ', still running', '') as work,
        coalesce(ended_at, occurred_at) as seen_until
    from reported_events
    where event_type in ('rebuild', 'scrub') and detail like 'md: %'
),

work_beginnings as (
    select
        *,
        case
            when occurred_at <= max(case when detail = work then seen_until else seen_until + interval 1 hour end) over (
                partition by named_drive_id, source, event_type, work
                order by occurred_at, seen_until rows between unbounded preceding and 1 preceding
            ) then 0
            else 1
        end as is_beginning
    from work_parts
),

work_runs as (
    select
        *,
        sum(is_beginning) over (
            partition by named_drive_id, source, event_type, work
            order by occurred_at, seen_until rows between unbounded preceding and current row
        ) as run_no
    from work_beginnings
),

works as (
    select
        *,
        min(occurred_at) over (partition by named_drive_id, source, event_type, work, run_no) as begun_at,
        row_number() over (
            partition by named_drive_id, source, event_type, work, run_no
            order by seen_until desc, detail asc, occurred_at asc, drive_id asc
        ) as row_rank
    from work_runs
),

single_events as (
    select drive_id, named_drive_id, occurred_at, event_type, raid_group_id, slot, ended_at, detail, collected_at, source, is_alias, counted
    from reported_events
    where event_type not in ('rebuild', 'scrub') or detail is null or detail not like 'md: %'
    union all
    select
        drive_id, named_drive_id, begun_at as occurred_at, event_type, raid_group_id, slot,
        case when seen_until > begun_at then seen_until end as ended_at,
        detail, collected_at, source, is_alias, counted
    from works
    where row_rank = 1
),

-- every document leaves an inventory record; one that leaves no event has counted no error
looks as (
    select
        coalesce(names.drive_id, delivered.drive_id) as named_drive_id,
        delivered.valid_from as occurred_at
    from {{ ref('stg_raw__drives') }} as delivered
    {{ joined_names('valid_from') }}
    where delivered.source = 'smartctl'
),

documents as (
    select named_drive_id, occurred_at
    from looks
    where named_drive_id in (select named_drive_id from reported_events where counted is not null)
    union
    select named_drive_id, occurred_at from reported_events where counted is not null
),

-- a drive that two hosts read at one instant has one count there
counts as (
    select documents.named_drive_id, documents.occurred_at, coalesce(max(reported_events.counted), 0) as counted
    from documents
    left join reported_events
        on documents.named_drive_id = reported_events.named_drive_id and documents.occurred_at = reported_events.occurred_at and reported_events.counted is not null
    group by documents.named_drive_id, documents.occurred_at
),

counts_before as (
    select
        named_drive_id, occurred_at,
        lag(counted) over (partition by named_drive_id order by occurred_at) as counted_before,
        lag(occurred_at) over (partition by named_drive_id order by occurred_at) as looked_before_at
    from counts
),

seen_from_hosts as (
    select
        single_events.drive_id, single_events.named_drive_id, single_events.occurred_at,
        case when single_events.counted is not null and before.looked_before_at is null then 'other' else single_events.event_type end as event_type,
        single_events.raid_group_id, single_events.slot, single_events.ended_at,
        case
            when single_events.counted is null then single_events.detail
            when before.looked_before_at is null then single_events.detail || ', when it was first looked at'
            else single_events.detail || ', ' || cast(before.counted_before as string) || ' of them by ' || cast(before.looked_before_at as string)
        end as detail,
        single_events.collected_at, single_events.source, single_events.is_alias
    from single_events
    left join counts_before as before
        on single_events.named_drive_id = before.named_drive_id and single_events.occurred_at = before.occurred_at and single_events.counted is not null
    where before.looked_before_at is null or single_events.counted > before.counted_before
),

-- a drive may be unplugged again within a minute, after a replug
plug_events as (
    select
        *,
        case
            when event_type = 'unplug'
                then count(case when event_type = 'replug' then 1 end) over (partition by named_drive_id, source order by occurred_at)
            when event_type = 'replug'
                then count(case when event_type = 'unplug' then 1 end) over (partition by named_drive_id, source order by occurred_at)
            else 0
        end as plug_no
    from seen_from_hosts
),

-- several logs of a host hold the same lines, and one file's are one event a minute already: so are those of all
begun_events as (
    select
        *,
        case
            when occurred_at <= lag(occurred_at) over (
                partition by named_drive_id, source, event_type, plug_no order by occurred_at
            ) + interval 1 minute then 0
            else 1
        end as is_beginning
    from plug_events
),

numbered_events as (
    select
        *,
        sum(is_beginning) over (partition by named_drive_id, source, event_type order by occurred_at) as run_no
    from begun_events
),

timed_events as (
    select
        *,
        -- in whole microseconds: as a double, 31 minutes would be more than 31
        ceil(round({{ hours_between('min(occurred_at) over (partition by named_drive_id, source, event_type, run_no)', 'occurred_at') }} * 3.6e9) / 6e7)
            as minute_no
    from numbered_events
),

minutes as (
    select
        *,
        min(occurred_at) over (partition by named_drive_id, source, event_type, run_no, greatest(minute_no, 1)) as said_first_at
    from timed_events
),

-- several sources may report one event
ranked_minutes as (
    select
        *,
        row_number() over (
            partition by named_drive_id, occurred_at, event_type
            order by
                {{ source_rank('event', 'source') }} asc,
                source asc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_rank
    from minutes
    where source <> 'kernel-log' or occurred_at = said_first_at
)

select
    delivered.occurred_at, delivered.drive_id, delivered.event_type, delivered.raid_group_id, delivered.slot, delivered.ended_at,
    delivered.detail,
    cast(date_trunc('hour', delivered.occurred_at) as timestamp) as hour_utc,
    false as is_of_drive
from {{ ref('stg_raw__drive_events') }} as delivered
where delivered.source is null
union all
select
    ranked_minutes.occurred_at,
    ranked_minutes.named_drive_id as drive_id,
    ranked_minutes.event_type, ranked_minutes.raid_group_id, ranked_minutes.slot, ranked_minutes.ended_at, ranked_minutes.detail,
    cast(date_trunc('hour', ranked_minutes.occurred_at) as timestamp) as hour_utc,
    ranked_minutes.source in ('{{ spread_sources | join("', '") }}') as is_of_drive
from ranked_minutes
where ranked_minutes.source_rank = 1
    and not exists (
        select 1
        from {{ ref('stg_raw__drive_events') }} as own
        where own.source is null
            and own.drive_id = ranked_minutes.named_drive_id
            and own.occurred_at = ranked_minutes.occurred_at
            and own.event_type = ranked_minutes.event_type
    )
