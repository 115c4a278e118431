{%- set powered_age_sources = ['backblaze', 'smartctl'] %}{#- count the day of deployment back from power-on hours: the earliest day ever reported for a drive counts -#}
{%- set snapshot_sources = ['mdadm', 'zfs'] %}{#- list a RAID group whole: who is missing from the next look has left it -#}
-- Inventory periods of every drive, merged over all sources. Grain: drive_id, valid_from.
-- Drives of another kind than most of a RAID group's data drives are in a group of their own, named after both (docs/decisions/0017-peers-of-one-kind.md).
{%- set membership = ['raid_group_id', 'slot', 'raid_level', 'role'] %}
{%- set description = [
    'kind', 'vendor', 'model', 'firmware', 'flash_cell', 'capacity_bytes', 'rpm', 'interface', 'host', 'enclosure', 'site', 'timezone'
] %}
with held_records as (
    select *, {{ valid_until('drive_id, host') }} as valid_until
    from {{ ref('stg_raw__drives') }}
    where source is null
        or (
            (valid_to > valid_from or valid_from is null or valid_to is null)
            -- a serial that devices share is no drive, and describes none
            and (source = 'mapping' or drive_id not in (select drive_id from {{ ref('int_serials') }} where is_shared))
        )
),

timed_records as (
    select
        *,
        coalesce(cast(date_trunc('hour', valid_from) as timestamp), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        -- a host's look is of an instant, and its last hour is the drive's
        coalesce(
            case when source is null then cast(date_trunc('hour', valid_until) as timestamp) else {{ next_hour('valid_until') }} end,
            timestamp '{{ var("end_of_time") }}'
        ) as to_hour_utc,
        source in ('{{ snapshot_sources | join("', '") }}') and raid_group_id is not null and not is_group_guessed as is_snapshot
    from held_records
),

-- a source that lists a RAID group whole: what it said holds until it looked again, and of the drives that it found for that hour
live_records as (
    select *, greatest(until_hour_utc, from_hour_utc + interval 1 hour) as found_until_hour_utc
    from (
        select
            *,
            coalesce(
                min(case when is_snapshot then from_hour_utc end) over (
                    partition by source, raid_group_id, is_snapshot order by coalesce(valid_from, timestamp '{{ var("beginning_of_time") }}')
                    range between interval 1 microsecond following and unbounded following
                ),
                timestamp '{{ var("end_of_time") }}'
            ) as until_hour_utc
        from timed_records
    ) as looks
),

-- by whole hours: who bore a name, and the name itself where its drive is unknown, before each period of it and after the last
bearers as (
    select
        alias, drive_id, true as is_seen, from_utc, to_utc,
        cast(date_trunc('hour', from_utc) as timestamp) as from_hour_utc,
        {{ next_hour('to_utc') }} as to_hour_utc
    from {{ ref('int_names') }}
    where drive_id is not null
    union all
    select
        alias,
        alias as drive_id,
        false as is_seen, from_utc, to_utc,
        coalesce(lag({{ next_hour('to_utc') }}) over (partition by alias order by from_utc), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        cast(date_trunc('hour', from_utc) as timestamp) as to_hour_utc
    from (
        select alias, from_utc, to_utc from {{ ref('int_names') }}
        union all
        select distinct alias, timestamp '{{ var("end_of_time") }}' as from_utc, timestamp '{{ var("end_of_time") }}' as to_utc from {{ ref('int_names') }}
    ) as ends
),

borne_records as (
    select
        live_records.*,
        coalesce(bearers.drive_id, live_records.drive_id) as bearer,
        case when bearers.is_seen and {{ is_watching('live_records.source') }} then bearers.from_utc else live_records.valid_from end as news_utc,
        greatest(live_records.from_hour_utc, bearers.from_hour_utc) as borne_from_hour_utc,
        -- whether a drive that has the name since that look is in the RAID group says the next one
        least(
            live_records.to_hour_utc, bearers.to_hour_utc,
            case when bearers.is_seen and bearers.from_utc > live_records.valid_from then live_records.until_hour_utc else live_records.found_until_hour_utc end
        ) as borne_to_hour_utc,
        -- a look describes the drive that it found, not the next one under its name. A source that watches a device and never names its drive describes each
        live_records.valid_from is null
        or not coalesce(bearers.is_seen, false)
        or ({{ is_watching('live_records.source') }} and namers.alias is null)
        or bearers.from_utc = min(case when bearers.is_seen then bearers.from_utc end) over (
            partition by live_records.source, live_records.drive_id, live_records.host, live_records.valid_from
        ) as is_described,
        live_records.is_snapshot and bearers.is_seen and live_records.valid_from >= bearers.from_utc and live_records.valid_from < bearers.to_utc as is_found,
        coalesce(live_records.is_snapshot and bearers.is_seen and bearers.from_utc > live_records.valid_from, false) as is_assumed
    from live_records
    left join (select distinct source, alias from {{ ref('stg_raw__drive_aliases') }} where drive_id is not null) as namers
        on live_records.source = namers.source and live_records.drive_id = namers.alias
    left join bearers
        on live_records.source is not null
        and live_records.drive_id = bearers.alias
        and bearers.from_hour_utc < bearers.to_hour_utc
        and bearers.from_hour_utc < least(live_records.to_hour_utc, live_records.found_until_hour_utc)
        and bearers.to_hour_utc > live_records.from_hour_utc
        -- a drive that bore the name earlier in that hour is another one
        and (not bearers.is_seen or live_records.valid_from is null or bearers.to_utc > live_records.valid_from)
        and (not bearers.is_seen or live_records.valid_until is null or bearers.from_utc < live_records.valid_until)
    union all
    -- a drive that a look found in an array stays in it under the other names of its host
    select
        live_records.*, bearers.drive_id as bearer, live_records.valid_from as news_utc,
        greatest(live_records.from_hour_utc, bearers.from_hour_utc) as borne_from_hour_utc,
        least(live_records.to_hour_utc, live_records.found_until_hour_utc, bearers.to_hour_utc) as borne_to_hour_utc,
        true as is_described, true as is_found, false as is_assumed
    from live_records
    inner join bearers as found on live_records.drive_id = found.alias and live_records.valid_from >= found.from_utc and live_records.valid_from < found.to_utc
    inner join bearers
        on found.drive_id = bearers.drive_id
        and found.alias <> bearers.alias
        and substr(bearers.alias, 1, length(live_records.host) + 1) = concat(live_records.host, '/')
        and bearers.to_utc > live_records.valid_from
        and bearers.from_hour_utc < least(live_records.to_hour_utc, live_records.found_until_hour_utc)
    where live_records.is_snapshot and found.is_seen and bearers.is_seen
),

-- each under the drives that bore its name while it held
named_records as (
    select
        bearer as drive_id,
        {{ membership | join(', ') }},
{%- for name in description %}
        case when is_described then {{ name }} end as {{ name }},
{%- endfor %}
        -- power-on hours stand still while a drive is off, so a day counted back from them only moves later: the first one said is the nearest
        case
            when source in ('{{ powered_age_sources | join("', '") }}') then min(deployed_on) over (partition by bearer, source)
            when is_described then deployed_on
        end as deployed_on,
        source, drive_id as alias, valid_from, valid_to, collected_at, news_utc, is_found,
        source is not null and is_group_guessed as is_group_guessed,
        coalesce(source = 'mapping' and raid_group_id is not null, false) as is_mapped,
        source is null as is_named_by_array,
        max(case when source is not null then 1 else 0 end) over (partition by bearer) = 1 as is_seen_from_hosts,
        borne_from_hour_utc as from_hour_utc,
        borne_to_hour_utc as to_hour_utc
    from borne_records
    -- a drive that took the name after the look replaces the one that was found, unless looks found it in another RAID group only
    where not is_assumed
        or bearer not in (select found.bearer from borne_records as found where found.is_found)
        or (bearer, raid_group_id) in (select own.bearer, own.raid_group_id from borne_records as own where own.is_found)
),

said_records as (
    select * from named_records where is_seen_from_hosts
),

{{ stretches('said_records', 'drive_id') }},

ranked_records as (
    select
        *,
{%- for aspect in ('membership', 'description', 'age') %}
        row_number() over (
            partition by drive_id, stretch_from_utc
            order by
                {% if aspect == 'membership' %}is_group_guessed asc,
                case when raid_group_id is null then 1 else 0 end asc,
                {% endif %}{{ source_rank(aspect, 'source') }} asc, source asc nulls first,
                {% if aspect == 'membership' %}case when is_found then 0 else 1 end asc,{% endif %}
                news_utc desc nulls last, alias asc, valid_from desc nulls last, collected_at desc nulls last,
                raid_group_id asc, slot asc nulls last
        ) as {{ aspect }}_rank{{ ',' if not loop.last }}
{%- endfor %}
    from stretches
),

decided_stretches as (
    select
        drive_id, stretch_from_utc, stretch_to_utc,
        max(case when membership_rank = 1 then raid_group_id end) as raid_group_id,
{%- for name in membership if name != 'raid_group_id' %}
        -- a description of the drive without its group fills in
        coalesce(
            max(case when membership_rank = 1 then {{ name }} end),
            min_by({{ name }}, membership_rank) filter (where {{ name }} is not null and raid_group_id is null)
{%- if name == 'slot' %},
            -- and a host or array that guesses the group knows the place
            min_by(slot, membership_rank) filter (where slot is not null and is_group_guessed)
{%- endif %}
        ) as {{ name }},
{%- endfor %}
{%- for name in description %}
        min_by({{ name }}, description_rank) filter (where {{ name }} is not null) as {{ name }},
{%- endfor %}
        min_by(deployed_on, age_rank) filter (where deployed_on is not null) as deployed_on,
        min_by(coalesce(source, 'bundle'), age_rank) filter (where deployed_on is not null) as deployed_on_source,
        coalesce(max(case when membership_rank = 1 and is_group_guessed then 1 end), 0) = 1 as is_group_guessed,
        coalesce(max(case when membership_rank = 1 and is_mapped then 1 end), 0) = 1 as is_mapped,
        coalesce(max(case when membership_rank = 1 and is_named_by_array then 1 end), 0) = 1 as is_named_by_array
    from ranked_records
    group by drive_id, stretch_from_utc, stretch_to_utc
),

-- merge consecutive snapshots that agree
{{ joined_stretches('decided_stretches', 'drive_id', membership + description + ['deployed_on', 'deployed_on_source', 'is_group_guessed', 'is_mapped', 'is_named_by_array']) }},

periods as (
    {%- set columns %}drive_id, raid_group_id as named_raid_group_id, slot, raid_level, {{ description | join(', ') }}, deployed_on{% endset %}
    select
        {{ columns }},
        cast(null as string) as deployed_on_source,
        -- a drive whose role nobody states serves data
        coalesce(role, 'data') as role,
        valid_from, valid_to, is_group_guessed, is_mapped, is_named_by_array, from_hour_utc, to_hour_utc
    from named_records
    where not is_seen_from_hosts
    union all
    select
        {{ columns }}, deployed_on_source,
        coalesce(role, 'data') as role,
        nullif(from_hour_utc, timestamp '{{ var("beginning_of_time") }}') as valid_from,
        nullif(to_hour_utc, timestamp '{{ var("end_of_time") }}') as valid_to,
        is_group_guessed, is_mapped, is_named_by_array, from_hour_utc, to_hour_utc
    from joined_periods
),

dated_periods as (
    select
        *,
        count(*) over (partition by drive_id) = 1 as is_only,
        row_number() over latest_first = 1 as is_latest,
        first_value({{ peer_kind('kind', 'interface', 'drive_id') }}) over latest_first as peer_kind,
        min(case when role = 'data' then from_hour_utc end) over (partition by named_raid_group_id) as group_from_hour_utc
    from periods
    window latest_first as (partition by drive_id order by valid_from desc nulls last, valid_to desc nulls first)
),

counted_kinds as (
    select
        named_raid_group_id, peer_kind,
        count(distinct case when role = 'data' then drive_id end) as data_drive_count,
        min(case when role = 'data' then from_hour_utc end) as first_hour_utc,
        count(distinct case when role = 'data' and from_hour_utc = group_from_hour_utc then drive_id end) as first_drive_count,
        min(min(case when is_group_guessed then 1 else 0 end)) over (partition by named_raid_group_id) = 1 as is_guessed
    from dated_periods
    where named_raid_group_id is not null
    group by named_raid_group_id, peer_kind
),

-- the kind first seen keeps the group's name, whatever joins it later; of several the commonest then. In an array the known ones go first
votes as (
    select
        named_raid_group_id, peer_kind, is_guessed,
        row_number() over (
            partition by named_raid_group_id
            order by
                case when not is_guessed and (peer_kind = 'unknown' or data_drive_count = 0) then 1 else 0 end asc,
                first_hour_utc asc nulls last, first_drive_count desc, peer_kind asc
        ) as kind_rank,
        count(case when data_drive_count > 0 and (is_guessed or peer_kind <> 'unknown') then 1 end) over (partition by named_raid_group_id) > 1 as is_mixed
    from counted_kinds
)

select
    dated_periods.*,
    {{ peer_group('dated_periods.named_raid_group_id', 'dated_periods.peer_kind', 'votes.peer_kind', 'votes.is_guessed', 'votes.is_mixed') }} as raid_group_id,
    votes.peer_kind as group_peer_kind,
    coalesce(votes.is_mixed, false) as is_of_mixed_group
from dated_periods
left join votes on dated_periods.named_raid_group_id = votes.named_raid_group_id and votes.kind_rank = 1
