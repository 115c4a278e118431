{%- set watching_sources = ['prometheus', 'ceph'] %}{#- say a name's drive when it changes, not at each look: what they said last they still see -#}
-- Which drive bore a name from when to when, instant by instant; drive_id is null where it may have passed from one drive to another.
-- Grain: alias, from_utc. Where nobody has looked its drive is unknown, and there is no row: before it was first seen, from a cut on, where the
-- device's counters began again, until it is seen again, and between two cuts.
-- A source sees a name at instants. Between two sightings of one drive without a cut the name was that drive's. Between sightings of two it
-- passed: at the cut, if there was only one. An operator's mapping counts before all that was seen.
with claims as (
    select
        claims.source, claims.alias, claims.valid_from, claims.valid_until, claims.collected_at,
        case
            when serials.is_shared and claims.source <> 'mapping' and claims.is_controller then claims.alias || 'n1'
            when serials.is_shared and claims.source <> 'mapping' and claims.is_device then claims.alias
            else claims.drive_id
        end as drive_id
    from {{ ref('int_names__claimed') }} as claims
    left join {{ ref('int_serials') }} as serials on claims.drive_id = serials.drive_id
),

sightings as (
    select alias, source, seen_at, max_by(drive_id, (collected_at is not null, collected_at, drive_id)) as drive_id
    from (
        select alias, source, drive_id, collected_at, valid_from as seen_at from claims where source <> 'mapping'
        union all
        select alias, source, drive_id, collected_at, valid_until as seen_at from claims where source <> 'mapping' and valid_from is not null
    ) as seen
    where seen_at is not null
    group by alias, source, seen_at
),

cuts as (
    select distinct alias, valid_from as cut_at
    from {{ ref('stg_raw__drive_aliases') }}
    where drive_id is null
),

-- a sighting at the instant of a cut is after it
numbered as (
    select
        *,
        row_number() over (partition by alias, source order by seen_at)
        - row_number() over (partition by alias, source, drive_id, cut_no order by seen_at) as run_no
    from (
        select
            *,
            case
                when source not in ('{{ watching_sources | join("', '") }}')
                    then count(case when source is null then 1 end) over (partition by alias order by seen_at, source nulls first rows unbounded preceding)
            end as cut_no
        from (
            select alias, source, seen_at, drive_id from sightings
            union all
            select alias, cast(null as string) as source, cut_at as seen_at, cast(null as string) as drive_id from cuts
        ) as looked
    ) as cut
    where source is not null
),

runs as (
    select
        alias, source, drive_id,
        min(seen_at) as first_at,
        max(seen_at) as last_at,
        lead(min(seen_at)) over (partition by alias, source order by min(seen_at)) as next_at,
        lead(drive_id) over (partition by alias, source order by min(seen_at)) as next_drive_id
    from numbered
    group by alias, source, cut_no, run_no, drive_id
),

-- other sources may have seen one of the two drives in between
passages as (
    select
        runs.alias, runs.source, runs.first_at,
        max(case when others.drive_id = runs.drive_id then others.seen_at end) as old_at,
        min(case when others.drive_id = runs.next_drive_id then others.seen_at end) as new_at
    from runs
    inner join sightings as others
        on runs.alias = others.alias and others.seen_at > runs.last_at and others.seen_at < runs.next_at
    group by runs.alias, runs.source, runs.first_at
),

narrowed as (
    select
        runs.alias, runs.source, runs.drive_id, runs.next_drive_id, runs.first_at,
        case when passages.old_at >= passages.new_at then runs.last_at else coalesce(passages.old_at, runs.last_at) end as last_at,
        case when passages.old_at >= passages.new_at then runs.next_at else coalesce(passages.new_at, runs.next_at) end as next_at
    from runs
    left join passages on runs.alias = passages.alias and runs.source = passages.source and runs.first_at = passages.first_at
),

-- until when a drive bore the name for certain, and from when on the next one did
passed as (
    select
        narrowed.alias, narrowed.source, narrowed.drive_id, narrowed.next_drive_id, narrowed.first_at, narrowed.last_at,
        narrowed.next_at is null as is_last,
        coalesce(min(cuts.cut_at), narrowed.last_at + interval 1 microsecond) as until_at,
        coalesce(max(cuts.cut_at), narrowed.next_at) as next_from_at,
        coalesce(
            min(case when narrowed.source not in ('{{ watching_sources | join("', '") }}') then cuts.cut_at end), timestamp '{{ var("end_of_time") }}'
        ) as end_at
    from narrowed
    left join cuts on narrowed.alias = cuts.alias and cuts.cut_at > narrowed.last_at and cuts.cut_at <= coalesce(narrowed.next_at, cuts.cut_at)
    group by narrowed.alias, narrowed.source, narrowed.drive_id, narrowed.next_drive_id, narrowed.first_at, narrowed.last_at, narrowed.next_at
),

placed as (
    select *, coalesce(lag(next_from_at) over (partition by alias, source order by first_at), first_at) as from_at
    from passed
),

-- what was seen counts before what is unknown, and that before what is only taken to have gone on
held as (
    select
        alias, source, drive_id,
        1 as certainty,
        from_at,
        from_at as from_hour_utc,
        until_at as to_hour_utc
    from placed
    where not is_last or first_at < last_at
    union all
    select
        alias, source,
        cast(null as string) as drive_id,
        2 as certainty,
        until_at as from_at,
        until_at as from_hour_utc,
        next_from_at as to_hour_utc
    from placed
    where next_drive_id <> drive_id
    union all
    select
        alias, source, drive_id,
        3 as certainty,
        from_at,
        case when first_at < last_at then until_at else from_at end as from_hour_utc,
        end_at as to_hour_utc
    from placed
    where is_last
    union all
    -- an operator's words, and names without a time
    select
        alias, source, drive_id,
        case when source = 'mapping' then 0 else 3 end as certainty,
        coalesce(valid_from, timestamp '{{ var("beginning_of_time") }}') as from_at,
        coalesce(valid_from, timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        coalesce(valid_until, timestamp '{{ var("end_of_time") }}') as to_hour_utc
    from claims
    where source = 'mapping' or valid_from is null
),

{{ stretches('held', 'alias') }},

ranked as (
    select
        stretches.alias, held.drive_id, stretches.hour_utc as from_utc, stretches.next_hour_utc as to_utc,
        row_number() over (
            partition by stretches.alias, stretches.hour_utc
            order by
                held.certainty asc,
                held.from_at desc,
                {{ source_rank('description', 'held.source') }} asc,
                held.drive_id asc nulls last
        ) as place
    from {{ periods_of_stretches('held', 'alias') }}
),

changes as (
    select
        *,
        case
            when lag(to_utc) over (partition by alias order by from_utc) = from_utc
                and (drive_id is not distinct from lag(drive_id) over (partition by alias order by from_utc))
                then 0
            else 1
        end as is_beginning
    from ranked
    where place = 1
),

periods as (
    select *, sum(is_beginning) over (partition by alias order by from_utc) as period_no
    from changes
)

select
    alias, drive_id,
    min(from_utc) as from_utc,
    max(to_utc) as to_utc,
    -- most names have one period
    count(*) over (partition by alias) = 1 as is_only
from periods
group by alias, drive_id, period_no
