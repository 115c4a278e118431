{%- set powered_age_sources = ['backblaze', 'smartctl'] %}{#- count the day of deployment back from power-on hours: the earliest day ever reported for a drive counts -#}
{%- set snapshot_sources = ['mdadm', 'zfs'] %}{#- list a RAID group whole: who is missing from the next look has left it -#}
-- Inventory periods of every drive, merged over all sources. Grain: drive_id, valid_from.
-- Drives of another kind than most of a RAID group's data drives are in a group of their own, named after both (docs/decisions/0017-peers-of-one-kind.md).
{%- set membership = ['raid_group_id', 'role', 'slot', 'raid_level'] %}
{%- set description = [
    'kind', 'vendor', 'model', 'firmware', 'flash_cell', 'capacity_bytes', 'rpm', 'interface', 'host', 'enclosure', 'site', 'timezone'
] %}
with held as (
    select *, valid_to as valid_until
    from {{ ref('stg_raw__drives') }}
    where source is null
    union all
    select *, {{ valid_until('drive_id, host') }} as valid_until
    from {{ ref('stg_raw__drives') }}
    where source is not null
        and (valid_to > valid_from or valid_from is null or valid_to is null)
        -- a serial that devices share is no drive, and describes none
        and (source = 'mapping' or drive_id not in (select drive_id from {{ ref('int_serials') }} where is_shared))
),

live as (
    select
        *,
        coalesce(cast(date_trunc('hour', valid_from) as timestamp), timestamp '{{ var("beginning_of_time") }}') as from_hour_utc,
        -- a host's look is of an instant, and its last hour is the drive's
        coalesce(
            case when source is null then cast(date_trunc('hour', valid_until) as timestamp) else {{ next_hour('valid_until') }} end,
            timestamp '{{ var("end_of_time") }}'
        ) as to_hour_utc
    from held
),

looks as (
    select distinct source, raid_group_id, from_hour_utc
    from live
    where source in ('{{ snapshot_sources | join("', '") }}') and not is_group_guessed
),

-- a source that lists a RAID group whole: what it said holds until it looked again
followed_looks as (
    select *, lead(from_hour_utc) over (partition by source, raid_group_id order by from_hour_utc) as next_hour_utc
    from looks
),

seen_from_hosts as (
    select
        live.*,
        case when looks.next_hour_utc < live.to_hour_utc then looks.next_hour_utc else live.to_hour_utc end as seen_to_hour_utc
    from live
    left join followed_looks as looks
        on live.source = looks.source
        and live.raid_group_id = looks.raid_group_id
        and live.from_hour_utc = looks.from_hour_utc
    where live.source is not null
),

-- by whole hours: who bore a name, and the name itself where its drive is unknown
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
    from {{ ref('int_names') }}
    union all
    select
        alias,
        alias as drive_id,
        false as is_seen,
        max(from_utc) as from_utc,
        max(to_utc) as to_utc,
        {{ next_hour('max(to_utc)') }} as from_hour_utc,
        timestamp '{{ var("end_of_time") }}' as to_hour_utc
    from {{ ref('int_names') }}
    group by alias
),

borne as (
    select
        seen_from_hosts.*,
        coalesce(bearers.drive_id, seen_from_hosts.drive_id) as bearer,
        greatest(seen_from_hosts.from_hour_utc, coalesce(bearers.from_hour_utc, seen_from_hosts.from_hour_utc)) as borne_from_hour_utc,
        least(seen_from_hosts.seen_to_hour_utc, coalesce(bearers.to_hour_utc, seen_from_hosts.seen_to_hour_utc)) as borne_to_hour_utc,
        -- a look describes the drive that it found, not the next one under its name
        coalesce(
            seen_from_hosts.valid_from is null
            or not bearers.is_seen
            or bearers.from_utc = min(case when bearers.is_seen then bearers.from_utc end) over (
                partition by seen_from_hosts.source, seen_from_hosts.drive_id, seen_from_hosts.host, seen_from_hosts.valid_from
            ),
            true
        ) as is_described
    from seen_from_hosts
    left join bearers
        on seen_from_hosts.drive_id = bearers.alias
        and bearers.from_hour_utc < bearers.to_hour_utc
        and bearers.from_hour_utc < seen_from_hosts.seen_to_hour_utc
        and bearers.to_hour_utc > seen_from_hosts.from_hour_utc
        -- a drive that bore the name earlier in that hour is another one
        and (not bearers.is_seen or seen_from_hosts.valid_from is null or bearers.to_utc > seen_from_hosts.valid_from)
        and (not bearers.is_seen or seen_from_hosts.valid_until is null or bearers.from_utc < seen_from_hosts.valid_until)
),

-- each under the drives that bore its name while it held
named as (
    select
        bearer as drive_id,
{%- for name in membership %}
        {{ name }},
{%- endfor %}
{%- for name in description %}
        case when is_described then {{ name }} end as {{ name }},
{%- endfor %}
        -- power-on hours stand still while a drive is off, so a day counted back from them only moves later: the first one said is the nearest
        case
            when source in ('{{ powered_age_sources | join("', '") }}') then min(deployed_on) over (partition by bearer, source)
            when is_described then deployed_on
        end as deployed_on,
        source, is_group_guessed, valid_from, collected_at,
        borne_from_hour_utc as from_hour_utc,
        borne_to_hour_utc as to_hour_utc
    from borne
),

said as (
    select * from named
    union all
    select
        drive_id,
{%- for name in membership + description %}
        {{ name }},
{%- endfor %}
        deployed_on, source,
        false as is_group_guessed,
        valid_from, collected_at, from_hour_utc, to_hour_utc
    from live
    where source is null and drive_id in (select drive_id from named)
),

{{ stretches('said', 'drive_id') }},

ranked as (
    select
        said.*,
        stretches.hour_utc as stretch_from_utc,
        stretches.next_hour_utc as stretch_to_utc,
{%- for aspect in ('membership', 'description', 'age') %}
        row_number() over (
            partition by said.drive_id, stretches.hour_utc
            order by
                {% if aspect == 'membership' %}said.is_group_guessed asc,
                case when said.raid_group_id is null then 1 else 0 end asc,
                {% endif %}{{ source_rank(aspect, 'said.source') }} asc,
                said.source asc nulls first,
                said.valid_from desc nulls last,
                said.collected_at desc nulls last,
                said.raid_group_id asc,
                said.slot asc nulls last
        ) as {{ aspect }}_place{{ ',' if not loop.last }}
{%- endfor %}
    from {{ periods_of_stretches('said', 'drive_id') }}
),

decided as (
    select
        drive_id,
        max(case when membership_place = 1 then raid_group_id end) as raid_group_id,
{%- for name in membership if name != 'raid_group_id' %}
        -- a description of the drive without its group fills in
        coalesce(
            max(case when membership_place = 1 then {{ name }} end),
            min_by({{ name }}, membership_place) filter (where {{ name }} is not null and raid_group_id is null)
        ) as {{ name }},
{%- endfor %}
{%- for name in description %}
        min_by({{ name }}, description_place) filter (where {{ name }} is not null) as {{ name }},
{%- endfor %}
        min_by(deployed_on, age_place) filter (where deployed_on is not null) as deployed_on,
        min_by(coalesce(source, 'bundle'), age_place) filter (where deployed_on is not null) as deployed_on_source,
        coalesce(max(case when membership_place = 1 and is_group_guessed then 1 end), 0) = 1 as is_group_guessed,
        coalesce(max(case when membership_place = 1 and source = 'mapping' and raid_group_id is not null then 1 end), 0) = 1 as is_mapped,
        coalesce(max(case when membership_place = 1 and source is null then 1 end), 0) = 1 as is_named_by_array,
        stretch_from_utc as from_hour_utc,
        stretch_to_utc as to_hour_utc
    from ranked
    group by drive_id, stretch_from_utc, stretch_to_utc
),

-- a look that finds what the look before found begins no period
begun as (
    select
        *,
        case
            when lag(to_hour_utc) over (partition by drive_id order by from_hour_utc) = from_hour_utc
{%- for name in membership + description + ['deployed_on', 'deployed_on_source', 'is_group_guessed', 'is_mapped'] %}
                and ({{ name }} is not distinct from lag({{ name }}) over (partition by drive_id order by from_hour_utc))
{%- endfor %}
                then 0
            else 1
        end as is_beginning
    from decided
),

numbered as (
    select *, sum(is_beginning) over (partition by drive_id order by from_hour_utc) as period_no
    from begun
),

ended as (
    select *, max(to_hour_utc) over (partition by drive_id, period_no) as period_to_hour_utc
    from numbered
),

periods as (
    select
        drive_id,
{%- for name in membership + description if name != 'role' %}
        {{ name }},
{%- endfor %}
        -- a drive whose role nobody states serves data
        coalesce(role, 'data') as role,
        deployed_on,
        cast(null as string) as deployed_on_source,
        valid_from, valid_to,
        false as is_group_guessed,
        false as is_mapped,
        true as is_named_by_array,
        from_hour_utc, to_hour_utc
    from live
    where source is null and not exists (select 1 from decided where decided.drive_id = live.drive_id)
    union all
    select
        drive_id,
{%- for name in membership + description if name != 'role' %}
        {{ name }},
{%- endfor %}
        coalesce(role, 'data') as role,
        deployed_on, deployed_on_source,
        nullif(from_hour_utc, timestamp '{{ var("beginning_of_time") }}') as valid_from,
        nullif(period_to_hour_utc, timestamp '{{ var("end_of_time") }}') as valid_to,
        is_group_guessed, is_mapped, is_named_by_array, from_hour_utc,
        period_to_hour_utc as to_hour_utc
    from ended
    where is_beginning = 1
),

dated as (
    select
        *,
        count(*) over (partition by drive_id) = 1 as is_only,
        row_number() over (partition by drive_id order by valid_from desc nulls last, valid_to desc nulls first) = 1 as is_latest,
        min(case when role = 'data' then from_hour_utc end) over (partition by raid_group_id) as group_from_hour_utc
    from periods
),

kinds as (
    select drive_id, {{ peer_kind('kind', 'interface', 'drive_id') }} as peer_kind
    from dated
    where is_latest
),

counted as (
    select
        dated.raid_group_id,
        kinds.peer_kind,
        count(distinct case when dated.role = 'data' then dated.drive_id end) as data_drive_count,
        min(case when dated.role = 'data' then dated.from_hour_utc end) as first_hour_utc,
        count(distinct case when dated.role = 'data' and dated.from_hour_utc = dated.group_from_hour_utc then dated.drive_id end) as first_drive_count,
        min(min(case when dated.is_group_guessed then 1 else 0 end)) over (partition by dated.raid_group_id) = 1 as is_guessed
    from dated
    inner join kinds on dated.drive_id = kinds.drive_id
    where dated.raid_group_id is not null
    group by dated.raid_group_id, kinds.peer_kind
),

-- the kind first seen keeps the group's name, whatever joins it later; of several the commonest then. In an array the known ones go first
votes as (
    select
        raid_group_id, peer_kind, is_guessed,
        row_number() over (
            partition by raid_group_id
            order by
                case when not is_guessed and (peer_kind = 'unknown' or data_drive_count = 0) then 1 else 0 end asc,
                first_hour_utc asc nulls last,
                first_drive_count desc,
                peer_kind asc
        ) as kind_rank,
        count(case when data_drive_count > 0 and (is_guessed or peer_kind <> 'unknown') then 1 end) over (partition by raid_group_id) > 1 as is_mixed
    from counted
)

select
    dated.drive_id,
    {{ peer_group('dated.raid_group_id', 'kinds.peer_kind', 'votes.peer_kind', 'votes.is_guessed', 'votes.is_mixed') }} as raid_group_id,
    dated.raid_group_id as named_raid_group_id,
    kinds.peer_kind,
    votes.peer_kind as group_peer_kind,
    coalesce(votes.is_mixed, false) as is_of_mixed_group,
{%- for name in membership + description if name != 'raid_group_id' %}
    dated.{{ name }},
{%- endfor %}
    dated.deployed_on, dated.deployed_on_source, dated.valid_from, dated.valid_to, dated.is_group_guessed, dated.is_mapped,
    dated.is_named_by_array,
    dated.from_hour_utc, dated.to_hour_utc, dated.is_only, dated.is_latest
from dated
inner join kinds on dated.drive_id = kinds.drive_id
left join votes on dated.raid_group_id = votes.raid_group_id and votes.kind_rank = 1
