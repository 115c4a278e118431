-- Drive events, under the drive they are of; the losers of conflicts left out. Grain: drive_id, occurred_at, event_type.
with seen_from_hosts as (
    select delivered.*, coalesce(aliases.drive_id, delivered.drive_id) as named_drive_id
    from {{ source('raw', 'drive_events') }} as delivered
    {{ joined_aliases('occurred_at') }}
    where delivered.source is not null
        and {{ is_live('drive_events', 'delivered') }}
),

-- several sources may tell of one event
ranked as (
    select
        *,
        row_number() over (
            partition by named_drive_id, occurred_at, event_type
            order by
                {{ source_rank('event', 'source') }} asc,
                source asc,
                collected_at desc nulls last,
                drive_id asc
        ) as source_place
    from seen_from_hosts
)

select
    delivered.occurred_at,
    delivered.drive_id,
    delivered.event_type,
    delivered.raid_group_id,
    delivered.slot,
    delivered.ended_at,
    delivered.detail,
    date_trunc('hour', delivered.occurred_at) as hour_utc
from {{ source('raw', 'drive_events') }} as delivered
where delivered.source is null
    and {{ is_live('drive_events', 'delivered') }}
union all
select
    ranked.occurred_at,
    ranked.named_drive_id as drive_id,
    ranked.event_type,
    ranked.raid_group_id,
    ranked.slot,
    ranked.ended_at,
    ranked.detail,
    date_trunc('hour', ranked.occurred_at) as hour_utc
from ranked
where ranked.source_place = 1
    and not exists (
        select 1
        from {{ source('raw', 'drive_events') }} as own
        where own.source is null
            and own.drive_id = ranked.named_drive_id
            and own.occurred_at = ranked.occurred_at
            and own.event_type = ranked.event_type
    )
