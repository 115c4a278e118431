{%- set description = ['kind', 'vendor', 'model', 'firmware', 'flash_cell', 'capacity_bytes', 'rpm', 'interface', 'host'] -%}
-- A host's description of its own device whose serial other devices had too. Grain: drive_id.
with said as (
    select
        claims.alias || case when claims.is_controller then 'n1' else '' end as drive_id,
        records.{{ description | join(',\n        records.') }},
        row_number() over (
            partition by claims.alias || case when claims.is_controller then 'n1' else '' end
            order by
                {{ source_rank('description', 'records.source') }} asc,
                records.source asc,
                records.valid_from desc nulls last,
                records.collected_at desc nulls last,
                records.drive_id asc,
                records.model asc nulls last
        ) as place
    from {{ ref('int_aliases__claimed') }} as claims
    inner join {{ ref('int_serials__claimed') }} as serials on claims.drive_id = serials.drive_id and not serials.is_shared
    inner join {{ ref('stg_raw__drives') }} as records
        on claims.source = records.source
        and claims.drive_id = records.drive_id
        and claims.host = {{ host_of("records.host || '/'") }}
        and claims.valid_from = records.valid_from
    where claims.is_device
),

decided as (
    select
        drive_id,
        {%- for name in description %}
        min_by({{ name }}, place) filter (where {{ name }} is not null) as {{ name }}{{ ',' if not loop.last }}
        {%- endfor %}
    from said
    group by drive_id
)

select *, {{ peer_kind('kind', 'interface', 'drive_id') }} as peer_kind
from decided
