{{ config(meta={'made': 'with_inventory'}) }}
-- Last values in which two sources differ on a drive, and the value that the marts show. Grain: drive_id, attribute.
{%- set attributes = [
    'raid_group_id', 'role', 'slot', 'kind', 'model', 'firmware', 'capacity_bytes', 'rpm', 'interface', 'enclosure', 'deployed_on'
] %}
with live_records as (
    select
        coalesce(aliases.drive_id, delivered.drive_id) as drive_id,
        coalesce(delivered.source, 'bundle') as source,
        delivered.valid_from, delivered.collected_at,
        -- a guessed RAID group cannot contradict
        case when not delivered.is_group_guessed then delivered.raid_group_id end as raid_group_id
{%- for attribute in attributes[1:] %},
        cast(delivered.{{ attribute }} as string) as {{ attribute }}
{%- endfor %}
    from {{ ref('stg_raw__drives') }} as delivered
    left join {{ ref('int_names') }} as aliases
        on delivered.is_alias is not null
        and delivered.drive_id = aliases.alias
        and aliases.to_utc = timestamp '{{ var("end_of_time") }}'
),

names as (
    -- a wwn is one drive's for ever, a device's name may have passed to another drive unless both records are of the same hour
    select distinct
        claims.alias, claims.source,
        coalesce(joined.drive_id, claims.drive_id) as drive_id,
        case
            when claims.alias not like 'wwn:%' then coalesce(cast(date_trunc('hour', claims.valid_from) as timestamp), timestamp '{{ var("beginning_of_time") }}')
        end as hour_utc,
        coalesce(bearers.drive_id = coalesce(joined.drive_id, claims.drive_id), false) as is_borne
    from (
        select *, lag(drive_id) over (partition by alias, source order by valid_from nulls first, drive_id) as last_drive_id
        from {{ ref('stg_raw__drive_aliases') }}
        where drive_id is not null
    ) as claims
    left join {{ ref('stg_raw__drive_aliases') }} as joined
        on claims.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and claims.alias <> joined.alias
    left join {{ ref('int_names') }} as bearers
        on claims.alias = bearers.alias
        and claims.alias not like 'wwn:%'
        and claims.valid_from >= bearers.from_utc
        and claims.valid_from < bearers.to_utc
    where not {{ is_watching('claims.source') }} or claims.drive_id is distinct from claims.last_drive_id
),

-- one source alone contradicts nobody
several_sources as (
    select drive_id from live_records group by drive_id having min(source) <> max(source)
),

contested_records as (
    select live_records.* from live_records inner join several_sources on live_records.drive_id = several_sources.drive_id
),

said as (
{%- for attribute in attributes %}
    select drive_id, source, '{{ attribute }}' as attribute, max_by({{ attribute }}, (valid_from, collected_at)) as said
    from contested_records
    where {{ attribute }} is not null
    group by drive_id, source
    union all
{%- endfor %}
    select distinct mine.alias as drive_id, mine.source, 'serial' as attribute, mine.drive_id as said
    from names as mine
    inner join names as others
        on mine.alias = others.alias
        and mine.hour_utc is not distinct from others.hour_utc
        and mine.drive_id <> others.drive_id
        and mine.source <> others.source
        -- where both are believed, the name passed between the two
        and not (mine.is_borne and others.is_borne)
),

believed as (
{%- for attribute in attributes %}
    select drive_id, '{{ attribute }}' as attribute, max_by(cast({{ attribute }} as string), from_hour_utc) as believed
    from {{ ref('int_drives__periods') }}
    where drive_id in (select drive_id from said)
    group by drive_id
    union all
{%- endfor %}
    select alias as drive_id, 'serial' as attribute, max_by(drive_id, from_utc) as believed
    from {{ ref('int_names') }}
    where alias in (select drive_id from said)
    group by alias
)

select
    said.drive_id, said.attribute,
    max(believed.believed) as believed,
    {{ joined_texts("said.source || ': ' || said.said", "; ") }} as said
from said
inner join believed on said.drive_id = believed.drive_id and said.attribute = believed.attribute
group by said.drive_id, said.attribute
having count(distinct said.said) > 1
