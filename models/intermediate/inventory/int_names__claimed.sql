-- Who says that a name is of which drive, each followed to the serial that is known best. Grain: delivery_seq, file_no, row_no, alias.
-- A guessed name counts where no source states one: a controller nvme0 does not identify its namespace nvme0n1. Documents that give
-- a device several serials in two minutes, as smartctl does of a controller's drives, say nothing of it; nor does a period without length.
with delivered as (
    select
        *,
        {{ valid_until('alias') }} as valid_until,
        {{ host_of('alias') }} as host,
        {{ host_of('alias') }} <> '' as is_device,
        regexp_extract(alias, '/(nvme[0-9]+)$', 1) <> '' as is_controller,
        source = 'smartctl'
        and (
            coalesce(lag(drive_id) over looks <> drive_id and valid_from <= lag(valid_from) over looks + interval 2 minutes, false)
            or coalesce(lead(drive_id) over looks <> drive_id and valid_from >= lead(valid_from) over looks - interval 2 minutes, false)
        ) as is_contradicted
    from {{ ref('stg_raw__drive_aliases') }}
    where drive_id is not null
    window looks as (partition by source, alias order by valid_from, drive_id)
),

believed as (
    select * from delivered
    where not is_contradicted and (valid_until > valid_from or valid_from is null or valid_until is null)
),

-- some tools give the world wide name for the serial number; another source may know that drive's serial
wide_names as (
    select alias, min(drive_id) as drive_id
    from believed
    where {{ wide_name('drive_id') }} <> alias
    group by alias
    having count(distinct drive_id) = 1
),

stated as (
    select alias, drive_id from believed where is_device and not is_controller
),

claims as (
{%- for is_derived in (false, true) %}
    select
        delivery_seq, file_no, row_no, source,
        alias{{ " || 'n1' as alias" if is_derived }},
        drive_id, valid_from, valid_until, collected_at, host, is_device,
        {{ "false as is_controller" if is_derived else "is_controller" }},
        {{ is_derived | lower }} as is_derived
    from believed
{%- if is_derived %}
    where is_controller
        and alias || 'n1' not in (select alias from stated)
        and drive_id not in (select drive_id from stated)
{%- else %}
    union all
{%- endif %}
{%- endfor %}
),

named as (
    select
        claims.*,
        coalesce(joined.drive_id, wide_names.drive_id, claims.drive_id) as named_drive_id
    from claims
    left join {{ ref('stg_raw__drive_aliases') }} as joined
        on claims.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and claims.alias <> joined.alias
    left join wide_names on {{ wide_name('claims.drive_id') }} = wide_names.alias
)

select
    delivery_seq, file_no, row_no, source, alias,
    named_drive_id as drive_id,
    valid_from, valid_until, collected_at, host, is_device, is_controller, is_derived
from named
union all
-- what is reported of the world wide name itself
select distinct
    cast(null as bigint) as delivery_seq,
    cast(null as bigint) as file_no,
    cast(null as bigint) as row_no,
    source,
    drive_id as alias,
    named_drive_id as drive_id,
    cast(null as timestamp) as valid_from,
    cast(null as timestamp) as valid_until,
    cast(null as timestamp) as collected_at,
    '' as host,
    false as is_device,
    false as is_controller,
    true as is_derived
from named
where {{ wide_name('drive_id') }} in (select alias from wide_names)
