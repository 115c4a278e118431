{%- set letters = "lower(replace(replace(replace(believed_claims.drive_id, ' ', ''), '_', ''), '.', ''))" %}
-- Claims that a name belongs to a drive, each followed to the best known serial. Grain: source, alias, drive_id, valid_from.
-- A guessed name counts where no source states one: a controller nvme0 does not identify its namespace nvme0n1. Documents that give
-- a device several serials in two minutes, as smartctl does of a controller's drives, say nothing of it; nor does a period without length.
with delivered_claims as (
    select
        *,
        {{ valid_until('alias, drive_id') }} as valid_until,
        {{ host_of('alias') }} as host,
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

believed_claims as (
    select * from delivered_claims
    where not is_contradicted and (valid_until > valid_from or valid_from is null or valid_until is null)
),

-- some tools give the world wide name for the serial number; another source may know that drive's serial
wide_names as (
    select alias, min(drive_id) as drive_id
    from believed_claims
    where {{ wide_name('drive_id') }} <> alias
    group by alias
    having count(distinct drive_id) = 1
),

-- tools spell a serial number of one device in large or small letters, with blanks, an underscore for them, or a dot behind it
spelled_serials as (
    select alias, {{ letters }} as letters, coalesce(min(case when source = 'mapping' then drive_id end), min(drive_id)) as drive_id
    from believed_claims
    where host <> ''
    group by alias, {{ letters }}
    having count(distinct drive_id) > 1
),

spellings as (
    select believed_claims.drive_id, min(spelled_serials.drive_id) as spelling
    from believed_claims
    inner join spelled_serials on believed_claims.alias = spelled_serials.alias and {{ letters }} = spelled_serials.letters
    group by believed_claims.drive_id
),

stated_names as (
    select alias, drive_id from believed_claims where host <> '' and not is_controller
),

named_claims as (
    select
        believed_claims.*,
        wide_names.alias is not null or spellings.spelling <> believed_claims.drive_id as is_other_name,
        coalesce(joined.drive_id, wide_names.drive_id, spellings.spelling, believed_claims.drive_id) as named_drive_id
    from believed_claims
    left join {{ ref('stg_raw__drive_aliases') }} as joined
        on believed_claims.drive_id = joined.alias and joined.source = 'mapping' and joined.valid_from is null and believed_claims.alias <> joined.alias
    left join wide_names on {{ wide_name('believed_claims.drive_id') }} = wide_names.alias
    left join spellings on believed_claims.drive_id = spellings.drive_id
)

select
    source, alias,
    named_drive_id as drive_id,
    valid_from, valid_until, collected_at, host,
    host <> '' as is_device, is_controller, false as is_derived
from named_claims
union all
select
    source,
    alias || 'n1' as alias,
    named_drive_id as drive_id,
    valid_from, valid_until, collected_at, host,
    true as is_device, false as is_controller, true as is_derived
from named_claims
where is_controller and alias || 'n1' not in (select alias from stated_names) and drive_id not in (select drive_id from stated_names)
union all
-- claims about the world wide name, or the other spelling, itself
select distinct
    source,
    drive_id as alias,
    named_drive_id as drive_id,
    cast(null as timestamp) as valid_from, cast(null as timestamp) as valid_until, cast(null as timestamp) as collected_at, '' as host,
    false as is_device, false as is_controller, true as is_derived
from named_claims
where is_other_name
