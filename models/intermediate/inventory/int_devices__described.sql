{%- set description = ['kind', 'vendor', 'model', 'firmware', 'flash_cell', 'capacity_bytes', 'rpm', 'interface', 'host'] -%}
-- A host's description of its own device whose serial other devices had too. Grain: drive_id.
with said_records as (
    select
        records.*,
        row_number() over (
            partition by records.drive_id
            order by
                {{ source_rank('description', 'records.source') }} asc, records.source asc,
                records.valid_from desc nulls last, records.collected_at desc nulls last, records.model asc nulls last
        ) as row_rank
    from {{ ref('stg_raw__drives') }} as records
    where records.source is not null
        and records.drive_id in (
            select claims.alias
            from {{ ref('int_names__claimed') }} as claims
            inner join {{ ref('int_serials') }} as serials on claims.drive_id = serials.drive_id and not serials.is_shared
            where claims.is_device
        )
),

decided_devices as (
    select
        drive_id,
        {%- for name in description %}
        min_by({{ name }}, row_rank) filter (where {{ name }} is not null) as {{ name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from said_records
    group by drive_id
)

select *, {{ peer_kind('kind', 'interface', 'drive_id') }} as peer_kind
from decided_devices
