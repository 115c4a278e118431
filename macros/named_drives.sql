{#- CTEs that name what hosts measured (`seen_from_hosts`, with `serial`, the drive that its name means then), by the columns of its time (`at`):
    `hosts_rows`, with `accepted_count`, the number of accepted rows that a row is made of.
    Two devices that measured one drive at once: paths of one host and one world wide name are added up, so that none is lost; what hosts measured that
    all state that name is one measurement, taken by each. Others are not one drive, and each is named by its device, with `shared_serial`. Only serials that several devices ever had are looked at.
    described: columns of the relation besides what was measured. -#}
{% macro named_drives(at, described=[]) -%}
{%- set columns = at + described + [
    'read_ios', 'write_ios', 'read_latency_us', 'write_latency_us', 'read_blocks', 'write_blocks', 'block_bytes', 'latency_us', 'io_count', 'bytes',
    'coverage', 'min_coverage', 'collected_at', 'source'
] -%}
devices as (
    select seen.serial, seen.{{ at | join(', seen.') }}, seen.drive_id, {{ host_of('seen.drive_id') }} as host, serials.is_one_drive, serials.is_one_drive_of_hosts
    from seen_from_hosts as seen
    inner join {{ ref('int_serials__claimed') }} as serials on seen.serial = serials.drive_id
    where seen.drive_id <> seen.serial
),

contested as (
    select
        serial,
        {{ at | join(',\n        ') }},
        max(case when is_one_drive_of_hosts then 2 when is_one_drive then 1 else 0 end) >= case when count(distinct host) = 1 then 1 else 2 end as is_one_drive
    from devices
    where host <> ''
    group by serial, {{ at | join(', ') }}
    having count(distinct host || regexp_extract(drive_id, '(/.*)$', 1)) > 1
),

named as (
    select
        seen.*,
        {{ host_of('seen.drive_id') }} as host,
        contested.is_one_drive,
        seen.drive_id <> seen.serial and {{ host_of('seen.drive_id') }} <> '' and contested.serial is not null as is_contested
    from seen_from_hosts as seen
    left join contested on seen.serial = contested.serial
        {%- for column in at %}
        and seen.{{ column }} = contested.{{ column }}
        {%- endfor %}
),

paths as (
    select
        *,
        dense_rank() over (
            partition by serial, host, {{ at | join(', ') }} order by {{ source_rank('latency', 'source') }} asc, source asc
        ) as source_place
    from named
    where is_contested and is_one_drive
),

hosts_rows as (
    {%- for relation in ("named where not is_contested or not is_one_drive", "paths where source_place > 1") %}
    select
        {{ 'case when is_contested then drive_id else serial end' if loop.first else 'serial' }} as named_drive_id,
        {{ 'case when is_contested then serial end' if loop.first else 'cast(null as string)' }} as shared_serial,
        drive_id,
        cast(1 as bigint) as accepted_count,
        {{ columns | join(',\n        ') }}
    from {{ relation }}
    union all
    {%- endfor %}
    select
        serial as named_drive_id,
        cast(null as string) as shared_serial,
        min(drive_id) as drive_id,
        count(*) as accepted_count,
        {{ at | join(',\n        ') }},
        {%- for column in described %}
        {{ 'min(case when is_group_guessed then 1 else 0 end) = 1' if column == 'is_group_guessed' else 'min(' ~ column ~ ')' }} as {{ column }},
        {%- endfor %}
        {{ sum_where_all('read_ios') }} as read_ios,
        {{ sum_where_all('write_ios') }} as write_ios,
        {{ mean_by_ios('read_latency_us', 'read_ios') }} as read_latency_us,
        {{ mean_by_ios('write_latency_us', 'write_ios') }} as write_latency_us,
        {{ sum_where_all('read_blocks * block_bytes') }} as read_blocks,
        {{ sum_where_all('write_blocks * block_bytes') }} as write_blocks,
        cast(1 as bigint) as block_bytes,
        {{ mean_by_ios('latency_us', 'io_count') }} as latency_us,
        {{ sum_where_all('io_count') }} as io_count,
        {{ sum_where_all('bytes') }} as bytes,
        -- a path that came within the time did nothing before
        max(coalesce(coverage, 1.0)) as coverage,
        min(min_coverage) as min_coverage,
        max(collected_at) as collected_at,
        source
    from paths
    where source_place = 1
    group by serial, host, source, {{ at | join(', ') }}
)
{%- endmacro %}

{#- A sum of counts; what is partly unknown is unknown. -#}
{% macro sum_where_all(value) %}case when count({{ value }}) = count(*) then cast(sum({{ value }}) as bigint) end{% endmacro %}

{#- The mean of a latency over I/Os, summed in whole nanoseconds: the same in any order of the rows. What no decimal holds is cut to 1e36. -#}
{% macro mean_by_ios(latency_us, ios) -%}
cast(sum(
            case
                when {{ latency_us }} * {{ ios }} >= 1e33 then cast({{ 10 ** 36 }} as decimal(38, 0))
                else cast({{ whole(latency_us ~ ' * ' ~ ios ~ ' * 1000 + 0.5') }} as decimal(38, 0))
            end
        ) as double)
        / nullif(cast(sum(case when {{ latency_us }} is not null then {{ ios }} end) as double), 0.0) / 1000
{%- endmacro %}
