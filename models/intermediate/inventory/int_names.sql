-- Which drive bore a name from when to when, instant by instant; drive_id is null where it may have passed from one drive to another.
-- Grain: alias, from_utc. Where nobody has looked its drive is unknown, and there is no row: before it was first seen, from a cut on, where the
-- device's counters began again, until it is seen again, and between two cuts.
-- A source sees a name at instants. Between two sightings of one drive without a cut the name was that drive's. Between sightings of two it
-- passed: at the cut, if there was only one, and no third drive was seen. An operator's mapping counts before all that was seen.
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

-- sightings, and cuts, which have no source here: of a cut with an end nobody knows when between the two its drive went
seen_names as (
    select alias, source, drive_id, collected_at, valid_from, valid_until, false as is_end from claims where source <> 'mapping'
    union all
    select
        alias, cast(null as string) as source, drive_id, collected_at, valid_from,
        valid_to as valid_until,
        valid_to is not null and {{ reports_ends('source') }} as is_end
    from {{ ref('stg_raw__drive_aliases') }}
    where drive_id is null
),

-- a sighting at the instant of a cut is after it
looks as (
    select
        *,
        -- a cut without an end does not stop a source that watches the device
        case
            when not {{ is_watching('source') }} then count(case when source is null then 1 end) over (partition by alias order by seen_at)
            when {{ reports_ends('source') }} then count(case when is_end then 1 end) over (partition by alias order by seen_at)
        end as cut_no
    from (
        select
            alias, source, seen_at,
            max_by(drive_id, (collected_at is not null, collected_at, drive_id)) as drive_id,
            bool_or(is_end) as is_end,
            min(since) as since,
            max(until) as until
        from (
            select *, valid_from as seen_at, cast(null as timestamp) as since, valid_until as until from seen_names
            union all
            select *, valid_until as seen_at, valid_from as since, cast(null as timestamp) as until from seen_names where valid_from is not null
        ) as seen
        where seen_at is not null
        group by alias, source, seen_at
    ) as instants
),

runs as (
    select
        alias, source, drive_id,
        min(seen_at) as first_at,
        max(seen_at) as last_at,
        lead(min(seen_at)) over (partition by alias, source order by min(seen_at)) as next_at,
        lead(drive_id) over (partition by alias, source order by min(seen_at)) as next_drive_id
    from (
        select
            *,
            row_number() over (partition by alias, source order by seen_at)
            - row_number() over (partition by alias, source, drive_id, cut_no order by seen_at) as run_no
        from looks
        where source is not null
    ) as numbered
    group by alias, source, cut_no, run_no, drive_id
),

-- other sources may have seen one of the two drives in between
narrowed_runs as (
    {%- set old_at = 'max(case when looks.drive_id = runs.drive_id then looks.seen_at end)' %}
    {%- set new_at = 'min(case when looks.drive_id = runs.next_drive_id then looks.seen_at end)' %}
    select
        runs.alias, runs.source, runs.drive_id, runs.next_drive_id, runs.first_at,
        runs.first_at < runs.last_at as is_seen_again,
        coalesce(bool_or(looks.drive_id not in (runs.drive_id, runs.next_drive_id)), false) as is_of_three,
        case when {{ old_at }} >= {{ new_at }} then runs.last_at else coalesce({{ old_at }}, runs.last_at) end as last_at,
        case when {{ old_at }} >= {{ new_at }} then runs.next_at else coalesce({{ new_at }}, runs.next_at) end as next_at
    from runs
    left join looks on runs.alias = looks.alias and looks.seen_at > runs.last_at and looks.seen_at < runs.next_at
    group by runs.alias, runs.source, runs.drive_id, runs.next_drive_id, runs.first_at, runs.last_at, runs.next_at
),

-- since when a drive bore the name, until when for certain, and from when on the next one did
passed_runs as (
    -- the next drive may have been there since it was seen within a cut; of a drive that was last seen within one nobody knows if it stayed
    {%- set gone_at -%}
        case when looks.since < narrowed_runs.last_at and narrowed_runs.next_at is null then narrowed_runs.last_at + interval 1 microsecond else looks.seen_at end
    {%- endset %}
    {%- set is_within = 'looks.until > narrowed_runs.next_at and narrowed_runs.drive_id <> narrowed_runs.next_drive_id' %}
    {%- set came_at = 'max_by(case when ' ~ is_within ~ ' then narrowed_runs.next_at else looks.seen_at end, looks.seen_at)' %}
    select
        narrowed_runs.alias, narrowed_runs.source, narrowed_runs.drive_id, narrowed_runs.next_drive_id, narrowed_runs.is_seen_again,
        narrowed_runs.next_at is null as is_last,
        coalesce(
            lag(coalesce({{ came_at }}, narrowed_runs.next_at)) over (partition by narrowed_runs.alias, narrowed_runs.source order by narrowed_runs.first_at),
            narrowed_runs.first_at
        ) as from_at,
        coalesce(min_by({{ gone_at }}, looks.seen_at), narrowed_runs.last_at + interval 1 microsecond) as until_at,
        coalesce({{ came_at }}, narrowed_runs.next_at) as next_from_at,
        min(looks.seen_at) is null and not narrowed_runs.is_of_three as is_uncut,
        -- a watching source still sees the drive, unless its own cut is an end
        min_by(
            {{ gone_at }},
            case
                when not {{ is_watching('narrowed_runs.source') }} or (looks.is_end and {{ reports_ends('narrowed_runs.source') }}) then looks.seen_at
            end
        ) as end_at
    from narrowed_runs
    left join looks
        on looks.source is null
        and narrowed_runs.alias = looks.alias
        and looks.seen_at > narrowed_runs.last_at
        and looks.seen_at <= coalesce(narrowed_runs.next_at, looks.seen_at)
        -- a cut does not tell when the name passed where the first drive was seen within it, or a third one next to it
        and not narrowed_runs.is_of_three
        and not coalesce(looks.since < narrowed_runs.last_at and narrowed_runs.drive_id <> narrowed_runs.next_drive_id, false)
    group by
        narrowed_runs.alias, narrowed_runs.source, narrowed_runs.drive_id, narrowed_runs.next_drive_id, narrowed_runs.first_at, narrowed_runs.is_seen_again,
        narrowed_runs.last_at, narrowed_runs.next_at, narrowed_runs.is_of_three
),

-- an operator's words; then what was seen, before what is unknown, and that before what is only taken to have gone on; names without a time
said_names as (
{%- for certainty, drive_id, is_between_looks, from_at, to_at, relation in [
    (0, 'drive_id', 'false', 'valid_from', 'valid_until', "claims where source = 'mapping'"),
    (2, 'drive_id', 'false', 'from_at', 'until_at', 'passed_runs where not is_last or is_seen_again'),
    (3, 'cast(null as string)', 'is_uncut', 'until_at', 'next_from_at', 'passed_runs where next_drive_id <> drive_id'),
    (4, 'drive_id', 'false', 'from_at', 'end_at', 'passed_runs where is_last'),
    (4, 'drive_id', 'false', 'valid_from', 'valid_until', "claims where source <> 'mapping' and valid_from is null"),
] %}
    select
        alias, source,
        {{ drive_id }} as drive_id,
        {{ is_between_looks }} as is_between_looks,
        {{ certainty }} as certainty,
        coalesce({{ from_at }}, timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        coalesce({{ to_at }}, timestamp '{{ var("end_of_time") }}') as to_hour_utc
    from {{ relation }}{{ '\n    union all' if not loop.last }}
{%- endfor %}
),

-- drives that several sources saw under this name
agreed_names as (
    select *
    from (select *, min(source) over of_drive <> max(source) over of_drive as is_agreed from said_names window of_drive as (partition by alias, drive_id)) as said
    where is_agreed and certainty in (2, 4)
),

-- one source still sees a drive when another has seen it go and the next one come: their clocks differ, and nobody knows which is right
held_names as (
    select * from said_names
    union all
    select
        one.alias, one.source,
        cast(null as string) as drive_id, false as is_between_looks, 1 as certainty,
        other.from_hour_utc,
        one.to_hour_utc
    from agreed_names as one
    inner join agreed_names as other
        on one.alias = other.alias
        and one.drive_id <> other.drive_id
        and one.from_hour_utc < other.from_hour_utc
        and one.to_hour_utc > other.from_hour_utc
    -- what saw the first drive again, before the other source saw it go, has seen a change that this one missed
    where one.certainty = 2
        and not exists (
            select 1
            from agreed_names as again
            where again.alias = one.alias
                and again.source = other.source
                and again.drive_id = one.drive_id
                and again.from_hour_utc > other.from_hour_utc
                and again.from_hour_utc < one.to_hour_utc
        )
),

{{ stretches('held_names', 'alias') }},

ranked_names as (
    select
        *,
        row_number() over (
            partition by alias, stretch_from_utc
            order by certainty asc, from_hour_utc desc, {{ source_rank('description', 'source') }} asc, drive_id asc nulls last
        ) as row_rank
    from stretches
),

{{ joined_stretches('(select * from ranked_names where row_rank = 1) as decided', 'alias', ['drive_id', 'is_between_looks']) }}

select
    alias, drive_id,
    from_hour_utc as from_utc,
    to_hour_utc as to_utc,
    -- most names have one period
    count(*) over (partition by alias) = 1 as is_only,
{%- for side, name in (('lag', 'old'), ('lead', 'new')) %}
    case
        when is_between_looks and to_hour_utc > from_hour_utc + interval {{ var('unmeasured_minutes') }} minute
            then {{ side }}(drive_id) over (partition by alias order by from_hour_utc)
    end as {{ name }}_drive_id{{ ',' if not loop.last }}
{%- endfor %}
from joined_periods
